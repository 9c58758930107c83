"""Define the operations on a list and apply them; the `todos` channel uses these rules.

A step writes an operation, not the whole new list. Operations are plain dicts, so that every
checkpointer can store them. The key `op` distinguishes them from LangGraph's own dicts.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from typing_extensions import TypedDict

from todo_tools._list.todos import (
    MAX_CHARACTERS,
    MAX_ITEMS,
    TodoItem,
    TodoStatus,
    is_blank,
    is_status,
    require_few,
    validate_todos,
)


class Replace(TypedDict):
    """Start a new list with these texts."""

    op: Literal["replace"]
    texts: list[str]


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
    """Set the status of the items at `indices`; any earlier status is allowed."""

    op: Literal["set_status"]
    status: TodoStatus
    indices: list[int]


class Merge(TypedDict):
    """Apply the differences between `base` and `todos`; only the channel creates this operation."""

    op: Literal["merge"]
    base: list[TodoItem]
    todos: list[TodoItem]


Operation = Replace | Append | Insert | SetStatus | Merge


def apply(todos: list[TodoItem], operation: Mapping[str, Any]) -> list[TodoItem]:
    """Return the list after an operation; the given list is not changed.

    The tools checked the operation against the list that the model saw. If the application changed
    the list in the same step, an index may be past the end. An insertion then goes to the end, and
    a status change skips the index. If the list is full, new items are left out. So an update in
    the same step does not make the operation an error.

    Args:
        todos: The list before.
        operation: One of `Replace`, `Append`, `Insert`, `SetStatus`, `Merge`.

    Returns:
        A new list.

    Raises:
        ValueError: `operation` is not such a dict, or replaces the list by more than 10,000 items.
    """
    match operation:
        case {"op": "replace", "texts": [*texts]} if _are_texts(texts):
            return require_few(_new_items(texts))
        case {"op": "append", "texts": [*texts]} if _are_texts(texts):
            return [*todos, *_that_fit(texts, todos)]
        case {"op": "insert", "index": index, "texts": [*texts]} if _are_indices([index]) and (
            _are_texts(texts)
        ):
            return [*todos[:index], *_that_fit(texts, todos), *todos[index:]]
        case {"op": "set_status", "status": status, "indices": [*indices]} if is_status(
            status
        ) and (_are_indices(indices)):
            chosen = set(indices)
            return [
                {"text": todo["text"], "status": status} if index in chosen else todo
                for index, todo in enumerate(todos)
            ]
        case {"op": "merge", "base": [*base], "todos": [*changed]}:
            return _merge(todos, validate_todos(base), validate_todos(changed))[:MAX_ITEMS]
        case _:
            raise ValueError(
                "todos takes a list of todo items or an operation of the tools, got a dict with "
                f"{sorted(map(str, operation))[:5]}; give the whole list to replace it"
            )


def _are_texts(texts: Sequence[Any]) -> bool:
    return all(
        isinstance(text, str) and not is_blank(text) and len(text) <= MAX_CHARACTERS
        for text in texts
    )


def _are_indices(indices: Sequence[Any]) -> bool:
    return all(type(index) is int and index >= 0 for index in indices)  # a bool is also an int


def _new_items(texts: Sequence[str]) -> list[TodoItem]:
    return [{"text": text, "status": "not_started"} for text in texts]


def _that_fit(texts: Sequence[str], todos: list[TodoItem]) -> list[TodoItem]:
    """Return the new items that a list has room for.

    The tools respect the limit, so some are left out only if the application filled the list in the
    same step. An error in the reducer would come back whenever the thread is read.
    """
    return _new_items(texts[: max(MAX_ITEMS - len(todos), 0)])


def _merge(todos: list[TodoItem], base: list[TodoItem], changed: list[TodoItem]) -> list[TodoItem]:
    """Apply the differences between `base` and `changed` to a list; keep its other changes.

    Items are matched by their text, and items of equal text by their order. A status is set only if
    it differs from `base`. An added item is put before the same item as in `changed`.
    """
    if todos == base:
        return changed
    now, before, after = _keyed(todos), _keyed(base), _keyed(changed)
    added = defaultdict[_Key | None, list[TodoItem]](list)
    following = None
    for key, todo in reversed(after.items()):
        if key not in before:
            added[following].insert(0, todo)
        elif key in now:
            following = key
    merged: list[TodoItem] = []
    for key, todo in now.items():
        merged += added[key]
        if key not in before:
            merged.append(todo)
        elif key in after:
            merged.append(todo if after[key] == before[key] else after[key])
    return [*merged, *added[None]]


_Key = tuple[str, int]


def _keyed(todos: list[TodoItem]) -> dict[_Key, TodoItem]:
    seen = Counter[str]()
    keyed: dict[_Key, TodoItem] = {}
    for todo in todos:
        keyed[todo["text"], seen[todo["text"]]] = todo
        seen[todo["text"]] += 1
    return keyed
