"""A policy that a function chooses for each run, by the run's context."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from graphs.until_done import build_graph
from tests.support import BEGIN, Graph, items, loop_of
from todo_tools import AutoContinue
from todo_tools.middleware import TodoMiddleware
from todo_tools.testing import ScriptedChatModel


class Patience(BaseModel, extra="forbid"):
    """The context of these graphs."""

    times: int = 1
    ask: bool = False


def chosen(runtime: Runtime[Any]) -> AutoContinue:
    patience = runtime.context or Patience()
    return AutoContinue(max_in_turn=patience.times, max_idle=None, ask=patience.ask)


def talker() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda _: "I stop.")


def hand_built(policy: Any = chosen, schema: Any = Patience) -> Graph:
    builder = build_graph(talker(), policy=policy, context_schema=schema)
    return builder.compile(checkpointer=InMemorySaver())


def agent(policy: Any = chosen, schema: Any = Patience) -> Graph:
    middleware = [TodoMiddleware(policy=policy)]
    saver = InMemorySaver()
    return create_agent(talker(), middleware=middleware, context_schema=schema, checkpointer=saver)


BOTH = pytest.mark.parametrize("build", [hand_built, agent])
SEEDED = {**BEGIN, "todos": items("a")}


@BOTH
async def test_each_run_has_its_own_policy(build: Any, config: RunnableConfig) -> None:
    """The last run gives no context, so the function sees none."""
    graph = build()
    graph.invoke(SEEDED, config, context={"times": 2})
    assert loop_of(graph, config)["in_turn"] == 2
    graph.invoke(BEGIN, config, context=Patience(times=0))
    assert loop_of(graph, config)["in_turn"] == 0
    await graph.ainvoke(BEGIN, config, context={"times": 3})
    assert loop_of(graph, config)["in_turn"] == 3
    await graph.ainvoke(BEGIN, config)
    assert loop_of(graph, config)["in_turn"] == 1


@BOTH
def test_a_resumed_run_has_the_context_of_the_resumption(
    build: Any, config: RunnableConfig
) -> None:
    """LangGraph does not store the context."""
    graph = build()
    assert graph.invoke(SEEDED, config, context={"ask": True})["__interrupt__"]
    graph.invoke(Command(resume="yes"), config, context={"times": 2, "ask": False})
    assert loop_of(graph, config)["in_turn"] == 2


@BOTH
def test_a_context_that_the_schema_forbids_is_refused_before_the_run(
    build: Any, config: RunnableConfig
) -> None:
    graph = build()
    for wrong in ({"tines": 2}, {"times": "often"}):
        with pytest.raises(ValidationError, match=next(iter(wrong))):
            graph.invoke(SEEDED, config, context=wrong)
    assert graph.get_state(config).values == {}


@BOTH
def test_without_a_schema_the_function_gets_the_context_as_it_was_given(
    build: Any, config: RunnableConfig
) -> None:
    """LangGraph then checks nothing."""
    seen: list[object] = []

    def policy(runtime: Runtime[Any]) -> AutoContinue:
        seen.append(runtime.context)
        return AutoContinue(max_in_turn=0)

    build(policy, None).invoke(SEEDED, config, context={"anything": 1})
    assert seen == [{"anything": 1}]


@BOTH
def test_a_function_must_return_a_policy(build: Any, config: RunnableConfig) -> None:
    with pytest.raises(TypeError, match="must return an AutoContinue, got None"):
        build(lambda _: None).invoke(SEEDED, config)
