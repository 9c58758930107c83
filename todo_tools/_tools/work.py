"""A check for the tools: an item is completed only after work."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage

from todo_tools._calls.arguments import CallError
from todo_tools._calls.records import TOOLS
from todo_tools._list.operations import apply
from todo_tools._list.todos import MAX_CHARACTERS, MAX_ITEMS, TodoItem, TodoLimits, incomplete
from todo_tools._thread.reading import read
from todo_tools._thread.state import todos_in
from todo_tools._thread.transcript import (
    is_from_user,
    list_after,
    listed_in,
    open_calls,
    result_note,
)
from todo_tools._view.view import record_block

_ANY = TodoLimits(max_todos=MAX_ITEMS, max_text_length=MAX_CHARACTERS, max_indices=MAX_ITEMS)
_NO_WORK = "no other tool has worked on it yet; do its work with your other tools first"

_Event = dict[str, Any]
"""What happened: an operation on the list, with the texts of its items, or `{"op": "work"}`."""


def has_worked(item: TodoItem, state: Any) -> str | None:
    """Check that an item is completed only after work: a call of another tool than the todo tools.

    Pass it as `create_todo_tools(check=has_worked)` or `TodoMiddleware(check=has_worked)`. Some
    models complete all items of a list without working. The call must come after the item was
    started or, if it is not in progress, after the last item was completed or abandoned, also by
    the same call, and after a message with which the application gave a new list. A call that
    failed does not count. Calls before `edit_todos` in the same AI message count, because their
    results are not known yet.

    Args:
        item: The item to complete.
        state: The graph state.

    Returns:
        `None` if there was work, otherwise the reason for the model.

    Example:
        ```python
        def check(item: TodoItem, state: TodoState) -> str | None:
            return has_worked(item, state) or my_own_check(item, state)
        ```
    """
    worked = started = False
    # The second of two equal calls of a message sees the item as completed.
    may_be_started = item["status"] in ("in_progress", "completed")
    for event in (*_past(state), *_present(item["text"], state)):
        match event:
            case {"op": "work"}:
                worked = True
            case {"op": "set_status", "status": "in_progress", "texts": texts}:
                if item["text"] in texts:
                    worked, started = False, may_be_started
            case {"op": "set_status"} if not started:
                worked = False
            case {"op": "replace"}:
                worked = started = False
            case _:
                pass
    return None if worked else _NO_WORK


def _past(state: Any) -> Iterator[_Event]:
    """Yield what the results in the history say, whatever other middleware made of their texts."""
    known: list[TodoItem] = []
    shown: list[TodoItem] = []
    for message, block in _with_lists(state):
        after = list_after(message)
        if block is not None and is_from_user(message) and not _goes_on(shown, block):
            yield {"op": "replace"}
        elif after is not None and after != known:
            operation = result_note(message).get("operation", {})
            indices = [at for at in operation.get("indices", ()) if at < len(after)]
            yield {**operation, "texts": [after[at]["text"] for at in indices]}
        elif _is_work(message):
            yield {"op": "work"}
        known = next((each for each in (after, listed_in(message)) if each is not None), known)
        shown = next((each for each in (block, after) if each is not None), shown)


def _with_lists(state: Any) -> Iterator[tuple[AnyMessage, list[TodoItem] | None]]:
    """Yield each message, and the list that the application wrote before a prompt with it."""
    reading = read(state)
    # Without `TodoMiddleware`, the block of the last prompt is recorded only by this call.
    recorded = record_block(reading).get("todo_blocks", {})
    return ((entry.message, recorded.get(entry.place, entry.block)) for entry in reading.entries)


def _goes_on(known: list[TodoItem], todos: list[TodoItem]) -> bool:
    """Whether a list still has an open item of the list before; otherwise it replaced that one."""
    still_open = {todo["text"] for _, todo in incomplete(known)}
    return any(todo["text"] in still_open for todo in todos)


def _is_work(message: AnyMessage) -> bool:
    if not isinstance(message, ToolMessage) or message.name in TOOLS:
        return False
    return message.status != "error"


def _present(text: str, state: Any) -> Iterator[_Event]:
    """Yield what the calls of the current AI message do, up to the completion of the item."""
    todos = todos_in(state)
    for call in open_calls(state):
        if call["name"] not in TOOLS:
            yield {"op": "work"}
            continue
        with suppress(CallError):
            operation, _ = TOOLS[call["name"]].check(call["args"], todos, _ANY)
            if operation is None:
                continue
            event: _Event = {**operation}
            if event.get("status") == "completed" and text in event["texts"]:
                before_it: list[int] = event["indices"][: event["texts"].index(text)]
                if any(todos[at]["status"] != "completed" for at in before_it):
                    yield {**event, "texts": []}  # the ticks of other items by the same call
                return
            before, todos = todos, apply(todos, operation)
            if todos != before:  # as in the history, where a call that changes nothing is no event
                yield event
