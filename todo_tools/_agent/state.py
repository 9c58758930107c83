"""The state of an agent with the middleware."""

from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langgraph.managed.is_last_step import RemainingStepsManager

from todo_tools._thread.channels import LoopState, merge_loop
from todo_tools._thread.state import ClientTodoList, TodoList, TodoOutcome


class TodoAgentState(AgentState[Any]):
    """LangChain's agent state with the channels of `TodoState`.

    To add channels in a subclass of `TodoMiddleware`, derive from it and set `self.state_schema`.
    The counters are no input or output, so a parent agent and its subagents never share them.
    """

    todos: NotRequired[TodoList]
    """The list; seed and edit it as in `TodoState`."""
    todo_loop: NotRequired[Annotated[LoopState, PrivateStateAttr, merge_loop]]
    """The counters of the loop."""
    todo_outcome: NotRequired[TodoOutcome]
    """Why the loop of the last run stopped."""
    remaining_steps: NotRequired[Annotated[int, PrivateStateAttr, RemainingStepsManager]]
    """The number of steps until the run reaches LangGraph's `recursion_limit`."""


class ClientAgentState(AgentState[Any]):
    """LangChain's agent state with the channels of `ClientTodoState`."""

    todos: NotRequired[ClientTodoList]
    todo_loop: NotRequired[Annotated[LoopState, PrivateStateAttr, merge_loop]]
    todo_outcome: NotRequired[TodoOutcome]
    remaining_steps: NotRequired[Annotated[int, PrivateStateAttr, RemainingStepsManager]]
