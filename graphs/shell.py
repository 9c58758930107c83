"""A shell as one tool, on top of the shell that deepagents maintains."""

import asyncio
import os
import shlex
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from deepagents.backends import LocalShellBackend
from deepagents.backends.protocol import ExecuteResponse
from langchain_core.tools import StructuredTool

TIMED_OUT = 124

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
    backend = LocalShell(root_dir=workdir, virtual_mode=False, timeout=timeout, inherit_env=True)

    def shell(command: str) -> str:
        return _answer(backend.execute(command))

    async def ashell(command: str) -> str:
        return _answer(await backend.aexecute(command))

    return StructuredTool.from_function(
        shell, ashell, name="shell", description=_DESCRIPTION, metadata={"label": "Shell"}
    )


class LocalShell(LocalShellBackend):
    """The maintained local shell, which also ends what a command has started.

    On time-out only the shell itself would be ended, and on cancellation nothing at all; here the
    whole process tree is, so that Ctrl-C and a cancelled run leave nothing behind.
    """

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command and wait for it."""
        return self._execute(command, timeout, _new_group())

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,  # noqa: ASYNC109  the base class has it
    ) -> ExecuteResponse:
        """Run a command; when cancelled, end it."""
        group = await asyncio.to_thread(_new_group)
        try:
            return await asyncio.to_thread(self._execute, command, timeout, group)
        except asyncio.CancelledError:
            await asyncio.to_thread(_end, group)
            raise

    def _execute(self, command: str, timeout: int | None, group: Path) -> ExecuteResponse:
        try:
            response = super().execute(
                f"echo $$ >{shlex.quote(str(group))}; {command}", timeout=timeout
            )
            if response.exit_code == TIMED_OUT:
                _end(group)
            return response
        finally:
            group.unlink(missing_ok=True)


def _new_group() -> Path:
    """A file for the id of the process group that the backend starts.

    Like all that touches files it runs in a thread: a server's event loop may not block.
    """
    handle, name = tempfile.mkstemp(prefix="todo-shell-")
    os.close(handle)
    return Path(name)


def _end(group: Path) -> None:
    # It has ended, or never began.
    with suppress(FileNotFoundError, ProcessLookupError, ValueError):
        os.killpg(int(group.read_text()), signal.SIGKILL)


def _answer(response: ExecuteResponse) -> str:
    # deepagents names the exit code only when it is not 0; here it is always the last line.
    output = response.output.removesuffix(f"Exit code: {response.exit_code}").strip()
    return f"{output}\nexit code {response.exit_code}"
