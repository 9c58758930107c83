"""The gate as a middleware."""

from collections.abc import Callable, Collection
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState
from langgraph.prebuilt.tool_node import ToolCallRequest
from typing_extensions import override

from todo_tools._tools.gate import TodoGate


class TodoGateMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Refuse calls of other tools until the list has an item in progress; see `TodoGate`.

    Use it beside `TodoMiddleware`.

    Args:
        exempt: The names of tools that are never refused, such as tools that only read.

    Raises:
        TypeError: `exempt` is a single string.

    Example:
        ```python
        middleware = [TodoGateMiddleware(exempt={"search"}), TodoMiddleware()]
        agent = create_agent(model, tools=[search], middleware=middleware)
        ```
    """

    def __init__(self, *, exempt: Collection[str] = frozenset()) -> None:
        super().__init__()
        self.gate = TodoGate(exempt=exempt)

    @override
    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        """Run a tool call, unless the gate refuses it."""
        return self.gate.wrap_tool_call(request, handler)

    @override
    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        """Do the same as `wrap_tool_call`."""
        return await self.gate.awrap_tool_call(request, handler)
