"""`todo_outcome`: why the loop of the last run stopped."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from graphs.until_done import build_graph
from todo_tools import (
    TodoMiddleware,
    TodoState,
)
from todo_tools.testing import ScriptedChatModel, call, turn

DONE = turn(
    "",
    call("write_todos", mode="replace", todos=["a"]),
    call("edit_todos", action="complete", indices=[0]),
)


@tool
def ask() -> str:
    """Ask the user."""
    return str(interrupt("What?"))


def agent_of(door: str, script: list[Any], saver: InMemorySaver | None = None) -> Any:
    model = ScriptedChatModel(script=script)
    if door == "hand_built":
        return build_graph(model, [ask]).compile(checkpointer=saver)
    return create_agent(model, [ask], middleware=[TodoMiddleware()], checkpointer=saver)


BOTH = pytest.mark.parametrize("door", ["hand_built", "create_agent"])
CONFIG: Any = {"configurable": {"thread_id": "1"}}


def say(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


@BOTH
def test_a_run_that_begins_forgets_the_outcome_of_the_run_before(door: str) -> None:
    """So a run that waits for a person has none yet."""
    graph = agent_of(door, [DONE, "Done.", turn("", call("ask")), "Thanks."], InMemorySaver())
    assert graph.invoke(say("Go."), CONFIG)["todo_outcome"] == "finished"
    assert graph.invoke(say("Ask me."), CONFIG)["todo_outcome"] is None
    assert graph.get_state(CONFIG).values["todo_outcome"] is None
    assert graph.invoke(Command(resume="Yes."), CONFIG)["todo_outcome"] == "finished"


@BOTH
def test_a_failed_run_has_no_outcome(door: str) -> None:
    graph = agent_of(door, [DONE, "Done."], InMemorySaver())
    graph.invoke(say("Go."), CONFIG)
    with pytest.raises(ValueError, match="script"):
        graph.invoke(say("Again."), CONFIG)
    assert graph.get_state(CONFIG).values["todo_outcome"] is None


@BOTH
def test_a_fork_has_the_outcome_of_its_own_run(door: str) -> None:
    graph = agent_of(door, [DONE, "Done.", "Hello."], InMemorySaver())
    graph.invoke(say("Go."), CONFIG)
    first = [*graph.get_state_history(CONFIG)][-1]
    assert graph.invoke(say("Hi."), first.config)["todo_outcome"] == "no_todos"


@BOTH
def test_an_edit_of_a_thread_that_has_ended_leaves_it_ended(door: str) -> None:
    """The outcome is that of the last run, so an edit has none."""
    graph = agent_of(door, [DONE, "Done."], InMemorySaver())
    graph.invoke(say("Go."), CONFIG)
    graph.update_state(CONFIG, {"todos": [{"text": "b", "status": "not_started"}]})
    assert graph.get_state(CONFIG).next == ()


def test_nodes_after_the_loop_keep_it_also_tasks_that_they_send() -> None:
    model = ScriptedChatModel(script=[DONE, "Done."])
    builder = StateGraph(TodoState)
    builder.add_node("team", build_graph(model).compile())
    builder.add_node("fan_out", lambda _: {})
    builder.add_node("report", lambda _: {})
    builder.add_edge(START, "team")
    builder.add_edge("team", "fan_out")
    builder.add_conditional_edges("fan_out", lambda _: [Send("report", {}), Send("report", {})])
    result = builder.compile(checkpointer=InMemorySaver()).invoke(say("Go."), CONFIG)
    assert result["todo_outcome"] == "finished"


def test_two_subagents_of_one_step_do_not_collide() -> None:
    """The last write wins."""
    builder = StateGraph(TodoState)
    for name in ("one", "two"):
        model = ScriptedChatModel(script=["Hello."])
        builder.add_node(name, create_agent(model, middleware=[TodoMiddleware()]))
        builder.add_edge(START, name)
    assert builder.compile().invoke(say("Go."))["todo_outcome"] == "no_todos"


def test_the_counters_of_a_subagent_are_not_its_parents() -> None:
    """They are neither input nor output of an agent with the middleware."""
    inner = create_agent(ScriptedChatModel(script=[DONE, "Done."]), middleware=[TodoMiddleware()])
    result = inner.invoke(say("Go."))
    assert "todo_loop" not in result
    assert result["todo_outcome"] == "finished"
