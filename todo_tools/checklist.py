"""Read Markdown checklists that people write, to turn their steps into todos."""

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
        markdown: Any Markdown. Lines such as `- [ ] Build the site` or `1. [ ] ...` are steps.
            Code blocks and comments are ignored.

    Returns:
        The text of each step that is not checked off, in order.

    Example:
        ```python
        steps = read_checklist("# Plan\n- [x] Think\n- [ ] Build it: `make`")
        assert steps == ["Build it: `make`"]
        ```
    """
    steps = map(_STEP.fullmatch, _lines_outside_code(_COMMENT.sub("", markdown)))
    return [step[2].strip() for step in steps if step and step[1] == " "]


def command_in(step: str) -> str | None:
    """Return the command that a step has in backticks; `None` if it has none."""
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
