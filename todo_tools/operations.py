"""Operations on the list: what a node may return for `todos` besides a whole list.

Each is a plain dict that any checkpointer keeps. Operations of parallel nodes add up, in the order
of the nodes. An index means the list as it is when the operation is applied: it stays valid while
other nodes set statuses or append, and may be another item once one inserts or replaces. An index
past the end changes nothing, since an error there would stop the thread for every other node.

Example:
    ```python
    def node(state: TodoState) -> dict[str, Operation]:
        return {"todos": complete_items(0)}
    ```
"""

from todo_tools._operations import Append, Insert, Operation, Replace, SetStatus
from todo_tools._todos import TodoStatus, require_whole_number, validate_todos

__all__ = [
    "Operation",
    "abandon_items",
    "append_items",
    "complete_items",
    "insert_items",
    "replace_items",
    "start_items",
]


def replace_items(*texts: str) -> Replace:
    """Start a new list with these texts; an empty one without any.

    Raises:
        ValueError: A text is not a string of 1 to 100,000 characters, not only white space.
    """
    return {"op": "replace", "texts": _checked(texts)}


def append_items(*texts: str) -> Append:
    """Add items to the end.

    Raises:
        ValueError: As for `replace_items`.
    """
    return {"op": "append", "texts": _checked(texts)}


def insert_items(index: int, *texts: str) -> Insert:
    """Add items before the item at `index`; at the end if there is no such item.

    Raises:
        TypeError: `index` is not a whole number.
        ValueError: `index` is negative, or as for `replace_items`.
    """
    require_whole_number("index", index, minimum=0)
    return {"op": "insert", "index": index, "texts": _checked(texts)}


def start_items(*indices: int) -> SetStatus:
    """Set the items at these indices to `in_progress`, whatever they were.

    Raises:
        TypeError: An index is not a whole number.
        ValueError: An index is negative, or there is none.
    """
    return _set_status("in_progress", indices)


def complete_items(*indices: int) -> SetStatus:
    """Set the items at these indices to `completed`, whatever they were.

    Raises:
        TypeError: As for `start_items`.
        ValueError: As for `start_items`.
    """
    return _set_status("completed", indices)


def abandon_items(*indices: int) -> SetStatus:
    """Set the items at these indices to `abandoned`, whatever they were.

    Raises:
        TypeError: As for `start_items`.
        ValueError: As for `start_items`.
    """
    return _set_status("abandoned", indices)


def _set_status(status: TodoStatus, indices: tuple[int, ...]) -> SetStatus:
    if not indices:
        raise ValueError("indices are required; give at least one")
    for index in indices:
        require_whole_number("index", index, minimum=0)
    return {"op": "set_status", "status": status, "indices": list(indices)}


def _checked(texts: tuple[str, ...]) -> list[str]:
    todos = validate_todos([{"text": text, "status": "not_started"} for text in texts])
    return [todo["text"] for todo in todos]
