"""Markdown checklists: plans that people write by hand, read as the texts of todos."""

import re

_STEP = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[([ xX])\]\s+(.*\S)\s*$", re.MULTILINE)
_COMMAND = re.compile(r"`([^`]+)`")


def read_checklist(markdown: str) -> list[str]:
    r"""Read the open steps of a checklist.

    Args:
        markdown: Any Markdown; lines such as `- [ ] Build the site` or `1. [ ] ...` are its steps.

    Returns:
        The text of each step that is not ticked, in order; empty if there is none.

    Example:
        >>> read_checklist("# Plan\n- [x] Think\n- [ ] Build it: `make`")
        ['Build it: `make`']
    """
    return [text for tick, text in _STEP.findall(markdown) if tick == " "]


def command_in(step: str) -> str | None:
    """The command that a step carries in backticks, `None` without one."""
    found = _COMMAND.search(step)
    return found.group(1) if found else None
