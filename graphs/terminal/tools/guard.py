"""A small process that kills this program's commands when the program ends, however it ends.

A signal may end a program before it can clean up; SIGKILL always does. So the guard is a process
that lives a moment longer. The program writes its process groups to a pipe, all in one line, at
each change. When the program ends, the kernel closes the pipe, and the guard kills the groups of
the last line.
"""

import atexit
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

_SECONDS_TO_END = 5.0
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


class Guard:
    """The guard of this program; it starts when the first group is added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, unless it is running."""
        with self._lock:
            if self._process and self._process.poll() is None:
                return
            # A process that starts with a blocked signal never gets it.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
            try:
                self._process = subprocess.Popen(  # noqa: S603  this file
                    [sys.executable, "-I", "-S", str(Path(__file__))],
                    bufsize=0,
                    cwd="/",
                    env=_environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # a signal to the program's group does not reach it
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def add(self, group: int) -> None:
        """Add a process group, to be killed when the program ends."""
        with self._lock:
            self._groups.add(group)
            self._tell()

    def remove(self, group: int) -> None:
        """Remove a group that has ended, because its number may be used again."""
        with self._lock:
            self._groups.discard(group)
            with suppress(OSError):
                self._tell()

    def close(self) -> None:
        """Kill all groups, as at the end of the program, and wait for them."""
        with self._lock:
            if self._process and self._process.stdin:
                self._process.stdin.close()
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_SECONDS_TO_END)
            self._process = None

    def _tell(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.write(b" ".join(b"%d" % group for group in self._groups) + b"\n")


def _environment() -> dict[str, str]:
    """The one variable that Python may need to start; the others may hold keys."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


GUARD = Guard()
atexit.register(GUARD.close)


def end_group(group: int) -> None:
    """Kill every process of a group."""
    with suppress(ProcessLookupError, PermissionError):  # PermissionError: macOS, all are zombies
        os.killpg(group, signal.SIGKILL)


def _main() -> None:
    last = b""
    for line in sys.stdin.buffer:
        last = line if line.endswith(b"\n") else last  # the last line may have been cut off
    for group in last.split():
        end_group(int(group))


if __name__ == "__main__":
    _main()
