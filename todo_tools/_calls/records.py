"""Define the three tools as data, one record for each.

To add a tool, add its name to `ToolName` and a record to `TOOLS`; the other modules read the
record. A new operation also needs a type and a case of `apply` in `todo_tools._list.operations`.
The specification of the tools fixes the order of the checks and every string.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from todo_tools._calls.arguments import CallError, read_choice, read_index, read_indices, read_texts
from todo_tools._list import prompts
from todo_tools._list.formatting import format_todos
from todo_tools._list.operations import Operation, Replace, SetStatus, dropped_open
from todo_tools._list.todos import (
    STATUSES,
    TodoItem,
    TodoLimits,
    TodoStatus,
    Token,
    is_blank,
    is_list,
)

ToolName = Literal["write_todos", "list_todos", "edit_todos"]
Checked = tuple[Operation | None, str]
"""The operation of a call and the first line of its result; `None` and the text for a listing."""
Shown = list[tuple[Any, Token]]
"""The parts of a call that people see, each with its colour."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TodoTool:
    """The complete definition of one tool. No field has a default, so none can be forgotten."""

    label: str
    action: Literal["write", "list", "edit"]
    description: str
    guidelines: tuple[str, ...]
    parameters: Callable[[TodoLimits], dict[str, dict[str, Any]]]
    """The JSON schema of each parameter."""
    optional: tuple[str, ...]
    """The parameters that the model may leave out."""
    check: Callable[[Mapping[str, Any], list[TodoItem], TodoLimits], Checked]
    shown: Callable[[Mapping[str, Any]], Shown | None]


def _write_parameters(limits: TodoLimits) -> dict[str, dict[str, Any]]:
    text = {
        "type": "string",
        "description": f"Description of the task, at most {limits.max_text_length} characters",
    }
    items = {"type": "object", "properties": {"text": text}, "required": ["text"]}
    return {
        "mode": {
            "type": "string",
            "enum": list(_MODES),
            "description": "Mode: 'replace' clears and replaces the entire list, 'append' adds to "
            "the end, 'insert' inserts at a specific index",
        },
        "index": {
            "type": "integer",
            "description": "0-based index to insert at (required for 'insert' mode)",
        },
        "todos": {
            "type": "array",
            "items": items,
            "description": f"Ordered list of todo items, at most {limits.max_todos}",
        },
    }


_MODES = ("replace", "append", "insert")


def _check_write(args: Mapping[str, Any], todos: list[TodoItem], limits: TodoLimits) -> Checked:
    mode = read_choice("mode", args.get("mode"), _MODES)
    texts = read_texts(args.get("todos"))
    _check_texts(texts, limits)
    if mode == "replace":
        if len(texts) > limits.max_todos:
            raise CallError(
                f"replacing with {len(texts)} item(s) would exceed maximum of "
                f"{limits.max_todos} todos; write fewer items",
                "max todos exceeded",
            )
        operation: Replace = {"op": "replace", "texts": texts}
        if limits.keep_open:
            _check_kept(texts, todos)
            operation["keep_open"] = True  # an earlier call of the message may yet be refused
        return operation, f"Wrote {len(texts)} todo item(s)"
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
        if is_blank(text):
            raise CallError(
                f"todo item at index {index} has an empty text; give 1 to "
                f"{limits.max_text_length} characters",
                "text empty",
            )


def _check_kept(texts: list[str], todos: list[TodoItem]) -> None:
    if dropped := dropped_open(todos, texts):
        raise CallError(
            "the list has open items that the new list does not contain: "
            f"{_brief_list(dropped)}; use mode 'append' to add items, or abandon these first",
            "open items dropped",
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


def _show_write(args: Mapping[str, Any]) -> Shown | None:
    if not is_list(args.get("todos")):
        return None
    index = args.get("index") if args.get("mode") == "insert" else None
    at = "" if index is None else f" @{index}"
    return [(args.get("mode"), "warning"), (f"({len(args['todos'])} items{at})", "muted")]


def _edit_parameters(limits: TodoLimits) -> dict[str, dict[str, Any]]:
    return {
        "action": {
            "type": "string",
            "enum": list(_actions()),
            "description": "Action to apply to the todo items",
        },
        "indices": {
            "type": "array",
            "items": {"type": "integer"},
            "description": f"0-based indices to apply the action to, 1 to {limits.max_indices}",
        },
    }


def _actions() -> dict[str, TodoStatus]:
    """Map each action of `edit_todos` to the status that it sets."""
    return {row.action: status for status, row in STATUSES.items() if row.action}


def _check_edit(args: Mapping[str, Any], todos: list[TodoItem], limits: TodoLimits) -> Checked:
    actions = _actions()
    status = actions[read_choice("action", args.get("action"), tuple(actions))]
    indices = read_indices(args.get("indices"))
    if not indices:
        raise CallError(
            f"'indices' is required for {'/'.join(actions)} actions", "indices required"
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
        raise CallError(f"indices {_brief_list(invalid)} out of range (0 to {len(todos) - 1})")
    # The texts bind the change to the items that this call saw, whatever else happens in the step.
    changed = [at for at in dict.fromkeys(indices) if todos[at]["status"] != status]
    texts = [todos[index]["text"] for index in changed]
    operation = SetStatus(op="set_status", status=status, indices=changed, texts=texts)
    return operation, f"{STATUSES[status].done_label} {indices}"


_SHOWN_LIST = 250  # characters, for fifty indices of three digits


def _brief_list(indices: list[int]) -> str:
    shown = str(indices)
    return shown if len(shown) <= _SHOWN_LIST else f"{indices[:5]} and {len(indices) - 5} more"


def _show_edit(args: Mapping[str, Any]) -> Shown | None:
    if not is_list(args.get("indices")):
        return None
    return [(args.get("action"), "warning"), (args["indices"], "accent")]


TOOLS: dict[str, TodoTool] = {
    "write_todos": TodoTool(
        label="Write Todos",
        action="write",
        description=prompts.WRITE_DESCRIPTION,
        guidelines=prompts.PROMPT_GUIDELINES,
        parameters=_write_parameters,
        optional=("index",),
        check=_check_write,
        shown=_show_write,
    ),
    "list_todos": TodoTool(
        label="List Todos",
        action="list",
        description=prompts.LIST_DESCRIPTION,
        guidelines=(),
        parameters=lambda _: {},
        optional=(),
        check=lambda _args, todos, _limits: (None, format_todos(todos)),
        shown=lambda _: [],
    ),
    "edit_todos": TodoTool(
        label="Edit Todos",
        action="edit",
        description=prompts.EDIT_DESCRIPTION,
        guidelines=(),
        parameters=_edit_parameters,
        optional=(),
        check=_check_edit,
        shown=_show_edit,
    ),
}
