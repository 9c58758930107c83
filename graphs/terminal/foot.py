"""The foot of a conversation: the list, the current activity, and the messages to be sent next."""

from collections.abc import Callable, Iterator, Sequence

from graphs.terminal.region import with_advice
from todo_tools.rendering.lowlevel import Followed, Line, LiveLines, Span, one_line

_MOST_KEPT = 3


class Foot:
    """The lines below the input line."""

    def __init__(self) -> None:
        self._lines = LiveLines()

    def begin(self) -> None:
        """Start counting the seconds of work."""
        self._lines.begin()

    def lines(
        self,
        followed: Followed,
        doing: str,
        kept: Sequence[str],
        height: int,
        *,
        working: bool,
        rows_of: Callable[[Line], int],
    ) -> Iterator[Line]:
        """Return the lines to draw.

        Args:
            followed: The state of the run.
            doing: The current activity, in a few words.
            kept: Messages to send when the agent stops.
            height: The number of rows.
            working: Whether the agent is working.
            rows_of: The number of rows that a line takes.

        Yields:
            The lines; `show_below` prints them.
        """
        self._lines.see(with_advice(followed, "type anything to interrupt"))
        yield from self._lines.lines(height, rows_of, working=working, hint=doing)
        yield from (_dim(f"kept: {one_line(text)}") for text in kept[:_MOST_KEPT])
        if more := len(kept[_MOST_KEPT:]):  # they would push the input line off the screen
            yield _dim(f"kept: {more} more")


def _dim(text: str) -> Line:
    return Line((Span(text, "dim"),))
