"""Run the application's check before an item is completed, in sync and async code."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.runnables import run_in_executor
from langgraph.prebuilt import ToolRuntime

from todo_tools._calls.answers import Answer, refuse_call
from todo_tools._calls.arguments import CallError
from todo_tools._list.formatting import one_line
from todo_tools._list.todos import TodoItem, is_blank
from todo_tools._tools.turn import follows_todo_call

Check = Callable[[TodoItem, Any], str | Awaitable[str | None] | None]
"""Takes an item and the graph state; returns `None`, or the reason why the item is not done."""

_Runtime = ToolRuntime[Any, Any]
_REASON_CHARACTERS = 180


def require_check(check: object) -> None:
    """Raise an error if a check cannot be called.

    Raises:
        TypeError: `check` is neither a function nor `None`.
    """
    if check is not None and not callable(check):
        raise TypeError(
            f"check must be a function of the item and the state or None, got {check!r}"
        )


def checked(
    name: str, answer: Answer, todos: list[TodoItem], check: Check | None, runtime: _Runtime
) -> Answer:
    """Return the answer to a call, or the refusal of the first item that its check does not accept.

    Args:
        name: The name of the tool.
        answer: The answer if every item passes.
        todos: The list before the call.
        check: The application's check.
        runtime: The runtime of the call.

    Raises:
        TypeError: The check is async, or returns something else than `None` or a reason.
    """
    for index in _to_check(answer, todos, runtime) if check else ():
        reply = check(todos[index].copy(), runtime.state) if check else None
        if inspect.iscoroutine(reply):
            reply.close()  # or Python would warn that nobody awaited it
        if inspect.isawaitable(reply):
            raise TypeError("check is async, and this graph was run with invoke; use ainvoke")
        if reason := _reason(reply):
            return refuse_call(name, _not_done(index, reason), todos)
    return answer


async def achecked(
    name: str, answer: Answer, todos: list[TodoItem], check: Check | None, runtime: _Runtime
) -> Answer:
    """Do the same as `checked`; a sync check runs in a thread."""
    for index in _to_check(answer, todos, runtime) if check else ():
        args = todos[index].copy(), runtime.state
        reply = await run_in_executor(None, check, *args) if check else None
        if reason := _reason(await reply if inspect.isawaitable(reply) else reply):
            return refuse_call(name, _not_done(index, reason), todos)
    return answer


def _to_check(answer: Answer, todos: list[TodoItem], runtime: _Runtime) -> list[int]:
    """Return the indices of the items that a call newly completes."""
    operation = answer.operation
    if operation is None or operation["op"] != "set_status" or operation["status"] != "completed":
        return []
    indices = dict.fromkeys(operation["indices"])
    if follows_todo_call(runtime.state, runtime.tool_call_id):
        return list(indices)  # the call that completed an item before this one may be refused
    return [index for index in indices if todos[index]["status"] != "completed"]


def _reason(reply: object) -> str | None:
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
