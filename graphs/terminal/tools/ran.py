"""Record which command a call ran, because a person may have edited the call."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import override

Result = ToolMessage | Command[Any]


class RecordCommand(AgentMiddleware[AgentState[Any], Any, Any]):
    """Adds the command to the artifact of deepagents' `execute`; list this middleware last."""

    @override
    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        return _recorded(request.tool_call, handler(request))

    @override
    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        return _recorded(request.tool_call, await handler(request))


def _recorded(call: Any, result: Result) -> Result:
    if call["name"] != "execute" or not isinstance(result, ToolMessage) or result.artifact is None:
        return result
    artifact = {**result.artifact, "command": call["args"]["command"]}
    return result.model_copy(update={"artifact": artifact})
