"""The list and the current activity, updated in place below what a program prints."""

from dataclasses import replace
from functools import partial
from types import TracebackType

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live

from graphs.terminal.lines import rows_below
from todo_tools.rendering.lowlevel import Followed, LiveLines, View


def with_advice(followed: Followed, advice: str) -> Followed:
    """The same line, with what the person can do during the countdown."""
    if not followed.countdown:
        return followed
    return replace(followed, countdown=f"{followed.countdown.partition(' (')[0]} ({advice})")


class Region:
    """The list, its status and the current activity, redrawn during a run.

    It draws nothing if the console cannot update in place.

    Args:
        console: Where the program prints.
    """

    def __init__(self, console: Console) -> None:
        self.is_live = console.is_terminal and not console.is_dumb_terminal
        self._lines = LiveLines()
        self._live = Live(self, console=console, transient=True, refresh_per_second=8)

    def see(self, followed: Followed) -> None:
        """Show the current state."""
        self._lines.see(with_advice(followed, "Ctrl-C to interrupt"))

    def __enter__(self) -> "Region":
        self._lines.begin()
        if self.is_live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.is_live:
            self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows_of = partial(rows_below, console)
        for line in self._lines.lines(max(console.height // 2, 4), rows_of):
            yield from console.render(View((line,)), options.update(no_wrap=line.status is None))
