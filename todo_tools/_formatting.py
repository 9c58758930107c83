"""The one place that turns todos into text and back: list lines, status, items in progress."""

import re
from collections.abc import Iterator, Sequence

from todo_tools._todos import STATUSES, TodoItem, TodoStatus, incomplete


def _visible_marks() -> dict[int, str]:
    """What stands for each character that could break a line or hide what follows it."""
    marks = {code: chr(0x2400 + code) for code in range(0x20)}
    marks[0x7F] = "␡"
    bidirectional = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    others = [*range(0x80, 0xA0), 0x2028, 0x2029, *bidirectional, *range(0xD800, 0xE000)]
    return marks | {code: f"<U+{code:04X}>" for code in others}


_MARKS = _visible_marks()


def one_line(text: str) -> str:
    """Show a text on one line, with everything that could act made visible.

    Line breaks and control characters become their pictures (`␊`, `␛`); bidirectional overrides,
    line separators and lone surrogates become `<U+202E>` and the like. Without this, a text could
    pass for another list line, or for an instruction.
    """
    return text.translate(_MARKS)


def format_line(index: int, todo: TodoItem) -> str:
    """One list line: `icon [index] text`."""
    return f"{STATUSES[todo['status']].icon} [{index}] {one_line(todo['text'])}"


_LINE = re.compile(r"(\S) \[(\d+)\] (.+)")


def read_lines(text: str) -> Iterator[tuple[int, TodoItem] | None]:
    """Read what `format_line` wrote, line by line: index and item, `None` for any other line."""
    status_of: dict[str, TodoStatus] = {row.icon: status for status, row in STATUSES.items()}
    for line in text.split("\n"):
        found = _LINE.fullmatch(line)
        status = status_of.get(found[1]) if found else None
        if found and status:
            yield int(found[2]), TodoItem(text=found[3], status=status)
        else:
            yield None


def format_change(label: str, indices: Sequence[int]) -> str:
    """The first line of the result of a status change, such as `Started [0, 1]`."""
    return f"{label} {list(indices)}"


_CHANGE = re.compile(r"(\w+) \[(\d+(?:, \d+)*)\]")


def read_change(line: str) -> tuple[TodoStatus, set[int]] | None:
    """Read what `format_change` wrote: the new status, and the items that have it."""
    status_of: dict[str, TodoStatus] = {row.done_label: name for name, row in STATUSES.items()}
    found = _CHANGE.fullmatch(line)
    status = status_of.get(found[1]) if found else None
    return (status, set(map(int, found[2].split(", ")))) if found and status else None


def format_todos(todos: Sequence[TodoItem]) -> str:
    """Show a list as the tools show it to the model.

    Args:
        todos: The items in order.

    Returns:
        A line `icon [index] text` for each item, or `No todos`.

    Example:
        ```python
        text = format_todos([{"text": "Write tests", "status": "in_progress"}])
        assert text == "● [0] Write tests"
        ```
    """
    return "\n".join(format_line(*entry) for entry in enumerate(todos)) or "No todos"


def format_incomplete(todos: Sequence[TodoItem]) -> str:
    """The list lines of the items that are neither completed nor abandoned."""
    return "\n".join(format_line(*entry) for entry in incomplete(todos))


def format_status(todos: Sequence[TodoItem]) -> str:
    """Say in a few characters how far a list is.

    Args:
        todos: The items in order.

    Returns:
        `📋 2/5` (finished of all; abandoned items count as finished), `✓ Done (5 items)` when
        nothing remains, and an empty string without todos.

    Example:
        ```python
        assert format_status([{"text": "Write tests", "status": "in_progress"}]) == "📋 0/1"
        ```
    """
    if not todos:
        return ""
    remaining = len(incomplete(todos))
    if not remaining:
        return f"✓ Done ({len(todos)} items)"
    return f"📋 {len(todos) - remaining}/{len(todos)}"


def format_in_progress(todos: Sequence[TodoItem]) -> list[str]:
    """The items in progress, one `[index] text` each, for the line beside the status."""
    return [
        f"[{index}] {one_line(todo['text'])}"
        for index, todo in enumerate(todos)
        if todo["status"] == "in_progress"
    ]
