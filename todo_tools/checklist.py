"""Read Markdown checklists that people write, and write todos as such checklists."""

import re
from collections.abc import Iterator, Sequence

from todo_tools._list.todos import TodoItem, TodoStatus, is_blank

__all__ = ["command_in", "read_checklist", "read_todos", "write_checklist"]

_STEP = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[([ xX])\][ \t]+(\S.*)")
_NEW_BLOCK = re.compile(
    r"[ \t]*(?:(?:[-*+]|\d+[.)]|#{1,6})(?:[ \t]|$)|>|([-*_=])(?:[ \t]*\1)*[ \t]*$"
    r"|</?(?:details|div|p|summary|table)\b)"
)
"""The beginning of a line that continues no step: a list item, heading, quote, rule or tag."""
_IN_LIST = r"[ \t]*(?:(?:[-*+>]|\d+[.)])[ \t]+)*"
# A line with more backticks has code in it.
_FENCE = re.compile(rf"{_IN_LIST}(`{{3,}}(?=[^`]*$)|~{{3,}})")
_END_OF_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*")
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
# A comment that is not closed in its line takes the rest of it, or many of them would take long.
_CODE_OR_COMMENT = re.compile(rf"{_CODE.pattern}|<!--(?:.*?(-->)|.*)")
_COMMENT_OF_LINES = re.compile(rf"{_IN_LIST}<!--")
_STRUCK = re.compile(r"~~(.*\S.*)~~")
# `write_checklist` adds a backslash where a text would otherwise be read as something else.
_COMMENT_MARK = re.compile(r"<(\\*)!--")
_ESCAPED_COMMENT_MARK = re.compile(r"<\\(\\*)!--")
_LIKE_STRUCK = re.compile(r"\\*~~.*~~")
_ESCAPED_STRUCK = re.compile(r"\\(\\*~~.*~~)")


def read_checklist(markdown: str) -> list[str]:
    r"""Read the open steps of a checklist.

    Args:
        markdown: Any Markdown. Lines such as `- [ ] Build the site` or `1. [ ] ...` begin a step,
            and its text may go on in the next lines, up to a blank line, a list item or another
            block. Fenced code blocks and comments are ignored.

    Returns:
        The text of each step that is not checked off, in order and on one line.

    Example:
        ```python
        steps = read_checklist("# Plan\n- [x] Think\n- [ ] Build it: `make`")
        assert steps == ["Build it: `make`"]
        ```
    """
    return [todo["text"] for todo in read_todos(markdown) if todo["status"] == "not_started"]


def read_todos(markdown: str) -> list[TodoItem]:
    r"""Read a checklist as todos, also the steps that are checked off.

    Args:
        markdown: Any Markdown, as for `read_checklist`.

    Returns:
        The steps in order: `- [ ] text` is not started, `- [x] text` is completed, and
        `- [x] ~~text~~` is abandoned.

    Example:
        ```python
        todos = read_todos("- [x] Think\n- [ ] Build it")
        assert [todo["status"] for todo in todos] == ["completed", "not_started"]
        ```
    """
    steps: list[tuple[str, list[str]]] = []  # the mark of each, and its lines
    goes_on = False
    for line in _lines_outside_code(markdown):
        if step := _STEP.fullmatch(line):
            steps.append((step[1], [step[2].strip()]))
            goes_on = True
        elif goes_on and line.strip() and not _NEW_BLOCK.match(line):
            steps[-1][1].append(line.strip())
        else:
            goes_on = False
    todos = [_todo(mark, _without_comments(" ".join(lines)).strip()) for mark, lines in steps]
    return [todo for todo in todos if not is_blank(todo["text"])]


def write_checklist(todos: Sequence[TodoItem]) -> str:
    r"""Write todos as a Markdown checklist, the counterpart of `read_todos`.

    A checklist has no mark for an item in progress, so `read_todos` gives it back as not started.
    A text is written on one line: its line breaks become spaces.

    Args:
        todos: The list; for one in LangChain's format, use `todo_tools.state.todos_in`.

    Returns:
        A line for each item, such as `- [ ] Build the site`; empty for an empty list.

    Example:
        ```python
        todos = [{"text": "Think", "status": "completed"}, {"text": "Build", "status": "abandoned"}]
        assert write_checklist(todos) == "- [x] Think\n- [x] ~~Build~~\n"
        ```
    """
    return "".join(f"- {_mark_and_text(todo)}\n" for todo in todos)


def command_in(step: str) -> str | None:
    """Return the command that a step has in backticks; `None` if it has none."""
    found = _CODE.search(step)
    return found[2].strip() if found else None


def _mark_and_text(todo: TodoItem) -> str:
    line = " ".join(todo["text"].splitlines()).strip()
    text = _COMMENT_MARK.sub(r"<\\\1!--", line)
    match todo["status"]:
        case "abandoned":
            return f"[x] ~~{text}~~"
        case "completed":
            return f"[x] \\{text}" if _LIKE_STRUCK.fullmatch(text) else f"[x] {text}"
        case _:
            return f"[ ] {text}"


def _todo(mark: str, step: str) -> TodoItem:
    text = _ESCAPED_COMMENT_MARK.sub(r"<\1!--", step)
    status: TodoStatus = "completed"
    if mark == " ":
        status = "not_started"
    elif struck := _STRUCK.fullmatch(text):
        status, text = "abandoned", struck[1]
    elif escaped := _ESCAPED_STRUCK.fullmatch(text):
        text = escaped[1]
    return {"text": text, "status": status}


def _lines_outside_code(markdown: str) -> Iterator[str]:
    """Yield the lines without their comments; a code block becomes one empty line."""
    fence, is_comment = "", False
    for given in markdown.removeprefix("\ufeff").splitlines():  # the byte order mark
        line = given
        if fence:
            mark = _END_OF_FENCE.fullmatch(line)
            fence = "" if mark and mark[1].startswith(fence) else fence
            continue
        if is_comment:
            _, end, line = line.partition("-->")
            is_comment = not end
        if not is_comment:
            line = _without_comments(line)
            is_comment = bool(_COMMENT_OF_LINES.match(line))
        if not is_comment and (mark := _FENCE.match(line)):
            fence = mark[1]
        yield "" if is_comment or fence else line


def _without_comments(text: str) -> str:
    return _CODE_OR_COMMENT.sub(lambda found: "" if found[3] else found[0], text)
