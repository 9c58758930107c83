"""Answer calls that cannot succeed, or are not whole, before a person is asked about them."""

import re
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from typing_extensions import override

from graphs.terminal.tools.ask_first import answered
from graphs.terminal.tools.workspace import Workspace


class RefuseImpossible(AgentMiddleware[AgentState[Any], Any, Any]):
    """Answers a write or an edit that would fail with its error, and a call that was cut off.

    If the model server ends a streamed answer at its limit of tokens, LangChain completes the
    arguments of the last call as far as they came: half a file, or half a path.

    List it after the middleware that asks the person, because `after_model` hooks run in reverse
    order. That middleware must skip the calls that have a result (`is_open`). A call that passes is
    checked again when it is carried out.

    Args:
        workspace: Where the files are.
    """

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace

    @override
    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        answer = state["messages"][-1]
        if not isinstance(answer, AIMessage):
            return None
        last = answer.tool_calls[-1:] if _is_cut_off(answer) else []
        errors = [
            (call, _CUT_OFF if call in last else self._error(call)) for call in answer.tool_calls
        ]
        refused = [
            ToolMessage(error, name=call["name"], tool_call_id=call["id"], status="error")
            for call, error in errors
            if error
        ]
        return {"messages": refused} if refused else None

    def _error(self, call: ToolCall) -> str | None:
        """Why a call cannot succeed; malformed arguments are left to the tool."""
        match call:
            case {"name": "write_file", "args": {"file_path": str(path)}}:
                return self._workspace.check_write(path)
            case {
                "name": "edit_file",
                "args": {"file_path": str(path), "old_string": str(old), "new_string": str(new)},
            }:
                every = call["args"].get("replace_all") is True
                return self._workspace.check_edit(path, old, new, replace_all=every)
            case _:
                return None


_CUT_OFF = (
    "Error: your answer was cut off at its limit of tokens, so this call was not carried out. Call "
    "again with less text at a time"
)

_LIMITS = re.compile(
    "(length|max_tokens|model_length|model_context_window_exceeded|incomplete)+", re.IGNORECASE
)
"""Several times in a row if a server repeats it in each chunk, because LangChain joins strings."""


def _is_cut_off(answer: AIMessage) -> bool:
    """Whether a limit of tokens ended an answer; each provider has its own key and word."""
    keys = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
    return any(_LIMITS.fullmatch(str(answer.response_metadata.get(key))) for key in keys)


def is_open(request: ToolCallRequest) -> bool:
    """Whether a call of the last AI message has no result yet."""
    return request.tool_call["id"] not in answered(request.state["messages"])
