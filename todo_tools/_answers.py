"""What a tool answers to a call, and how a call is named for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from todo_tools._formatting import format_todos, one_line
from todo_tools._operations import Operation, apply
from todo_tools._records import TOOLS, Shown
from todo_tools._todos import TodoDetails, TodoItem, TodoLimits, Token
from todo_tools.arguments import CallError


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers: its text, its details, the change, and the list afterwards."""

    content: str
    details: TodoDetails
    todos: list[TodoItem]
    operation: Operation | None = None
    check_failed: bool = False
    """Whether the application's check refused the call."""

    @property
    def failed(self) -> bool:
        """Whether the call was refused."""
        return "error" in self.details


def answer_call(
    name: str, args: Mapping[str, Any], todos: list[TodoItem], limits: TodoLimits
) -> Answer:
    """Answer one call against a list.

    Args:
        name: The tool called, one of `TOOLS`.
        args: The arguments as the model wrote them, of any shape.
        todos: The list before the call.
        limits: How much the model may write.

    Returns:
        The answer; for a refused call its `todos` are those given and its `operation` is `None`.
    """
    tool = TOOLS[name]
    try:
        operation, summary = tool.check(args, todos, limits)
    except CallError as error:
        return refuse_call(name, error, todos)
    if operation is None:
        return Answer(summary, {"action": tool.action, "todos": []}, todos)
    after = apply(todos, operation)
    details: TodoDetails = {"action": tool.action, "todos": after}
    return Answer(f"{summary}\n\n{format_todos(after)}", details, after, operation)


def refuse_call(name: str, error: CallError, todos: list[TodoItem]) -> Answer:
    """The answer to a call that changes nothing."""
    details: TodoDetails = {"action": TOOLS[name].action, "todos": [], "error": error.short}
    return Answer(f"Error: {error.message}", details, todos)


def call_parts(name: str, args: Mapping[str, Any]) -> list[tuple[str, Token]]:
    """A tool call in up to three parts, each with its colour: tool, action, what it acts on."""
    own = TOOLS[name].shown(args) if name in TOOLS else None
    title: Shown = [(name, "toolTitle")]
    others: Shown = [(" ".join(map(str, args.values())), "muted")]
    given = title + (others if own is None else own)
    parts: list[tuple[str, Token]] = [(one_line(str(part)), token) for part, token in given]
    parts = [part for part in parts if part[0]]
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
    """Name a tool call on one line, for people to read.

    Args:
        name: The tool called; the three todo tools have a form of their own.
        args: Its arguments, of any shape.

    Returns:
        `write_todos append (2 items)`, `write_todos insert (2 items @1)`, `list_todos`,
        `edit_todos start [0, 1]`; for other tools the name and the arguments. At most 200
        characters; a longer call ends in an ellipsis.
    """
    return " ".join(text for text, _ in call_parts(name, args))


_CALL_CHARACTERS = 200
