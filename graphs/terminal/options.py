"""The command-line options of the two programs, their exit codes, and unusable input."""

import argparse
from pathlib import Path
from typing import NoReturn

EXIT_DONE, EXIT_NOT_DONE, EXIT_UNUSABLE, EXIT_INTERRUPTED = 0, 1, 2, 130

DEFAULT_AGENT = "until_done"
DEFAULT_DB = "todo-threads.sqlite"
DEFAULT_GRACE = 3
_LONGEST_GRACE = 60


class UnusableInputError(ValueError):
    """A program cannot start with its input; the message is a one-line reason."""


class Parser(argparse.ArgumentParser):
    """A parser with the options of both programs and errors of one line."""

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(prog=prog, description=description, epilog=epilog)
        self.set_defaults(program=prog, yes=False)
        self.add_argument(
            "--agent",
            choices=("coding", DEFAULT_AGENT),
            help="coding: edits files and runs commands, but asks first; until_done: runs commands "
            "without asking (default: the thread's, or until_done)",
        )
        self.add_argument(
            "--model",
            metavar="PROVIDER:NAME",
            help="a chat model, or stand-in, which follows simple rules and needs no key (default: "
            "the thread's, or stand-in)",
        )
        text = "where threads are kept (default: %(default)s)"
        self.add_argument("--db", metavar="FILE", type=_name, default=DEFAULT_DB, help=text)
        text = "the thread to start or resume (default: a new one)"
        self.add_argument("--thread", metavar="ID", type=_name, help=text)
        self.add_argument(
            "-c", "--continue", dest="newest", action="store_true", help="resume the newest thread"
        )
        self.add_argument(
            "--workdir",
            metavar="DIR",
            type=lambda text: Path(_name(text)),
            help="where commands run (default: the thread's, or a new temporary directory)",
        )
        self.add_argument("--create", action="store_true", help="create DIR if it does not exist")
        text = (
            f"how long to wait before a continuation, 0 to {_LONGEST_GRACE} (default: %(default)s)"
        )
        self.add_argument(
            "--grace", metavar="SECONDS", type=_grace, default=DEFAULT_GRACE, help=text
        )

    def error(self, message: str) -> NoReturn:
        """Raise an error of one line."""
        raise UnusableInputError(f"{message}; see {self.prog} --help")


def _name(text: str) -> str:
    """Refuse what SQLite or `Path` would take for something else."""
    if not text.strip() or not text.isprintable() or text == ":memory:":
        raise argparse.ArgumentTypeError(f"must be a name, got {text!r}")
    return text


def _grace(text: str) -> int:
    if not text.isdecimal() or int(text) > _LONGEST_GRACE:
        limit = f"a whole number from 0 to {_LONGEST_GRACE}"
        raise argparse.ArgumentTypeError(f"must be {limit}, got {text!r}")
    return int(text)
