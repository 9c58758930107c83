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

from todo_tools._list.operations import (
    Operation,
    abandon_items,
    append_items,
    complete_items,
    start_items,
)

__all__ = [
    "Operation",
    "abandon_items",
    "append_items",
    "complete_items",
    "start_items",
]
