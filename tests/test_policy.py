"""The settings of the loop, and a function that chooses them for each run by its context."""

import re
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import BaseModel

from graphs.until_done import build_graph
from tests.support import BEGIN, Graph, items, loop_of
from todo_tools import AutoContinue, TodoMiddleware
from todo_tools.testing import ScriptedChatModel


class TestSettings:
    def test_defaults_are_safe(self) -> None:
        """They allow 20 in a row, 100 for one message and none without work; nothing waits."""
        policy = AutoContinue()
        assert (policy.max_in_a_row, policy.max_in_turn, policy.max_idle) == (20, 100, 0)
        assert policy.grace_seconds == 0
        assert not policy.ask

    @pytest.mark.parametrize(
        "wrong",
        [
            *({name: -1} for name in ("max_in_a_row", "max_in_turn", "max_idle", "grace_seconds")),
            {"max_in_a_row": None},
            {"max_in_turn": None},
            *({name: "no"} for name in ("ask", "store", "explain")),
            {"grace_seconds": 86_401},
            {"prompt": " \n"},
            {"prompt": None},
        ],
        ids=str,
    )
    def test_a_wrong_setting_is_refused_by_its_name(self, wrong: dict[str, Any]) -> None:
        """Only `max_idle` can be off, since the other limits guarantee that the loop ends."""
        with pytest.raises(ValueError, match=next(iter(wrong))):
            AutoContinue(**wrong)
        assert AutoContinue(max_idle=None, grace_seconds=86_400).max_idle is None

    def test_asking_and_waiting_exclude_each_other(self) -> None:
        """A question already waits for the user."""
        with pytest.raises(ValueError, match="ask=True already waits for a person"):
            AutoContinue(ask=True, grace_seconds=3)

    def test_a_stop_condition_must_be_a_plain_function(self) -> None:
        """A coroutine would always be true."""

        async def stop(_: Any) -> bool:
            return False

        with pytest.raises(TypeError, match="stop_when must be a plain function"):
            AutoContinue(stop_when=stop)  # type: ignore[arg-type]  # the mistake under test

    def test_a_policy_is_an_instance_or_chosen_by_a_plain_function(self) -> None:
        """A class is easily given instead of an instance, and nothing awaits a coroutine."""

        async def choose(_: Any) -> AutoContinue:
            return AutoContinue()

        told = "^policy must be an AutoContinue or a plain function of the runtime that returns one"
        for wrong in (AutoContinue, choose, True):
            for build in (hand_built, agent):
                with pytest.raises(TypeError, match=f"{told}, got {re.escape(repr(wrong))}$"):
                    build(wrong)


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
def test_a_function_must_return_a_policy(build: Any, config: RunnableConfig) -> None:
    with pytest.raises(TypeError, match="must return an AutoContinue, got None"):
        build(lambda _: None).invoke(SEEDED, config)
