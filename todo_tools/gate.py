"""A gate before other tools: first a plan with an item in progress, then the work."""

from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from todo_tools import _prompts as prompts
from todo_tools._records import TOOLS
from todo_tools._replay import todos_at_call
from todo_tools._todos import DEFAULT_LIMITS, TodoItem, TodoLimits

__all__ = ["TodoGate"]

_Result = ToolMessage | Command[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class TodoGate:
    """Refuse other tools until there is a list with an item in progress.

    A refused call is answered with an error that says what to do, and is not run. If an AI message
    starts an item and then calls a tool, the tool runs. The todo tools are never refused.

    Args:
        exempt: Names of tools that always pass, such as tools that only read.

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
        """Say why a tool may not run now; `None` if it may.

        Args:
            name: The tool called.
            todos: The list at that call.
        """
        if name in TOOLS or name in self.exempt:
            return None
        if any(todo["status"] == "in_progress" for todo in todos):
            return None
        return prompts.gate_refusal(has_todos=bool(todos))

    def wrap_tool_call(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], _Result]
    ) -> _Result:
        """Run a tool call or refuse it, as `ToolNode(wrap_tool_call=...)` takes it."""
        return self._refused(request) or execute(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[_Result]]
    ) -> _Result:
        """Run a tool call or refuse it, as `ToolNode(awrap_tool_call=...)` takes it."""
        return self._refused(request) or await execute(request)

    def _refused(self, request: ToolCallRequest) -> ToolMessage | None:
        call = request.tool_call
        todos = todos_at_call(request.state, call["id"], _limits(request.runtime.tools))
        reason = self.refusal(call["name"], todos)
        if reason is None:
            return None
        return ToolMessage(reason, name=call["name"], tool_call_id=call["id"] or "", status="error")


def _limits(tools: Iterable[BaseTool]) -> TodoLimits:
    """The limits of the todo tools that run beside the gated ones."""
    for tool in tools:
        if tool.name in TOOLS and tool.metadata and "limits" in tool.metadata:
            return TodoLimits(**tool.metadata["limits"])
    return DEFAULT_LIMITS
