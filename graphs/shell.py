"""A shell as one tool, on top of the shell that deepagents maintains."""

from pathlib import Path

from deepagents.backends import LocalShellBackend
from deepagents.backends.protocol import ExecuteResponse
from langchain_core.tools import StructuredTool

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
    backend = LocalShellBackend(
        root_dir=workdir, virtual_mode=False, timeout=timeout, inherit_env=True
    )

    def shell(command: str) -> str:
        return _answer(backend.execute(command))

    async def ashell(command: str) -> str:
        return _answer(await backend.aexecute(command))

    return StructuredTool.from_function(
        shell, ashell, name="shell", description=_DESCRIPTION, metadata={"label": "Shell"}
    )


def _answer(response: ExecuteResponse) -> str:
    # deepagents names the exit code only when it is not 0; here it is always the last line.
    output = response.output.removesuffix(f"Exit code: {response.exit_code}").strip()
    return f"{output}\nexit code {response.exit_code}"
