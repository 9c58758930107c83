"""A shell as one tool, on top of the backend that deepagents maintains."""

import asyncio
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from deepagents.backends import LocalShellBackend
from deepagents.backends.protocol import ExecuteResponse
from langchain_core.tools import StructuredTool

NOT_STARTED, TIMED_OUT = 1, 124
MAX_OUTPUT_BYTES = 100_000
SECONDS_TO_DIE = 5.0

_DESCRIPTION = (
    "Run a shell command in the working directory. Answers with its output and, on the last line, "
    "its exit code; 0 is success."
)


def shell_tool(workdir: Path, *, timeout: int = 120) -> StructuredTool:
    """Make the tool `shell`.

    Commands run with the rights of this process and are not confined to the directory: give it to
    an agent only where you would give it to its author.

    Args:
        workdir: Where commands run.
        timeout: Seconds after which a command is ended, with exit code 124.

    Returns:
        A tool that takes `command`.
    """
    backend = LocalShell(workdir, timeout=timeout)

    def shell(command: str) -> str:
        return shell_answer(backend.execute(command))

    async def ashell(command: str) -> str:
        return shell_answer(await backend.aexecute(command))

    return StructuredTool.from_function(
        shell, ashell, name="shell", description=_DESCRIPTION, metadata={"label": "Shell"}
    )


class LocalShell(LocalShellBackend):
    """The maintained local shell, with another way to run a command.

    The maintained one ends only the shell itself on time-out, and nothing on cancellation; here
    everything it started is ended too. It also keeps all output in memory before it cuts it; here
    no more than the limit is ever kept.

    Args:
        workdir: Where commands run.
        timeout: Seconds after which a command is ended, with exit code 124.
        max_output_bytes: How much of a command's output is kept, of each of its two streams.
        virtual_mode: Whether the file operations see the directory as `/` and nothing beyond it.
    """

    def __init__(
        self,
        workdir: Path,
        *,
        timeout: int = 120,
        max_output_bytes: int = MAX_OUTPUT_BYTES,
        virtual_mode: bool = False,
    ) -> None:
        super().__init__(workdir, timeout=timeout, virtual_mode=virtual_mode)
        self.timeout = timeout
        self.max_output_bytes = max_output_bytes

    def run(self, command: str) -> "ShellRun":
        """Make the run of a command, not yet started."""
        return ShellRun(command, self.cwd, self.max_output_bytes)

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command and wait for it."""
        return self._finish(self.run(command), timeout)

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,  # noqa: ASYNC109  the base class has it
    ) -> ExecuteResponse:
        """Run a command; when cancelled, end it."""
        run = self.run(command)
        try:
            return await asyncio.to_thread(self._finish, run, timeout)
        finally:
            run.end()

    def _finish(self, run: "ShellRun", timeout: int | None) -> ExecuteResponse:
        seconds = self.timeout if timeout is None else timeout
        if seconds <= 0:
            raise ValueError(f"timeout must be positive, got {seconds}")
        try:
            if run.start().wait(seconds):
                return run.response()
        except (OSError, ValueError) as error:  # the directory is gone, a null byte in the command
            return ExecuteResponse(f"Error: the command cannot be started: {error}", NOT_STARTED)
        finally:
            run.end()
        run.wait(SECONDS_TO_DIE)
        return run.response(note=f"[Timed out after {seconds}s]", exit_code=TIMED_OUT)


class ShellRun:
    """One run of a command, in a process group of its own.

    Args:
        command: For the system's shell.
        workdir: Where it runs.
        max_output_bytes: How much output is kept, of each of its two streams.
    """

    def __init__(self, command: str, workdir: Path, max_output_bytes: int) -> None:
        self.command = command
        self._workdir = workdir
        self._outputs = (_Output(max_output_bytes), _Output(max_output_bytes))
        self._max_output_bytes = max_output_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []
        self._ended = False
        self._lock = threading.Lock()

    def start(self) -> "ShellRun":
        """Begin; does nothing when it was ended before it began."""
        with self._lock:
            if self._ended:
                return self
            self._process = process = subprocess.Popen(  # noqa: S602  it is what this is for
                self.command,
                shell=True,
                cwd=self._workdir,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            streams = (process.stdout, process.stderr)
            for stream, output in zip(streams, self._outputs, strict=True):
                reader = threading.Thread(target=output.read, args=(stream,), daemon=True)
                reader.start()
                self._readers.append(reader)
        return self

    def wait(self, timeout: float) -> bool:
        """Wait for the end of the command and of its output, and say whether they came."""
        deadline = time.monotonic() + timeout
        for reader in self._readers:
            reader.join(max(0, deadline - time.monotonic()))
        if self._process:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0, deadline - time.monotonic()))
        return self.finished

    @property
    def finished(self) -> bool:
        """Whether the command has ended and nothing it started still holds its output."""
        if self._process is None:
            return self._ended
        reading = any(reader.is_alive() for reader in self._readers)
        return self._process.poll() is not None and not reading

    def end(self) -> None:
        """End the command with everything it has started, without waiting for it to be gone."""
        with self._lock:
            self._ended = True
            if self._process is None or self.finished:
                return
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def response(self, *, note: str = "", exit_code: int | None = None) -> ExecuteResponse:
        """What the command has put out so far, with its exit code when it has ended."""
        code = self._process.poll() if self._process else None
        whole = self._shown().encode()
        shown = whole[: self._max_output_bytes]
        return ExecuteResponse(
            output="\n".join(filter(None, [shown.decode(errors="ignore"), note])) or "<no output>",
            exit_code=code if exit_code is None else exit_code,
            truncated=len(whole) > len(shown) or any(output.cut for output in self._outputs),
        )

    def _shown(self) -> str:
        out, err = (output.text.rstrip("\n") for output in self._outputs)
        return "\n".join(filter(None, [out, *(f"[stderr] {line}" for line in err.splitlines())]))


class _Output:
    """One stream of a command: its beginning is kept, the rest is read and dropped."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept = bytearray()
        self.cut = False

    @property
    def text(self) -> str:
        return bytes(self._kept).decode(errors="replace")

    def read(self, stream: IO[bytes]) -> None:
        with stream:
            while chunk := os.read(stream.fileno(), 1 << 16):
                room = self._max_bytes - len(self._kept)
                self._kept += chunk[:room]
                self.cut = self.cut or len(chunk) > room


def shell_answer(response: ExecuteResponse) -> str:
    """A command's output as a model reads it, its exit code on the last line."""
    cut = "\n[Output was cut: this is its beginning]" if response.truncated else ""
    return f"{response.output}{cut}\nexit code {response.exit_code}"
