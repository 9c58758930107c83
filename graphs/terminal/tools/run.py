"""One run of a command; when it ends, every process that it started is killed."""

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from deepagents.backends.protocol import ExecuteResponse

from graphs.terminal.tools.guard import GUARD, end_group
from graphs.terminal.tools.output import Output

# The command starts once the guard knows its group, and never if the program ends before that.
_WHEN_GUARDED = 'read -r _ && exec "$0" -c "$1" </dev/null'


class ShellRun:
    """One run of a command, in a new process group.

    All processes left in the group are killed when the run finishes, when it is ended, or when this
    program ends, even by SIGKILL. A process that has left the group (`setsid`) keeps running.

    In a `with` statement, the run is ended after the block in any case.

    Args:
        command: A command for bash, or for `/bin/sh` if there is no bash.
        workdir: Where it runs.
        env: Its environment.
        max_output_bytes: How many bytes of output are kept.
    """

    def __init__(
        self, command: str, workdir: Path, *, env: Mapping[str, str], max_output_bytes: int
    ) -> None:
        self.command = command
        self._workdir = workdir
        self._env = env
        self._output = Output(max_output_bytes)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()  # garbage collection may end a run at any moment
        self._ended = threading.Event()
        self._finished = threading.Event()

    def __enter__(self) -> "ShellRun":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self) -> "ShellRun":
        """Start the command, unless the run was ended before. An error leaves no process.

        Raises:
            OSError: The command cannot be started, for example because the directory is gone.
            ValueError: The command contains a null byte.
        """
        GUARD.start()
        with self._lock:
            if self._ended.is_set():
                self._finished.set()
                return self
            process = subprocess.Popen(  # noqa: S603  it is what this is for
                ["/bin/sh", "-c", _WHEN_GUARDED, shell(), self.command],
                bufsize=0,
                cwd=self._workdir,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                GUARD.add(process.pid)
                threading.Thread(target=self._follow, args=(process,), daemon=True).start()
            except BaseException:
                with process:  # closes the pipes and waits for the process
                    end_group(process.pid)
                GUARD.remove(process.pid)
                raise
            self._process = process
        return self

    def wait(self, timeout: float) -> bool:
        """Wait for the end of the command and of its output; return whether they ended in time."""
        return self._finished.wait(timeout)

    @property
    def finished(self) -> bool:
        """Whether the command has ended and no process that it started holds its output open."""
        return self._finished.is_set()

    def is_ended_within(self, seconds: float) -> bool:
        """Wait for a call of `end`; return whether there was one."""
        return self._ended.wait(seconds)

    def end(self) -> None:
        """Kill the command and every process that it started, without waiting."""
        with self._lock:
            self._ended.set()
            if self._process and not self.finished:
                end_group(self._process.pid)

    def give_up(self) -> None:
        """End every wait for it, also if a process that left the group holds its output open."""
        self._finished.set()

    def take_new(self) -> str:
        """The output since the last call; if there is much, only its end."""
        return self._output.take_new()

    def response(self, *, note: str = "", exit_code: int | None = None) -> ExecuteResponse:
        """The output so far, with the exit code if the command has ended."""
        code = self._process.returncode if self._process else None
        return ExecuteResponse(
            output="\n".join(filter(None, [self._output.text(), note])) or "<no output>",
            exit_code=code if exit_code is None else exit_code,
            truncated=self._output.missing > 0,
        )

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Start the command, read its output to the end, and kill the rest of the group."""
        if process.stdin and process.stdout:
            with process.stdin, suppress(BrokenPipeError):  # the run may have been ended already
                process.stdin.write(b"\n")
            with process.stdout as stream:
                while chunk := os.read(stream.fileno(), 1 << 16):
                    self._output.add(chunk)
        process.wait()
        with self._lock:
            end_group(process.pid)
            self._finished.set()
        GUARD.remove(process.pid)  # outside the lock: a thread in the guard may wait for it


def shell() -> str:
    """The path of bash, or of the system's shell where there is no bash."""
    return shutil.which("bash") or "/bin/sh"
