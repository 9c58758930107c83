"""The command lines of the two programs, and how they refuse unusable input."""

import argparse
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn, cast

from langgraph.checkpoint.base import CheckpointTuple

from graphs.programs.agents import AGENTS

EXIT_DONE, EXIT_NOT_DONE, EXIT_UNUSABLE, EXIT_INTERRUPTED = 0, 1, 2, 130

_LONGEST_GRACE = 60


class UnusableInputError(Exception):
    """A program cannot start with what it was given; the message is the one-line reason."""


class Parser(argparse.ArgumentParser):
    """A parser with the options of both programs, whose errors are one line."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(prog=prog, description=description, epilog=epilog)
        self.add_argument(
            "--agent",
            choices=AGENTS,
            help="coding reads and writes files and runs commands, and asks before a command or a "
            "write; notes keeps notes; until_done runs commands without asking (default: that of "
            "the thread, or until_done)",
        )
        self.add_argument(
            "--model",
            metavar="PROVIDER:NAME",
            help="a chat model (default: a stand-in that needs none)",
        )
        self.add_argument(
            "--db",
            metavar="FILE",
            default="todo-threads.sqlite",
            help="where threads are kept (default: %(default)s)",
        )
        self.add_argument(
            "--thread", metavar="ID", help="the thread to begin or to resume (default: a new one)"
        )
        self.add_argument(
            "--workdir",
            metavar="DIR",
            type=Path,
            help="where commands run (default: that of the thread, or a new temporary directory)",
        )
        self.add_argument(
            "--grace",
            metavar="SECONDS",
            type=int,
            choices=range(_LONGEST_GRACE + 1),
            default=3,
            help="how long to wait before a continuation (default: %(default)s)",
        )

    def error(self, message: str) -> NoReturn:
        """Raise an error of one line."""
        raise UnusableInputError(f"{message}; see {self.prog} --help")


def check_database(path: str) -> None:
    """Fail early on a file that is not a database: a connection thread would fail too late.

    Raises:
        sqlite3.Error: It cannot be opened or is not a database.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma schema_version")


def saved_metadata(saved: CheckpointTuple | None) -> Mapping[str, Any]:
    """The metadata in the checkpoints of a thread; empty for a new one."""
    return cast("Mapping[str, Any]", saved.metadata) if saved else {}


def choose_agent(given: str | None, saved: Mapping[str, Any], thread: str) -> str:
    """The agent of a thread: the one in its checkpoints, or else the one asked for.

    Raises:
        UnusableInputError: The two differ.
    """
    kept = saved.get("agent")
    if given and kept and given != kept:
        raise UnusableInputError(f"thread {thread!r} belongs to --agent {kept}")
    return given or kept or "until_done"


def choose_workdir(given: Path | None, saved: Mapping[str, Any]) -> Path:
    """Where commands run: as asked for, as in the thread's checkpoints, or a new directory.

    Raises:
        UnusableInputError: The directory cannot be made.
    """
    workdir = given or Path(saved.get("workdir") or tempfile.mkdtemp(prefix="todo-"))
    try:
        workdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableInputError(f"--workdir {workdir} cannot be used: {error.strerror}") from None
    return workdir.resolve()
