"""Which messages count as the user's and reset the limits, in both kinds of graph."""

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from tests.support import BEGIN, Graph, items, loop_of, outcome_of
from todo_tools import (
    AutoContinue,
    TodoMiddleware,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    model_view,
)
from todo_tools._thread.transcript import is_injected
from todo_tools.testing import ScriptedChatModel, call, turn

SEEDED: dict[str, Any] = {**BEGIN, "todos": items("a")}
MORE: dict[str, Any] = {"messages": [("user", "Go on.")]}
FEW = AutoContinue(max_in_turn=2, max_idle=None)


@tool
def look() -> str:
    """Look around."""
    return "Nothing."


@tool
def ask_first() -> str:
    """Ask a person first."""
    return str(interrupt("May I?"))


@tool
def cancel() -> str:
    """End the run."""
    raise KeyboardInterrupt


TOOLS = [look, ask_first, cancel]
Added = list[Any]
Build = Callable[..., Graph]


def context(*, tagged: bool) -> Added:
    """A human message that the application adds before each call of the model."""
    kwargs = {"additional_kwargs": {"lc_source": "clock"}} if tagged else {}
    return [HumanMessage("The time is 12:00.", **kwargs)]


def summary(*, tagged: bool) -> Added:
    """A human message that replaces the whole history before each call of the model."""
    return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *context(tagged=tagged)]


def nothing(*, tagged: bool) -> Added:
    return []


def hand_built(
    model: ScriptedChatModel, policy: AutoContinue, adds: Callable[..., Added] = nothing
) -> Graph:
    """A graph that tags the messages that it adds."""

    def answer(state: TodoState) -> dict[str, Any]:
        return {"messages": [*adds(tagged=True), model.invoke(model_view(state))]}

    builder = StateGraph(TodoState)
    builder.add_node("agent", answer)
    builder.add_node("tools", ToolNode([*create_todo_tools(), *TOOLS]))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    add_auto_continue(builder, policy=policy)
    return builder.compile(checkpointer=InMemorySaver())


def with_middleware(
    model: ScriptedChatModel, policy: AutoContinue, adds: Callable[..., Added] = nothing
) -> Graph:
    """An agent with another middleware, which does not tag the messages that it adds."""

    class Adding(AgentMiddleware[Any, Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {"messages": adds(tagged=False)}

    middleware: list[Any] = [TodoMiddleware(policy=policy), Adding()]
    return create_agent(model, TOOLS, middleware=middleware, checkpointer=InMemorySaver())


BUILDS = [hand_built, with_middleware]


@pytest.fixture(params=BUILDS)
def build(request: pytest.FixtureRequest) -> Build:
    built: Build = request.param
    return built


def talks_after(*first: AIMessage) -> ScriptedChatModel:
    """A model that gives some answers and then only talks."""
    answers: Iterator[AIMessage | str] = chain(first, repeat("I stop here."))
    return ScriptedChatModel(script=lambda _: next(answers))


def ended(graph: Graph, config: RunnableConfig) -> str | None:
    return outcome_of(graph.get_state(config).values)


def continuations(graph: Graph, config: RunnableConfig) -> int:
    return sum(map(is_injected, graph.get_state(config).values["messages"]))


class TestTheUser:
    def test_a_message_after_a_cancelled_run_counts(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """An earlier run had used up the limit."""
        talk = turn("I stop.")
        graph = build(talks_after(talk, talk, talk, turn("", call("cancel"))), FEW)
        graph.invoke(SEEDED, config)
        with pytest.raises(KeyboardInterrupt):
            graph.invoke(MORE, config)
        graph.invoke(MORE, config)
        assert continuations(graph, config) == 4

    def test_the_answer_to_the_question_of_the_loop_counts(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """It counts if it is a message; a yes does not."""
        graph = build(talks_after(), AutoContinue(max_in_turn=1, max_idle=None, ask=True))
        graph.invoke(SEEDED, config)
        assert graph.invoke(Command(resume="Only a, please."), config)["__interrupt__"]
        graph.invoke(Command(resume="yes"), config)
        assert ended(graph, config) == "limit_in_turn"
        assert continuations(graph, config) == 1

    def test_a_message_after_the_last_answer_is_never_followed_by_a_continuation(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """A person writes at a breakpoint before the loop decides."""
        graph = build(talks_after(turn("", call("look"))), AutoContinue(max_idle=None))
        loops = ["auto_continue", "TodoListMiddleware.after_agent"]
        graph.invoke(SEEDED, config, interrupt_before=loops)
        graph.update_state(config, {"messages": [HumanMessage("Stop!")]})
        assert graph.invoke(None, config)["messages"][-1].text == "Stop!"
        assert ended(graph, config) == "answered"


class TestOthers:
    def test_resuming_a_run_is_no_message(self, build: Build, config: RunnableConfig) -> None:
        """The run was interrupted by a tool after it had used up the limit."""
        talk = turn("I stop.")
        graph = build(talks_after(talk, talk, turn("", call("ask_first"))), FEW)
        graph.invoke(SEEDED, config)
        graph.invoke(Command(resume="Yes."), config)
        assert continuations(graph, config) == 2
        assert ended(graph, config) == "limit_in_turn"

    @pytest.mark.parametrize("adds", [context, summary])
    def test_what_is_added_during_a_run_is_not_the_users(
        self, build: Build, config: RunnableConfig, adds: Any
    ) -> None:
        """Also after a result. Not even a summary, which removes the user's own message."""
        model = talks_after(turn("", call("look")))
        graph = build(model, AutoContinue(max_in_turn=4, max_idle=None), adds)
        for given_input in (SEEDED, MORE):
            graph.invoke(given_input, config)
            assert loop_of(graph, config)["in_turn"] == 4
