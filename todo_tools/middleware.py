"""The whole pack as one middleware for LangChain's `create_agent`, and for deepagents."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, NotRequired
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import override

from todo_tools.clients import ClientTodo
from todo_tools.continuation import AutoContinue
from todo_tools.gate import TodoGate
from todo_tools.models import DEFAULT_LIMITS, TodoItem, TodoLimits
from todo_tools.prompts import TODO_SYSTEM_PROMPT
from todo_tools.state import (
    LoopState,
    fold_client_todos,
    loop_in,
    merge_loop,
    messages_in,
    todos_reducer,
)
from todo_tools.tools import create_todo_tools
from todo_tools.turn import TurnEnd, aend_turn, end_turn
from todo_tools.view import model_view

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
    from langchain.agents.middleware.types import (
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
except ImportError as error:
    raise ImportError(
        "todo_tools.middleware needs langchain; pip install 'langgraph-todo-tools[langchain]'"
    ) from error

__all__ = ["TodoAgentState", "TodoMiddleware"]

View = Callable[[Mapping[str, Any]], list[AnyMessage]]


class TodoAgentState(AgentState[Any]):
    """The channels of `TodoState` in LangChain's agent state.

    The counters are neither input nor output, so that a parent agent and its subagents never share
    them; read them with `graph.get_state(config).values["todo_loop"]`.
    """

    todos: NotRequired[Annotated[list[TodoItem], todos_reducer()]]
    """The list; seed and edit it as in `TodoState`."""
    todo_loop: NotRequired[Annotated[LoopState, PrivateStateAttr, merge_loop]]
    """Counters and outcome of the loop."""


class ClientTodoAgentState(AgentState[Any]):
    """The channels of `ClientTodoState` in LangChain's agent state."""

    todos: NotRequired[Annotated[list[ClientTodo], fold_client_todos]]
    todo_loop: NotRequired[Annotated[LoopState, PrivateStateAttr, merge_loop]]


def _state_within(limits: TodoLimits) -> type[AgentState[Any]]:
    """The state whose list may be as long as the tools may write it."""
    if limits == DEFAULT_LIMITS:
        return TodoAgentState

    class LimitedTodoAgentState(TodoAgentState):
        todos: NotRequired[Annotated[list[TodoItem], todos_reducer(limits)]]

    return LimitedTodoAgentState


class TodoMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """The tools, the state, the system prompt, the model's view and the loop for `create_agent`.

    It takes the place of LangChain's `TodoListMiddleware`, whose name it bears: where an agent
    brings that one along, as deepagents does in its Codex profile, it is replaced; where both are
    listed, `create_agent` refuses to build the agent.

    Args:
        limits: How much the model may write.
        policy: When the agent is sent back to work; `None` lets it go whenever it stops.
        system_prompt: Put behind the agent's own; `None` for nothing.
        view: From the state to the messages for the model; `None` sends the history as it is.
        gate: Refuse other tools until an item is in progress; `None` refuses nothing.
        client_todos: Keep `todos` in the words of LangChain's clients, such as deep-agents-ui
            (`todo_tools.clients`), instead of ours.

    Raises:
        TypeError: An argument is of another type.

    Example:
        >>> agent = create_agent("openai:gpt-5", tools, middleware=[TodoMiddleware()])
        >>> agent.invoke({"messages": [("user", "Plan and do it.")]})["todos"]
    """

    def __init__(
        self,
        *,
        limits: TodoLimits = DEFAULT_LIMITS,
        policy: AutoContinue | None = AutoContinue(),
        system_prompt: str | None = TODO_SYSTEM_PROMPT,
        view: View | None = model_view,
        gate: TodoGate | None = None,
        client_todos: bool = False,
    ) -> None:
        super().__init__()
        if policy is not None and not isinstance(policy, AutoContinue):
            raise TypeError(f"policy must be an AutoContinue or None, got {policy!r}")
        if gate is not None and not isinstance(gate, TodoGate):
            raise TypeError(f"gate must be a TodoGate or None, got {gate!r}")
        self.tools = create_todo_tools(limits)
        self.state_schema = ClientTodoAgentState if client_todos else _state_within(limits)
        self.policy = policy
        self.system_prompt = system_prompt
        self.view = view
        self.gate = gate

    @property
    @override
    def name(self) -> str:
        """The name of the middleware whose place this one takes."""
        return "TodoListMiddleware"

    @override
    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ExtendedModelResponse[Any]:
        """Send the model's view and the system prompt, and note that the model answered."""
        return _noted(handler(self._prepared(request)))

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        """The same as `wrap_model_call`."""
        return _noted(await handler(self._prepared(request)))

    @hook_config(can_jump_to=["model"])
    @override
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Send the agent back to work while items are incomplete."""
        if self.policy is None:
            return None
        return _hook_update(end_turn(state, self.policy, own_answer=_is_own_answer(state)))

    @hook_config(can_jump_to=["model"])
    @override
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """The same as `after_agent`."""
        if self.policy is None:
            return None
        return _hook_update(await aend_turn(state, self.policy, own_answer=_is_own_answer(state)))

    @override
    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        """Let the gate decide, if there is one."""
        return self.gate.wrap_tool_call(request, handler) if self.gate else handler(request)

    @override
    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        """The same as `wrap_tool_call`."""
        if self.gate:
            return await self.gate.awrap_tool_call(request, handler)
        return await handler(request)

    def _prepared(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        changes: dict[str, Any] = {}
        if self.view:
            # The request's messages, not the state's: other middleware may have trimmed them.
            changes["messages"] = self.view({**request.state, "messages": request.messages})
        if self.system_prompt:
            changes["system_message"] = _extended(request.system_message, self.system_prompt)
        return request.override(**changes)


def _extended(message: SystemMessage | None, text: str) -> SystemMessage:
    if message is None:
        return SystemMessage(text)
    blocks: list[Any] = [*message.content_blocks, {"type": "text", "text": f"\n\n{text}"}]
    return SystemMessage(content=blocks)


def _noted(response: ModelResponse[Any]) -> ExtendedModelResponse[Any]:
    """Write down which message the model answered with.

    A run may also be ended by what another middleware appended or jumped over, such as a limit on
    model calls. The loop must not start it again then, so it continues only after this message.
    """
    answer = next(m for m in response.result if isinstance(m, AIMessage))
    answer.id = answer.id or str(uuid4())
    return ExtendedModelResponse(
        model_response=response, command=Command(update={"todo_loop": {"answer": answer.id}})
    )


def _is_own_answer(state: Any) -> bool:
    last = next((m for m in reversed(messages_in(state)) if isinstance(m, AIMessage)), None)
    return last is not None and last.id == loop_in(state).get("answer")


def _hook_update(ended: TurnEnd) -> dict[str, Any]:
    return {**ended.update, "jump_to": "model"} if ended.continues else ended.update
