"""What the programs print: lines of themed text, coloured in a terminal and plain in a pipe."""

import os
import sqlite3
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from typing_extensions import override

from todo_tools.ledger import ledger
from todo_tools.rendering import Line, Span, View, one_line, show_ledger
from todo_tools.state import messages_in

_WHOLE = 1_000_000
_CLOSED = 141  # as of a program that SIGPIPE has ended


class OutputError(Exception):
    """Nothing more can be printed, for example because the disk is full."""


class _Output(Console):
    """A console whose reader may leave: the program then ends as others in a pipe do."""

    @override
    def print(self, *objects: Any, **settings: Any) -> None:
        try:
            super().print(*objects, **settings)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"the output cannot be written: {error.strerror}") from None

    @override
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def open_console() -> Console:
    """Standard output; nothing in a text is read as markup, an emoji code or a link.

    Lines are broken to the width of a terminal. In a pipe or a file they stay whole, so that they
    can be searched.
    """
    console = _Output(file=sys.stdout, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _WHOLE
    return console


def show(console: Console, *shown: Line | View) -> None:
    """Print lines and views, one below the other."""
    for each in shown:
        console.print(View((each,)) if isinstance(each, Line) else each)


def show_whole(console: Console, text: str) -> None:
    """Print a line that is not broken, so that it can be copied, for example a command."""
    console.print(View((Line((Span(one_line(text)),)),)), soft_wrap=True)


def print_error(error: Exception) -> None:
    """Print the error that ends a program, whose text may come from anywhere."""
    print(f"error: {one_line(str(error))}", file=sys.stderr)


def close_output() -> int:
    """Give up standard output after its reader has left, and say how to exit.

    What is still to be written would otherwise be an error at the very end of the program.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return _CLOSED


def show_costs(console: Console, values: Mapping[str, Any]) -> None:
    """Print what each item of a thread cost."""
    show(console, Line(()), show_ledger(ledger(messages_in(values))))


def said(text: str) -> tuple[Line, ...]:
    """A message of the program itself."""
    return tuple(Line((Span(one_line(line), "muted"),)) for line in text.splitlines())


def error_lines(error: Exception) -> tuple[Line, ...]:
    """An error in one line, with its type unless the text alone is clear."""
    reason = " ".join(str(error).split())
    return (Line((Span(one_line(f"error: {_kind(error)}{reason}"), "error"),)),)


def _kind(error: Exception) -> str:
    if isinstance(error, sqlite3.Error):
        return "the database cannot be used now: "
    return "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
