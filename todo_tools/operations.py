"""Create operations that a node may return for `todos` instead of a whole list.

An operation is a plain dict that any checkpointer can store. Operations of parallel nodes are all
applied, in the order of the nodes. An index refers to the list at the time when the operation is
applied. It stays correct while other nodes set statuses or append items, but it may refer to
another item after an insertion or a replacement. A status change ignores an index past the end,
because an error would stop the whole graph.

Example:
    ```python
    def node(state: TodoState) -> dict[str, Operation]:
        return {"todos": complete_items(0)}
    ```
"""

from todo_tools._list.operations import Append, Insert, Operation, Replace, SetStatus
from todo_tools._list.todos import MAX_INDEX, TodoStatus, require_whole_number, validate_todos

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
    """Replace the list by new items with these texts; without texts, empty it.

    Raises:
        ValueError: A text is not a string of 1 to 100,000 characters, or only white space.
    """
    return {"op": "replace", "texts": _checked(texts)}


def append_items(*texts: str) -> Append:
    """Add items to the end.

    Raises:
        ValueError: A text is invalid, as for `replace_items`.
    """
    return {"op": "append", "texts": _checked(texts)}


def insert_items(index: int, *texts: str) -> Insert:
    """Add items before the item at `index`; at the end if there is no such item.

    Raises:
        TypeError: `index` is not a whole number.
        ValueError: `index` is negative or above 1,000,000,000, or a text is invalid, as for
            `replace_items`.
    """
    require_whole_number("index", index, minimum=0, maximum=MAX_INDEX)
    return {"op": "insert", "index": index, "texts": _checked(texts)}


def start_items(*indices: int) -> SetStatus:
    """Set the items at these indices to `in_progress`; any earlier status is allowed.

    Raises:
        TypeError: An index is not a whole number.
        ValueError: An index is negative or above 1,000,000,000, or no index is given.
    """
    return _set_status("in_progress", indices)


def complete_items(*indices: int) -> SetStatus:
    """Set the items at these indices to `completed`; any earlier status is allowed.

    Raises:
        TypeError: An index is not a whole number.
        ValueError: An index is negative or above 1,000,000,000, or no index is given.
    """
    return _set_status("completed", indices)


def abandon_items(*indices: int) -> SetStatus:
    """Set the items at these indices to `abandoned`; any earlier status is allowed.

    Raises:
        TypeError: An index is not a whole number.
        ValueError: An index is negative or above 1,000,000,000, or no index is given.
    """
    return _set_status("abandoned", indices)


def _set_status(status: TodoStatus, indices: tuple[int, ...]) -> SetStatus:
    if not indices:
        raise ValueError("indices are required; give at least one")
    for index in indices:
        require_whole_number("index", index, minimum=0, maximum=MAX_INDEX)
    return {"op": "set_status", "status": status, "indices": list(indices)}


def _checked(texts: tuple[str, ...]) -> list[str]:
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"text {position} must be a string, got {type(text).__name__}; "
                "pass each text as an argument"
            )
    todos = validate_todos([{"text": text, "status": "not_started"} for text in texts])
    return [todo["text"] for todo in todos]
