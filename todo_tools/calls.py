"""What a call of a todo tool means for a list, and what the tool answers.

One pure function, `answer_call`, serves the tools and everything that replays them. Order of the
checks and every string are the tools' specification.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from todo_tools.arguments import CallError, read_choice, read_index, read_indices, read_texts
from todo_tools.models import TodoDetails, TodoItem, TodoLimits, TodoStatus, is_blank
from todo_tools.operations import Operation, apply
from todo_tools.text import format_todos

ToolName = Literal["write_todos", "list_todos", "edit_todos"]
ACTIONS: dict[ToolName, Literal["write", "list", "edit"]] = {
    "write_todos": "write",
    "list_todos": "list",
    "edit_todos": "edit",
}

MODES = ("replace", "append", "insert")
_STATUS_OF: dict[str, tuple[TodoStatus, str]] = {
    "start": ("in_progress", "Started"),
    "complete": ("completed", "Completed"),
    "abandon": ("abandoned", "Abandoned"),
}
EDITS = tuple(_STATUS_OF)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers: its text, its details, the change, and the list afterwards."""

    content: str
    details: TodoDetails
    todos: list[TodoItem]
    operation: Operation | None = None

    @property
    def failed(self) -> bool:
        """Whether the call was refused."""
        return "error" in self.details


def answer_call(
    name: ToolName, args: Mapping[str, Any], todos: list[TodoItem], limits: TodoLimits
) -> Answer:
    """Answer one call against a list.

    Args:
        name: The tool called.
        args: The arguments as the model wrote them, of any shape.
        todos: The list before the call.
        limits: How much the model may write.

    Returns:
        The answer; for a refused call its `todos` are those given and its `operation` is `None`.
    """
    if name == "list_todos":
        return Answer(format_todos(todos), {"action": "list", "todos": []}, todos)
    check = _check_write if name == "write_todos" else _check_edit
    try:
        operation, summary = check(args, todos, limits)
    except CallError as error:
        details: TodoDetails = {"action": ACTIONS[name], "todos": [], "error": error.short}
        return Answer(f"Error: {error.message}", details, todos)
    after = apply(todos, operation)
    details = {"action": ACTIONS[name], "todos": after}
    return Answer(f"{summary}\n\n{format_todos(after)}", details, after, operation)


def _check_write(
    args: Mapping[str, Any], todos: list[TodoItem], limits: TodoLimits
) -> tuple[Operation, str]:
    mode = read_choice("mode", args.get("mode"), MODES)
    texts = read_texts(args.get("todos"))
    _check_texts(texts, limits)
    if mode == "replace":
        if len(texts) > limits.max_todos:
            raise CallError(
                f"replacing with {len(texts)} item(s) would exceed maximum of "
                f"{limits.max_todos} todos; write fewer items",
                "max todos exceeded",
            )
        return {"op": "replace", "texts": texts}, f"Wrote {len(texts)} todo item(s)"
    if mode == "append":
        _check_room("appending", len(texts), len(todos), limits)
        return {"op": "append", "texts": texts}, f"Appended {len(texts)} item(s)"
    index = _check_position(args.get("index"), len(todos))
    _check_room("inserting", len(texts), len(todos), limits)
    summary = f"Inserted {len(texts)} item(s) at index {index}"
    return {"op": "insert", "index": index, "texts": texts}, summary


def _check_texts(texts: list[str], limits: TodoLimits) -> None:
    for index, text in enumerate(texts):
        if len(text) > limits.max_text_length:
            raise CallError(
                f"todo item at index {index} exceeds maximum text length "
                f"({limits.max_text_length} characters)",
                "text too long",
            )
    for index, text in enumerate(texts):
        if is_blank(text):
            raise CallError(
                f"todo item at index {index} has an empty text; give 1 to "
                f"{limits.max_text_length} characters",
                "text empty",
            )


def _check_position(value: object, length: int) -> int:
    if value is None:
        raise CallError("'index' is required for the 'insert' mode", "index required for insert")
    index = read_index("index", value)
    if not 0 <= index <= length:
        raise CallError(f"index {index} out of range (0 to {length})")
    return index


def _check_room(doing: str, added: int, present: int, limits: TodoLimits) -> None:
    if present + added > limits.max_todos:
        raise CallError(
            f"{doing} {added} item(s) would exceed maximum of {limits.max_todos} todos "
            f"(currently {present})",
            "max todos exceeded",
        )


def _check_edit(
    args: Mapping[str, Any], todos: list[TodoItem], limits: TodoLimits
) -> tuple[Operation, str]:
    status, label = _STATUS_OF[read_choice("action", args.get("action"), EDITS)]
    indices = read_indices(args.get("indices"))
    if not indices:
        raise CallError(
            "'indices' is required for start/complete/abandon actions", "indices required"
        )
    if len(indices) > limits.max_indices:
        raise CallError(
            f"{len(indices)} indices given, at most {limits.max_indices} are allowed in one call; "
            "use several calls",
            "too many indices",
        )
    if not todos:
        raise CallError("no todos exist")
    invalid = [index for index in indices if not 0 <= index < len(todos)]
    if invalid:
        raise CallError(f"indices {invalid} out of range (0 to {len(todos) - 1})")
    return {"op": "set_status", "status": status, "indices": indices}, f"{label} {indices}"
