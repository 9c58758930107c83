"""What the programs print: lines of themed text, coloured in a terminal and plain in a pipe."""

import sys

from rich.console import Console

from todo_tools.rendering import Line, Span, View, one_line

_WHOLE = 1_000_000


def open_console() -> Console:
    """Standard output; nothing in a text is read as markup, an emoji code or a link.

    Lines are broken to the width of a terminal. In a pipe or a file they stay whole, so that they
    can be searched.
    """
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _WHOLE
    return console


def show(console: Console, *lines: Line) -> None:
    """Print lines; nothing without any."""
    if lines:
        console.print(View(lines))


def said(text: str) -> tuple[Line, ...]:
    """A message of the program itself."""
    return tuple(Line((Span(one_line(line), "muted"),)) for line in text.splitlines())


def error_lines(error: Exception) -> tuple[Line, ...]:
    """An error in one line, with its type unless the text alone is clear."""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    return (Line((Span(one_line(f"error: {kind}{' '.join(str(error).split())}"), "error"),)),)
