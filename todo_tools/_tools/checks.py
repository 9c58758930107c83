"""Run the application's check before an item is completed, in sync and async code."""

import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import run_in_executor

from todo_tools._calls.answers import Answer, refuse_call
from todo_tools._calls.arguments import CallError
from todo_tools._calls.records import TOOLS
from todo_tools._list.formatting import one_line
from todo_tools._list.operations import Operation, SetStatus
from todo_tools._list.todos import TodoItem, TodoLimits, is_blank

Check = Callable[[TodoItem, Any], str | Awaitable[str | None] | None]
"""Takes an item and the graph state; returns `None`, or the reason why the item is not done."""

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


_CHANGING = frozenset(TOOLS) - {"list_todos"}


class Completion(NamedTuple):
    """A call that may complete items."""

    name: str
    """The name of the tool."""
    answer: Answer
    """The answer if every item passes."""
    todos: list[TodoItem]
    """The list before the call."""
    earlier: list[ToolCall]
    """The earlier calls of the same AI message, which have no result yet."""
    limits: TodoLimits

    def to_check(self) -> list[int]:
        """Return the indices of the items that the call newly completes."""
        operation = self.answer.operation
        if not _completes(operation):
            return []
        indices = dict.fromkeys(operation["indices"])
        # An earlier call of the same message may complete the item too, and may still be refused.
        if any(call["name"] in _CHANGING for call in self.earlier):
            return list(indices)
        return [index for index in indices if self.todos[index]["status"] != "completed"]

    def passed(self) -> Answer:
        """Return the answer if every item passes; it completes only the items that were checked.

        Another tool of the same step may open an item again that looks completed here.
        """
        operation, indices = self.answer.operation, self.to_check()
        if not _completes(operation):
            return self.answer
        texts = [self.todos[index]["text"] for index in indices]
        return replace(self.answer, operation={**operation, "indices": indices, "texts": texts})

    def refused(self, index: int, reason: str) -> Answer:
        """Return the answer if an item does not pass."""
        return refuse_call(self.name, _not_done(index, reason), self.todos)


ASKED: ContextVar[tuple[Completion, int]] = ContextVar("ASKED")
"""The call and the index of the item that is being checked, for `has_worked`."""


@contextmanager
def _asked(completion: Completion, index: int) -> Generator[None, None, None]:
    token = ASKED.set((completion, index))
    try:
        yield
    finally:
        ASKED.reset(token)


def _completes(operation: Operation | None) -> TypeGuard[SetStatus]:
    return (
        operation is not None
        and operation["op"] == "set_status"
        and operation["status"] == "completed"
    )


def checked(completion: Completion, check: Check, state: Any) -> Answer:
    """Return the answer to a call, or the refusal of the first item that its check does not accept.

    Raises:
        TypeError: The check is async, or returns something else than `None` or a reason.
    """
    for index in completion.to_check():
        with _asked(completion, index):
            reply = check(completion.todos[index].copy(), state)
        if inspect.iscoroutine(reply):
            reply.close()  # or Python would warn that nobody awaited it
        if inspect.isawaitable(reply):
            raise TypeError("check is async, and this graph was run with invoke; use ainvoke")
        if reason := _reason(reply):
            return completion.refused(index, reason)
    return completion.passed()


async def achecked(completion: Completion, check: Check, state: Any) -> Answer:
    """Do the same as `checked`; a sync check runs in a thread."""
    for index in completion.to_check():
        with _asked(completion, index):
            reply = await run_in_executor(None, check, completion.todos[index].copy(), state)
            reply = await reply if inspect.isawaitable(reply) else reply
        if reason := _reason(reply):
            return completion.refused(index, reason)
    return completion.passed()


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
