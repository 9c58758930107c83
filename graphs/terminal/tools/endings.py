"""Commands that have ended are not run again, even if their result was lost with the program.

A program that is killed between the end of a command and the moment its result is stored would run
the command again when it is resumed. So the shell itself leaves the exit code in a file as its last
act, and a later program finds it. A command that was killed while it ran leaves nothing.
"""

import shlex
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from langgraph.config import get_config

FOLDER = "endings_folder"
"""The key in a run's `configurable` that names the folder; without it nothing is kept."""

_THIS_PROGRAM = uuid4().hex


class Ending:
    """Stores the exit code of one command in one step of a thread.

    Args:
        folder: The folder for the exit codes of the thread.
        step: The id of the step, which is the same when the step runs again.
        command: The command.
    """

    def __init__(self, folder: Path, step: str, command: str) -> None:
        self._folder = folder
        self._name = sha256(f"{step}\0{command}".encode()).hexdigest()[:32]
        self._command = command

    @property
    def command(self) -> str:
        """The command, extended to store its exit code in the name of a file, which is atomic."""
        self._folder.mkdir(parents=True, exist_ok=True)
        place = shlex.quote(f"{self._folder / self._name}.{_THIS_PROGRAM}.")
        return f"trap {shlex.quote(f': > {place}$?')} EXIT; {self._command}"

    def take(self) -> int | None:
        """The exit code that an earlier program left, if there is one.

        It is returned only once, because a step may contain the same command twice.
        """
        for found in self._folder.glob(f"{self._name}.*"):
            _, program, code = found.name.split(".")
            if program != _THIS_PROGRAM:
                found.rename(found.with_name(f"{self._name}.{_THIS_PROGRAM}.{code}"))
                return int(code)
        return None


def ending_of(command: str) -> Ending | None:
    """The ending of a command that a tool runs; `None` if exit codes are not kept."""
    with suppress(RuntimeError):  # there is no config outside a graph
        configurable = get_config().get("configurable", {})
        if folder := configurable.get(FOLDER):
            return Ending(Path(folder), str(configurable.get("checkpoint_ns")), command)
    return None
