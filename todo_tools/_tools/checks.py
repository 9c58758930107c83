"""Run the application's check before an item is completed, in sync and async code."""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, cast

from langchain_core.runnables import run_in_executor

from todo_tools._calls.answers import Answer, Before, refuse_call
from todo_tools._calls.arguments import CallError
from todo_tools._list.formatting import one_line
from todo_tools._list.operations import Operation, SetStatus
from todo_tools._list.todos import TodoItem, is_blank

Check = Callable[[TodoItem, Any], str | Awaitable[str | None] | None]
"""Takes an item and the graph state; returns `None`, or the reason why the item is not done."""

_REASON_CHARACTERS = 180


def require_check(check: object) -> None:
    """Raise TypeError if a check cannot be called."""
    if check is not None and not callable(check):
        raise TypeError(
            f"check must be a function of the item and the state or None, got {check!r}"
        )


class AskedItem(dict[str, Any]):
    """An item as a check gets it: a plain dict that also knows what its message did before."""

    def __init__(self, item: TodoItem, operations: Sequence[Operation | None]) -> None:
        super().__init__(item)
        self.operations = operations


def checked(name: str, answer: Answer, before: Before, check: Check, state: Any) -> Answer:
    """Return the answer to a call, or the refusal of the first item that is not done."""
    for index, item in _to_check(answer, before):
        if reason := verdict(check, item, state):
            return refuse_call(name, _not_done(index, reason), answer.before)
    return answer


async def achecked(name: str, answer: Answer, before: Before, check: Check, state: Any) -> Answer:
    """Do the same as `checked`."""
    for index, item in _to_check(answer, before):
        if reason := await averdict(check, item, state):
            return refuse_call(name, _not_done(index, reason), answer.before)
    return answer


def _to_check(answer: Answer, before: Before) -> Iterator[tuple[int, TodoItem]]:
    """Yield the items that a call newly completes, with their indices."""
    operation = answer.operation
    if operation is None or operation["op"] != "set_status" or operation["status"] != "completed":
        return
    done = cast("SetStatus", {**operation, "indices": [], "texts": []})
    for index in operation["indices"]:
        item = answer.before[index]
        yield index, cast("TodoItem", AskedItem(item, [*before.operations, done]))
        done = cast("SetStatus", {**done, "texts": [*done.get("texts", []), item["text"]]})


def verdict(check: Check, item: TodoItem, state: Any) -> str | None:
    """Run a check, and return the reason why the item is not done."""
    reply = check(item, state)
    if inspect.iscoroutine(reply):
        reply.close()  # or Python would warn that nobody awaited it
    if inspect.isawaitable(reply):
        raise TypeError("check is async, and this graph was run with invoke; use ainvoke")
    return _reason_in(reply)


async def averdict(check: Check, item: TodoItem, state: Any) -> str | None:
    """Do the same as `verdict`; a sync check runs in a thread."""
    reply = await run_in_executor(None, check, item, state)
    return _reason_in(await reply if inspect.isawaitable(reply) else reply)


def _reason_in(reply: object) -> str | None:
    if reply is None or (isinstance(reply, str) and not is_blank(reply)):
        return reply
    raise TypeError(f"check must return None or the reason as a string, got {reply!r}")


def _not_done(index: int, reason: str) -> CallError:
    shown = one_line(reason)
    if len(shown) > _REASON_CHARACTERS:
        shown = f"{shown[: _REASON_CHARACTERS - 1]}…"
    return CallError(
        f"item {index} is not done: {shown}; nothing was changed, finish the item and complete it "
        "again",
        f"item {index} is not done: {shown}",
    )
