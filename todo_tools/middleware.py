"""Use this whole package as one middleware for LangChain's `create_agent` or deepagents."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields
from typing import Any, Self
from uuid import uuid4

from langchain_core.messages import AnyMessage, RemoveMessage, SystemMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.stream.transformers import CustomTransformer
from typing_extensions import override

from todo_tools._agent.answer import answered, update_of, with_notes, without_last_notice
from todo_tools._agent.gate import TodoGateMiddleware
from todo_tools._agent.state import ClientAgentState, TodoAgentState
from todo_tools._calls.records import TOOLS
from todo_tools._list.formats import TodosFormat, require_format
from todo_tools._list.prompts import TODO_FOLD_PROMPT, TODO_SYSTEM_PROMPT
from todo_tools._list.todos import DEFAULT_LIMITS, TodoLimits, is_mapping
from todo_tools._loop.decision import heard
from todo_tools._loop.ending import aend_answer, end_answer
from todo_tools._loop.policy import AutoContinue, Policy, require_policy
from todo_tools._thread.notes import with_list
from todo_tools._thread.reading import read, read_messages
from todo_tools._thread.state import loop_in, messages_in
from todo_tools._tools.build import create_todo_tools
from todo_tools._tools.checks import Check
from todo_tools._view.blocks import needs_block, newest_place
from todo_tools._view.view import ModelView, extended, model_view, view_of

# isort: split
from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import (
    ModelCallResult,
    ModelRequest,
    ModelResponse,
    TracePolicy,
)

__all__ = ["TodoGateMiddleware"]


# deepagents sets this key in the state of a subagent with `"mode": "fork"`, which starts with a
# copy of its parent's state. `tests/test_deepagents.py` runs such a subagent.
_FORKED = "_deepagents_forked_context"
_OF_POLICY = {field.name for field in fields(AutoContinue)}


def _without_history(inputs: Any) -> Any:
    """Replace the messages in the traced input of a hook by their number."""
    if not is_mapping(inputs) or "messages" not in inputs:
        return inputs
    return {**inputs, "messages": len(inputs["messages"])}


class TodoMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Add the tools, the state, the system prompt, `model_view` and the loop to `create_agent`.

    It replaces LangChain's `TodoListMiddleware` and has the same `name`, so `create_agent` refuses
    both in one list. List it last: hooks of other middleware after the agent then run only once.

    Args:
        limits: The limits for lists that the model writes.
        policy: The settings of the loop, or a function that takes LangGraph's `Runtime` and returns
            them; it is called at each decision. `None` turns the loop off.
        system_prompt: A text to append to the agent's system prompt; `None` appends nothing.
        view: A function from the state to the messages for the model; `None` sends the history
            unchanged.
        fold_finished: Whether the prompt leaves out the calls and results of finished items; see
            `model_view`. The system prompt then says so.
        todos_format: `"langchain"` for clients made for LangChain's own todos, such as
            deep-agents-ui.
        descriptions: Other descriptions of the tools for the model, by tool name.
        check: A function that returns the reason why an item is not done; see `create_todo_tools`.

    Raises:
        TypeError: An argument has the wrong type or belongs to the policy.
        ValueError: `todos_format` is unknown, `descriptions` is invalid, or `view` does not fit
            another setting.

    Example:
        ```python
        agent = create_agent(model, tools=[], middleware=[TodoMiddleware()])
        result = agent.invoke({"messages": [("user", "Plan and do it.")]})
        print(format_todos(result["todos"]), result["todo_outcome"])
        ```
    """

    # Keep traces small: the history does not need another copy for each hook.
    trace_policy = TracePolicy(process_inputs=_without_history)
    # Without it, `stream_events(version="v3")` shows nothing of the list.
    transformers = (CustomTransformer,)

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """Name the place of a setting that belongs to the policy."""
        if moved := [name for name in settings if name in _OF_POLICY]:
            given = ", ".join(f"{name}={settings[name]!r}" for name in moved)
            raise TypeError(f"{cls.__name__} has no {moved[0]}; give policy=AutoContinue({given})")
        return super().__new__(cls)

    def __init__(
        self,
        *,
        limits: TodoLimits = DEFAULT_LIMITS,
        policy: Policy | None = AutoContinue(),
        system_prompt: str | None = TODO_SYSTEM_PROMPT,
        view: ModelView | None = model_view,
        fold_finished: bool = False,
        todos_format: TodosFormat = "todo_tools",
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
        if view is not None and not callable(view):
            raise TypeError(f"view must be a function of the state or None, got {view!r}")
        if system_prompt is not None and not isinstance(system_prompt, str):
            raise TypeError(f"system_prompt must be a string or None, got {system_prompt!r}")
        if not isinstance(fold_finished, bool):  # a text such as "no" would count as true
            raise TypeError(f"fold_finished must be True or False, got {fold_finished!r}")
        if fold_finished and view is not model_view:
            raise ValueError(
                "fold_finished=True needs the default view; pass "
                "view=partial(model_view, fold_finished=True) or a view that folds itself"
            )
        require_format(todos_format)
        self._tool_settings = (limits, descriptions, check)
        self.tools = create_todo_tools(limits, descriptions=descriptions, check=check)
        self.state_schema = ClientAgentState if todos_format == "langchain" else TodoAgentState
        self.policy = policy
        added = [system_prompt, TODO_FOLD_PROMPT if fold_finished else None]
        self.system_prompt = "\n\n".join(text for text in added if text) or None
        self.fold_finished = fold_finished
        self.view = view

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Leave out the todo tools, whose schemas are classes that cannot be pickled."""
        return {**vars(self), "tools": [each for each in self.tools if each.name not in TOOLS]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Create the todo tools again; a subclass may have added others."""
        vars(self).update(state)
        limits, descriptions, check = self._tool_settings
        made = create_todo_tools(limits, descriptions=descriptions, check=check)
        self.tools = [*made, *self.tools]

    @property
    @override
    def name(self) -> str:
        """The name of the middleware that this one replaces."""
        return "TodoListMiddleware"

    @override
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Reset the counters after a new user message, and empty the list of a forked subagent."""
        update: dict[str, Any] = {"todos": []} if state.get(_FORKED) else {}
        messages = messages_in(state)
        if not all(message.id for message in messages):
            # deepagents stores `("user", "hi")` without an id, so nothing could be noted there.
            messages = [m if m.id else m.model_copy(update={"id": str(uuid4())}) for m in messages]
            update["messages"] = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages]
        reading = read_messages(messages)
        return {**update, "todo_loop": heard(loop_in(state), reading)}

    @override
    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Do the same as `before_agent`."""
        return self.before_agent(state, runtime)

    @override
    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelCallResult[Any]:
        """Send the view and the system prompt to the model, and record that it answered."""
        prepared, again = self._prepared(request)
        return with_notes(request, again, handler(prepared))

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelCallResult[Any]:
        """Do the same as `wrap_model_call`."""
        prepared, again = self._prepared(request)
        return with_notes(request, again, await handler(prepared))

    @hook_config(can_jump_to=["model"])
    @override
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Send the agent back to work while items are open."""
        if self.policy is None:
            return None
        answer = answered(state, runtime)
        return update_of(answer, end_answer(answer, self.policy))

    @hook_config(can_jump_to=["model"])
    @override
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Do the same as `after_agent`."""
        if self.policy is None:
            return None
        answer = answered(state, runtime)
        return update_of(answer, await aend_answer(answer, self.policy))

    def _prepared(self, request: ModelRequest[Any]) -> tuple[ModelRequest[Any], list[AnyMessage]]:
        """Return the request for the model, and the messages to store again with a note."""
        changes: dict[str, Any] = {}
        again = without_last_notice(messages_in(request.state))
        if self.view:
            # The messages of the request, since other middleware may have changed them.
            state: dict[str, Any] = {**request.state, "messages": request.messages}
            reading = read(state)
            stored = {each.id: each for each in messages_in(request.state)}
            at = newest_place(reading, stored) if needs_block(reading) else None
            if at is not None:
                shown, todos = reading.entries[at], reading.todos or []
                if known := stored.get(shown.stored.id):
                    again.append(with_list(shown.message, known, todos))
                noted_here = with_list(shown.message, shown.stored, todos)
                messages = [noted_here if m is shown.stored else m for m in request.messages]
                state, reading = {**state, "messages": messages}, reading.with_block(at)
            # The reading exists already; `model_view` would read the history again.
            is_ours = self.view is model_view
            changes["messages"] = (
                view_of(reading, fold_finished=self.fold_finished)
                if is_ours
                else list(self.view(state))
            )
        if self.system_prompt:
            given = request.system_message or SystemMessage("")
            changes["system_message"] = extended(given, self.system_prompt)
        return request.override(**changes), again
