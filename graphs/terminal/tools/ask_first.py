"""Ask a person before a tool changes something, and check the approval where the tool runs.

LangChain's `HumanInTheLoopMiddleware` asks one question about all calls of an AI message, in a node
before the tools. A run that reaches the tools by another way has no question: after a fork or an
edit of the message, by `goto`, or by `update_state(as_node=...)`.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, NamedTuple, cast

from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langgraph.errors import GraphInterrupt
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import ExecutionInfo, Runtime, get_runtime
from langgraph.types import Command
from typing_extensions import override

Result = ToolMessage | Command[Any]
Edits = Mapping[str, Any]
"""A person's changes to calls, in the channel where LangChain's middleware looks for them."""


class Approval(NamedTuple):
    """What a person approves: one call, and nothing that differs from it."""

    thread: str | None
    message: str | None
    call: str | None
    name: str
    args: str


class _Allowed(NamedTuple):
    """What an approval allows."""

    edits: Edits
    task: str | None = None
    """The task whose tool asked a question of its own; no other task may use the approval then."""


class AskFirst(HumanInTheLoopMiddleware[Any, Any, Any]):
    """LangChain's middleware, with the same questions; but nothing runs without an approval.

    Approvals are kept in this object, so nothing that writes to a thread can make one. An approval
    is used up when its tool begins, so a call that was stopped or failed is asked about again, as
    the model wrote it. A call without an approval is asked about when it runs, in a question of
    its own; answer it by the id of the question.

    Do not list a tool that asks a person itself. It keeps its approval while it asks, but after a
    stop, a failure or a fork, its question may get the answer about the approval.

    Args:
        interrupt_on: The tools to ask about, as for LangChain's middleware.
    """

    def __init__(self, interrupt_on: dict[str, bool | InterruptOnConfig]) -> None:
        super().__init__(interrupt_on)
        self._approved: dict[Approval, _Allowed] = {}
        self._asked: dict[str, Approval] = {}
        self._ignored = Counter[str]()
        """The answers of each task that are used up, or are for other programs."""

    @property
    @override
    def name(self) -> str:
        """The name of the middleware that this one replaces."""
        return "HumanInTheLoopMiddleware"

    @override
    def after_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        update = super().after_model(state, runtime)
        if update and "messages" in update:
            message, *rejections = update["messages"]
            done = answered([*state["messages"], *rejections])
            for call in _distinct_calls(message):
                approval = _approval_of(call, message, runtime.execution_info)
                self._approved.pop(approval, None)  # a fork may have asked again
                if call["name"] in self.interrupt_on and call["id"] not in done:
                    self._approved[approval] = _Allowed(_edits_in(update))
        return update

    @override
    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        if request.tool_call["name"] not in self.interrupt_on:
            return handler(request)
        with self._approval_for(request) as edits:
            if isinstance(edits, ToolMessage):
                return edits
            return super().wrap_tool_call(
                request.override(state=edits),
                lambda edited: handler(edited.override(state=request.state)),
            )

    @override
    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        if request.tool_call["name"] not in self.interrupt_on:
            return await handler(request)
        with self._approval_for(request) as edits:
            if isinstance(edits, ToolMessage):
                return edits
            return await super().awrap_tool_call(
                request.override(state=edits),
                lambda edited: handler(edited.override(state=request.state)),
            )

    @contextmanager
    def _approval_for(self, request: ToolCallRequest) -> Generator[Edits | ToolMessage, None, None]:
        """Use up the approval, or ask for one; keep it if the tool asks a question of its own.

        Yields:
            The person's changes to the call, or a result in its place.
        """
        approval, info = _approval_at(request), request.runtime.execution_info
        task = info.task_id if info else ""
        given = self._approved.pop(approval, None)
        may_use = given and given.task in (None, task)
        allowed = given.edits if given and may_use else self._ask(request, approval)
        try:
            yield allowed
        except GraphInterrupt:
            if not isinstance(allowed, ToolMessage):
                self._approved[approval] = _Allowed(allowed, task)
            raise

    def _ask(self, request: ToolCallRequest, approval: Approval) -> Edits | ToolMessage:
        """Ask about a call as if it were the only one of its message.

        If a task has several calls, only one of them is asked about, because they share its answer.
        So an answer to the question of a program before this one may be about another call.
        """
        runtime = get_runtime()
        task = runtime.execution_info.task_id if runtime.execution_info else ""
        is_new = task not in self._asked
        if self._asked.setdefault(task, approval) != approval:
            return _not_asked_about(request.tool_call)
        for _ in range(self._ignored[task]):
            self._answer(request, runtime)
        update = self._answer(request, runtime)
        while is_new and "messages" in update:  # it was answered before it was asked
            self._ignored[task] += 1
            update = self._answer(request, runtime)
        if "messages" in update:  # the answer is used up, although the step may run again
            self._ignored[task] += 1
        rejections: list[ToolMessage] = update.get("messages", [])[1:]
        return rejections[0] if rejections else _edits_in(update)

    def _answer(self, request: ToolCallRequest, runtime: Runtime[Any]) -> Mapping[str, Any]:
        """What LangChain's middleware makes of the next answer; it changes the message."""
        message = AIMessage("", tool_calls=[request.tool_call])
        state: Any = {**_state_of(request), "messages": [message]}
        return super().after_model(state, runtime) or {}


def answered(messages: Sequence[AnyMessage]) -> set[str]:
    """The ids of the calls of the last AI message that have a result.

    Results before that message do not count, because some model servers use the same ids again.
    """
    after = takewhile(lambda each: not isinstance(each, AIMessage), reversed(messages))
    return {each.tool_call_id for each in after if isinstance(each, ToolMessage)}


def _distinct_calls(message: AIMessage) -> Iterator[ToolCall]:
    """The calls of a message that have an id of their own; the others cannot be told apart."""
    ids = [call["id"] for call in message.tool_calls]
    return (call for call in message.tool_calls if ids.count(call["id"]) == 1)


def _approval_of(call: ToolCall, message: AIMessage | None, info: ExecutionInfo | None) -> Approval:
    return Approval(
        thread=info.thread_id if info else None,
        message=message.id if message else None,
        call=call["id"],
        name=call["name"],
        args=json.dumps(call["args"], sort_keys=True, default=repr),
    )


def _approval_at(request: ToolCallRequest) -> Approval:
    """The approval that a call needs where it runs."""
    messages = _state_of(request).get("messages", [])
    answers = [each for each in messages if isinstance(each, AIMessage)]
    message = answers[-1] if answers else None
    return _approval_of(request.tool_call, message, request.runtime.execution_info)


def _state_of(request: ToolCallRequest) -> Mapping[str, Any]:
    """The state of the agent; whatever jumps to the tools may bring another one."""
    is_state = isinstance(request.state, Mapping)
    return cast("Mapping[str, Any]", request.state) if is_state else {}


def _edits_in(update: Mapping[str, Any]) -> Edits:
    return {name: value for name, value in update.items() if name != "messages"}


def _not_asked_about(call: ToolCall) -> ToolMessage:
    text = "Error: nobody was asked about this call. Make it again if it is still needed."
    return ToolMessage(text, name=call["name"], tool_call_id=call["id"], status="error")
