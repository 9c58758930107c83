"""Printing above the line that is typed, without what is below it going out for a moment.

prompt_toolkit itself erases its part of the screen, prints, asks the terminal where the cursor is,
and draws again when it is told. Here all of it is one write, and the place of the cursor is known.
"""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from prompt_toolkit.application import Application
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from typing_extensions import override

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know these show what is between them all at once; others ignore them."""


class SteadyOutput(Vt100_Output):
    """An output that can keep what is written until all of it is there."""

    _held = False

    @override
    def flush(self) -> None:
        if not self._held:
            super().flush()

    @contextmanager
    def at_once(self) -> Generator[None, None, None]:
        """Send what is written in the block as one piece."""
        self._held = True
        self.write_raw(_BEGIN)
        try:
            yield
        finally:
            self._held = False
            self.write_raw(_END)
            self.flush()


def open_output() -> Output:
    """The output of a conversation; a terminal that cannot move its cursor has a plain one."""
    if os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return create_output(sys.stdout)
    return SteadyOutput.from_pty(sys.stdout, term=os.environ.get("TERM"))


async def print_above(app: Application[Any], text: str) -> None:
    """Print rows above the line that is typed.

    Args:
        app: The running application.
        text: Rows that are no wider than the terminal, each with a line break at its end.
    """
    output = app.output
    if not isinstance(output, SteadyOutput) or not app.is_running:
        output.write_raw(text.replace("\n", "\r\n"))
        output.flush()
        return
    await app.renderer.wait_for_cpr_responses()
    renderer = cast("Any", app.renderer)
    screen = renderer.last_rendered_screen
    rows = max(renderer._min_available_height, screen.height if screen else 0)
    with output.at_once():
        renderer.erase()
        output.write_raw(text.replace("\n", "\r\n"))
        # Otherwise it would wait for the terminal's answer before it draws what is below.
        renderer._min_available_height = max(rows - text.count("\n"), 1)
        cast("Any", app)._redraw()
