"""The results of commands are kept in files until their thread has stored them.

A program that is killed between the end of a command and the moment its thread stores the result
would run the command again when it is resumed. So the program writes the result to a file first,
and a later program finds it, or a later run of the same program if it gives each run an id.

Nothing but the program writes such a file, and only for a command that ended while it waited for
it. A signal that ends the program, or everything at once, leaves no file: the program ends its
commands with itself, and a call that was cancelled keeps nothing.
"""

import json
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from deepagents.backends.protocol import ExecuteResponse
from langgraph.config import get_config
from langgraph.runtime import get_runtime

FOLDER = "endings_folder"
"""The key in a run's `configurable` that names the folder; without it nothing is kept."""

_THIS_PROGRAM = uuid4().hex
_EXIT_CODES = frozenset(range(256)) - frozenset(range(129, 193))
"""The exit codes of commands that ended by themselves; a shell adds 128 to a signal's number, which
is 64 at most."""


class Ending:
    """Keeps the result of one command in one step of a thread.

    Args:
        folder: The folder for the results of the thread.
        step: The id of the step, which is the same when the step runs again.
        command: The command.
        run: What tells this run from an earlier one of the step.
    """

    def __init__(self, folder: Path, step: str, command: str, run: str) -> None:
        self._folder = folder
        self._run = run
        self._name = sha256(f"{step}\0{command}".encode(errors="replace")).hexdigest()[:32]

    def keep(self, response: ExecuteResponse) -> None:
        """Keep a result, unless a signal ended the command, so that it has to run again."""
        if response.exit_code not in _EXIT_CODES:
            return
        with suppress(OSError):  # a full disk must not take the result from the agent
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self._folder, delete=False) as file:
                json.dump(asdict(response), file)
            Path(file.name).rename(self._path(time.time_ns()))  # it is there whole, or not at all

    def take(self) -> ExecuteResponse | None:
        """The result that an earlier run kept, if there is one.

        It is returned only once, because a step may contain the same command twice.
        """
        for found in sorted(self._folder.glob(f"{self._name}.*")):
            _, kept_at, run = found.name.split(".")
            if run == self._run:
                continue
            # A call beside this one has just taken it, or a power loss damaged it.
            with suppress(FileNotFoundError, ValueError):
                taken = found.rename(self._path(kept_at))
                return ExecuteResponse(**json.loads(taken.read_text()))
        return None

    def _path(self, kept_at: int | str) -> Path:
        return self._folder / f"{self._name}.{kept_at}.{self._run}"


def ending_of(command: str) -> Ending | None:
    """The ending of a command that a tool runs; `None` if results are not kept."""
    with suppress(RuntimeError):  # there is no config outside a graph
        configurable = get_config().get("configurable", {})
        if folder := configurable.get(FOLDER):
            info = get_runtime().execution_info
            run = (info and info.run_id) or _THIS_PROGRAM
            return Ending(Path(folder), str(configurable.get("checkpoint_ns")), command, run)
    return None
