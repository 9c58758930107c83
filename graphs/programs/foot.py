"""The foot of a conversation: the list and what goes on, in place, and what waits to be sent."""

from collections.abc import Iterator, Sequence

from graphs.programs.region import with_advice
from todo_tools.rendering import Followed, Line, LiveLines, Span, one_line


class Foot:
    """What is below the line that is typed."""

    def __init__(self) -> None:
        self._lines = LiveLines()

    def begin(self) -> None:
        """Count the seconds of the work from now."""
        self._lines.begin()

    def lines(
        self, followed: Followed, doing: str, kept: Sequence[str], height: int, *, working: bool
    ) -> Iterator[Line]:
        """The lines to draw now.

        Args:
            followed: What is known of the run.
            doing: What is going on, in a few words.
            kept: Messages that are sent when the agent has stopped.
            height: How many rows there are.
            working: Whether the agent is at work.

        Yields:
            Lines, each to be cut to the width of the terminal.
        """
        self._lines.see(with_advice(followed, "type anything to interrupt"))
        yield from self._lines.lines(height, working=working, hint=doing)
        yield from (Line((Span(f"kept: {one_line(text)}", "dim"),)) for text in kept)
