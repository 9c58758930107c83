"""Draw a tool call that needs approval so that its text cannot fake another question.

A model wrote the call. On a screen of known width it could draw another, harmless question: with
lines padded to that width, or with so many lines that its beginning scrolls away. So each row
begins with a mark of this program, and no row is as wide as the screen. A call that is higher than
the screen is cut in the middle.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Any, Literal, cast

from rich.console import Console

from graphs.terminal.plan import is_plan, plan_lines, plan_of
from todo_tools import TodoItem
from todo_tools.rendering.lowlevel import Line, Span, one_line

_INDENT = Span("    ")
_NEXT_LINE = Span("    │ ", "dim", plain="    | ")
_SAME_LINE = Span("    ↪ ", "warning", plain="    > ")
_NAME_CHARACTERS = 12
_FEWEST_ROWS = 4
_ROWS_OF_A_PART = 3  # the first and the last, and the note between them
_OTHER_ROWS = 8
_FIRST = {
    "edit_file": ("file_path", "old_string", "new_string", "replace_all"),
    "execute": ("command", "timeout"),
    "run_in_background": ("command", "item"),
    "write_file": ("file_path", "content"),
}
"""The arguments that a tool knows; what a model invents comes after them."""

Token = Literal["success", "error", "dim"]
_TOKENS: dict[str, Token] = {"+": "success", "-": "error", " ": "dim"}
_CONTEXT = 3
_WRITTEN = frozenset({"command", "content"})
"""The arguments that say what a call does; the others say where and how."""


@dataclass(frozen=True)
class Room:
    """The space for a call on the screen."""

    width: int = 1_000_000
    height: int = 1_000_000
    encoding: str = "utf-8"

    @classmethod
    def of(cls, console: Console, taken: int = 0) -> "Room":
        """The space on the terminal of the answer after some rows are reserved.

        The console may be a pipe to that terminal, and `COLUMNS` and `LINES` may be wrong.
        """
        try:
            terminal = os.get_terminal_size(sys.stdin.fileno())
        except OSError:  # nobody is asked
            return cls(encoding=console.encoding)
        columns, lines = terminal.columns or 80, terminal.lines or 24  # 0 if it does not know
        height = max(lines - taken - _OTHER_ROWS, _FEWEST_ROWS)
        return cls(min(columns, console.width), height, console.encoding)

    @property
    def whole(self) -> "Room":
        """The same width with unlimited height, for a person who scrolls."""
        return Room(self.width, encoding=self.encoding)


def call_rows(
    action: Mapping[str, Any],
    todos: Sequence[TodoItem] = (),
    room: Room = Room(),
    before: str = "",
) -> Iterator[Line]:
    """Show the tool call that a person must decide.

    Args:
        action: The call with its `name` and `args`.
        todos: The list before the call.
        room: The screen; by default everything is shown.
        before: The text of the file that the call edits, if it is known.

    Yields:
        Rows that fit the screen. An edit of a file is shown as a diff, with the lines around it
        and their numbers if the file is known, and a plan as the whole list after the call.
    """
    yield Line(())
    yield Line((Span(one_line(action["name"]), "accent", bold=True),), (Span("? ", "accent"),))
    context = _CONTEXT
    while True:
        parts = _parts(action, todos, before, context)
        drawn = [[row for line in part for row in _rows(line, room)] for part in parts]
        if not context or sum(map(len, drawn)) <= room.height:
            break
        context -= 1  # what an edit changes matters more than what is around it
    needed = accumulate(min(len(rows), _ROWS_OF_A_PART) for rows in drawn)
    shown = drawn[: sum(rows <= room.height for rows in needed)]
    for rows, height in zip(shown, _shares(list(map(len, shown)), room.height), strict=True):
        yield from _cut(rows, height)
    if len(drawn) > len(shown):
        yield _note(f"({_count(len(drawn) - len(shown), 'more argument')})")


def argument_rows(action: Mapping[str, Any]) -> Iterator[Line]:
    """All arguments of a call, whole."""
    return (line for part in _parts(action, (), "", 0) for line in part)


def is_cut(
    action: Mapping[str, Any], todos: Sequence[TodoItem], room: Room, before: str = ""
) -> bool:
    """Whether a part of a call is not shown."""
    fitting, whole = (list(call_rows(action, todos, each, before)) for each in (room, room.whole))
    return fitting != whole  # a note may take the place of a row, so their number says nothing


def size_of(action: Mapping[str, Any]) -> str:
    """The length of what a call writes or runs, in words."""
    args = cast("Mapping[str, object]", action["args"])
    if is_plan(action) and isinstance(args.get("todos"), list):
        return _count(len(cast("list[object]", args["todos"])), "item")
    if edit := _edit_in(action):
        old, new = (len(_lines(text)) if text else 0 for text in edit)
        return f"{_count(old, 'line')} becomes {_count(new, 'line')}".replace(
            "s becomes", "s become"
        )
    texts = [
        str(value) for name, value in args.items() if name in _WRITTEN or not _WRITTEN & {*args}
    ]
    lines = sum(len(_lines(text)) for text in texts)
    return f"{_count(sum(map(len, texts)), 'character')} in {_count(lines, 'line')}"


def _lines(text: str) -> list[str]:
    """The lines of a text; a line break at its end begins no further line."""
    return text.removesuffix("\n").split("\n")


def _edit_in(action: Mapping[str, Any]) -> tuple[str, str] | None:
    """The two texts of an edit of a file."""
    match action:
        case {"name": "edit_file", "args": {"old_string": str(old), "new_string": str(new)}}:
            return old, new
        case _:
            return None


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _parts(
    action: Mapping[str, Any], todos: Sequence[TodoItem], before: str, context: int
) -> list[list[Line]]:
    """The parts of a call, the most important first, because the last ones may not fit."""
    planned = plan_of(action, todos)
    if planned is not None:
        return [list(plan_lines(planned))]
    args = dict(cast("Mapping[str, Any]", action["args"]))
    parts = list[list[Line]]()
    if edit := _edit_in(action):
        parts = [list(_difference(*edit, before, context))]
        del args["old_string"], args["new_string"]
    first = _FIRST.get(action["name"], ())
    names = sorted(args, key=lambda name: first.index(name) if name in first else len(first))
    arguments = [list(_argument(name, str(args[name]))) for name in names]
    return arguments[:1] + parts + arguments[1:]


def _argument(name: str, value: str) -> Iterator[Line]:
    """An argument: its first line after its name, the other lines below."""
    shown = one_line(name).encode("ascii", "backslashreplace").decode()
    if len(shown) > _NAME_CHARACTERS:
        shown = f"{shown[: _NAME_CHARACTERS - 2]}.."
    lines = _lines(value) if name in _WRITTEN else value.split("\n")  # a path may end with one
    for number, line in enumerate(lines):
        lead = (_NEXT_LINE,) if number else (_INDENT, Span(f"{shown}: ", "dim"))
        yield Line((Span(one_line(line), bold=name == "command"),), lead)


def _difference(old: str, new: str, text: str, context: int) -> Iterator[Line]:
    """An edit as a diff; with context and line numbers if the text of the file is known."""
    first, was, now = _around(old, new, text, context)
    context = context if first else len(was)
    groups = list(SequenceMatcher(None, was, now).get_grouped_opcodes(context))
    if not groups:
        yield _note("(the two texts are the same)")
    for at, group in enumerate(groups):
        if at:
            yield _note("...")
        for kind, i1, i2, j1, j2 in group:
            removed = [] if kind == "equal" else [("-", n, was[n]) for n in range(i1, i2)]
            mark = " " if kind == "equal" else "+"
            for sign, place, line in [*removed, *((mark, n, now[n]) for n in range(j1, j2))]:
                token = _TOKENS[sign]
                number = f"{first + place:>4} " if first else ""
                lead = Span(f"    {number}{sign} ", token)
                yield Line((Span(one_line(line), token),), (lead,))


def _around(old: str, new: str, text: str, context: int) -> tuple[int, list[str], list[str]]:
    """The lines of a file around an edit, before and after it, and the number of the first one.

    If the file is not known, these are the lines of the edit, and the number is 0.
    """
    if not old or old not in text:
        return 0, old.split("\n"), new.split("\n")
    above, below = text.partition(old)[0], text.rpartition(old)[2]
    edited = text[len(above) : len(text) - len(below)]
    head = above.split("\n")
    kept = head[-1 - context :]
    tail = "\n".join(below.removesuffix("\n").split("\n")[: 1 + context])
    was, now = ("\n".join(kept) + part + tail for part in (edited, edited.replace(old, new)))
    if not below and was.endswith("\n") and now.endswith("\n"):
        was, now = was[:-1], now[:-1]
    return len(head) - len(kept) + 1, was.split("\n"), now.split("\n")


def _note(text: str) -> Line:
    return Line((Span(text, "warning"),), (_INDENT,))


def _rows(line: Line, room: Room) -> Iterator[Line]:
    """Break a line into rows; every row after the first begins with a continuation mark."""
    lead = line.lead
    for span in line.body:
        text = span.text.encode(room.encoding, "backslashreplace").decode(room.encoding)
        start = 0
        while True:
            cells = room.width - 1 - sum(_cells(each.text) for each in lead)
            shown = text[start : start + room.width]
            shown = shown[: _fitting(shown, cells)]
            yield replace(line, body=(replace(span, text=shown),), lead=lead)
            start, lead = start + len(shown), (_SAME_LINE,)
            if start >= len(text):
                break


def _fitting(text: str, cells: int) -> int:
    """How many characters fit; at least one."""
    if text.isascii():  # a model can write a line of a million characters
        return min(len(text), max(cells, 1))
    taken = 0
    for number, character in enumerate(text):
        taken += _cells(character)
        if taken > cells and number:
            return number
    return len(text)


def _cells(text: str) -> int:
    """The largest number of cells that a text takes in any terminal; terminals differ."""
    return sum(1 if character.isascii() else 2 for character in text)


def _shares(sizes: Sequence[int], height: int) -> list[int]:
    """Divide rows among parts: what a small part does not need is left for the others."""
    shares = dict[int, int]()
    for done, (size, part) in enumerate(sorted((size, part) for part, size in enumerate(sizes))):
        shares[part] = min(size, (height - sum(shares.values())) // (len(sizes) - done))
    return [shares[part] for part in range(len(sizes))]


def _cut(rows: list[Line], height: int) -> Iterator[Line]:
    """Cut rows in the middle; a note there says how many of them are missing."""
    if len(rows) <= height:
        yield from rows
        return
    last = (height - 1) // 2
    first = height - 1 - last
    yield from rows[:first]
    left_out = len(rows) - first - last
    yield _note(f"({left_out:,} of {len(rows):,} rows left out)")
    yield from rows[len(rows) - last :]
