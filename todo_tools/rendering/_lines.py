"""What a list, a call or a result looks like, before it is drawn: lines of themed text.

The terminal and the notebook draw the same lines. Nothing here knows of either; every text that a
model wrote has passed `one_line` when it stands in a line.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import ToolMessage

from todo_tools._formatting import (
    format_in_progress,
    format_status,
    format_todos,
    one_line,
    read_lines,
)
from todo_tools._todos import STATUSES, TodoItem, TodoStatus, Token
from todo_tools.transcript import details_of, list_after

_PLAIN_MARKS = {"📋 ": "Todos ", "✓ ": "", "⏳ ": "", "⚠ ": "! "}

_DRAWN = "│├└─◆…↪↻→←·━╌⠋"
_GLYPHS = "".join([*(row.icon for row in STATUSES.values()), *_PLAIN_MARKS, _DRAWN]).replace(
    " ", ""
)


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text and how it is to look."""

    text: str
    token: Token | None = None
    """`None` takes the look of what surrounds it."""
    strike: bool = False
    bold: bool = False
    plain: str | None = None
    """What stands for `text` where our own icons cannot be shown."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, which a narrow screen may break into several."""

    body: tuple[Span, ...]
    lead: tuple[Span, ...] = ()
    """What the body stands beside; a broken body is indented by its width."""
    status: TodoStatus | None = None
    """The status of the item, if the line is one of a list."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The whole line."""
        return (*self.lead, *self.body)

    def __str__(self) -> str:
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a list is."""

    total: int
    completed: int
    abandoned: int
    in_progress: int

    @property
    def finished(self) -> int:
        """Completed and abandoned items: nothing is left to do about them."""
        return self.completed + self.abandoned


def progress_of(todos: Sequence[TodoItem]) -> Progress:
    """Count a list."""
    count = Counter(todo["status"] for todo in todos)
    return Progress(
        total=len(todos),
        completed=count["completed"],
        abandoned=count["abandoned"],
        in_progress=count["in_progress"],
    )


def encodable(span: Span, encoding: str) -> str:
    """The text of a span in characters that an encoding has; what it lacks becomes escapes.

    Our own icons are replaced all together, so that they stay as wide as each other.
    """
    plain = span.plain is not None and not _has(encoding, _GLYPHS)
    shown = span.plain if plain and span.plain is not None else span.text
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def _has(encoding: str, characters: str) -> bool:
    return characters.encode(encoding, "ignore").decode(encoding) == characters


def list_lines(todos: Sequence[TodoItem]) -> tuple[Line, ...]:
    """The items of a list, one a line: icon, index, text; finished ones struck through."""
    if not todos:
        return (Line((Span(format_todos([]), "dim"),)),)
    return tuple(_item_line(index, todo) for index, todo in enumerate(todos))


def status_lines(todos: Sequence[TodoItem]) -> tuple[Line, ...]:
    """The status line; none without todos.

    "Done" is said of a list in which everything was completed. A finished list with abandoned items
    is shown with the number of either kind.
    """
    if not todos:
        return ()
    progress = progress_of(todos)
    if progress.finished < progress.total:
        return (Line((_marked(format_status(todos), "muted"),)),)
    if not progress.abandoned:
        done = f"✓ Done ({counted(progress.total, 'item')})"
        return (Line((_marked(done, "success"),)),)
    completed = _count_span("completed", progress.completed)
    abandoned = _count_span("abandoned", progress.abandoned)
    return (Line((completed, Span(", "), abandoned) if progress.completed else (abandoned,)),)


def counted(number: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def in_view(
    lines: Sequence[Line], height: int, rows_of: Callable[[Line], int] = lambda _: 1
) -> tuple[Line, ...]:
    """The part of a list that fits, around its first item in progress or else the first open one.

    Args:
        lines: The list.
        height: How many rows there are, at least 1.
        rows_of: How many rows a line takes.

    Returns:
        All lines, or a part of them and, where there is a row for it, how many are above and below.
    """
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


_IN_VIEW: tuple[TodoStatus, ...] = ("in_progress", "not_started")


def bar_spans(progress: Progress, width: int = 20) -> tuple[Span, ...]:
    """How far a list is, as a bar."""
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
    """The items in progress, one a line: index and text."""
    lines: list[Line] = []
    for shown in format_in_progress(todos):
        index, _, text = shown.partition(" ")
        lines.append(Line((Span(text, "text"),), (Span(index, "accent"), Span(" "))))
    return tuple(lines)


def note_lines(note: str) -> tuple[Line, ...]:
    """A word of the loop to the user, such as the countdown; none for an empty one."""
    return (Line((_marked(one_line(note), "warning"),)),) if note else ()


def result_lines(message: ToolMessage) -> tuple[Line, ...]:
    """A tool result: the list after a change, the listing that was shown, or the error.

    The text of another tool's result is shown as it is.
    """
    details = details_of(message)
    if details is None:
        return _text_lines(message.text, "error" if message.status == "error" else None)
    if "error" in details:
        return (Line((Span(one_line(f"Error: {details['error']}"), "error"),)),)
    todos = list_after(message)
    return _listing_lines(message.text) if todos is None else list_lines(todos)


def _listing_lines(content: str) -> tuple[Line, ...]:
    """What `list_todos` showed. Its details hold no list, but its text has one item a line."""
    if content == format_todos([]):
        return list_lines([])
    items = list(read_lines(content))
    if not all(items):
        return _text_lines(content)
    return tuple(_item_line(*item) for item in items if item)


def _text_lines(content: str, token: Token | None = None) -> tuple[Line, ...]:
    """A text of several lines, each made harmless."""
    lines = content.replace("\r\n", "\n").split("\n")
    return tuple(Line((Span(one_line(line), token),)) for line in lines)


def _item_line(index: int, todo: TodoItem) -> Line:
    row = STATUSES[todo["status"]]
    icon = Span(row.icon, row.color, plain=row.plain_icon)
    lead = (icon, Span(" "), Span(f"[{index}]", "accent"), Span(" "))
    text = one_line(todo["text"])
    if row.finished:
        return Line((Span(text, "dim", strike=True),), lead, todo["status"])
    return Line((Span(text, "text"),), lead, todo["status"])


def _marked(text: str, token: Token) -> Span:
    """A text that may begin with a mark of ours."""
    for mark, plain in _PLAIN_MARKS.items():
        if text.startswith(mark):
            return Span(text, token, plain=plain + text.removeprefix(mark))
    return Span(text, token)
