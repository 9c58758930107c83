"""Print above the input line without flicker.

prompt_toolkit erases its part of the screen, prints, asks the terminal where the cursor is, and
redraws after the reply. Here all of this is one write, and the position of the cursor is known.
"""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

from prompt_toolkit.application import Application
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from typing_extensions import override

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that support these codes show the text between them at once; others ignore them."""


class SteadyOutput(Vt100_Output):
    """An output that can hold back writes until a block is complete."""

    _held = False

    @override
    def flush(self) -> None:
        if not self._held:
            super().flush()

    @contextmanager
    def at_once(self) -> Generator[None, None, None]:
        """Send everything that the block writes at once."""
        self._held = True
        self.write_raw(_BEGIN)
        try:
            yield
        finally:
            self._held = False
            self.write_raw(_END)
            self.flush()


def open_output() -> Output:
    """Return the output of a conversation; a plain one if the terminal cannot move its cursor."""
    if os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return create_output(sys.stdout)
    return SteadyOutput.from_pty(sys.stdout, term=os.environ.get("TERM"))


async def print_above(
    app: Application[Any], text: str, before: Callable[[], None] = lambda: None
) -> None:
    """Print rows above the input line.

    Args:
        app: The running application.
        text: Rows that are no wider than the terminal, each with a line break at its end.
        before: Called at the last moment before a person can see the rows.
    """
    output = app.output
    if not isinstance(output, SteadyOutput) or not app.is_running:
        output.write_raw(text.replace("\n", "\r\n"))
        before()
        output.flush()
        return
    await app.renderer.wait_for_cpr_responses()
    renderer = cast("Any", app.renderer)
    screen = renderer.last_rendered_screen
    rows = max(renderer._min_available_height, screen.height if screen else 0)
    with output.at_once():
        renderer.erase()
        output.write_raw(text.replace("\n", "\r\n"))
        # Otherwise it would wait for the terminal's reply before it draws the foot.
        renderer._min_available_height = max(rows - text.count("\n"), 1)
        cast("Any", app)._redraw()
        before()
