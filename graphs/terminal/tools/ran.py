"""Record which command a call ran, because a person may have edited the call."""

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
    """Adds the command to the artifact of a result of `execute` or `run_in_background`.

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
    call = request.tool_call
    if not isinstance(result, ToolMessage):
        return result
    if call["name"] == "execute" and result.artifact is not None:  # a command ran
        ended: ExecuteArtifact = result.artifact
        artifact: ShellArtifact = {**ended, "command": call["args"]["command"]}
        return result.model_copy(update={"artifact": artifact})
    if (
        call["name"] == "run_in_background" and result.status == "success"
    ):  # it has no exit code yet
        return result.model_copy(update={"artifact": {"command": call["args"]["command"]}})
    return result
