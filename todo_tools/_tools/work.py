"""A check for the tools: an item is completed only after work."""

from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list.todos import TodoItem, incomplete
from todo_tools._thread.reading import Entry, read
from todo_tools._thread.transcript import (
    is_injected,
    is_summary,
    list_after,
    listed_in,
    result_note,
)
from todo_tools._tools.checks import AskedItem, completes
from todo_tools._view.view import record_block

_NO_WORK = "no other tool has worked on it yet; do its work with your other tools first"

_Event = dict[str, Any]
"""What happened: an operation on the list, with the texts of its items, or one of these.

- `work`: another tool ran.
- `show`: a prompt showed the list; `texts` are its items in progress.
- `go_on`: these items are in progress, and their start was removed from the history.
"""

_NEW_LIST: _Event = {"op": "replace"}
"""Also for items that are added to an empty list."""


def has_worked(item: TodoItem, state: Any) -> str | None:
    """Check that an item is completed only after work: a call of another tool than the todo tools.

    Pass it as `create_todo_tools(check=has_worked)` or `TodoMiddleware(check=has_worked)`. Some
    models complete all items of a list without working. The call must come after the item was
    started or, if it is not in progress, after the model last completed or abandoned an item, also
    by the same call, and after the model or a message of the application last gave a new list. A
    call that failed does not count. A list that is written again before any status has changed is
    no new list; items that are added to an empty list are. Calls before `edit_todos` in the same AI
    message count, because their results are not known yet.

    Args:
        item: The item to complete, as a check gets it: it knows the call. For a copy of it, only
            the history counts.
        state: The graph state.

    Returns:
        `None` if there was work, otherwise the reason for the model.

    Example:
        ```python
        def check(item: TodoItem, state: TodoState) -> str | None:
            return has_worked(item, state) or my_own_check(item, state)
        ```
    """
    is_started = since_start = since_tick = False
    # The second of two calls of a message that tick an item sees it as completed.
    may_be_started = item["status"] in ("in_progress", "completed")
    for event in (*_past(state, item), *_present(item)):
        match event:
            case {"op": "work"}:
                since_start = since_tick = True
            case {"op": "show", "texts": texts}:
                is_started = is_started and item["text"] in texts
            case {"op": "go_on", "texts": texts}:
                is_started = may_be_started and item["text"] in texts
            case {"op": "set_status", "status": "in_progress", "texts": texts}:
                if item["text"] in texts:
                    is_started, since_start = may_be_started, False
            case {"op": "set_status", "texts": texts}:
                is_started = is_started and item["text"] not in texts
                since_tick = False
            case {"op": "replace"}:
                is_started = since_start = since_tick = False
            case _:
                pass
    worked = since_start if is_started else since_tick
    return None if worked else _NO_WORK


def _past(state: Any, item: object) -> Iterator[_Event]:
    """Yield what the results in the history say, whatever other middleware made of their texts."""
    known: list[TodoItem] = []
    shown: list[TodoItem] = []
    before: list[TodoItem] = []  # the list before the last AI message
    made: list[TodoItem] = []  # the list after the last call
    was_refused = False
    for entry, block, is_certain in _with_lists(state, item):
        message, after = entry.message, list_after(entry.message)
        if isinstance(message, AIMessage):
            before, was_refused = known, False
        # An earlier result of the message may show a change that was refused, and this made. And a
        # block may show a change before its result, if the text of the result was replaced.
        certain = made if entry.replaced is not None else before if was_refused else known
        refused = before if was_refused else []  # what was shown as changed may be as it was
        if after and not shown and not _speaks(message):
            yield {"op": "go_on", "texts": _in_progress(after)}
        if block is not None and is_certain:
            yield {"op": "show", "texts": _in_progress(block)}
        if block is not None and _is_new(block, shown + refused, message):
            yield _NEW_LIST
        elif after is not None and not after == known == certain:
            yield from _operation(message, after, known, certain)
        elif _is_work(message):
            yield {"op": "work"}
        if block is not None and not shown and not _speaks(message):
            yield {"op": "go_on", "texts": _in_progress(block)}
        was_refused = was_refused or _was_refused(message)
        listed = _list_in(entry)
        known = known if listed is None else listed
        made = made if after is None else after
        shown = next((each for each in (block, after) if each is not None), shown)


def _operation(
    message: AnyMessage, after: list[TodoItem], known: list[TodoItem], certain: list[TodoItem]
) -> Iterator[_Event]:
    """Yield the operation of a result, with the texts of the items that it started or finished.

    Args:
        message: The result.
        after: The list after the call.
        known: The list that earlier messages showed last.
        certain: The same list, without changes that may have been refused.
    """
    match result_note(message).get("operation"):
        case {"op": "set_status", "status": status, "indices": [*indices]}:
            had = {todo["text"] for todo in certain if todo["status"] == status}
            changed = {
                todo["text"]
                for at, todo in enumerate(after)
                if at in indices and not (known[at : at + 1] == [todo] and todo["text"] in had)
            }
            # Another item with the same text may still be in progress.
            others = set[str]() if status == "in_progress" else _in_progress(after)
            if changed:
                yield {"op": "set_status", "status": status, "texts": changed - others}
        case {"op": op} if op == "replace" or not _before(known, after, message):
            yield _NEW_LIST
        case _:
            pass


def _in_progress(todos: list[TodoItem]) -> set[str]:
    return {todo["text"] for todo in todos if todo["status"] == "in_progress"}


def _speaks(message: AnyMessage) -> bool:
    """Whether the user or other code wrote the message, and not the loop or a summarizer."""
    is_written = isinstance(message, HumanMessage) and not is_injected(message)
    return is_written and not is_summary(message)


