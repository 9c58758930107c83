"""The one place that turns todos into text: list lines, the status line, the items in progress."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from todo_tools.models import TodoItem, TodoStatus, incomplete, is_list

ICONS: dict[TodoStatus, str] = {
    "not_started": "–",  # noqa: RUF001  the specified icon is an en dash
    "in_progress": "●",
    "completed": "✓",
    "abandoned": "✗",
}


def _visible_marks() -> dict[int, str]:
    """What stands for each character that could break a line or hide what follows it."""
    marks = {code: chr(0x2400 + code) for code in range(0x20)}
    marks[0x7F] = "␡"
    bidirectional = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    others = [*range(0x80, 0xA0), 0x2028, 0x2029, *bidirectional, *range(0xD800, 0xE000)]
    return marks | {code: f"<U+{code:04X}>" for code in others}


_MARKS = _visible_marks()


def one_line(text: str) -> str:
    """Show a text on one line, with everything that could act made visible.

    Line breaks and control characters become their pictures (`␊`, `␛`); bidirectional overrides,
    line separators and lone surrogates become `<U+202E>` and the like. Without this, a text could
    pass for another list line, or for an instruction.
    """
    return text.translate(_MARKS)


def format_line(index: int, todo: TodoItem) -> str:
    """One list line: `icon [index] text`."""
    return f"{ICONS[todo['status']]} [{index}] {one_line(todo['text'])}"


def format_todos(todos: Sequence[TodoItem]) -> str:
    """Show a list as the tools show it to the model.

    Args:
        todos: The items in order.

    Returns:
        A line `icon [index] text` for each item, or `No todos`.

    Example:
        >>> print(format_todos([{"text": "Write tests", "status": "in_progress"}]))
        ● [0] Write tests
    """
    return "\n".join(format_line(*entry) for entry in enumerate(todos)) or "No todos"


def format_incomplete(todos: list[TodoItem]) -> str:
    """The list lines of the items that are neither completed nor abandoned."""
    return "\n".join(format_line(*entry) for entry in incomplete(todos))


def format_status(todos: list[TodoItem]) -> str:
    """Say in a few characters how far a list is.

    Args:
        todos: The items in order.

    Returns:
        `📋 2/5` (finished of all; abandoned items count as finished), `✓ Done (5 items)` when
        nothing remains, and an empty string without todos.

    Example:
        >>> format_status([{"text": "Write tests", "status": "in_progress"}])
        '📋 0/1'
    """
    if not todos:
        return ""
    remaining = len(incomplete(todos))
    if not remaining:
        return f"✓ Done ({len(todos)} items)"
    return f"📋 {len(todos) - remaining}/{len(todos)}"


def format_in_progress(todos: Sequence[TodoItem]) -> list[str]:
    """The items in progress, one `[index] text` each, for the line beside the status."""
    return [
        f"[{index}] {one_line(todo['text'])}"
        for index, todo in enumerate(todos)
        if todo["status"] == "in_progress"
    ]


def call_parts(name: str, args: Mapping[str, Any]) -> list[str]:
    """A tool call in up to three parts: the tool, what it is to do, and what it acts on."""
    shown: list[Any] = [name]
    if name == "write_todos" and is_list(args.get("todos")):
        at = f" @{args['index']}" if args.get("mode") == "insert" and "index" in args else ""
        shown += [args.get("mode"), f"({len(args['todos'])} items{at})"]
    elif name == "edit_todos" and is_list(args.get("indices")):
        shown += [args.get("action"), args["indices"]]
    elif name != "list_todos":
        shown += [" ".join(map(str, args.values()))]
    return list(_within(_CALL_CHARACTERS, (one_line(str(part)) for part in shown)))


def _within(room: int, parts: Iterable[str]) -> Iterator[str]:
    """The parts, cut where joined by spaces they would take more room."""
    for part in parts:
        if room > 0 and part:
            yield part[:room].rstrip()
        room -= len(part) + 1


def format_call(name: str, args: Mapping[str, Any]) -> str:
    """Name a tool call on one line, for people to read.

    Args:
        name: The tool called; the three todo tools have a form of their own.
        args: Its arguments, of any shape.

    Returns:
        `write_todos append (2 items)`, `write_todos insert (2 items @1)`, `list_todos`,
        `edit_todos start [0, 1]`; for other tools the name and the arguments. At most 200
        characters.
    """
    return " ".join(call_parts(name, args))


_CALL_CHARACTERS = 200
