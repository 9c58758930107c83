"""Refuse calls of other tools until the list has an item in progress."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from todo_tools._calls.answers import Before
from todo_tools._calls.records import TOOLS
from todo_tools._list import prompts
from todo_tools._list.todos import DEFAULT_LIMITS, TodoItem, TodoLimits
from todo_tools._thread.state import todos_in
from todo_tools._thread.transcript import place_of_call
from todo_tools._tools.build import list_before

_Result = ToolMessage | Command[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class TodoGate:
    """Refuse calls of other tools until the list has an item in progress.

    A refused call does not run; the model reads an error that says what to do. If an AI message
    starts an item and then calls a tool, the tool runs. The todo tools are never refused.

    Args:
        exempt: The names of tools that are never refused, such as tools that only read.

    Raises:
        TypeError: `exempt` is a single string.

    Example:
        ```python
        gate = TodoGate(exempt={"search"})
        node = ToolNode(
            [*create_todo_tools(), search],
            wrap_tool_call=gate.wrap_tool_call,
            awrap_tool_call=gate.awrap_tool_call,
        )
        ```
    """

    exempt: Collection[str] = frozenset()

    def __post_init__(self) -> None:
        if isinstance(self.exempt, str) or not isinstance(self.exempt, Collection):
            raise TypeError(f"exempt must be a collection of tool names, got {self.exempt!r}")

    def refusal(self, name: str, todos: list[TodoItem]) -> str | None:
        """Return the error for a tool that must not run with this list; `None` if it may run."""
        if name in TOOLS or name in self.exempt:
            return None
        if any(todo["status"] == "in_progress" for todo in todos):
            return None
        return prompts.gate_refusal(has_todos=bool(todos))

    def wrap_tool_call(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], _Result]
    ) -> _Result:
        """Run or refuse a tool call; pass this method as `ToolNode(wrap_tool_call=...)`."""
        return self._refused(request) or execute(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[_Result]]
    ) -> _Result:
        """Run or refuse a tool call; pass this method as `ToolNode(awrap_tool_call=...)`."""
        return self._refused(request) or await execute(request)

    def _refused(self, request: ToolCallRequest) -> ToolMessage | None:
        call = request.tool_call
        before = _before(request)
        reason = self.refusal(call["name"], before.todos if before.is_written else [])
        if reason is None:
            return None
        return ToolMessage(reason, name=call["name"], tool_call_id=call["id"] or "", status="error")


def _before(request: ToolCallRequest) -> Before:
    """Return the list before a call, with the limits of the todo tools beside it."""
    limits = DEFAULT_LIMITS
    for tool in request.runtime.tools:
        if tool.name in TOOLS and tool.metadata and "limits" in tool.metadata:
            limits = TodoLimits(**tool.metadata["limits"])
    place = place_of_call(request.state, request.tool_call["id"])
    return list_before(todos_in(request.state), place, limits)
