"""The application's check of an item before it is completed, run for sync and async callers."""

import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar, cast

from langchain_core.runnables import run_in_executor
from langchain_core.tools import StructuredTool
from pydantic import Field, SkipValidation

from todo_tools._formatting import one_line
from todo_tools._operations import Operation
from todo_tools._todos import TodoItem, TodoLimits
from todo_tools.arguments import CallError

T = TypeVar("T")

Check = Callable[[TodoItem, Any], str | Awaitable[str | None] | None]
"""From an item and the graph state to `None`, or to the reason why the item is not done."""
Steps = Generator[TodoItem, str | None, T]
"""Yields an item to check, is sent the reason, and returns a result."""

_REASON_CHARACTERS = 180


class TodoStructuredTool(StructuredTool):
    """A todo tool that says how it was set up, so that the gate beside it sees the same list."""

    limits: SkipValidation[TodoLimits]
    check: SkipValidation[Check | None] = Field(None, exclude=True, repr=False)


def to_check(operation: Operation | None, todos: list[TodoItem]) -> list[int]:
    """The items that an operation would complete and that are not completed yet."""
    if operation is None or operation["op"] != "set_status" or operation["status"] != "completed":
        return []
    indices = dict.fromkeys(operation["indices"])
    return [index for index in indices if todos[index]["status"] != "completed"]


def not_done(index: int, reason: str) -> CallError:
    """The refusal to complete an item whose check gave a reason."""
    shown = one_line(reason)
    if len(shown) > _REASON_CHARACTERS:
        shown = f"{shown[: _REASON_CHARACTERS - 1]}…"
    return CallError(
        f"item {index} is not done: {shown}; nothing was changed, finish the item and complete it "
        "again",
        f"item {index} is not done: {shown}",
    )


def require_check(check: object) -> None:
    """Refuse a check that cannot be called.

    Raises:
        TypeError: It is neither a function nor `None`.
    """
    if check is not None and not callable(check):
        raise TypeError(
            f"check must be a function of the item and the state or None, got {check!r}"
        )


def run_steps(steps: Steps[T], check: Check | None, state: Any) -> T:
    """Answer each item that `steps` yields with what its check says."""
    reason: str | None = None
    while True:
        try:
            item = steps.send(reason)
        except StopIteration as done:
            return cast("T", done.value)
        verdict = check(item, state) if check else None
        if inspect.iscoroutine(verdict):
            verdict.close()  # or Python would warn that nobody awaited it
        if inspect.isawaitable(verdict):
            raise TypeError("check is async, and this graph was run with invoke; use ainvoke")
        reason = _reason(verdict)


async def arun_steps(steps: Steps[T], check: Check | None, state: Any) -> T:
    """The same as `run_steps`; a check that blocks runs in a thread."""
    reason: str | None = None
    while True:
        try:
            item = steps.send(reason)
        except StopIteration as done:
            return cast("T", done.value)
        verdict = await run_in_executor(None, check, item, state) if check else None
        reason = _reason(await verdict if inspect.isawaitable(verdict) else verdict)


def _reason(verdict: object) -> str | None:
    if verdict is None or isinstance(verdict, str):
        return verdict
    raise TypeError(f"check must return None or the reason as a string, got {verdict!r}")
