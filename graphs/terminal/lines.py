"""Printing lines of themed text, coloured in a terminal and plain in a pipe."""

import logging
import os
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.theme import Theme
from typing_extensions import override

from todo_tools.ledger import ledger
from todo_tools.rendering import show_ledger
from todo_tools.rendering.lowlevel import Line, Span, View, one_line
from todo_tools.state import messages_in

_WHOLE = 1_000_000
_CLOSED = 141  # the exit code after SIGPIPE


class OutputError(Exception):
    """Output cannot be written, for example because the disk is full."""


class _Output(Console):
    """A console that ends the program when the reader of its pipe is gone, as SIGPIPE would."""

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
    """A console on standard output that treats no text as markup, an emoji code or a link.

    In a terminal, lines are broken at its width. In a pipe or a file they stay whole, so that they
    can be searched.
    """
    # rich's own colours of these have a black background, or cannot be read on one.
    links = {"markdown.link": "cyan", "markdown.link_url": "cyan underline"}
    theme = Theme({"markdown.code": "bold cyan", **links})
    console = _Output(file=sys.stdout, highlight=False, markup=False, emoji=False, theme=theme)
    if not console.is_terminal:
        console.width = _WHOLE
    return console


def silence_libraries() -> None:
    """Keep the logs of libraries off the screen: a model's text may be in them, unmarked."""
    logging.basicConfig(handlers=[logging.NullHandler()])


def show(console: Console, *shown: Line | View) -> None:
    """Print lines and views, one below the other."""
    for each in shown:
        console.print(View((each,)) if isinstance(each, Line) else each)


def show_below(console: Console, lines: Iterable[Line]) -> None:
    """Print lines of a foot: items are wrapped, all other lines take one row and may be cut."""
    for line in lines:
        console.print(View((line,)), no_wrap=line.status is None)


def rows_below(console: Console, line: Line) -> int:
    """The number of rows that a line of a foot takes."""
    if line.status is None or cell_len(str(line)) <= console.width:
        return 1
    return len(console.render_lines(View((line,)), pad=False))


def show_whole(console: Console, text: str) -> None:
    """Print an unbroken line, for example a command that the user copies."""
    console.print(View((Line((Span(one_line(text)),)),)), soft_wrap=True)


def print_error(error: Exception, kind: str = "") -> None:
    """Print the error that ends a program. Its text is untrusted."""
    print(f"error: {kind}{one_line(str(error))}", file=sys.stderr)


def close_output() -> int:
    """Close standard output after its reader is gone, and return the exit code.

    Otherwise Python would report an error when it flushes the rest at exit.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return _CLOSED


def show_costs(console: Console, values: Mapping[str, Any]) -> None:
    """Print what each item of a thread cost."""
    show(console, Line(()), show_ledger(ledger(messages_in(values))))


def said(text: str) -> tuple[Line, ...]:
    """A message from the program itself."""
    return tuple(Line((Span(one_line(line), "muted"),)) for line in text.splitlines())


def error_lines(error: Exception) -> tuple[Line, ...]:
    """An error in one line, with its type unless the text is clear without it."""
    reason = " ".join(str(error).split())
    return (Line((Span(one_line(f"error: {_kind(error)}{reason}"), "error"),)),)


def _kind(error: Exception) -> str:
    if isinstance(error, sqlite3.Error):
        return "the database cannot be used now: "
    return "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
