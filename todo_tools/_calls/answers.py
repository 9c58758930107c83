"""Answer a todo tool call, and format a call for people to read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from todo_tools._calls.arguments import CallError
from todo_tools._calls.records import TOOLS, Shown
from todo_tools._list.formatting import format_todos, one_line
from todo_tools._list.operations import Operation, apply
from todo_tools._list.todos import TodoDetails, TodoItem, TodoLimits, Token


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a tool: its text and details, the list after it and before, the operation."""

    content: str
    details: TodoDetails
    todos: list[TodoItem]
    before: list[TodoItem]
    operation: Operation | None = None


def answer_call(
    name: str, args: Mapping[str, Any], todos: list[TodoItem], limits: TodoLimits
) -> Answer:
    """Check one call and compute its answer; a refused call has no operation."""
    tool = TOOLS[name]
    try:
        operation, summary = tool.check(args, todos, limits)
    except CallError as error:
        return refuse_call(name, error, todos)
    if operation is None:
        return Answer(summary, {"action": tool.action, "todos": []}, todos, todos)
    after = apply(todos, operation)
    details: TodoDetails = {"action": tool.action, "todos": after}
    return Answer(f"{summary}\n\n{format_todos(after)}", details, after, todos, operation)


def refuse_call(name: str, error: CallError, todos: list[TodoItem]) -> Answer:
    """Return the error answer to a call; the list stays unchanged."""
    details: TodoDetails = {"action": TOOLS[name].action, "todos": [], "error": error.short}
    return Answer(f"Error: {error.message}", details, todos, todos)


class Before(NamedTuple):
    """What the earlier calls of a message did before a call of it."""

    todos: list[TodoItem]
    """The list before the call."""
    operations: list[Operation | None]
    """The operations of these calls; `None` for a call of another tool."""
    is_written: bool
    """Whether every earlier call that writes a list is accepted."""


def before_call(
    calls: Iterable[tuple[str, Mapping[str, Any]]], todos: list[TodoItem], limits: TodoLimits
) -> Before:
    """Return what earlier calls of a message did; refused calls change nothing."""
    operations: list[Operation | None] = []
    is_written = True
    for name, args in calls:
        if name not in TOOLS:
            operations.append(None)
        elif is_written or name != "edit_todos":
            try:
                operation, _ = TOOLS[name].check(args, todos, limits)
            except CallError:
                is_written = is_written and name != "write_todos"
            else:
                if operation is not None:
                    operations.append(operation)
                    todos = apply(todos, operation)
    return Before(todos, operations, is_written)


def call_parts(name: str, args: Mapping[str, Any]) -> list[tuple[str, Token]]:
    """Split a tool call into tool, action and target, each with its colour."""
    own = TOOLS[name].shown(args) if name in TOOLS else None
    title: Shown = [(name, "toolTitle")]
    others: Shown = [(" ".join(map(str, args.values())), "muted")]
    given = title + (others if own is None else own)
    parts: list[tuple[str, Token]] = [
        (one_line(str(part)), token) for part, token in given if part is not None and str(part)
    ]
    if len(" ".join(text for text, _ in parts)) <= _CALL_CHARACTERS:
        return parts
    room = _CALL_CHARACTERS - 1
    kept: list[tuple[str, Token]] = []
    for text, token in parts:
        if room > 0:
            kept.append((text[:room].rstrip(), token))
        room -= len(text) + 1
    text, token = kept.pop()
    return [*kept, (f"{text}…", token)]


def format_call(name: str, args: Mapping[str, Any]) -> str:
    """Format a tool call as one line of at most 200 characters, for people to read."""
    return " ".join(text for text, _ in call_parts(name, args))


_CALL_CHARACTERS = 200
