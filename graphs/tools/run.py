"""One run of a command, which ends with everything that it has started."""

import selectors
import shutil
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from deepagents.backends.protocol import ExecuteResponse

from graphs.tools.guard import GUARD, end_group
from graphs.tools.output import Output, both

# A command begins when the guard knows of it, and never if the program ends before that.
_WHEN_GUARDED = 'read -r _ && exec "$0" -c "$1" </dev/null'


class ShellRun:
    """One run of a command, in a process group of its own.

    Whatever is left in the group is killed when the run is over, when it is ended, and when this
    program ends, even by SIGKILL. A process that has left the group cannot be found and goes on:
    one that was started by `setsid`, or a job of a shell with `set -m`.

    Used with `with`, it is ended after the block, whatever happens there.

    Args:
        command: For bash, or for `/bin/sh` where there is no bash.
        workdir: Where it runs.
        env: Its environment.
        max_output_bytes: How much output is kept.
    """

    def __init__(
        self, command: str, workdir: Path, *, env: Mapping[str, str], max_output_bytes: int
    ) -> None:
        self.command = command
        self._workdir = workdir
        self._env = env
        self._max_output_bytes = max_output_bytes
        self._outputs = Output(max_output_bytes), Output(max_output_bytes)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._finished = threading.Event()

    def __enter__(self) -> "ShellRun":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self) -> "ShellRun":
        """Begin; does nothing when it was ended before it began. An error leaves no process.

        Raises:
            OSError: It cannot be started, for example because the directory is gone.
            ValueError: The command has a null byte.
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
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            try:
                GUARD.add(process.pid)
                threading.Thread(target=self._follow, args=(process,), daemon=True).start()
            except BaseException:
                with process:  # closes its pipes, and waits for it
                    end_group(process.pid)
                GUARD.remove(process.pid)
                raise
            self._process = process
        return self

    def wait(self, timeout: float) -> bool:
        """Wait for the end of the command and of its output, and say whether they came."""
        return self._finished.wait(timeout)

    @property
    def finished(self) -> bool:
        """Whether the command has ended and nothing it started still holds its output."""
        return self._finished.is_set()

    @property
    def ended(self) -> bool:
        """Whether somebody has ended it."""
        return self._ended.is_set()

    def end(self) -> None:
        """End the command with everything it has started, without waiting for it to be gone."""
        with self._lock:
            self._ended.set()
            if self._process and not self.finished:
                end_group(self._process.pid)

    def take_new(self) -> str:
        """What it has put out since this was called last; of much, the end."""
        return "".join(output.take_new() for output in self._outputs)

    def response(self, *, note: str = "", exit_code: int | None = None) -> ExecuteResponse:
        """What the command has put out so far, with its exit code when it is over."""
        code = self._process.returncode if self._process else None
        out, err = (output.excerpt for output in self._outputs)
        text, truncated = both(out, err, self._max_output_bytes)
        return ExecuteResponse(
            output="\n".join(filter(None, [text, note])) or "<no output>",
            exit_code=code if exit_code is None else exit_code,
            truncated=truncated,
        )

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Let it begin, read until nothing holds the output, and kill what is left of the group."""
        if process.stdin:
            with process.stdin, suppress(BrokenPipeError):  # it may have been ended already
                process.stdin.write(b"\n")
        with selectors.DefaultSelector() as selector:
            for stream, output in zip((process.stdout, process.stderr), self._outputs, strict=True):
                if stream:
                    selector.register(stream, selectors.EVENT_READ, (stream, output))
            while selector.get_map():
                for key, _ in selector.select():
                    stream, output = key.data
                    if not output.read(stream):
                        selector.unregister(stream)
                        stream.close()
        process.wait()
        with self._lock:
            end_group(process.pid)
            GUARD.remove(process.pid)
            self._finished.set()


def shell() -> str:
    """The path of bash, or of the system's shell where there is no bash."""
    return shutil.which("bash") or "/bin/sh"
