"""A program in a pseudo-terminal, and the rows that its user sees."""

import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import pexpect  # type: ignore[import-untyped]
import pyte

from tests.support import ROOT
from tests.waiting import LONG

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""A terminal shows the text between these codes at once."""

_END_OF_FRAME = re.compile(r"(?<=\x1b\[\?25h)|(?<=\x1b\[\?2026l)|(?<=\x1b\[6n)|(?=\r\x1b\[2K)")
"""After a frame, prompt_toolkit shows the cursor; before one, rich erases the last one.

The program waits for a reply to the question where the cursor is.
"""


class Emulator:
    """A Python program in an emulated terminal of a fixed size.

    Args:
        argv: The arguments of Python.
        rows: Its height.
        columns: Its width.
        env: Environment variables that differ from those of the tests.
    """

    def __init__(self, *argv: str, rows: int = 24, columns: int = 80, **env: str) -> None:
        screen: Any = pyte.HistoryScreen(columns, rows, history=10_000, ratio=0.5)
        screen.write_process_input = self._reply  # the reply to the question where the cursor is
        self.screen = screen
        self._stream: Any = pyte.Stream(self.screen)
        self.frames: list[str] = []
        self.drawn = ""  # the rows since the last key
        self.ended = False
        self._rest = ""
        self._rows: dict[int, str] = {}
        self._is_whole = True
        # Without these the program would use the size of the tests' own terminal.
        inherited = {name: os.environ[name] for name in os.environ.keys() - {"COLUMNS", "LINES"}}
        self.child = pexpect.spawn(
            sys.executable,
            list(argv),
            env={**inherited, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **env},
            dimensions=(rows, columns),
            encoding="utf-8",
        )

    @property
    def rows(self) -> list[str]:
        """The rows of the screen from the top, without trailing blanks."""
        return [row.rstrip() for row in self.screen.display]

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.rows).strip("\n")

    def wait(self, condition: Callable[[], object], within: float = LONG) -> None:
        """Draw the program's output until a condition is true."""
        end = time.monotonic() + within
        while not condition():
            assert not self.ended, f"the program ended; on the screen is:\n{self.text}"
            assert time.monotonic() < end, f"timed out; on the screen is:\n{self.text}"
            self.read()

    def see(self, *expected: str, within: float = LONG) -> None:
        """Wait until all texts are on the screen at the same time."""
        self.wait(lambda: all(text in self.text for text in expected), within)

    def read(self) -> None:
        """Draw the output so far; each complete frame is recorded, however late it is read."""
        try:
            self._rest += self.child.read_nonblocking(1 << 16, timeout=0.1)
        except pexpect.TIMEOUT:
            self._draw(self._rest)
            self._rest = ""
        except pexpect.EOF:
            self._draw(self._rest)
            self._rest, self.ended = "", True
        else:
            *frames, self._rest = _END_OF_FRAME.split(self._rest)
            for frame in frames:
                self._draw(frame)

    def press(self, keys: str) -> None:
        """Type keys."""
        self.drawn = ""
        self.child.send(keys)

    def end(self) -> int:
        """Wait for the end of the program, and return its exit code."""
        self.wait(lambda: self.ended)
        self.child.wait()
        self.child.close()
        return int(self.child.exitstatus)

    def close(self) -> None:
        """End the program, whatever its state."""
        self.child.close(force=True)

    def _draw(self, written: str) -> None:
        if not written:
            return
        self._stream.feed(written)
        self._is_whole = written.rfind(_BEGIN) <= written.rfind(_END) and (
            self._is_whole or _END in written
        )
        if self._is_whole:
            self.frames.append(self.text)
            self._note_rows()

    def _note_rows(self) -> None:
        """Keep the rows that differ from what was in their places before."""
        top: Any = self.screen.history.top
        gone = ["".join(line[at].data for at in sorted(line)) for line in top]
        for at, row in enumerate([*gone, *self.rows]):
            known = self._rows.get(at)
            # A row that has scrolled away lacks the blanks that were never written.
            if known is None or (known.split() != row.split() and at >= len(gone)):
                self._rows[at] = row
                self.drawn += f"{row}\n"

    def _reply(self, data: str) -> None:
        self.child.send(data)
