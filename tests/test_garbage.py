"""What a client writes into the channels of the loop, which only the loop and the tools write."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs.until_done import build_graph
from tests.support import Graph, checklist, items, outcome_of
from todo_tools import TodoMiddleware
from todo_tools.testing import checklist_model


def hand_built() -> Graph:
    builder = build_graph(checklist_model(rest_after=1))
    return builder.compile(checkpointer=InMemorySaver())


def agent() -> Graph:
    middleware = [TodoMiddleware()]
    model = checklist_model(rest_after=1)
    return create_agent(model, middleware=middleware, checkpointer=InMemorySaver())


GARBAGE: list[Any] = [
    *("x", 5, [1], {"in_turn": "9"}, {"in_turn": -1}, {"user_message": 5}, {"new": 1}),
    {"idle": None},
]


def test_an_agent_ignores_it_in_its_input(config: RunnableConfig) -> None:
    """The channel is private, so LangGraph drops it, also in the first update of a thread."""
    graph = agent()
    for garbage in GARBAGE:
        graph.update_state(config, {"todo_loop": garbage})
    assert not graph.get_state(config).values.get("todo_loop")
    final = graph.invoke({"messages": [("user", checklist("a"))], "todo_loop": "x"}, config)
    assert final["todos"] == items("a", status="completed")


def test_a_graph_refuses_it_and_goes_on(config: RunnableConfig) -> None:
    """The error names the counters, and the thread can be used as before."""
    graph = hand_built()
    graph.invoke({"messages": [("user", checklist("a", "b"))]}, config)
    before = graph.get_state(config).values
    for garbage in GARBAGE:
        with pytest.raises(ValueError, match="validation error for LoopState"):
            graph.update_state(config, {"todo_loop": garbage})
    assert graph.get_state(config).values == before
    final = graph.invoke({"messages": [("user", checklist("c", "d"))]}, config)
    assert final["todos"] == items("c", "d", status="completed")
    assert (outcome_of(final), final["todo_loop"]["in_turn"]) == ("finished", 1)
