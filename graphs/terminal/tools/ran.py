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
    if not isinstance(result, ToolMessage):
        return result
    call = request.tool_call
    match call["name"]:
        case "execute":
            ended: dict[str, Any] | None = result.artifact
        case "run_in_background":  # it has no exit code yet
            ended = {} if result.status == "success" else None
        case _:
            ended = None
    if ended is None:  # no command ran
        return result
    return result.model_copy(update={"artifact": {**ended, "command": call["args"]["command"]}})
