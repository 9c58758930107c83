"""Record which command a call of `execute` ran, because a person may have edited the call."""

from collections.abc import Awaitable, Callable
from typing import Any

from deepagents.backends.protocol import ExecuteArtifact
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import override

from graphs.terminal.tools.shell import ShellArtifact

Result = ToolMessage | Command[Any]


class RecordCommand(AgentMiddleware[AgentState[Any], Any, Any]):
    """Adds the command to the artifact that deepagents gives a result of `execute`.

    When a person edits a call, LangChain's `HumanInTheLoopMiddleware` leaves the model's own in the
    history. List this middleware last, so that it sees the call that runs.
    """

    @override
    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        return _recorded(request, handler(request))

    @override
    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        return _recorded(request, await handler(request))


def _recorded(request: ToolCallRequest, result: Result) -> Result:
    if request.tool_call["name"] != "execute" or not isinstance(result, ToolMessage):
        return result
    ended: ExecuteArtifact | None = result.artifact
    if ended is None:  # no command ran
        return result
    artifact: ShellArtifact = {**ended, "command": request.tool_call["args"]["command"]}
    return result.model_copy(update={"artifact": artifact})
