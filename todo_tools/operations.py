"""Create operations that a node may return for `todos` instead of a whole list.

An operation is a plain dict that any checkpointer can store. Operations of parallel nodes are all
applied, in the order of the nodes. An index refers to the list at the time when the operation is
applied. A status change ignores an index past the end, because an error would stop the graph.

Example:
    ```python
    def node(state: TodoState) -> dict[str, Operation]:
        return {"todos": set_status("completed", 0)}
    ```
"""

from todo_tools._list.operations import Operation, append_items, set_status

__all__ = ["Operation", "append_items", "set_status"]
