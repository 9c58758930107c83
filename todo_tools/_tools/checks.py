"""Run the application's check before an item is completed, in sync and async code."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard, cast

from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import run_in_executor

from todo_tools._calls.answers import Answer, answer_call, refuse_call
from todo_tools._calls.arguments import CallError
from todo_tools._calls.records import TOOLS
from todo_tools._list.formatting import one_line
from todo_tools._list.operations import Operation, SetStatus, origins
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


class Step(NamedTuple):
    """A call of an AI message."""

    operation: Operation | None
    """What it does to the list; `None` for another tool."""
    todos: list[TodoItem]
    """The list before it."""
    items: list[object]
    """What identifies each item of that list."""


class Completion(NamedTuple):
    """A call that may complete items."""

    name: str
    """The name of the tool."""
    answer: Answer
    """The answer if every item passes."""
    todos: list[TodoItem]
    """The list before the call."""
    listed: list[TodoItem]
    """The list before the AI message."""
    begin: int | None
    """The position of the first call of its message without a result; `None` without a message."""
    earlier: list[ToolCall]
    """The calls from there to this one: those without a result, and other tools that succeeded."""
    limits: TodoLimits

    def steps(self) -> Iterator[Step]:
        """Yield the earlier calls of other tools or that change the list, and this call."""
        todos = self.listed
        items: list[object] = [*range(len(todos))]
        for call in self.earlier:
            if call["name"] not in TOOLS:
                yield Step(None, todos, items)
                continue
            answer = answer_call(call["name"], call["args"], todos, self.limits)
            if answer.todos != todos:
                yield Step(answer.operation, todos, items)
                before = origins(todos, answer.todos, answer.operation)
                items = [object() if at is None else items[at] for at in before]
                todos = answer.todos
        yield Step(self.answer.operation, todos, items)

    def to_check(self) -> list[int]:
        """Return the indices of the items that the call newly completes.

        An earlier call of the same message may complete the item too, and may still be refused.
        """
        operation = self.answer.operation
        if not completes(operation):
            return []
        steps = [*self.steps()]
        was_open = {
            item
            for step in steps
            for item, todo in zip(step.items, step.todos, strict=True)
            if todo["status"] != "completed"
        }
        indices = dict.fromkeys(operation["indices"])
        return [index for index in indices if steps[-1].items[index] in was_open]

    def passed(self) -> Answer:
        """Return the answer if every item passes; it completes only the items that were checked.

        Another tool of the same step may open an item again that looks completed here.
        """
        operation, indices = self.answer.operation, self.to_check()
        if not completes(operation):
            return self.answer
        texts = [self.todos[index]["text"] for index in indices]
        return replace(self.answer, operation={**operation, "indices": indices, "texts": texts})

    def refused(self, index: int, reason: str) -> Answer:
        """Return the answer if an item does not pass."""
        return refuse_call(self.name, _not_done(index, reason), self.todos)


class AskedItem(dict[str, Any]):
    """An item as a check gets it: a plain dict that also knows the call, for `has_worked`."""

    def __init__(self, completion: Completion, index: int) -> None:
        super().__init__(completion.todos[index])
        self.completion = completion
        self.index = index

    def as_item(self) -> TodoItem:
        """Return it with the type that checks expect."""
        return cast("TodoItem", self)


def completes(operation: Operation | None) -> TypeGuard[SetStatus]:
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
        reply = check(AskedItem(completion, index).as_item(), state)
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
        item = AskedItem(completion, index).as_item()
        reply = await run_in_executor(None, check, item, state)
        if reason := _reason(await reply if inspect.isawaitable(reply) else reply):
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
