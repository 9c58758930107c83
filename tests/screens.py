"""A program in a pseudo-terminal, and the rows that its user sees."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pexpect  # type: ignore[import-untyped]
import pyte

from tests.support import ROOT
from tests.waiting import LONG

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""A terminal shows the text between these codes at once."""


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
        self.written = ""
        self.frames: list[str] = []
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

    @property
    def everything(self) -> str:
        """The rows that have scrolled away, and those on the screen."""
        gone = ["".join(line[at].data for at in sorted(line)) for line in self.screen.history.top]
        return "\n".join([*(row.rstrip() for row in gone), *self.rows])

    def wait(self, condition: Callable[[], object], within: float = LONG) -> None:
        """Draw the program's output until a condition is true."""
        end = time.monotonic() + within
        while not condition():
            assert time.monotonic() < end, f"timed out; on the screen is:\n{self.text}"
            self.read()

    def see(self, *expected: str, within: float = LONG) -> None:
        """Wait until all texts are on the screen at the same time."""
        self.wait(lambda: all(text in self.text for text in expected), within)

    def read(self) -> None:
        """Draw the output so far, and record the frame."""
        with suppress(pexpect.TIMEOUT, pexpect.EOF):
            written = self.child.read_nonblocking(1 << 16, timeout=0.1)
            self.written += written
            self._stream.feed(written)
            if self.written.rfind(_BEGIN) <= self.written.rfind(_END):
                self.frames.append(self.text)

    def press(self, keys: str) -> None:
        """Type keys."""
        self.child.send(keys)

    def end(self) -> int:
        """Wait for the end of the program, and return its exit code."""
        self.wait(lambda: not self.child.isalive())
        self.read()
        self.child.close()
        return int(self.child.exitstatus)

    def close(self) -> None:
        """End the program, whatever its state."""
        self.child.close(force=True)

    def _reply(self, data: str) -> None:
        self.child.send(data)
