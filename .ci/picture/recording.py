"""Record what a program shows in a terminal."""

import math
import os
import pty
import select
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fcntl import ioctl
from itertools import groupby
from termios import TIOCSWINSZ
from typing import Any

import pyte

_STEP = 0.1

Look = tuple[str, bool, bool]
"""Colour, bold, struck through."""
Row = tuple[tuple[Look, str], ...]
"""A row of the screen, as runs of text that have the same style."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What a terminal shows from a certain time on."""

    at: float
    """Seconds since the start."""
    rows: tuple[Row, ...]
    """The whole screen."""

    def __str__(self) -> str:
        return "\n".join("".join(text for _, text in row).rstrip() for row in self.rows)


class _Screen(pyte.Screen):
    """A terminal that supports faint text, which pyte ignores, and answers the program."""

    def __init__(self, columns: int, rows: int, write: Callable[[str], object]) -> None:
        super().__init__(columns, rows)
        self._write = write

    def write_process_input(self, data: str) -> None:
        self._write(data)

    def select_graphic_rendition(self, *attrs: int, **kwargs: Any) -> None:
        super().select_graphic_rendition(*(90 if attr == 2 else attr for attr in attrs), **kwargs)  # noqa: PLR2004


def record(
    command: Sequence[str],
    *,
    columns: int,
    rows: int,
    typed: Sequence[tuple[str, float, str]] = (),
) -> list[Frame]:
    """Run a program in a new terminal and record its screen.

    Args:
        command: The program and its arguments.
        columns: Width of the terminal.
        rows: Height of the terminal.
        typed: What a person waits to see, the seconds to wait then, and what the person types.

    Returns:
        One frame for each tenth of a second in which the screen changed.

    Raises:
        subprocess.CalledProcessError: The program failed.
    """
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    variables = {**os.environ, "TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        variables.pop(name, None)
    with subprocess.Popen(  # noqa: S603  the caller's own command
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True
    ) as process:
        os.close(theirs)
        frames = list(_frames(ours, columns, rows, list(typed)))
    os.close(ours)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return frames


def _frames(
    terminal: int, columns: int, rows: int, typed: list[tuple[str, float, str]]
) -> Iterator[Frame]:
    screen = _Screen(columns, rows, write=lambda text: os.write(terminal, text.encode()))
    stream = pyte.ByteStream(screen)
    start, shown = time.monotonic(), None
    seen = math.inf
    while True:
        if typed and typed[0][0] in "\n".join(screen.display):
            seen = min(seen, time.monotonic())
            if time.monotonic() >= seen + typed[0][1]:
                os.write(terminal, typed.pop(0)[2].encode())
                seen = math.inf
        until = time.monotonic() + _STEP
        is_open = True
        while is_open and (rest := until - time.monotonic()) > 0:
            if select.select([terminal], [], [], rest)[0]:
                read = _read(terminal)
                is_open = bool(read)
                stream.feed(read)
        now = tuple(_row(screen, y) for y in range(rows))
        if now != shown:
            yield Frame(round(time.monotonic() - start, 1), now)
            shown = now
        if not is_open:
            return


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux raises this when the program has closed its side
        return b""


def _row(screen: pyte.Screen, y: int) -> Row:
    cells = [screen.buffer[y][x] for x in range(screen.columns)]
    looks = groupby(cells, lambda cell: (cell.fg, cell.bold, cell.strikethrough))
    row = [(look, "".join(cell.data for cell in run)) for look, run in looks]
    while row and not row[-1][1].strip():
        row.pop()
    return tuple(row)
