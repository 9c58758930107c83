"""The terminal of a chat: the output, the input line, and the list below it."""

from collections.abc import Callable, Iterable
from functools import partial

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style
from rich.console import Console

from graphs.terminal.lines import drop_typed, show
from todo_tools.rendering.lowlevel import Line, Span, View

_SECONDS_A_FRAME = 0.25


class ChatScreen:
    """Prints output, reads lines, and keeps the lines below the input line in place.

    Args:
        console: Where to print.
        below: Returns the lines below the input line.
        typed: Called when the typed text changes.
        interrupt: Called for Ctrl-C.
    """

    def __init__(
        self,
        console: Console,
        *,
        below: Callable[[], Iterable[Line]],
        typed: Callable[[], None],
        interrupt: Callable[[], None],
    ) -> None:
        self.console = console
        self._below = below
        keys = KeyBindings()
        for key in ("c-c", "<sigint>"):

            @keys.add(key)
            def _(_: KeyPressEvent) -> None:
                interrupt()

        self._session: PromptSession[str] = PromptSession(
            "> ",
            bottom_toolbar=self._toolbar,
            key_bindings=keys,
            style=Style.from_dict({"bottom-toolbar": "noreverse"}),
            reserve_space_for_menu=0,
            refresh_interval=_SECONDS_A_FRAME,
        )

        def changed(_: Buffer) -> None:
            typed()

        self._session.default_buffer.on_text_changed += changed

    @property
    def typed(self) -> Buffer:
        """The text that is typed and not yet sent."""
        return self._session.default_buffer

    async def read(self) -> str:
        """Read a line; `EOFError` means that the user leaves."""
        line = await self._session.prompt_async()
        return line.encode(errors="replace").decode()  # a typed byte may be no text

    def leave(self) -> None:
        """Stop reading lines."""
        self._session.app.exit(exception=EOFError)

    def redraw(self) -> None:
        """Draw the lines below the input line again."""
        self._session.app.invalidate()

    async def show(self, *lines: Line) -> None:
        """Print above the input line."""
        if lines:
            await run_in_terminal(partial(show, self.console, *lines))
        self.redraw()

    async def ask(self, *lines: Line) -> None:
        """Print a question; what was typed before is not an answer, and Up brings it back."""
        await self.show(*lines)
        if self._session.app.is_running:
            self.typed.reset(append_to_history=True)
        else:
            drop_typed()

    def _toolbar(self) -> ANSI:
        width = self.console.width
        with self.console.capture() as drawn:
            show(self.console, Line((Span("─" * width, "dim", plain="-" * width),)))
            for line in self._below():  # one row each, so that the list stays on the screen
                self.console.print(View((line,)), no_wrap=True)
        return ANSI(drawn.get().rstrip("\n"))
