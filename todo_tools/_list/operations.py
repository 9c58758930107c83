"""Define the operations on a list, create them, and apply them.

A step writes an operation, not the whole new list. Operations are plain dicts, so that every
checkpointer can store them. The key `op` distinguishes them from LangGraph's own dicts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from todo_tools._list.todos import (
    MAX_INDEX,
    MAX_ITEMS,
    STATUSES,
    TodoItem,
    TodoStatus,
    incomplete,
    is_list,
    is_status,
    is_valid_text,
    require_whole_number,
    texts_of,
    validate_todos,
)


class Replace(TypedDict):
    """Start a new list; with `keep_open`, only if it keeps the items that are open then."""

    op: Literal["replace"]
    texts: list[str]
    keep_open: NotRequired[bool]


class Append(TypedDict):
    """Add these texts to the end."""

    op: Literal["append"]
    texts: list[str]


class Insert(TypedDict):
    """Add these texts before the item at `index`."""

    op: Literal["insert"]
    index: int
    texts: list[str]


class SetStatus(TypedDict):
    """Set the status of items; with `texts`, of those that have the text at the same position."""

    op: Literal["set_status"]
    status: TodoStatus
    indices: list[int]
    texts: NotRequired[list[str]]


Operation = Replace | Append | Insert | SetStatus
"""A change of the list, as `append_items` and `set_status` create it."""


def apply(todos: list[TodoItem], operation: Mapping[str, Any]) -> list[TodoItem]:
    """Return the list after an operation, without the parts that no longer fit a changed list."""
    match operation:
        case {"op": "replace", "texts": [*texts]} if all(map(is_valid_text, texts)):
            keeps = not operation.get("keep_open") or not dropped_open(todos, texts)
            return _that_fit(texts, []) if keeps else todos
        case {"op": "append", "texts": [*texts]} if all(map(is_valid_text, texts)):
            return [*todos, *_that_fit(texts, todos)]
        case {"op": "insert", "index": index, "texts": [*texts]} if _are_indices([index]) and (
            all(map(is_valid_text, texts))
        ):
            return [*todos[:index], *_that_fit(texts, todos), *todos[index:]]
        case {"op": "set_status", "status": status, "indices": [*indices]} if is_status(
            status
        ) and (_are_indices(indices) and is_list(operation.get("texts", []))):
            return _with_status(todos, status, indices, operation.get("texts"))
        case _:
            raise ValueError(
                "todos takes a list of todo items or an operation of the tools, got a dict with "
                f"{sorted(map(str, operation))[:5]}; give the whole list to replace it"
            )


def dropped_open(todos: Sequence[TodoItem], texts: Sequence[str]) -> list[int]:
    """Return the indices of the open items that a new list with these texts lacks."""
    kept = Counter(texts)
    kept.subtract(todo["text"] for _, todo in incomplete(todos))
    return [index for index, todo in incomplete(todos) if kept[todo["text"]] < 0]


def _with_status(
    todos: list[TodoItem], status: TodoStatus, indices: Sequence[int], texts: Any
) -> list[TodoItem]:
    expected = None if texts is None else dict(zip(indices, texts, strict=False))
    after = list(todos)
    for index in indices:
        text = todos[index]["text"] if index < len(todos) else None
        if text is not None and (expected is None or expected.get(index) == text):
            after[index] = {"text": text, "status": status}
    return after


def _are_indices(indices: Sequence[Any]) -> bool:
    return all(type(index) is int and index >= 0 for index in indices)  # a bool is also an int


def _that_fit(texts: Sequence[str], todos: list[TodoItem]) -> list[TodoItem]:
    """Return new items with the texts for which a list has room."""
    room = max(MAX_ITEMS - len(todos), 0)
    return [{"text": text, "status": "not_started"} for text in texts[:room]]


def append_items(*texts: str) -> Append:
    """Add items to the end.

    Raises:
        ValueError: A text is not a string of 1 to 100,000 characters, or only white space.
    """
    return {"op": "append", "texts": texts_of(validate_todos([{"text": each} for each in texts]))}


def set_status(status: TodoStatus, *indices: int) -> SetStatus:
    """Set the status of the items at these indices, whatever it was.

    Args:
        status: `not_started`, `in_progress`, `completed` or `abandoned`.
        indices: The indices of the items, from 0.

    Raises:
        TypeError: An index is not a whole number.
        ValueError: `status` is unknown, or an index is negative or above 1,000,000,000.
    """
    if not is_status(status):
        raise ValueError(f"unknown status {status!r}; use one of {', '.join(STATUSES)}")
    for index in indices:
        require_whole_number("index", index, minimum=0, maximum=MAX_INDEX)
    return {"op": "set_status", "status": status, "indices": list(indices)}
