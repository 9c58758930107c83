"""The channels in a state class of any kind."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from langgraph.managed import IsLastStep
from pydantic import BaseModel
from typing_extensions import TypedDict

from graphs.until_done import build_graph
from todo_tools import TodoItem
from todo_tools.state import TodoList, TodoLoop, TodoOutcome
from todo_tools.testing import ScriptedChatModel, call, turn


@dataclass
class InputState:
    """As in LangChain's react-agent template."""

    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list[AnyMessage])


@dataclass
class DataclassState(InputState):
    is_last_step: IsLastStep = field(default=False)
    todos: TodoList = field(default_factory=list[TodoItem])
    todo_loop: TodoLoop = field(default_factory=dict)  # type: ignore[assignment]  # no counts yet
    todo_outcome: TodoOutcome = None


class PydanticState(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages]
    todos: TodoList = []
    todo_loop: TodoLoop = {}
    todo_outcome: TodoOutcome = None


class DictState(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    todos: TodoList
    todo_loop: TodoLoop
    todo_outcome: TodoOutcome


PLAN = call("write_todos", mode="replace", todos=["a", "b"])


def built(state: Any, model: ScriptedChatModel) -> Any:
    return build_graph(model, state_schema=state).compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("state", [DataclassState, PydanticState, DictState])
def test_tools_view_and_loop_work_with_it(state: Any) -> None:
    """An agent that stops early is sent back, and the thread has the list."""
    ticks = [turn("", call("edit_todos", action="complete", indices=[at])) for at in (0, 1)]
    model = ScriptedChatModel(script=[turn("", PLAN), ticks[0], "Half.", ticks[1], "Done."])
    graph, config = built(state, model), {"configurable": {"thread_id": "1"}}
    result = graph.invoke({"messages": [HumanMessage("Go.")]}, config)
    assert [todo["status"] for todo in result["todos"]] == ["completed", "completed"]
    assert result["todo_outcome"] == "finished"
    assert any("edit_todos with action" in message.text for message in model.prompts[3])
