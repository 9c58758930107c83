"""Run the application's check before an item is completed, in sync and async code."""

import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar, cast

from langchain_core.runnables import run_in_executor
from langchain_core.tools import StructuredTool
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from pydantic import Field, SkipValidation

from todo_tools._list.formatting import one_line
from todo_tools._list.operations import Operation
from todo_tools._list.todos import TodoItem, TodoLimits, is_blank
from todo_tools.arguments import CallError

T = TypeVar("T")

Check = Callable[[TodoItem, Any], str | Awaitable[str | None] | None]
"""Takes an item and the graph state; returns `None`, or the reason why the item is not done."""
Verdict = str | Exception | None
"""What a check said: `None`, the reason, or what it raised."""
Steps = Generator[TodoItem, Verdict, T]
"""Yields a copy of each item to check, receives the verdict, and returns a result at its end."""

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
    """Run the generator: check each item that it yields and send the reason or error back."""
    verdict: Verdict = None
    while True:
        try:
            item = steps.send(verdict)
        except StopIteration as done:
            return cast("T", done.value)
        try:
            answer = check(item, state) if check else None
            if inspect.iscoroutine(answer):
                answer.close()  # or Python would warn that nobody awaited it
            if inspect.isawaitable(answer):
                raise TypeError("check is async, and this graph was run with invoke; use ainvoke")
            verdict = _reason(answer)
        except Exception as error:
            verdict = _failure(error)


async def arun_steps(steps: Steps[T], check: Check | None, state: Any) -> T:
    """Do the same as `run_steps`; a sync check runs in a thread."""
    verdict: Verdict = None
    while True:
        try:
            item = steps.send(verdict)
        except StopIteration as done:
            return cast("T", done.value)
        try:
            answer = await run_in_executor(None, check, item, state) if check else None
            verdict = _reason(await answer if inspect.isawaitable(answer) else answer)
        except Exception as error:
            verdict = _failure(error)


def _reason(answer: object) -> str | None:
    if answer is None or (isinstance(answer, str) and not is_blank(answer)):
        return answer
    raise TypeError(f"check must return None or the reason as a string, got {answer!r}")


def _failure(error: Exception) -> Exception:
    """Return what a check raised, for the call that it checks.

    Calls of one AI message run each other's checks. An interrupt would ask in the wrong call, and
    its answer could complete another item.
    """
    if isinstance(error, GraphInterrupt):
        return TypeError(
            "check must not call interrupt(); to ask a person, use LangChain's "
            "HumanInTheLoopMiddleware on edit_todos"
        )
    if isinstance(error, GraphBubbleUp):
        raise error
    return error
