"""Draw the state of a running graph as lines: its list, its status, and what has changed."""

from dataclasses import replace

from todo_tools._list.todos import TodoItem, texts_of
from todo_tools.rendering._followed import Followed
from todo_tools.rendering._lines import Line, Span, list_lines, note_lines, status_lines


def list_part(followed: Followed) -> tuple[Line, ...]:
    """Draw the list, and below it the open lists of subgraphs."""
    lines = list(() if followed.todos is None else list_lines(followed.todos))
    for name, todos in followed.lists:
        (status,) = status_lines(todos)
        lines.append(replace(status, lead=(Span("└ ", "dim", plain="` "), Span(f"{name} "))))
        lines += (replace(row, lead=(Span("  "), *row.lead)) for row in list_lines(todos))
    return tuple(lines)


def status_part(followed: Followed) -> tuple[Line, ...]:
    """Draw the lines below the list: the status and a notice."""
    note = followed.countdown or followed.notice
    return (*status_lines(followed.todos or []), *note_lines(note))


def whole(followed: Followed) -> tuple[Line, ...]:
    """Draw what stays when a run has ended."""
    return *list_part(followed), *status_part(followed)


def changes(before: Followed, after: Followed) -> tuple[Line, ...]:
    """Draw the differences between two states, as lines to print.

    If items only changed their status or were added at the end, only these are drawn; otherwise the
    whole list. Lists of subgraphs are left out.
    """
    lines: list[Line] = []
    if after.todos is not None and after.todos != before.todos:
        lines += _changed_rows(before.todos or [], after.todos)
        lines += status_lines(after.todos)
    note = after.countdown or after.notice
    if note != (before.countdown or before.notice):
        lines += note_lines(note)
    return tuple(lines)


def _changed_rows(before: list[TodoItem], after: list[TodoItem]) -> list[Line]:
    rows = list_lines(after)
    if not after or texts_of(after[: len(before)]) != texts_of(before):
        return list(rows)
    return [row for at, row in enumerate(rows) if after[at] not in before[at : at + 1]]