def _with_lists(state: Any, item: object) -> Iterator[tuple[Entry, list[TodoItem] | None, bool]]:
    """Yield each entry, the list that came with it, and whether a prompt showed that list.

    Otherwise, a later result tells of the list. Its statuses may be wrong, because it also shows
    the refused calls before it.
    """
    reading = read(state)
    forgotten = _forgotten(reading.entries)
    # Without `TodoMiddleware`, the block of the last prompt is recorded only by this call.
    recorded = record_block(reading).get("todo_blocks", {})
    end = item.completion.begin if isinstance(item, AskedItem) else None
    for entry in _as_called(reading.entries, end):
        prompted = recorded.get(entry.place, entry.block)
        block = forgotten.get(entry.place) if prompted is None else prompted
        yield entry, block, prompted is not None


def _as_called(entries: Iterable[Entry], end: int | None) -> Iterator[Entry]:
    """Yield the entries; the results of a message have names and come in the order of its calls.

    A result that other code made may have no name, or come before those of earlier calls: so does
    the answer of a person.

    Args:
        entries: The entries of a history.
        end: The position of a call in the last AI message. Results of the calls from there on are
            left out.
    """
    called: dict[str | None, tuple[int, str]] = {}
    results: list[tuple[int, Entry]] = []
    for entry in entries:
        message = entry.message
        if isinstance(message, ToolMessage):
            at, name = called.get(message.tool_call_id, (len(called), None))
            named = message if message.name else message.model_copy(update={"name": name})
            results.append((at, entry._replace(message=named)))
            continue
        yield from _sorted(results)
        results = []
        if isinstance(message, AIMessage):
            calls = enumerate(message.tool_calls)
            called = {call["id"]: (at, call["name"]) for at, call in calls}
        yield entry
    yield from _sorted(each for each in results if end is None or each[0] < end)


def _sorted(results: Iterable[tuple[int, Entry]]) -> Iterator[Entry]:
    return (entry for _, entry in sorted(results, key=lambda each: each[0]))


def _forgotten(entries: Iterable[Entry]) -> dict[str, list[TodoItem]]:
    """Return the lists without a block in the state, by the place of the message that brought each.

    An agent that is a node of another graph keeps no blocks between its runs. The first
    result that shows such a list tells of it. A block is in the state, at its own place.
    """
    found: dict[str, list[TodoItem]] = {}
    known: list[TodoItem] = []
    place: str | None = None
    was_refused = False
    for entry in entries:
        message = entry.message
        if _speaks(message):
            place = entry.place
        was_refused = not isinstance(message, AIMessage) and (was_refused or _was_refused(message))
        todos = entry.block if was_refused else _list_in(entry)
        if todos is None:
            continue
        before = _before(known, todos, message)
        if place and before != known and entry.block is None:
            found[place] = before
        known, place = todos, None
    return found


def _list_in(entry: Entry) -> list[TodoItem] | None:
    """Return the list of an entry, also if other middleware changed its text."""
    lists = (entry.block, list_after(entry.message), listed_in(entry.message))
    return next((each for each in lists if each is not None), None)


def _before(known: list[TodoItem], todos: list[TodoItem], message: AnyMessage) -> list[TodoItem]:
    """Return the list before the call of a result, as far as the result tells it.

    Args:
        known: The list that earlier messages showed last.
        todos: The list after the call.
        message: The result.
    """
    match result_note(message).get("operation"):
        case {"op": "set_status", "status": status, "indices": [*indices]}:
            made = [
                {**todo, "status": status} if at in indices else todo
                for at, todo in enumerate(known)
            ]
            return known if made == todos else todos
        case {"op": "insert", "index": int(at), "added": int(added)}:
            return [*todos[:at], *todos[at + added :]]
        case {"op": "append", "added": int(added)}:
            return todos[: len(todos) - added]
        case _:
            return todos


def _is_new(todos: list[TodoItem], known: list[TodoItem], message: AnyMessage) -> bool:
    """Whether the application gave a new list: one without any open item of the list before.

    If no list was known, it may have been summarized away; then a continuation brings no new one.
    """
    if not isinstance(message, HumanMessage) or not (known or _speaks(message)) or todos == known:
        return False
    still_open = {todo["text"] for _, todo in incomplete(known)}
    return not any(todo["text"] in still_open for todo in todos)


def _was_refused(message: AnyMessage) -> bool:
    """Whether a call did not do what its message says: it was refused, or a person changed it."""
    if not isinstance(message, ToolMessage) or message.name not in TOOLS:
        return False
    return result_note(message).get("length") != len(message.text)


def _is_work(message: AnyMessage) -> bool:
    if not isinstance(message, ToolMessage) or message.name in TOOLS:
        return False
    return message.status != "error"


def _present(item: object) -> Iterator[_Event]:
    """Yield what happens in the current AI message before its first tick of the item.

    That tick may be refused; the item is then refused again, because nobody knows yet.
    """
    if not isinstance(item, AskedItem):
        return
    steps = [*item.completion.steps()]
    own = steps[-1].items[item.index]
    for operation, todos, items in steps:  # pragma: no branch  the last one ticks the item
        if operation is None:
            yield {"op": "work"}
            continue
        named: list[int] = operation["indices"] if completes(operation) else []
        ticked = [index for index in named if todos[index]["status"] != "completed"]
        at = next((at for at, index in enumerate(ticked) if items[index] == own), len(ticked))
        if ticked[:at]:
            yield {**operation, "texts": []}  # the ticks of other items
        if at < len(ticked):
            return
        if operation["op"] == "set_status" and operation["status"] == "in_progress":
            begun = [at for at in operation["indices"] if todos[at]["status"] != "in_progress"]
            yield {**operation, "texts": [todos[at]["text"] for at in begun if items[at] == own]}
        elif not named:
            yield {**operation} if todos else _NEW_LIST
