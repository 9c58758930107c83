"""Ask a person before a tool changes something, and check the approval where the tool runs.

LangChain's `HumanInTheLoopMiddleware` asks one question about all calls of an AI message, in a node
before the tools. A run that reaches the tools by another way has no question: a program that is
resumed after a kill, a fork or an edit of the message, `goto`, or `update_state(as_node=...)`.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, cast

from langchain.agents.middleware import HumanInTheLoopMiddleware, InterruptOnConfig
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import ExecutionInfo, Runtime, get_runtime
from langgraph.types import Command
from typing_extensions import override

Result = ToolMessage | Command[Any]
Edits = Mapping[str, Any]
"""A person's changes to calls, in the channel where LangChain's middleware looks for them."""

Approval = tuple[str | None, ...]
"""What a person approves: one call of one message in one thread, and nothing that differs."""


class AskFirst(HumanInTheLoopMiddleware[Any, Any, Any]):
    """LangChain's middleware, with the same questions; but nothing runs without an approval.

    Approvals are kept in this object, so nothing that writes to a thread can make one. An approval
    is used up when its tool begins. So a call that was stopped, killed or replayed is asked about
    where it runs, as the only call of its question. Do not list a tool that asks a person itself.

    Args:
        interrupt_on: The tools to ask about, as for LangChain's middleware.
    """

    def __init__(self, interrupt_on: dict[str, bool | InterruptOnConfig]) -> None:
        super().__init__(interrupt_on)
        self._approved: dict[Approval, Edits] = {}
        self._asked: dict[str, tuple[Approval, int | None]] = {}
        """What each task asks about where it runs, and how many answers are used up."""

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
            ids = [call["id"] for call in message.tool_calls]
            for call in message.tool_calls:
                approval = _approval_of(call, message, runtime.execution_info)
                self._approved.pop(approval, None)  # a fork may have asked again
                # Calls with the same id cannot be told apart.
                if call["id"] not in done and ids.count(call["id"]) == 1:
                    self._approved[approval] = _edits_in(update)
        return update

    @override
    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        edits = self._edits_for(request)
        if edits is None or isinstance(edits, ToolMessage):
            return edits or handler(request)
        return super().wrap_tool_call(
            request.override(state=edits),
            lambda edited: handler(edited.override(state=request.state)),
        )

    @override
    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        edits = self._edits_for(request)
        if edits is None or isinstance(edits, ToolMessage):
            return edits or await handler(request)
        return await super().awrap_tool_call(
            request.override(state=edits),
            lambda edited: handler(edited.override(state=request.state)),
        )

    def _edits_for(self, request: ToolCallRequest) -> Edits | ToolMessage | None:
        """A person's changes to a call, or a result in its place; `None` if it needs no person."""
        if request.tool_call["name"] not in self.interrupt_on:
            return None
        messages = _state_of(request).get("messages", [])
        answers = [each for each in messages if isinstance(each, AIMessage)]
        message, info = answers[-1] if answers else None, request.runtime.execution_info
        approval = _approval_of(request.tool_call, message, info)
        edits = self._approved.pop(approval, None)
        return self._ask(request, approval) if edits is None else edits

    def _ask(self, request: ToolCallRequest, approval: Approval) -> Edits | ToolMessage:
        """Ask about a call as if it were the only one of its message.

        An answer to a program before this one, or to a run that was stopped, does not count.
        """
        runtime = get_runtime()
        task = runtime.execution_info.task_id if runtime.execution_info else ""
        asked, used = self._asked.setdefault(task, (approval, None))
        if asked != approval:  # all calls of a task would share its answers
            return _not_asked_about(request.tool_call)
        state: Any = {**_state_of(request)}
        update: Mapping[str, Any] = {}
        answers = 0
        while used is None or answers <= used:
            self._asked[task] = approval, answers
            state["messages"] = [AIMessage("", tool_calls=[request.tool_call])]
            update = super().after_model(state, runtime) or {}  # ends the run if nobody answered
            if "messages" not in update:  # this call is not to be asked about
                return {}
            answers += 1
        self._asked[task] = approval, answers
        rejections: list[ToolMessage] = update["messages"][1:]
        return rejections[0] if rejections else _edits_in(update)


def answered(messages: Sequence[AnyMessage]) -> set[str]:
    """The ids of the calls of the last AI message that have a result.

    Results before that message do not count, because some model servers use the same ids again.
    """
    after = takewhile(lambda each: not isinstance(each, AIMessage), reversed(messages))
    return {each.tool_call_id for each in after if isinstance(each, ToolMessage)}


def _approval_of(call: ToolCall, message: AIMessage | None, info: ExecutionInfo | None) -> Approval:
    return (
        info.thread_id if info else None,
        message.id if message else None,
        call["id"],
        call["name"],
        json.dumps(call["args"], sort_keys=True, default=repr),
    )


def _state_of(request: ToolCallRequest) -> Mapping[str, Any]:
    """The state of the agent; whatever jumps to the tools may bring another one."""
    is_state = isinstance(request.state, Mapping)
    return cast("Mapping[str, Any]", request.state) if is_state else {}


def _edits_in(update: Mapping[str, Any]) -> Edits:
    return {name: value for name, value in update.items() if name != "messages"}


def _not_asked_about(call: ToolCall) -> ToolMessage:
    text = "Error: nobody was asked about this call. Make it again if it is still needed."
    return ToolMessage(text, name=call["name"], tool_call_id=call["id"], status="error")
