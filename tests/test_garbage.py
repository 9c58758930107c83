"""What a client writes into the channels of the loop, which only the loop and the tools write."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs.until_done import build_graph
from tests.support import Graph, checklist, items, outcome_of
from todo_tools import DeltaTodoState, TodoMiddleware, TodoState
from todo_tools.testing import checklist_model


def hand_built(state: type[Any]) -> Graph:
    builder = build_graph(checklist_model(rest_after=1), state_schema=state)
    return builder.compile(checkpointer=InMemorySaver())


def plain() -> Graph:
    return hand_built(TodoState)


def delta() -> Graph:
    return hand_built(DeltaTodoState)


def agent() -> Graph:
    middleware = [TodoMiddleware()]
    model = checklist_model(rest_after=1)
    return create_agent(model, middleware=middleware, checkpointer=InMemorySaver())


GRAPHS = pytest.mark.parametrize("build", [plain, delta, agent])
GARBAGE: list[Any] = [
    *("x", 5, [1], {"in_turn": "9"}, {"in_turn": -1}, {"user_message": 5}, {"new": 1}),
    {"idle": None},
]

refused = pytest.raises(ValueError, match="validation error for LoopState")


def work(graph: Graph, config: RunnableConfig, *steps: str) -> None:
    """Let the agent work through two new steps; it is sent back to work on the way."""
    graph.invoke({"messages": [("user", checklist(*steps))]}, config)
    values = graph.get_state(config).values
    assert values["todos"] == items(*steps, status="completed")
    assert outcome_of(values) == "finished"
    assert values["todo_loop"]["in_turn"] == 1


class TestRefused:
    """The error names the counters, and the thread can be used as before."""

    @GRAPHS
    def test_in_a_later_update(self, build: Callable[[], Graph], config: RunnableConfig) -> None:
        graph = build()
        work(graph, config, "a", "b")
        before = graph.get_state(config).values
        for garbage in GARBAGE:
            with refused:
                graph.update_state(config, {"todo_loop": garbage})
        assert graph.get_state(config).values == before
        work(graph, config, "c", "d")


def test_an_agent_ignores_it_in_its_input(config: RunnableConfig) -> None:
    """The channel is private, so LangGraph drops it, also in the first update of a thread."""
    graph = agent()
    for garbage in GARBAGE:
        graph.update_state(config, {"todo_loop": garbage})
    assert not graph.get_state(config).values.get("todo_loop")
    final = graph.invoke({"messages": [("user", checklist("a"))], "todo_loop": "x"}, config)
    assert final["todos"] == items("a", status="completed")
