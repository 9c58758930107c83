"""Markdown checklists: plans that people write by hand, read as the texts of todos."""

import re
from collections.abc import Iterator

__all__ = ["command_in", "read_checklist"]

_STEP = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[([ xX])\][ \t]+(\S.*)")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def read_checklist(markdown: str) -> list[str]:
    r"""Read the open steps of a checklist.

    Args:
        markdown: Any Markdown; lines such as `- [ ] Build the site` or `1. [ ] ...` are its steps.
            Code blocks and comments are passed over.

    Returns:
        The text of each step that is not ticked, in order; empty if there is none.

    Example:
        ```python
        steps = read_checklist("# Plan\n- [x] Think\n- [ ] Build it: `make`")
        assert steps == ["Build it: `make`"]
        ```
    """
    steps = map(_STEP.fullmatch, _lines_outside_code(_COMMENT.sub("", markdown)))
    return [step[2].strip() for step in steps if step and step[1] == " "]


def command_in(step: str) -> str | None:
    """The command that a step carries in backticks, `None` without one."""
    found = _CODE.search(step)
    return found[2].strip() if found else None


def _lines_outside_code(markdown: str) -> Iterator[str]:
    fence = ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        else:
            yield line
