"""What was typed before a question is shown is not an answer to it."""

import os
import select
import termios
from typing import TextIO

QUIET = 0.05
"""Seconds without a key after which nothing more of a paste is on its way.

A terminal holds about 4 kB of unread input. The rest of a long paste follows only when that has
been read or dropped.
"""
MOST_TRIES = 100
"""How often to look for more at most, because an input may never be quiet."""


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person is at a standard stream; Python has `None` for one that is closed."""
    return bool(stream and stream.isatty())


def is_waiting(file: int) -> bool:
    """Whether there is input that can be read now; in a terminal, a line that was begun is not."""
    return _is_readable(file, 0)


def drop_unread(file: int) -> None:
    """Drop what is in the terminal now, also a line that was begun.

    Only a terminal is emptied. A pipe is a script that was written before any question, so it keeps
    its order.

    Args:
        file: The file descriptor of the input.
    """
    if os.isatty(file):
        termios.tcflush(file, termios.TCIFLUSH)


def drop_typed(file: int) -> None:
    """Drop what was typed and not read yet, right before a question is shown.

    Args:
        file: The file descriptor of the input.
    """
    for _ in range(MOST_TRIES):
        drop_unread(file)
        if not os.isatty(file) or not _is_readable(file, QUIET):
            break
    drop_unread(file)


def _is_readable(file: int, within: float) -> bool:
    return bool(select.select([file], [], [], within)[0])
