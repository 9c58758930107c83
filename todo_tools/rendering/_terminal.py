"""Draw in a terminal with rich, which is imported only when something is drawn."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, overload

from todo_tools._list.todos import TodoItem, Token
from todo_tools.rendering._follow import Chunk, PlainScreen, Screen, follow, print_plain
from todo_tools.rendering._followed import Followed
from todo_tools.rendering._followed_lines import whole
from todo_tools.rendering._lines import Line, Span, encodable
from todo_tools.rendering._live import LiveLines
from todo_tools.rendering._tool_view import ToolView

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.live import Live
    from rich.text import Text

_STYLES: dict[Token, str] = {
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
    views: Mapping[str, ToolView] | None = None,
) -> Generator[Chunk, None, None]: ...
@overload
def follow_in_terminal(
    stream: AsyncIterator[Chunk],
    *,
    console: "Console | None" = None,
    todos: Sequence[TodoItem] | None = None,
    views: Mapping[str, ToolView] | None = None,
) -> AsyncGenerator[Chunk, None]: ...
def follow_in_terminal(
    stream: Any,
    *,
    console: "Console | None" = None,
    todos: Sequence[TodoItem] | None = None,
    views: Mapping[str, ToolView] | None = None,
) -> Any:
    """Show the list of a running graph in the terminal, and pass its stream through.

    The list, its status and what goes on are updated in place below your own output. Of a long list
    only the part around the item in progress is shown; when the run ends, even with an error, the
    whole list stays. If the output is not a terminal, each change is printed as plain lines, and
    rich is not needed. To change the colours, define the styles `todo.accent`, `todo.dim` and so on
    in the theme of the console.

    Args:
        stream: The result of `graph.stream(...)` or `graph.astream(...)`. Set
            `stream_mode=["updates", "custom"]`; you may add other modes. With `messages`, the
            answer is shown while the model writes it. With `subgraphs=True`, the open lists of
            subgraphs are shown below that of the graph, and of an item runner also what goes on in
            each item that is at work.
        console: The console to draw on; standard output by default.
        todos: The list before the first change, of a resumed thread or of your input. It is not
            needed if the stream has the mode `values`.
        views: The forms of your own tools, by tool name, for the call that runs.

    Returns:
        A generator of the unchanged chunks; an async generator for `astream`. If you close it
        early, it closes the stream.

    Raises:
        ImportError: rich is not installed.
        TypeError: `stream` is not an iterator or async iterator.
        ValueError: `todos` is not a list of todos.

    Example:
        ```python
        stream = graph.stream(request, config, stream_mode=["updates", "custom"])
        for mode, chunk in follow_in_terminal(stream):
            pass
        ```
    """
    return follow(stream, _screen(console), todos, views)


def texts(lines: Sequence[Line], console: "Console", options: "ConsoleOptions") -> "Iterator[Text]":
    """Convert lines to rich texts: wrapped at the console's width, or cut, or kept whole."""
    for line in lines:
        if options.no_wrap:
            text = _text(line.spans, console)
            has_mark = encodable(Span("…", plain=""), console.encoding)
            text.overflow = options.overflow or ("ellipsis" if has_mark else "crop")
            yield text
        else:
            yield from _broken(line, console, options.max_width)


def coloured(drawn: "RenderableType") -> str | None:
    """Draw with the colours and the width of standard output; `None` if it shows no colours."""
    if not sys.stdout.isatty() or find_spec("rich") is None:
        return None
    from rich.console import Console  # noqa: PLC0415  an extra

    console = Console()
    if console.color_system is None:
        return None
    with console.capture() as captured:
        console.print(drawn)
    return captured.get().rstrip("\n")


class _LiveScreen:
    """A terminal in which the list is updated in place, cut to its height until the run ends."""

    def __init__(self, console: "Console") -> None:
        self.console = console
        self.live: Live | None = None
        self.followed, self.lines, self.ended = Followed(), LiveLines(), False

    def show(self, followed: Followed) -> None:
        from rich.live import Live  # noqa: PLC0415  an extra

        changed = followed.shown != self.followed.shown
        self.followed = followed
        self.lines.see(followed)
        if self.live is None and changed:
            self.live = Live(self, console=self.console, refresh_per_second=8)
            self.live.start(refresh=True)
        elif self.live is not None and changed:
            self.live.refresh()

    def finish(self, followed: Followed) -> None:
        if self.live is not None:
            self.followed, self.ended = followed, True
            self.live.stop()

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Text]":
        def rows_of(line: Line) -> int:
            return sum(1 for _ in texts([line], console, options))

        height = options.max_height - 1
        lines = whole(self.followed) if self.ended else self.lines.lines(height, rows_of)
        yield from texts(lines, console, options)


def _screen(console: "Console | None") -> Screen:
    if console is None:
        if not sys.stdout.isatty():
            return PlainScreen(print_plain)
        try:
            from rich.console import Console  # noqa: PLC0415  an extra
        except ImportError as error:
            raise ImportError(
                'the terminal view needs rich: pip install "langgraph-todo-tools[rich]"'
            ) from error
        console = Console()
    if console.is_terminal and not console.is_dumb_terminal:
        return _LiveScreen(console)
    # Do not wrap lines, so that a log can be searched.
    return PlainScreen(lambda line: console.print(_text(line.spans, console), soft_wrap=True))


def _broken(line: Line, console: "Console", width: int) -> "Iterator[Text]":
    """Wrap a line into texts of at most `width` columns."""
    lead, body = (_text(spans, console) for spans in (line.lead, line.body))
    indent = lead.cell_len if lead.cell_len < width // 2 else 0
    beside = max(width - lead.cell_len, 1) if indent or not lead else width
    if lead and not indent:  # the screen is too narrow for an indented body
        lead, body = lead[:0], lead + body
    for nth, part in enumerate(body.wrap(console, beside, overflow="fold")):
        part.rstrip()
        if part or not nth:  # a blank that does not fit beside a word is no row
            yield lead + part
            lead = _text((Span(" " * indent),), console)


def _text(spans: Sequence[Span], console: "Console") -> "Text":
    from rich.style import Style  # noqa: PLC0415  an extra
    from rich.text import Text  # noqa: PLC0415

    # Use a `Text`: in markup and plain strings, rich would interpret tags, emoji codes and links.
    text = Text()  # overflow is not set, so that the console's option applies
    for span in spans:
        style = Style(strike=span.strike or None, bold=span.bold or None)
        if span.token:
            style += console.get_style(
                f"todo.{span.token}", default=_STYLES.get(span.token, "none")
            )
        text.append(encodable(span, console.encoding), style)
    return text
