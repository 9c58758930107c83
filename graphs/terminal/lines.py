"""Printing lines of themed text, coloured in a terminal and plain in a pipe."""

import logging
import sys
import termios

from rich.console import Console

from todo_tools.rendering.lowlevel import Line, Span, View, one_line

_WIDE = 1_000_000


def open_console() -> Console:
    """A console on standard output that takes no text for markup, an emoji code or a link.

    In a pipe or a file, lines stay whole, so that they can be searched.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _WIDE
    return console


def silence_libraries() -> None:
    """Keep the logs of libraries off the screen: a model's text may be in them, unmarked."""
    logging.basicConfig(handlers=[logging.NullHandler()])


def show(console: Console, *lines: Line) -> None:
    """Print lines, one below the other."""
    if lines:
        console.print(View(lines))


def drop_typed() -> None:
    """Drop what was typed and not read yet: it is no answer to a question that comes now."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def said(text: str) -> tuple[Line, ...]:
    """A message from the program itself."""
    return tuple(Line((Span(one_line(line), "muted"),)) for line in text.splitlines())


def error_text(error: BaseException) -> str:
    """An error in one line, with its type unless the text is clear without it."""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    return one_line(f"error: {kind}{' '.join(str(error).split())}")


def print_error(error: BaseException) -> None:
    """Print the error that ends a program. Its text is untrusted."""
    print(error_text(error), file=sys.stderr)
