"""What the two programs of this repository take on their command lines, and how they refuse it."""

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
    """A program cannot start on what it was given; the message is the one-line reason."""


class Parser(argparse.ArgumentParser):
    """A parser that refuses in one line, with the options that both programs have."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(prog=prog, description=description, epilog=epilog)
        self.add_argument(
            "--agent",
            choices=AGENTS,
            help="coding reads and writes files and runs commands, and asks before a command or a "
            "write; notes keeps notes; until_done runs commands (default: that of the thread, or "
            "until_done)",
        )
        self.add_argument(
            "--model",
            metavar="PROVIDER:NAME",
            help="a chat model (default: a stand-in without one)",
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
        """Refuse in one line."""
        raise UnusableInputError(f"{message}; see {self.prog} --help")


def check_database(path: str) -> None:
    """Fail early on a file that is no database: a connection thread would fail too late.

    Raises:
        sqlite3.Error: It cannot be opened, or is something else.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma schema_version")


def saved_metadata(saved: CheckpointTuple | None) -> Mapping[str, Any]:
    """What the checkpoints of a thread say of it; nothing for a new one."""
    return cast("Mapping[str, Any]", saved.metadata) if saved else {}


def choose_agent(given: str | None, saved: Mapping[str, Any], thread: str) -> str:
    """The agent of a thread: what its checkpoints say, or else what was asked for.

    Raises:
        UnusableInputError: The two differ.
    """
    kept = saved.get("agent")
    if given and kept and given != kept:
        raise UnusableInputError(f"thread {thread!r} is one of --agent {kept}")
    return given or kept or "until_done"


def choose_workdir(given: Path | None, saved: Mapping[str, Any]) -> Path:
    """Where commands run: as asked for, as the thread's checkpoints say, or somewhere new.

    Raises:
        UnusableInputError: There can be no such directory.
    """
    workdir = given or Path(saved.get("workdir") or tempfile.mkdtemp(prefix="todo-"))
    try:
        workdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableInputError(f"--workdir {workdir} cannot be used: {error.strerror}") from None
    return workdir.resolve()
