"""The foot of a conversation: the part of the list that fits, its status, what is going on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from todo_tools.rendering import (
    Followed,
    Line,
    Span,
    list_lines,
    note_lines,
    one_line,
    status_lines,
)


def foot_lines(
    followed: Followed, doing: str, kept: Sequence[str], list_height: int
) -> Iterator[Line]:
    """The lines of the foot.

    Args:
        followed: The list and the countdown or notice.
        doing: What is going on, in a few words.
        kept: Messages that are sent when the agent has stopped.
        list_height: How many lines the list may take.

    Yields:
        Lines, each to be cut to the width of the terminal.
    """
    todos = followed.todos or []
    if todos:
        yield from in_view(list_lines(todos), max(list_height, 1))
    (status,) = status_lines(todos) or list_lines([])
    yield replace(status, body=(*status.body, Span(f" · {doing}", "dim")))
    yield from (Line((Span(f"kept: {one_line(text)}", "dim"),)) for text in kept)
    yield from note_lines(_countdown(followed.countdown) or followed.notice)


def _countdown(text: str) -> str:
    """What will happen, and what the user of this program can do."""
    return text and f"{text.partition(' (')[0]} (type anything to interrupt)"


def in_view(rows: tuple[Line, ...], height: int) -> tuple[Line, ...]:
    """The part of a list that fits: around the item in progress, or else the first open one.

    Args:
        rows: The lines of the list.
        height: How many may be shown, at least 1.

    Returns:
        All lines, or a part of them and how many more there are.
    """
    if len(rows) <= height:
        return rows
    statuses = [row.status for row in rows]
    open_ones = [status for status in ("in_progress", "not_started") if status in statuses]
    focus = statuses.index(open_ones[0]) if open_ones else len(rows)
    start = max(0, min(focus - height // 3, len(rows) - height))
    more = Line((Span(f"({len(rows) - height} more)", "dim"),))
    return (*rows[start : start + height], more)
