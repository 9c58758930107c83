"""Wait until another thread, task or process makes a condition true."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LONG = 120
"""Seconds that a test waits at most: a slow machine needs long to start a program.

A command that a test expects to be ended must run longer than this: `sleep 600`.
"""
_PAUSE = 0.02


def wait_for(condition: Callable[[], object], what: str, *, within: float = LONG) -> None:
    """Return as soon as a condition is true.

    Args:
        condition: A function that is called repeatedly.
        what: The event, as the error names it: "the command to begin".
        within: Seconds.

    Raises:
        AssertionError: The condition did not become true in time.
    """
    for pause in _pauses(condition, what, within):
        time.sleep(pause)


async def await_for(condition: Callable[[], object], what: str, *, within: float = LONG) -> None:
    """The same as `wait_for`, without blocking the event loop."""
    for pause in _pauses(condition, what, within):
        await asyncio.sleep(pause)


def wait_for_file(path: Path, *, within: float = LONG) -> None:
    """Return as soon as a file exists."""
    wait_for(path.exists, f"{path} to appear", within=within)


def wait_for_line(path: Path, *, within: float = LONG) -> str:
    """Return the text of a file as soon as it ends with a line break."""
    wait_for(
        lambda: path.exists() and path.read_text().endswith("\n"),
        f"a line in {path}",
        within=within,
    )
    return path.read_text()


def has_ended(pid_file: Path) -> bool:
    """Whether the process that wrote its id has ended, even if its parent has not collected it."""
    pid = int(pid_file.read_text())
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def _pauses(condition: Callable[[], object], what: str, within: float) -> Iterator[float]:
    """The common part of both: yields the seconds to sleep until the condition is true."""
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, f"timed out after {within:g} s, waiting for {what}"
        yield _PAUSE
