"""Turn lists, calls and results into lines of themed text.

The terminal and the notebook draw the same lines, and this module depends on neither. Every text
that a model wrote passes through `one_line` before it becomes part of a line.
"""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from langchain_core.messages import ToolMessage

from todo_tools._list.formatting import format_in_progress, format_status, format_todos, one_line
from todo_tools._list.todos import STATUSES, TodoItem, TodoStatus, Token, incomplete, is_mapping
from todo_tools._thread.notes import listed_in
from todo_tools._thread.state import todos_in
from todo_tools._thread.transcript import details_of, list_after

_PLAIN_MARKS = {"📋 ": "Todos ", "✓ ": "", "⏳ ": "", "⚠ ": "! ", "↻ ": ""}

_DRAWN = "│├└─◆…↪↻→←·━╌⠋"
_GLYPHS = "".join([*(row.icon for row in STATUSES.values()), *_PLAIN_MARKS, _DRAWN])


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text and its style."""

    text: str
    token: Token | None = None
    """The role that sets the colour; `None` keeps the surrounding style."""
    strike: bool = False
    bold: bool = False
    plain: str | None = None
    """A replacement for `text` if the output cannot show this package's icons."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, which a narrow screen may wrap."""

    body: tuple[Span, ...]
    lead: tuple[Span, ...] = ()
    """The text before the body, such as an icon; a wrapped body is indented by its width."""
    status: TodoStatus | None = None
    """The status of the item, if the line is one of a list."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The whole line."""
        return (*self.lead, *self.body)

    def __str__(self) -> str:
        return "".join(span.text for span in self.spans)


class Progress(NamedTuple):
    """How many items of a list are finished."""

    finished: int
    total: int


def progress_of(todos: Sequence[TodoItem]) -> Progress:
    """Count the finished items of a list."""
    return Progress(len(todos) - len(incomplete(todos)), len(todos))


def checked(todos: Sequence[TodoItem]) -> list[TodoItem]:
    """Return a list that a caller gave, or raise an error that says what was wrong."""
    if is_mapping(todos):
        raise TypeError("got a state; pass result['todos']")
    return todos_in({"todos": list(todos)})


def encodable(span: Span, encoding: str) -> str:
    """Return the text of a span for an encoding; characters that it lacks become escapes."""
    # If one of this package's icons is missing, all are replaced, so that lines stay aligned.
    has_icons = _GLYPHS.encode(encoding, "ignore").decode(encoding) == _GLYPHS
    shown = span.text if has_icons or span.plain is None else span.plain
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def printable(line: Line) -> str:
    """Return a line as standard output can show it, without colours."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return "".join(encodable(span, encoding) for span in line.spans)


def list_lines(todos: Sequence[TodoItem]) -> tuple[Line, ...]:
    """Draw each item on one line: icon, index, text. Finished items are struck through."""
    if not todos:
        return (Line((Span(format_todos([]), "dim"),)),)
    return tuple(_item_line(index, todo) for index, todo in enumerate(todos))


def status_lines(todos: Sequence[TodoItem]) -> tuple[Line, ...]:
    """Draw the status line; it says "Done" only if every item was completed."""
    if not todos:
        return ()
    if incomplete(todos):
        return (Line((_marked(format_status(todos), "muted"),)),)
    count = Counter(todo["status"] for todo in todos)
    if not count["abandoned"]:
        return (Line((_marked(f"✓ Done ({counted(len(todos), 'item')})", "success"),)),)
    completed = _count_span("completed", count["completed"])
    abandoned = _count_span("abandoned", count["abandoned"])
    return (Line((completed, Span(", "), abandoned) if count["completed"] else (abandoned,)),)


def counted(number: int, noun: str) -> str:
    """Format a number with its noun, such as `2 items`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def in_view(
    lines: Sequence[Line], height: int, rows_of: Callable[[Line], int] = lambda _: 1
) -> tuple[Line, ...]:
    """Return the part of a list that fits in a height, around the first item that is not done."""
    sizes = [rows_of(line) for line in lines]
    if sum(sizes) <= height:
        return tuple(lines)
    statuses = [line.status for line in lines]
    begin = next((statuses.index(s) for s in _IN_VIEW if s in statuses), len(lines) - 1)
    end, room = begin + 1, max(height - 1, 1) - sizes[begin]
    above = room // 3
    while begin and sizes[begin - 1] <= above:
        begin -= 1
        above, room = above - sizes[begin], room - sizes[begin]
    while end < len(lines) and sizes[end] <= room:
        room -= sizes[end]
        end += 1
    while begin and sizes[begin - 1] <= room:
        begin -= 1
        room -= sizes[begin]
    hidden = {"above": begin, "below": len(lines) - end}
    text = ", ".join(f"{number} {where}" for where, number in hidden.items() if number)
    more = (Line((Span(f"({text})", "dim"),)),) if height > 1 else ()
    return (*lines[begin:end], *more)


_OPEN: list[TodoStatus] = [status for status, row in STATUSES.items() if not row.finished]
_IN_VIEW = sorted(_OPEN, key=lambda status: STATUSES[status].precedence)


def bar_spans(progress: Progress, width: int = 20) -> tuple[Span, ...]:
    """Draw the progress of a list as a bar."""
    filled = width * progress.finished // max(progress.total, 1)
    left = width - filled
    return (
        Span("━" * filled, "success", plain="#" * filled),
        Span("╌" * left, "dim", plain="-" * left),
    )


def _count_span(status: TodoStatus, count: int) -> Span:
    row = STATUSES[status]
    return Span(f"{row.icon} {count} {status}", row.color, plain=f"{count} {status}")


def in_progress_lines(todos: Sequence[TodoItem]) -> tuple[Line, ...]:
    """Draw each item in progress on one line: index and text."""
    shown = (each.partition(" ") for each in format_in_progress(todos))
    return tuple(
        Line((Span(text, "text"),), (Span(index, "accent"), Span(" "))) for index, _, text in shown
    )


def note_lines(note: str) -> tuple[Line, ...]:
    """Draw a notice to the user, such as the countdown; no line if it is empty."""
    return (Line((_marked(one_line(note), "warning"),)),) if note else ()


def result_lines(message: ToolMessage) -> tuple[Line, ...]:
    """Draw a tool result: the list that it shows, its error, or its text."""
    details = details_of(message)
    if details is None:
        return _text_lines(message.text, "error" if message.status == "error" else None)
    if "error" in details:
        return (Line((Span(one_line(f"Error: {details['error']}"), "error"),)),)
    todos = list_after(message)
    listed = listed_in(message) if todos is None else todos
    return _text_lines(message.text) if listed is None else list_lines(listed)


def _text_lines(content: str, token: Token | None = None) -> tuple[Line, ...]:
    """Draw a text of several lines, each passed through `one_line`."""
    lines = content.replace("\r\n", "\n").split("\n")
    return tuple(Line((Span(one_line(line), token),)) for line in lines)


def _item_line(index: int, todo: TodoItem) -> Line:
    row = STATUSES[todo["status"]]
    icon = Span(row.icon, row.color, plain=row.plain_icon)
    lead = (icon, Span(" "), Span(f"[{index}]", "accent"), Span(" "))
    text = Span(one_line(todo["text"]), "dim" if row.finished else "text", strike=row.finished)
    return Line((text,), lead, todo["status"])


def _marked(text: str, token: Token) -> Span:
    """Draw a text; replace a mark at its beginning where the output cannot show it."""
    for mark, plain in _PLAIN_MARKS.items():
        if text.startswith(mark):
            return Span(text, token, plain=plain + text.removeprefix(mark))
    return Span(text, token)
