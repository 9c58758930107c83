"""The command-line options of the two programs, and the error for unusable input."""

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from graphs.terminal.agents import AGENTS

EXIT_DONE, EXIT_NOT_DONE, EXIT_UNUSABLE, EXIT_INTERRUPTED = 0, 1, 2, 130

DEFAULT_GRACE = 3
_LONGEST_GRACE = 60


class UnusableInputError(Exception):
    """A program cannot start with its input; the message is a one-line reason."""


class Parser(argparse.ArgumentParser):
    """A parser with the options of both programs and errors of one line."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        epilog = f"{epilog or ''} Options in $TODO_OPTIONS come before those of the command line."
        super().__init__(prog=prog, description=description, epilog=epilog)
        self.set_defaults(program=prog)
        self.add_argument(
            "--agent",
            choices=AGENTS,
            help="coding: edits files and runs commands, but asks first; notes: keeps notes; "
            "until_done: runs commands without asking (default: the thread's, or until_done)",
        )
        self.add_argument(
            "--model",
            metavar="PROVIDER:NAME",
            help="a chat model, or stand-in, which follows simple rules and needs no key (default: "
            "the thread's, or stand-in)",
        )
        self.add_argument(
            "--db",
            metavar="FILE",
            type=_database,
            default="todo-threads.sqlite",
            help="where threads are kept (default: %(default)s)",
        )
        self.add_argument(
            "--thread",
            metavar="ID",
            type=_thread_id,
            help="the thread to start or resume (default: a new one)",
        )
        self.add_argument(
            "-c",
            "--continue",
            dest="newest",
            action="store_true",
            help="resume the thread that was used last",
        )
        self.add_argument(
            "--workdir",
            metavar="DIR",
            type=lambda text: Path(_named(text)),
            help="where commands run (default: the thread's, or a new temporary directory)",
        )
        self.add_argument("--create", action="store_true", help="create DIR if it does not exist")
        self.add_argument(
            "--ask-plan",
            action="store_true",
            help="with --agent coding, ask about each plan first; the thread remembers this option",
        )
        self.add_argument(
            "--checked",
            action="store_true",
            help="complete a step only if its command has ended with exit code 0, whatever the "
            "model says; the thread remembers it",
        )
        self.add_argument(
            "--costs", action="store_true", help="show at the end what each item cost"
        )
        self.add_argument(
            "--env",
            metavar="NAME",
            action="append",
            default=[],
            help="an environment variable to pass to commands, besides the few that are always "
            "passed (may be repeated)",
        )
        self.add_argument(
            "--grace",
            metavar="SECONDS",
            type=_grace,
            default=DEFAULT_GRACE,
            help=f"how long to wait before a continuation, 0 to {_LONGEST_GRACE} "
            "(default: %(default)s)",
        )

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """Read a command line; the options in `$TODO_OPTIONS` come before it."""
        try:
            usual = shlex.split(os.environ.get("TODO_OPTIONS", ""))
        except ValueError as error:
            self.error(f"$TODO_OPTIONS cannot be read: {error}")
        return self.parse_args([*usual, *argv])

    def error(self, message: str) -> NoReturn:
        """Raise an error of one line."""
        raise UnusableInputError(f"{message}; see {self.prog} --help")


def _named(text: str) -> str:
    if not text:  # SQLite takes it for a database in memory, and Path for the current directory
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def _database(text: str) -> str:
    if text == ":memory:":
        raise argparse.ArgumentTypeError("must be a file, because a thread is resumed from it")
    return _named(text)


def _thread_id(text: str) -> str:
    if not text or not text.isprintable():
        raise argparse.ArgumentTypeError(f"must be printable and not empty, got {text!r}")
    return text


def _grace(text: str) -> int:
    if not text.isdecimal() or int(text) > _LONGEST_GRACE:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 0 to {_LONGEST_GRACE}, got {text!r}"
        )
    return int(text)
