"""Refuse calls of other tools until the list has an item in progress."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import ToolMessage
from langgraph.prebuilt import ToolRuntime
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from todo_tools._calls.records import TOOLS
from todo_tools._list import prompts
from todo_tools._list.todos import DEFAULT_LIMITS, TodoItem
from todo_tools._tools.checks import Check, TodoStructuredTool, arun_steps, run_steps
from todo_tools._tools.turn import Turn, turn_of

__all__ = ["TodoGate"]

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
        """Return the error for a tool that must not run now; `None` if it may run.

        Args:
            name: The name of the tool.
            todos: The list before the call.
        """
        if name in TOOLS or name in self.exempt:
            return None
        if any(todo["status"] == "in_progress" for todo in todos):
            return None
        return prompts.gate_refusal(has_todos=bool(todos))

    def wrap_tool_call(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], _Result]
    ) -> _Result:
        """Run or refuse a tool call; pass this method as `ToolNode(wrap_tool_call=...)`."""
        turn, check = _turn(request)
        with turn.lock:
            todos = run_steps(turn.todos_at(request.tool_call["id"]), check, request.state)
        return self._refused(request, todos) or execute(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[_Result]]
    ) -> _Result:
        """Run or refuse a tool call; pass this method as `ToolNode(awrap_tool_call=...)`."""
        turn, check = _turn(request)
        async with turn.async_lock:
            todos = await arun_steps(turn.todos_at(request.tool_call["id"]), check, request.state)
        return self._refused(request, todos) or await execute(request)

    def _refused(self, request: ToolCallRequest, todos: list[TodoItem]) -> ToolMessage | None:
        call = request.tool_call
        reason = self.refusal(call["name"], todos)
        if reason is None:
            return None
        return ToolMessage(reason, name=call["name"], tool_call_id=call["id"] or "", status="error")


def _turn(request: ToolCallRequest) -> tuple[Turn, Check | None]:
    """Return the turn of a call and the check, with the settings of the todo tools in the node."""
    limits, check = DEFAULT_LIMITS, None
    for tool in request.runtime.tools:
        if isinstance(tool, TodoStructuredTool):
            limits, check = tool.limits, tool.check
    runtime = cast("ToolRuntime[Any, Any]", request.runtime)
    return turn_of(runtime, limits, check), check
