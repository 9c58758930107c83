"""Draw a tool call that needs approval so that its text cannot fake another question.

A model wrote the call. On a screen of known width it could draw another, harmless question: with
lines padded to that width, or with so many lines that its beginning scrolls away. So each row
begins with a mark of this program, and no row is as wide as the screen. A call that is higher than
the screen is cut in the middle.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Any, Literal, cast

from rich.console import Console

from graphs.terminal.plan import is_plan, plan_lines, plan_of
from todo_tools import TodoItem
from todo_tools.rendering import Line, Span, one_line

_INDENT = Span("    ")
_NEXT_LINE = Span("    │ ", "dim", plain="    | ")
_SAME_LINE = Span("    ↪ ", "warning", plain="    > ")
_NAME_CHARACTERS = 12
_FEWEST_ROWS = 4
_OTHER_ROWS = 8
_FIRST = ("command", "file_path", "old_string", "new_string", "content")

Token = Literal["success", "error", "dim"]


@dataclass(frozen=True)
class Room:
    """The space for a call on the screen."""

    width: int = 1_000_000
    height: int = 1_000_000
    encoding: str = "utf-8"

    @classmethod
    def of(cls, console: Console, taken: int = 0) -> "Room":
        """The space on a console after some rows are reserved."""
        if not console.is_terminal:
            return cls(encoding=console.encoding)
        height = max(console.height - taken - _OTHER_ROWS, _FEWEST_ROWS)
        return cls(console.width, height, console.encoding)

    @property
    def whole(self) -> "Room":
        """The same width with unlimited height, for a person who scrolls."""
        return Room(self.width, encoding=self.encoding)


def call_rows(
    action: Mapping[str, Any], todos: Sequence[TodoItem] = (), room: Room = Room()
) -> Iterator[Line]:
    """Show the tool call that a person must decide.

    Args:
        action: The call with its `name` and `args`.
        todos: The list before the call.
        room: The screen; by default everything is shown.

    Yields:
        Rows that fit the screen. An edit of a file is shown as a diff, a plan as the whole list
        after the call.
    """
    yield Line(())
    yield Line((Span(one_line(action["name"]), "accent", bold=True),), (Span("? ", "accent"),))
    parts = _parts(action, todos)
    shown = max(room.height // _FEWEST_ROWS, 1)
    for part in parts[:shown]:
        rows = [row for line in part for row in _rows(line, room)]
        yield from _cut(rows, room.height // min(len(parts), shown))
    if len(parts) > shown:
        yield _note(f"({len(parts) - shown} more arguments)")


def is_cut(action: Mapping[str, Any], todos: Sequence[TodoItem], room: Room) -> bool:
    """Whether a part of a call is not shown."""
    return len(list(call_rows(action, todos, room))) < len(
        list(call_rows(action, todos, room.whole))
    )


def size_of(action: Mapping[str, Any]) -> str:
    """The length of a call, in words."""
    args = cast("Mapping[str, object]", action["args"])
    if is_plan(action) and isinstance(args.get("todos"), list):
        return _count(len(cast("list[object]", args["todos"])), "item")
    texts = [str(value) for value in args.values()]
    lines = sum(text.count("\n") + 1 for text in texts)
    return f"{_count(sum(map(len, texts)), 'character')} in {_count(lines, 'line')}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _parts(action: Mapping[str, Any], todos: Sequence[TodoItem]) -> list[list[Line]]:
    """The parts of a call, the most important first, because the last ones may not fit."""
    planned = plan_of(action, todos)
    if planned is not None:
        return [list(plan_lines(planned))]
    args = dict(cast("Mapping[str, Any]", action["args"]))
    parts = list[list[Line]]()
    texts = args.get("old_string"), args.get("new_string")
    if action["name"] == "edit_file" and all(isinstance(text, str) for text in texts):
        parts = [list(_difference(*(str(args.pop(name)) for name in ("old_string", "new_string"))))]
    names = sorted(args, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    arguments = [list(_argument(name, str(args[name]))) for name in names]
    return arguments[:1] + parts + arguments[1:]


def _argument(name: str, value: str) -> Iterator[Line]:
    """An argument: its first line after its name, the other lines below."""
    shown = one_line(name).encode("ascii", "backslashreplace").decode()
    if len(shown) > _NAME_CHARACTERS:
        shown = f"{shown[: _NAME_CHARACTERS - 2]}.."
    for number, line in enumerate(value.split("\n")):
        lead = (_NEXT_LINE,) if number else (_INDENT, Span(f"{shown}: ", "dim"))
        yield Line((Span(one_line(line), bold=name == "command"),), lead)


def _difference(before: str, after: str) -> Iterator[Line]:
    old, new = before.split("\n"), after.split("\n")
    changed = list(unified_diff(old, new, n=max(len(old), len(new)), lineterm=""))
    if not changed:
        yield _note("(the two texts are the same)")
    for line in changed[3:]:  # skip file names and the hunk's position
        mark = line[0]
        token: Token = "success" if mark == "+" else "error" if mark == "-" else "dim"
        yield Line((Span(one_line(line[1:]), token),), (Span(f"    {mark} ", token),))


def _note(text: str) -> Line:
    return Line((Span(text, "warning"),), (_INDENT,))


def _rows(line: Line, room: Room) -> Iterator[Line]:
    """Break a line into rows; every row after the first begins with a continuation mark."""
    lead = line.lead
    for span in line.body:
        rest = span.text.encode(room.encoding, "backslashreplace").decode(room.encoding)
        while True:
            fits = _fitting(rest, room.width - 1 - sum(_cells(each.text) for each in lead))
            yield replace(line, body=(replace(span, text=rest[:fits]),), lead=lead)
            rest, lead = rest[fits:], (_SAME_LINE,)
            if not rest:
                break


def _fitting(text: str, cells: int) -> int:
    """How many characters fit; at least one."""
    if len(text) * 2 <= cells:
        return len(text)
    taken = 0
    for number, character in enumerate(text):
        taken += _cells(character)
        if taken > cells and number:
            return number
    return len(text)


def _cells(text: str) -> int:
    """The largest number of cells that a text takes in any terminal; terminals differ."""
    return sum(1 if character.isascii() else 2 for character in text)


def _cut(rows: list[Line], height: int) -> Iterator[Line]:
    """Cut rows in the middle; a note there says how many of them are missing."""
    if len(rows) <= height:
        yield from rows
        return
    last = (height - 1) // 2
    first = height - 1 - last
    yield from rows[:first]
    left_out = len(rows) - first - last
    yield _note(f"({left_out:,} of {len(rows):,} rows are left out; show prints them)")
    yield from rows[len(rows) - last :]
