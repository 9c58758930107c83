"""Pass the chunks of a stream through and show the run on a screen."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from todo_tools._list.todos import TodoItem
from todo_tools.rendering._chunks import NOTHING_TO_SHOW, can_be_shown
from todo_tools.rendering._followed import Followed
from todo_tools.rendering._followed_lines import changes, whole
from todo_tools.rendering._lines import Line, checked, printable
from todo_tools.rendering._output import OutputLines
from todo_tools.rendering._tool_view import ToolViews

Chunk = TypeVar("Chunk")


class Screen(Protocol):
    """A place to show a run."""

    def show(self, followed: Followed) -> None:
        """Show the current state of the run."""

    def finish(self, followed: Followed) -> None:
        """Show the last state; called once, also after an error."""


class PlainScreen:
    """Prints each change of the list and the output of tools, and the whole list at the end."""

    def __init__(self, print_line: Callable[[Line], None]) -> None:
        self.print_line = print_line
        self.before = Followed()
        self.output = OutputLines()
        self.whole = True

    def show(self, followed: Followed) -> None:
        """Print the changes since the last call."""
        self._print_output(followed)
        lines = changes(self.before, followed)
        if followed.todos != self.before.todos:
            rows = sum(line.status is not None for line in lines)
            self.whole = rows == len(followed.todos or [])
        for line in lines:
            self.print_line(line)
        self.before = followed

    def finish(self, followed: Followed) -> None:
        """Print the whole list, unless that was the last thing printed."""
        self._print_output(Followed())  # no tool is running any more
        if not self.whole:
            for line in whole(followed):
                self.print_line(line)

    def _print_output(self, followed: Followed) -> None:
        for line in self.output.after(followed):
            self.print_line(line)
            self.whole = False


def print_plain(line: Line) -> None:
    """Print a line on standard output; replace characters that its encoding lacks."""
    print(printable(line), flush=True)


def follow(
    stream: Iterator[Any] | AsyncIterator[Any],
    screen: Screen,
    todos: Sequence[TodoItem] | None,
    views: ToolViews | None,
) -> Any:
    """Show a stream on a screen, and return a generator of its chunks."""
    known = Followed(None if todos is None else checked(todos), views=views or {})
    if isinstance(stream, AsyncIterator):
        return _afollow(stream, _Viewer(screen, known))
    if isinstance(stream, Iterator):
        return _follow(stream, _Viewer(screen, known))
    raise TypeError(
        "stream must be what graph.stream(...) or graph.astream(...) returns, "
        f"got {type(stream).__name__}"
    )


class _Viewer:
    """Keeps a screen up to date."""

    def __init__(self, screen: Screen, known: Followed) -> None:
        self.screen = screen
        self.known = known
        self.seen, self.useful, self.shows = False, False, True

    def begin(self) -> None:
        if self.known.todos is not None:
            self._show(self.screen.show)

    def see(self, chunk: object) -> None:
        before, self.known = self.known, self.known.after(chunk)
        self.seen = True
        self.useful = self.useful or can_be_shown(chunk)
        if (self.known.shown, self.known.doing) != (before.shown, before.doing):
            self._show(self.screen.show)

    def finish(self) -> None:
        if self.seen and not self.useful:
            self.known = replace(self.known, notice=NOTHING_TO_SHOW)
            self._show(self.screen.show)
        self.known = replace(self.known, countdown="")  # no countdown is running any more
        self._show(self.screen.finish)

    def _show(self, how: Callable[[Followed], None]) -> None:
        """Show the state of the run; if that fails, continue the run without a screen."""
        if self.shows:
            try:
                how(self.known)
            except (OSError, SystemExit):  # rich exits when the reader of a pipe has closed it
                self.shows = False


def _follow(stream: Iterator[Chunk], viewer: _Viewer) -> Iterator[Chunk]:
    try:
        viewer.begin()
        for chunk in stream:
            viewer.see(chunk)
            yield chunk
    finally:
        viewer.finish()
        if close := getattr(stream, "close", None):  # so that its run ends when the caller stops
            close()


async def _afollow(stream: AsyncIterator[Chunk], viewer: _Viewer) -> AsyncIterator[Chunk]:
    try:
        viewer.begin()
        async for chunk in stream:
            viewer.see(chunk)
            yield chunk
    finally:
        viewer.finish()
        if close := getattr(stream, "aclose", None):
            await close()
