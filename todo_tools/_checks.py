"""Run the application's check before an item is completed, in sync and async code."""

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
"""Takes an item and the graph state; returns `None`, or the reason why the item is not done."""
Steps = Generator[TodoItem, str | None, T]
"""A generator that yields an item to check, receives the reason, and returns a result."""

_REASON_CHARACTERS = 180


class TodoStructuredTool(StructuredTool):
    """A todo tool that exposes its settings, so that the gate computes the same list."""

    limits: SkipValidation[TodoLimits]
    check: SkipValidation[Check | None] = Field(None, exclude=True, repr=False)


def to_check(operation: Operation | None, todos: list[TodoItem]) -> list[int]:
    """Return the indices of the items that an operation would newly complete."""
    if operation is None or operation["op"] != "set_status" or operation["status"] != "completed":
        return []
    indices = dict.fromkeys(operation["indices"])
    return [index for index in indices if todos[index]["status"] != "completed"]


def not_done(index: int, reason: str) -> CallError:
    """Return the error for an item that the check does not accept as done."""
    shown = one_line(reason)
    if len(shown) > _REASON_CHARACTERS:
        shown = f"{shown[: _REASON_CHARACTERS - 1]}…"
    return CallError(
        f"item {index} is not done: {shown}; nothing was changed, finish the item and complete it "
        "again",
        f"item {index} is not done: {shown}",
    )


def require_check(check: object) -> None:
    """Raise an error if a check cannot be called.

    Raises:
        TypeError: `check` is neither a function nor `None`.
    """
    if check is not None and not callable(check):
        raise TypeError(
            f"check must be a function of the item and the state or None, got {check!r}"
        )


def run_steps(steps: Steps[T], check: Check | None, state: Any) -> T:
    """Run the generator: check each item that it yields and send the reason back."""
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
    """Do the same as `run_steps`; a sync check runs in a thread."""
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
