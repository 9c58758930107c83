"""What a client writes into the channels of the loop, which only the loop and the tools write."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs.until_done import build_graph
from tests.support import Graph, checklist, items, outcome_of
from todo_tools import DeltaTodoState, TodoMiddleware, TodoState
from todo_tools.testing import checklist_model


def hand_built(state: Any = TodoState) -> Graph:
    builder = build_graph(checklist_model(rest_after=1), state_schema=state)
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


@pytest.mark.parametrize("build", [hand_built, partial(hand_built, DeltaTodoState), agent])
def test_a_record_of_the_loop_that_was_overwritten_counts_as_none(
    build: Callable[[], Graph], config: RunnableConfig
) -> None:
    """LangGraph's `Overwrite`, which clients send as JSON, bypasses the reducers."""
    graph = build()
    for number, garbage in enumerate(GARBAGE):
        graph.update_state(config, {"todo_loop": {"__overwrite__": garbage}})
        steps = [f"a{number}", f"b{number}"]
        graph.invoke({"messages": [("user", checklist(*steps))]}, config)
        values = graph.get_state(config).values
        assert values["todos"] == items(*steps, status="completed")
        assert outcome_of(values) == "finished"
        assert values["todo_loop"]["in_turn"] == 1
