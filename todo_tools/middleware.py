"""Use the whole library as one middleware for LangChain's `create_agent` or deepagents."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired, TypeVar, cast

from langchain_core.messages import AIMessage, SystemMessage
from langgraph.managed.is_last_step import RemainingStepsManager
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import override

from todo_tools._list.formats import TodosFormat, require_format
from todo_tools._list.prompts import TODO_SYSTEM_PROMPT
from todo_tools._list.todos import (
    DEFAULT_LIMITS,
    LIST,
    TodoItem,
    TodoLimits,
    incomplete,
    is_mapping,
    require_flag,
)
from todo_tools._loop.decision import AutoContinue, Policy, require_policy
from todo_tools._loop.node import Ending, aend_answer, end_answer
from todo_tools._loop.own_answer import NO_ANSWER, is_own_answer, noted_answer
from todo_tools._loop.speaker import at_start
from todo_tools._loop.steps import last_words, may_run_tools, measured
from todo_tools._thread.channels import LANGCHAIN_FORMAT, TodosChannel
from todo_tools._tools.build import build_tools
from todo_tools._tools.checks import Check
from todo_tools._view.model_view import ModelView, model_view
from todo_tools._view.shown_list import block_update, due_block
from todo_tools.clients import ClientTodo
from todo_tools.gate import TodoGate
from todo_tools.state import (
    LoopState,
    TodoBlocks,
    blocks_in,
    fold_client_todos,
    fold_todos,
    loop_in,
    merge_blocks,
    merge_loop,
    messages_in,
    todos_in,
)

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
    from langchain.agents.middleware.types import (
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
        TracePolicy,
    )
except ImportError as error:
    raise ImportError(
        "todo_tools.middleware needs langchain; pip install 'langgraph-todo-tools[langchain]'"
    ) from error

__all__ = ["ClientTodoAgentState", "ModelView", "TodoAgentState", "TodoMiddleware"]


# deepagents sets this key in the state of a subagent with `"mode": "fork"`, which starts with a
# copy of its parent's state. `tests/test_deepagents.py` runs such a subagent.
_FORKED = "_deepagents_forked_context"


class TodoAgentState(AgentState[Any]):
    """LangChain's agent state with the channels of `TodoState`.

    The counters are not part of the input and output, so a parent agent and its subagents never
    share them. Read them with `graph.get_state(config).values["todo_loop"]`.
    """

    todos: NotRequired[Annotated[list[TodoItem], LIST, TodosChannel(list, fold_todos)]]
    """The list; seed and edit it as in `TodoState`."""
    todo_loop: NotRequired[Annotated[LoopState, PrivateStateAttr, merge_loop]]
    """The counters and the outcome of the loop."""
    todo_blocks: NotRequired[Annotated[TodoBlocks, PrivateStateAttr, merge_blocks]]
    """Whole lists that were appended to messages in earlier prompts."""
    remaining_steps: NotRequired[Annotated[int, PrivateStateAttr, RemainingStepsManager]]
    """The number of steps until the run reaches LangGraph's `recursion_limit`."""


class ClientTodoAgentState(AgentState[Any]):
    """LangChain's agent state with the channels of `ClientTodoState`."""

    todos: NotRequired[Annotated[list[ClientTodo], LIST, TodosChannel(list, fold_client_todos)]]
    todos_format: NotRequired[Annotated[Literal["langchain"], PrivateStateAttr, LANGCHAIN_FORMAT]]
    todo_loop: NotRequired[Annotated[LoopState, PrivateStateAttr, merge_loop]]
    todo_blocks: NotRequired[Annotated[TodoBlocks, PrivateStateAttr, merge_blocks]]
    remaining_steps: NotRequired[Annotated[int, PrivateStateAttr, RemainingStepsManager]]


_Middleware = TypeVar("_Middleware", bound="TodoMiddleware")


def _without_history(inputs: Any) -> Any:
    """Replace the messages in the traced input of a hook by their number."""
    if not is_mapping(inputs) or "messages" not in inputs:
        return inputs
    return {**inputs, "messages": len(inputs["messages"])}


class TodoMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Add the tools, the state, the system prompt, `model_view` and the loop to `create_agent`.

    It replaces LangChain's `TodoListMiddleware` and has the same `name`. So `create_agent` raises
    an error if both are listed, and deepagents uses this one instead of the one in its Codex
    profile. In traces and graphs, its nodes have names such as `TodoListMiddleware.after_agent`.

    List it last. `after_agent` hooks run in reverse order, so the hooks of other middleware then
    run only once, when the loop has ended.

    Args:
        limits: The limits for lists that the model writes.
        policy: The settings of the loop, or a function that takes LangGraph's `Runtime` and returns
            them; it is called at each decision. `None` turns the loop off.
        system_prompt: A text to append to the agent's system prompt; `None` appends nothing.
        view: A function from the state to the messages for the model; `None` sends the history
            unchanged.
        gate: Refuses other tools until an item is in progress; `None` refuses nothing.
        todos_format: The format of the lists in the state, events, artifacts and questions. Use
            `"langchain"` for clients made for LangChain's own todos, such as deep-agents-ui
            (`todo_tools.clients`).
        client_todos: `True` is another way to write `todos_format="langchain"`.
        descriptions: Other descriptions of the tools for the model, by tool name.
        check: A function that returns the reason why an item is not done; see `create_todo_tools`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `todos_format` is unknown, or `view` is `None` and the policy has `store=False`
            or is a function.

    Example:
        ```python
        agent = create_agent(model, tools=[], middleware=[TodoMiddleware()])
        result = agent.invoke({"messages": [("user", "Plan and do it.")]})
        print(format_todos(result["todos"]))
        ```
    """

    # Keep traces small: the history does not need another copy for each hook.
    trace_policy = TracePolicy(process_inputs=_without_history)

    def __init__(
        self,
        *,
        limits: TodoLimits = DEFAULT_LIMITS,
        policy: Policy | None = AutoContinue(),
        system_prompt: str | None = TODO_SYSTEM_PROMPT,
        view: ModelView | None = model_view,
        gate: TodoGate | None = None,
        todos_format: TodosFormat = "todo_tools",
        client_todos: bool = False,
        descriptions: Mapping[str, str] | None = None,
        check: Check | None = None,
    ) -> None:
        super().__init__()
        if policy is not None:
            require_policy(policy)
        stores = isinstance(policy, AutoContinue) and policy.store
        if policy is not None and view is None and not stores:
            raise ValueError(
                "view=None is not allowed with AutoContinue(store=False) or a policy function; "
                "pass a view"
            )
        if gate is not None and not isinstance(gate, TodoGate):
            raise TypeError(f"gate must be a TodoGate or None, got {gate!r}")
        if view is not None and not callable(view):
            raise TypeError(f"view must be a function of the state or None, got {view!r}")
        if system_prompt is not None and not isinstance(system_prompt, str):
            raise TypeError(f"system_prompt must be a string or None, got {system_prompt!r}")
        require_format(todos_format)
        require_flag("client_todos", client_todos)
        todos_format = "langchain" if client_todos else todos_format
        self.tools = build_tools(limits, descriptions, check, todos_format, records_blocks=False)
        self.state_schema = ClientTodoAgentState if todos_format == "langchain" else TodoAgentState
        self.policy = policy
        self.system_prompt = system_prompt
        self.view = view
        self.gate = gate
        self._drop_unused_hooks()

    @property
    @override
    def name(self) -> str:
        """The name of the middleware that this one replaces."""
        return "TodoListMiddleware"

    @override
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Reset the counters after a new user message, and empty the list of a forked subagent.

        This hook runs once per run, and only in runs that begin with an input. So only this hook
        can detect both cases.
        """
        if self.policy is None:
            return None
        update: dict[str, Any] = {"todos": []} if state.get(_FORKED) else {}
        loop = loop_in(state)
        begun: LoopState = {**at_start(loop, messages_in(state)), "steps_left": 0, **NO_ANSWER}
        return {**update, "todo_loop": begun}

    @override
    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Do the same as `before_agent`."""
        return self.before_agent(state, runtime)

    @override
    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ExtendedModelResponse[Any]:
        """Send the view and the system prompt to the model, and record that it answered."""
        block = self._due_block(request)
        response = handler(self._prepared(request, block))
        return _noted(request.state, block, self._within_steps(request, response))

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        """Do the same as `wrap_model_call`."""
        block = self._due_block(request)
        response = await handler(self._prepared(request, block))
        return _noted(request.state, block, self._within_steps(request, response))

    @hook_config(can_jump_to=["model"])
    @override
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Send the agent back to work while items are incomplete."""
        if self.policy is None:
            return None
        own_answer = is_own_answer(state)
        return _hook_update(end_answer(state, self.policy, own_answer=own_answer, in_run=True))

    @hook_config(can_jump_to=["model"])
    @override
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Do the same as `after_agent`."""
        if self.policy is None:
            return None
        own_answer = is_own_answer(state)
        ending = await aend_answer(state, self.policy, own_answer=own_answer, in_run=True)
        return _hook_update(ending)

    @override
    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        """Run a tool call, unless the gate refuses it."""
        return self.gate.wrap_tool_call(request, handler) if self.gate else handler(request)

    @override
    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        """Do the same as `wrap_tool_call`."""
        if self.gate:
            return await self.gate.awrap_tool_call(request, handler)
        return await handler(request)

    def _drop_unused_hooks(self) -> None:
        """Remove the hooks that the settings do not need.

        `create_agent` looks at the class to see which hooks it overrides. Each hook of the loop
        adds a node to the graph. A hook around tool calls disables the check for unknown tools.
        """
        used = {
            "before_agent": self.policy,
            "after_agent": self.policy,
            "wrap_model_call": self.policy or self.view or self.system_prompt,
            "wrap_tool_call": self.gate,
        }
        unused = [hook for hook, user in used.items() if not user]
        if unused:
            self.__class__ = _without(type(self), unused)

    def _within_steps(
        self, request: ModelRequest[Any], response: ModelResponse[Any]
    ) -> ModelResponse[Any]:
        """Drop tool calls if the run would exceed LangGraph's recursion limit after them.

        This happens only if the loop is on and items are incomplete, so that the loop can explain
        why the run stopped.
        """
        state = request.state
        if self.policy is None or not _calls_tools(response) or may_run_tools(state):
            return response
        if not incomplete(todos_in(state)):
            return response
        *before, answer = response.result
        return replace(response, result=[*before, last_words(cast("AIMessage", answer))])

    def _due_block(self, request: ModelRequest[Any]) -> TodoBlocks:
        return due_block(_shown_state(request, {}), at_newest=True) if self.view else {}

    def _prepared(self, request: ModelRequest[Any], block: TodoBlocks) -> ModelRequest[Any]:
        changes: dict[str, Any] = {}
        if self.view:
            changes["messages"] = list(self.view(_shown_state(request, block)))
        if self.system_prompt:
            changes["system_message"] = _extended(request.system_message, self.system_prompt)
        return request.override(**changes)


def _calls_tools(response: ModelResponse[Any]) -> bool:
    """Whether the response ends with tool calls; a structured response does not."""
    last = response.result[-1] if response.result else None
    return isinstance(last, AIMessage) and bool(last.tool_calls)


def _without(cls: type[_Middleware], hooks: Iterable[str]) -> type[_Middleware]:
    """Create a class without these hooks; keep hooks that a user's subclass overrides."""
    base: dict[str, object] = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    for hook in hooks:
        pair = (hook, f"a{hook}")
        if all(getattr(cls, name) is getattr(TodoMiddleware, name) for name in pair):
            base |= {name: getattr(AgentMiddleware, name) for name in pair}
    return cast("type[_Middleware]", type(cls.__name__, (cls,), base))


