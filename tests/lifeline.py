"""Detects whether a command or a process it started is alive: they hold a named pipe open."""

import os
import select
from pathlib import Path

from tests.waiting import LONG

BEGIN = "exec 9>lifeline; echo >&9"
"""The shell code that opens the pipe in the command's directory; child processes inherit it."""


class Lifeline:
    """The reading end of the pipe, which ends when no process holds the pipe."""

    def __init__(self, folder: Path) -> None:
        os.mkfifo(folder / "lifeline")
        self._fd = os.open(folder / "lifeline", os.O_RDONLY | os.O_NONBLOCK)

    def begins(self) -> bool:
        """Wait until a command holds it."""
        return self._is_ready(LONG) and os.read(self._fd, 1) == b"\n"

    def ends(self, within: float = LONG) -> bool:
        """Wait until no process holds it."""
        return self._is_ready(within) and os.read(self._fd, 1) == b""

    def close(self) -> None:
        os.close(self._fd)

    def _is_ready(self, seconds: float) -> bool:
        return bool(select.select([self._fd], [], [], seconds)[0])
