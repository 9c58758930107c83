"""A shell as one tool, built on the backend of deepagents."""

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, cast

from deepagents.backends import LocalShellBackend
from deepagents.backends.protocol import ExecuteArtifact, ExecuteResponse
from langchain_core.tools import StructuredTool
from langgraph.config import get_stream_writer
from pydantic import Field

from graphs.terminal.tools.run import ShellRun

NOT_STARTED, TIMED_OUT, INTERRUPTED = 1, 124, 130
MAX_OUTPUT_BYTES = 100_000
SECONDS_TO_DIE = 2.0
PASSED_VARIABLES = frozenset(
    [
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
        "VIRTUAL_ENV",
    ]
)
"""The variables that commands get, besides those of the locale (`LC_*`)."""

_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_TO_HEAR = 0.05
_INTERRUPTED = ("[Interrupted]", INTERRUPTED)

Command = Annotated[str, Field(description="The command, for bash (sh where there is no bash).")]
"""The `command` argument of a tool."""

_DESCRIPTION = (
    "Run a shell command in the working directory. Returns its output and, on the last line, its "
    "exit code; 0 means success."
)


class ShellArtifact(ExecuteArtifact):
    """How a command ended, as programs read it: what deepagents reports, and the command itself.

    The call in the history is not always the command that ran, because a person may edit it.
    """

    command: str


def shell_tool(workdir: Path, *, timeout: int = 120) -> StructuredTool:
    """Make the tool `shell`.

    Commands run with the rights of this process and are not confined to the directory. Give the
    tool only to an agent that you trust with your shell.

    Args:
        workdir: Where commands run.
        timeout: Seconds after which a command is ended, with exit code 124.

    Returns:
        A tool that takes `command`. The artifact of its result is a `ShellArtifact`.
    """
    backend = LocalShell(workdir, timeout=timeout)

    def shell(command: Command) -> tuple[str, ShellArtifact]:
        return _with_artifact(command, backend.execute(command))

    async def ashell(command: Command) -> tuple[str, ShellArtifact]:
        return _with_artifact(command, await backend.aexecute(command))

    return StructuredTool.from_function(
        shell,
        ashell,
        name="shell",
        description=_DESCRIPTION,
        metadata={"label": "Shell"},
        response_format="content_and_artifact",
    )


class LocalShell(LocalShellBackend):
    """The local shell of deepagents, with another way to run a command.

    The original leaves what a command started running after a time-out, a cancellation or the end
    of the program, and keeps only the beginning of long output. This class kills every process that
    a command started (`ShellRun`), and keeps both ends.

    Commands get only a few variables of this program's environment, so that they cannot print its
    API keys by mistake. This does not stop a command that looks for keys.

    Args:
        workdir: Where commands run.
        timeout: Seconds after which a command is ended, with exit code 124.
        max_output_bytes: How much of a command's output is kept, half of it from each end.
    """

    def __init__(
        self, workdir: Path, *, timeout: int = 120, max_output_bytes: int = MAX_OUTPUT_BYTES
    ) -> None:
        super().__init__(workdir, timeout=timeout)
        self.timeout = timeout
        self.max_output_bytes = max_output_bytes

    def run(self, command: str) -> ShellRun:
        """Create the run of a command; it is not started."""
        return ShellRun(
            command,
            self.cwd,
            env=command_environment(),
            max_output_bytes=self.max_output_bytes,
        )

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command and wait for it."""
        with self.run(command) as run:
            return self._finish(run, timeout)

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,  # noqa: ASYNC109  the base class has it
    ) -> ExecuteResponse:
        """Run a command; when cancelled, end it."""
        with self.run(command) as run:
            return await asyncio.to_thread(self._finish, run, timeout)

    def _finish(self, run: ShellRun, timeout: int | None) -> ExecuteResponse:
        seconds = self.timeout if timeout is None else timeout
        if seconds <= 0:
            raise ValueError(f"timeout must be positive, got {seconds}")
        try:
            run.start()
            stopped = _why_unfinished(run, seconds, _output_writer(run.command))
        except (OSError, ValueError) as error:  # no directory, or a null byte
            return ExecuteResponse(f"Error: the command cannot be started: {error}", NOT_STARTED)
        if not stopped:
            return run.response()
        run.end()
        run.wait(SECONDS_TO_DIE)
        note, exit_code = stopped
        return run.response(note=note, exit_code=exit_code)


def shell_answer(response: ExecuteResponse) -> str:
    """A command's output for the model, with the exit code on the last line."""
    return f"{response.output}\nexit code {response.exit_code}"


def command_environment() -> dict[str, str]:
    """The environment of commands: a part of this program's."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in PASSED_VARIABLES or name.startswith("LC_")
    }


def _with_artifact(command: str, response: ExecuteResponse) -> tuple[str, ShellArtifact]:
    artifact = ShellArtifact(command=command, truncated=response.truncated)
    if response.exit_code is not None:
        artifact["exit_code"] = response.exit_code
    return shell_answer(response), artifact


def _output_writer(command: str) -> Callable[[str], None]:
    """A function that writes the output of a running command to the custom stream of its graph."""
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # outside a graph
        return lambda _: None
    return lambda text: write({"type": "tool_output", "command": command, "text": text})


def _why_unfinished(
    run: ShellRun, seconds: int, write: Callable[[str], None]
) -> tuple[str, int] | None:
    """Wait for a run. If it does not finish by itself, return a notice and its exit code."""
    before, deadline, is_shown = _interrupt(), time.monotonic() + seconds, False
    while not run.wait(_SECONDS_BETWEEN_LOOKS):
        if text := run.take_new():
            write(text)
            is_shown = True
        if time.monotonic() >= deadline:
            return f"[Timed out after {seconds}s]", TIMED_OUT
        if run.is_ended_within(0) or _interrupt() not in (None, before):
            return _INTERRUPTED
    # A signal to all processes may reach the command first. Then its end means nothing.
    if run.is_ended_within(_SECONDS_TO_HEAR) or _interrupt() not in (None, before):
        return _INTERRUPTED
    if is_shown and (text := run.take_new()):  # otherwise the end of the output would be missing
        write(text)
    return None


_LOOK = threading.Lock()


def _interrupt() -> KeyboardInterrupt | None:
    """The KeyboardInterrupt that the main thread is handling, if any.

    Python raises it only there. In a synchronous run, the main thread then waits for the tools in
    other threads, without telling them.
    """
    with _LOOK:  # some versions of Python 3.11 hang if a garbage collection begins here
        collects = gc.isenabled()
        gc.disable()
        try:
            handled: Any = sys._current_exceptions().get(threading.main_thread().ident or 0)  # pyright: ignore[reportPrivateUsage]
        finally:
            if collects:
                gc.enable()
    if isinstance(handled, tuple):  # before Python 3.12
        _, handled, _ = cast("tuple[object, object, object]", handled)
    return handled if isinstance(handled, KeyboardInterrupt) else None