def _shown_state(request: ModelRequest[Any], block: TodoBlocks) -> dict[str, Any]:
    """Return the state with the messages of the request, which other middleware may change."""
    state: dict[str, Any] = {**request.state}
    blocks = {**blocks_in(state), **block}
    return {**state, "messages": request.messages, "todo_blocks": blocks}


def _extended(message: SystemMessage | None, text: str) -> SystemMessage:
    if message is None:
        return SystemMessage(text)
    content: Any = message.content
    if isinstance(content, str):
        content = f"{content}\n\n{text}" if content else text
    else:
        content = [*content, {"type": "text", "text": f"\n\n{text}"}]
    return message.model_copy(update={"content": content})


def _noted(
    state: Any, block: TodoBlocks, response: ModelResponse[Any]
) -> ExtendedModelResponse[Any]:
    """Record the block of the prompt and the model's answer."""
    update = block_update(block, state)
    answer = next((m for m in response.result if isinstance(m, AIMessage)), None)
    if noted := noted_answer(state, answer):
        update["todo_loop"] = {**noted, **measured(state)}
    command: Command[Any] | None = Command(update=update) if update else None
    return ExtendedModelResponse(model_response=response, command=command)


def _hook_update(ended: Ending) -> dict[str, Any]:
    update = {**ended.update, "todo_loop": {**ended.update["todo_loop"], **NO_ANSWER}}
    return {**update, "jump_to": "model"} if ended.continues else update
