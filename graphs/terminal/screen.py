"""The terminal of a conversation: the output, the input line and the foot below it."""

import asyncio
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.search import stop_search
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style
from rich.console import Console
from typing_extensions import override

from graphs.terminal.commands import COMMANDS
from graphs.terminal.lines import said, show, show_below
from graphs.terminal.steady import open_output, print_above
from graphs.terminal.typed import MOST_TRIES, QUIET, drop_unread, is_waiting
from todo_tools.rendering.lowlevel import Line, Span, View

_SECONDS_A_FRAME = 0.25
_PUT_ASIDE = "What you had typed before the question is not an answer; Up brings it back."
_NO_TEXT = re.compile("[\ud800-\udfff]")
"""How prompt_toolkit reads bytes that are not UTF-8."""
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse"})


class _History(FileHistory):
    """The lines that were sent, also by earlier programs. Only the user can read them."""

    @override
    def store_string(self, string: str) -> None:
        with suppress(OSError):  # for example, the disk is full
            os.close(os.open(self.filename, os.O_CREAT | os.O_WRONLY, 0o600))
            super().store_string(string)


class ChatScreen:
    """Prints output, reads lines, and keeps the foot in place.

    Args:
        console: Where to print.
        foot: The lines of the foot.
        typed: Called when the typed text changes.
        sent: Called when the user sends what is typed, a moment before `read` returns it.
        interrupt: Called for Ctrl-C.
        history: The file that keeps the lines that were sent; by default they end with the program.
    """

    def __init__(
        self,
        console: Console,
        *,
        foot: Callable[[], Iterable[Line]],
        typed: Callable[[], None],
        sent: Callable[[], None],
        interrupt: Callable[[], None],
        history: str = "",
    ) -> None:
        self.console = console
        self._foot = foot
        self._sent = sent
        self._interrupt = interrupt
        self._session: PromptSession[str] = PromptSession(
            "> ",
            bottom_toolbar=self._toolbar,
            completer=WordCompleter(list(COMMANDS), sentence=True),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=self._keys(),
            style=_STYLE,
            reserve_space_for_menu=0,
            refresh_interval=_SECONDS_A_FRAME,
            output=open_output(),
            history=_History(history) if history else None,
        )
        self._typed = typed
        self._session.default_buffer.on_text_changed += self._changed
        self._accept = self._session.default_buffer.accept_handler
        self._session.default_buffer.accept_handler = self._accepted
        self._keys_handled = 0
        self._session.app.key_processor.before_key_press += self._count_key

    @property
    def typed(self) -> Buffer:
        """The text that is typed and not yet sent."""
        return self._session.default_buffer

    async def read(self) -> str:
        """Read a line, or several lines sent as one; `EOFError` means that the user leaves."""
        return await self._session.prompt_async()

    def leave(self) -> None:
        """Stop reading lines."""
        self._session.app.exit(exception=EOFError)

    async def show(self, *shown: Line | View) -> None:
        """Print above the input line."""
        if shown:
            await print_above(self._session.app, self._drawn(*shown))
        self.redraw()

    async def ask(self, *shown: Line | View) -> None:
        """Print a question; what was typed before it is not an answer to it.

        Lines that are sent meanwhile are not answers, and lines that were not read yet are dropped.
        A line that was not sent yet can be got back.
        """
        await self._until_quiet()
        note = said(_PUT_ASIDE) if self._put_aside() else ()
        await print_above(self._session.app, self._drawn(*note, *shown), self._drop_unread)
        self._put_aside()  # it may have come a moment ago
        self.redraw()

    def redraw(self) -> None:
        """Draw the foot again."""
        self._session.app.invalidate()

    def _drawn(self, *shown: Line | View) -> str:
        with self.console.capture() as drawn:
            show(self.console, *shown)
        return drawn.get()

    async def _until_quiet(self) -> None:
        """Wait until no more keys arrive; between two prompts nothing reads them, so drop them."""
        app = self._session.app
        for _ in range(MOST_TRIES):
            handled = self._keys_handled
            await asyncio.sleep(QUIET)
            if handled == self._keys_handled and not is_waiting(app.input.fileno()):
                break
            if not app.is_running:
                self._drop_unread()

    def _drop_unread(self) -> None:
        """Drop typed input that is in the terminal, or was read after the end of the last line."""
        app = self._session.app
        for _ in range(MOST_TRIES if app.is_running else 0):  # Ctrl-D ends only a line otherwise
            if app.input.closed or not is_waiting(app.input.fileno()):
                break
            app.input.read_keys()  # the rest of a sequence must not become keys of its own
        if not app.is_running:
            drop_unread(app.input.fileno())
            if isinstance(app.input, Vt100Input):
                app.input.vt100_parser.reset()  # the end of a paste may be among what is dropped
        app.key_processor.empty_queue()
        clear_typeahead(app.input)

    def _put_aside(self) -> bool:
        """Move the typed text to the history of lines; return whether there was any."""
        app, typed = self._session.app, self.typed
        if not app.is_running or app.is_done:
            return False
        if app.layout.is_searching:
            with set_app(app):
                stop_search()
        if not typed.text:
            return False
        typed.reset(append_to_history=True)
        return True

    def _toolbar(self) -> ANSI:
        rule = Span("─" * self.console.width, "dim", plain="-" * self.console.width)
        with self.console.capture() as drawn:
            show(self.console, Line((rule,)))
            show_below(self.console, self._foot())
        return ANSI(drawn.get().rstrip("\n"))

    def _changed(self, typed: Buffer) -> None:
        """No file, database or model takes a byte that is not UTF-8, so it is replaced at once."""
        shown = _NO_TEXT.sub("\ufffd", typed.text)
        if shown != typed.text:
            typed.document = Document(shown, typed.cursor_position)  # calls this method again
        else:
            self._typed()

    def _count_key(self, _: object) -> None:
        self._keys_handled += 1

    def _interrupted(self, _: KeyPressEvent) -> None:
        self._interrupt()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        for key in ("c-c", "<sigint>"):
            keys.add(key)(self._interrupted)
        keys.add("escape", "enter")(_begin_a_line)
        keys.add("enter", filter=~is_searching)(self._send)  # there it takes the line found
        return keys

    def _send(self, event: KeyPressEvent) -> None:
        """Send the typed text, unless its last line ends with a backslash."""
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\" and buffer.document.is_cursor_at_the_end:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    def _accepted(self, buffer: Buffer) -> bool:
        """Every key that sends a line comes here, also Ctrl-O of prompt_toolkit."""
        self._sent()
        return bool(self._accept and self._accept(buffer))


def _begin_a_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")
