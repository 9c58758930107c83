"""A check for the tools: an item is completed only after work."""

from collections.abc import Iterator
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list.todos import TodoItem
from todo_tools._thread.notes import note_of
from todo_tools._thread.reading import read
from todo_tools._view.blocks import unnoted_block


def has_worked(item: TodoItem, state: Any) -> str | None:
    """Check that an item is completed only after work: a call of another tool than the todo tools.

    Pass it as `create_todo_tools(check=has_worked)` or `TodoMiddleware(check=has_worked)`, since
    some models complete all items of a list without working. The call must come after the start of
    the item or, if it is not in progress, after the last tick, and after the last new list. It must
    not have failed. The page "Fine print" of the documentation has four limits.

    Args:
        item: The item to complete, as a check gets it.
        state: The graph state.

    Returns:
        `None` if there was work, otherwise the reason for the model.

    Example:
        ```python
        def check(item: TodoItem, state: TodoState) -> str | None:
            return has_worked(item, state) or my_own_check(item, state)
        ```
    """
    is_started = item["status"] == "in_progress"
    for event in _newest_first(item, state):
        match event:
            case None:
                return None
            case {"op": "set_status", "status": "in_progress", "texts": texts}:
                is_end = is_started and item["text"] in texts
            case {"op": "set_status", "texts": texts}:
                is_end = bool(texts) and not is_started
            case {"op": op}:
                is_end = op == "replace"
            case _:
                is_end = False
        if is_end:
            break
    return "no other tool has worked on it yet; do its work with your other tools first"


def _newest_first(item: object, state: Any) -> Iterator[Any]:
    """Yield the operations on the list, and `None` for each call of another tool."""
    yield from reversed(getattr(item, "operations", []))
    reading = read(state)
    # Without `TodoMiddleware`, the list that the application gave is noted only by this call.
    given = unnoted_block(reading)
    for at, entry in reversed([*enumerate(reading.entries)]):
        message = entry.message
        if isinstance(message, ToolMessage) and message.status != "error":
            yield note_of(message).get("operation", {}) if message.name in TOOLS else None
        elif isinstance(message, HumanMessage) and (entry.block or at == given):
            yield {"op": "replace"}
