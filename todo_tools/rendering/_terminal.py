"""Drawing in a terminal with rich, which is imported only when something is drawn."""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar, overload

from todo_tools._todos import TodoItem, Token
from todo_tools.rendering._follow import PlainScreen, Screen, follow
from todo_tools.rendering._lines import Line, Span, encodable, list_lines
from todo_tools.rendering._run import Followed, status_part

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.live import Live
    from rich.text import Text

Chunk = TypeVar("Chunk")

_STYLES: dict[Token, str] = {
    "toolTitle": "none",
    "text": "none",
    "dim": "dim",
    "muted": "dim",
    "accent": "cyan",
    "warning": "yellow",
    "success": "green",
    "error": "red",
}


@overload
def follow_in_terminal(
    stream: Iterator[Chunk],
    *,
    console: "Console | None" = None,
    todos: Sequence[TodoItem] | None = None,
) -> Generator[Chunk, None, None]: ...
@overload
def follow_in_terminal(
    stream: AsyncIterator[Chunk],
    *,
    console: "Console | None" = None,
    todos: Sequence[TodoItem] | None = None,
) -> AsyncGenerator[Chunk, None]: ...
def follow_in_terminal(
    stream: Iterator[Chunk] | AsyncIterator[Chunk],
    *,
    console: "Console | None" = None,
    todos: Sequence[TodoItem] | None = None,
) -> Generator[Chunk, None, None] | AsyncGenerator[Chunk, None]:
    """Show the list of a running graph in the terminal, and pass its stream through.

    The list, its status and the countdown stand below what you print, change in place, and the
    whole list is left standing when the run ends, also by an error. Where the output is not a
    terminal each change is printed as plain lines, without control codes.

    A list of more lines than the terminal shows the part around the item in progress until then.
    The colours are the styles `todo.accent`, `todo.dim` and so on, if the console's theme has them.

    Args:
        stream: `graph.stream(...)` or `graph.astream(...)`. Give it
            `stream_mode=["updates", "custom"]`; other modes may stand beside them. Only the graph
            itself is followed, not its subgraphs.
        console: Where to show it; standard output by default.
        todos: The list before the first change, such as that of a thread that is resumed.

    Returns:
        The chunks of the stream, unchanged: a generator, for `astream` an asynchronous one.
        Closing it early closes the stream.

    Raises:
        ImportError: rich is not installed.
        TypeError: `stream` is no stream.
        ValueError: `todos` is not a list of todos.

    Example:
        ```python
        stream = graph.stream(request, config, stream_mode=["updates", "custom"])
        for mode, chunk in follow_in_terminal(stream):
            pass
        ```
    """
    return follow(stream, _screen(console), todos)


def texts(lines: Iterable[Line], console: "Console", options: "ConsoleOptions") -> "Iterator[Text]":
    """Lines as rich draws them, broken to the width of the console."""
    for line in lines:
        yield from _broken(line, console, None if options.no_wrap else options.max_width)


class _LiveScreen:
    """A terminal: the list changes in place."""

    def __init__(self, console: "Console") -> None:
        self.console = console
        self.live: Live | None = None

    def show(self, followed: Followed) -> None:
        from rich.live import Live  # noqa: PLC0415  an extra

        if self.live is None:
            self.live = Live(console=self.console, auto_refresh=False)
            self.live.start()
        self.live.update(_Fitted(followed), refresh=True)

    def finish(self, followed: Followed) -> None:
        if self.live is not None:
            self.live.update(_Fitted(followed, whole=True))
            self.live.stop()


class _Fitted:
    """A list and what stands below it, cut to the height of the console unless it is final."""

    def __init__(self, followed: Followed, *, whole: bool = False) -> None:
        self.followed = followed
        self.whole = whole

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Text]":
        todos = self.followed.todos
        below = list(texts(status_part(self.followed), console, options))
        rows = [
            (line, text)
            for line in (() if todos is None else list_lines(todos))
            for text in texts([line], console, options)
        ]
        if self.whole:
            yield from (text for _, text in rows)
        else:
            yield from _window(rows, options.max_height - len(below) - 1, console)
        yield from below


def _window(rows: "list[tuple[Line, Text]]", height: int, console: "Console") -> "Iterator[Text]":
    """The part of a list that fits, around the first item in progress."""
    height = max(height, 1)
    if len(rows) <= height:
        yield from (text for _, text in rows)
        return
    statuses = [line.status for line, _ in rows]
    focus = statuses.index("in_progress") if "in_progress" in statuses else _first_open(statuses)
    shown = max(height - 1, 1)
    start = max(0, min(focus - shown // 3, len(rows) - shown))
    yield from (text for _, text in rows[start : start + shown])
    if height > 1:
        visible = {id(line) for line, _ in rows[start : start + shown]}
        hidden = len({id(line) for line, _ in rows} - visible)
        yield from _broken(Line((Span(f"({hidden} more)", "dim"),)), console, console.width)


def _first_open(statuses: Sequence[str | None]) -> int:
    return statuses.index("not_started") if "not_started" in statuses else len(statuses) - 1


def _screen(console: "Console | None") -> Screen:
    try:
        from rich.console import Console  # noqa: PLC0415  an extra
    except ImportError as error:
        raise ImportError(
            'the terminal view needs rich: pip install "langgraph-todo-tools[rich]"'
        ) from error
    return _screen_of(console or Console())


def _screen_of(console: "Console") -> Screen:
    def print_line(line: Line) -> None:
        # One line each, however wide the reader's screen is: it can be searched.
        console.print(_text(line.spans, console), soft_wrap=True)

    if console.is_terminal and not console.is_dumb_terminal:
        return _LiveScreen(console)
    return PlainScreen(print_line)


def _broken(line: Line, console: "Console", width: int | None) -> "Iterator[Text]":
    """A line as one text, or as several that are no wider than `width` columns."""
    lead, body = (_text(spans, console) for spans in (line.lead, line.body))
    if width is None:
        yield lead + body
        return
    indent = lead.cell_len if lead.cell_len < width // 2 else 0
    beside = max(width - lead.cell_len, 1) if indent or not lead else width
    if lead and not indent:  # so narrow that nothing would fit beside it
        lead, body = lead[:0], lead + body
    for part in body.wrap(console, beside, overflow="fold"):
        part.rstrip()
        yield lead + part
        lead = _text((Span(" " * indent),), console)


def _text(spans: Sequence[Span], console: "Console") -> "Text":
    from rich.style import Style  # noqa: PLC0415  an extra
    from rich.text import Text  # noqa: PLC0415

    # Not markup and not a plain string, which rich would read for tags, emoji codes and links.
    text = Text(overflow="fold", end="\n")
    for span in spans:
        style = Style(strike=span.strike or None, bold=span.bold or None)
        if span.token:
            style += console.get_style(f"todo.{span.token}", default=_STYLES[span.token])
        text.append(encodable(span, console.encoding), style)
    return text
