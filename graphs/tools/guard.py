"""A small process that ends this program's commands when the program ends, however it ends.

A signal may end a program before it can clean up, and SIGKILL always does. So the guard, a process
that outlives it by a moment, reads from a pipe which process groups there are, one line with all
of them at each change. The kernel closes the pipe when the program has ended, and the guard then
kills the groups of the last line.
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


class Guard:
    """The guard of this program, which starts with the first group."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, unless it is running."""
        with self._lock:
            if self._process and self._process.poll() is None:
                return
            self._process = subprocess.Popen(  # noqa: S603  this file
                [sys.executable, "-I", "-S", str(Path(__file__))],
                bufsize=0,
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # what ends the program's session must not end its guard
            )

    def add(self, group: int) -> None:
        """Have a process group end with the program."""
        with self._lock:
            self._groups.add(group)
            self._tell()

    def remove(self, group: int) -> None:
        """Leave alone a group that has ended: its number may be given to another."""
        with self._lock:
            self._groups.discard(group)
            with suppress(OSError):
                self._tell()

    def close(self) -> None:
        """End all groups, as the end of the program does, and wait for it."""
        with self._lock:
            if self._process and self._process.stdin:
                self._process.stdin.close()
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(_SECONDS_TO_END)
            self._process = None

    def forget(self) -> None:
        """Leave the guard and its groups to the parent: this process is a fork of the program."""
        self._lock = threading.Lock()
        self._groups = set()
        if self._process and self._process.stdin:
            self._process.stdin.close()
        self._process = None

    def _tell(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.write(b" ".join(b"%d" % group for group in self._groups) + b"\n")


GUARD = Guard()
atexit.register(GUARD.close)
os.register_at_fork(after_in_child=GUARD.forget)


def end_group(group: int) -> None:
    """Kill every process of a group."""
    with suppress(ProcessLookupError, PermissionError):  # PermissionError: macOS, all are zombies
        os.killpg(group, signal.SIGKILL)


def _main() -> None:
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, signal.SIG_IGN)
    last = b""
    for line in sys.stdin.buffer:
        last = line if line.endswith(b"\n") else last  # the last line may have been cut off
    for group in last.split():
        end_group(int(group))


if __name__ == "__main__":
    _main()
