"""Which messages reset the limits of the loop, in both kinds of graph."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.types import Command, interrupt
from todo_tools._loop.speaker import at_first_end, at_start, within_run

from tests.support import BEGIN, Graph, edit, items, loop_of
from todo_tools import (
    AutoContinue,
    TodoState,
    add_auto_continue,
    asks_user,
    create_todo_tools,
    model_view,
)
from todo_tools.middleware import TodoMiddleware
from todo_tools.state import LoopState
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_injected

SEEDED: dict[str, Any] = {**BEGIN, "todos": items("a")}
MORE: dict[str, Any] = {"messages": [("user", "Go on.")]}
FEW = AutoContinue(max_in_turn=2)


@tool
def look(runtime: ToolRuntime) -> Command[Any]:
    """Look at a picture."""
    result = ToolMessage("A picture:", tool_call_id=str(runtime.tool_call_id))
    picture = HumanMessage([{"type": "image", "url": "https://a.b/c.png"}])
    return Command(update={"messages": [result, picture]})


@tool
def ask_first() -> str:
    """Ask a person first."""
    return str(interrupt("May I?"))


@tool
def fail() -> str:
    """End the run."""
    raise KeyboardInterrupt


TOOLS = [look, ask_first, fail]
Build = Callable[..., Graph]


def hand_built(model: ScriptedChatModel, policy: AutoContinue, *, adds: bool = False) -> Graph:
    """A graph that may add a human message before each call of the model."""

    def answer(state: TodoState) -> dict[str, Any]:
        context = [HumanMessage("The time is 12:00.")] if adds else []
        prompt = [*model_view(state), *context]
        return {"messages": [*context, model.invoke(prompt)]}

    builder = StateGraph(TodoState)
    builder.add_node("agent", answer)
    builder.add_node("tools", ToolNode([*create_todo_tools(), *TOOLS]))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    add_auto_continue(builder, policy=policy)
    return builder.compile(checkpointer=InMemorySaver())


class AddsContext(AgentMiddleware[Any, Any, Any]):
    """Adds an untagged human message before each model call."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [HumanMessage("The time is 12:00.")]}


def with_middleware(model: ScriptedChatModel, policy: AutoContinue, *, adds: bool = False) -> Graph:
    middleware: list[Any] = [TodoMiddleware(policy=policy), *([AddsContext()] if adds else [])]
    return create_agent(model, TOOLS, middleware=middleware, checkpointer=InMemorySaver())


@pytest.fixture(params=[hand_built, with_middleware])
def build(request: pytest.FixtureRequest) -> Build:
    built: Build = request.param
    return built


def talks_after(*first: AIMessage | str) -> ScriptedChatModel:
    """A model that gives some answers and then only talks."""
    answers = iter(first)
    return ScriptedChatModel(script=lambda _: next(answers, "I stop here."))


def continuations(graph: Graph, config: RunnableConfig) -> int:
    return sum(map(is_injected, graph.get_state(config).values["messages"]))


class TestIdle:
    @pytest.mark.parametrize(
        "answer",
        [
            "Which colour do you want?",
            "I am blocked: the key is missing.",
            "I wait, as you said.",
            "Here is my analysis; you asked for no more.",
        ],
    )
    def test_an_agent_that_only_talks_is_sent_back_three_times(
        self, build: Build, config: RunnableConfig, answer: str
    ) -> None:
        graph = build(ScriptedChatModel(script=lambda _: answer), AutoContinue())
        *_, last = graph.stream(SEEDED, config, stream_mode="custom")
        assert last["outcome"] == "stalled"
        assert last["text"] == (
            "⚠ Stopped after 3 continuations without a tool call; 1 todo(s) remain. "
            "Send a message to go on."
        )
        assert continuations(graph, config) == 3

    def test_a_question_waits_for_the_user(self, build: Build, config: RunnableConfig) -> None:
        model = ScriptedChatModel(script=["Which colour do you want?"])
        graph = build(model, AutoContinue(stop_when=asks_user))
        graph.invoke(SEEDED, config)
        assert continuations(graph, config) == 0
        assert loop_of(graph, config)["outcome"] == "stop_condition"

    def test_any_tool_call_starts_the_count_again(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Even a failed call counts."""
        talk = turn("I stop here.")
        graph = build(talks_after(talk, talk, turn("", call("no_such_tool"))), AutoContinue())
        graph.invoke(SEEDED, config)
        assert continuations(graph, config) == 5

    def test_without_the_limit_twenty_continuations_happen(
        self, build: Build, config: RunnableConfig
    ) -> None:
        graph = build(talks_after(), AutoContinue(max_idle=None))
        graph.invoke(SEEDED, {**config, "recursion_limit": 200})
        assert continuations(graph, config) == 20
        assert loop_of(graph, config)["outcome"] == "limit_in_a_row"


def broken(text: str = "") -> AIMessage:
    """An answer whose only call has arguments that are not JSON."""
    made = invalid_tool_call(name="look", args="{", id=str(call("look")["id"]), error="no JSON")
    return AIMessage(text, invalid_tool_calls=[made])


class TestBrokenCalls:
    @pytest.mark.parametrize("given", [BEGIN, SEEDED], ids=["no list", "a list"])
    def test_the_model_reads_that_its_call_was_invalid(
        self, build: Build, config: RunnableConfig, given: dict[str, Any]
    ) -> None:
        """It is called again without a continuation message."""
        model = talks_after(broken(), edit("complete", 0))
        build(model, AutoContinue(max_idle=1)).invoke(given, config)
        result = model.prompts[1][-1]
        assert isinstance(result, ToolMessage)
        assert result.status == "error"
        assert "arguments" in result.text

    @pytest.mark.parametrize("given", [BEGIN, SEEDED], ids=["no list", "a list"])
    def test_a_model_that_never_gets_it_right_is_stopped(
        self, build: Build, config: RunnableConfig, given: dict[str, Any]
    ) -> None:
        model = ScriptedChatModel(script=lambda _: broken())
        graph = build(model, AutoContinue())
        graph.invoke(given, config)
        assert len(model.prompts) == 4
        assert loop_of(graph, config)["outcome"] == "stalled"

    def test_an_answer_that_was_cut_off_is_not_repeated(
        self, build: Build, config: RunnableConfig
    ) -> None:
        cut_off = broken()
        cut_off.response_metadata = {"stop_reason": "aborted"}
        graph = build(talks_after(cut_off), AutoContinue())
        graph.invoke(SEEDED, config)
        assert loop_of(graph, config)["outcome"] == "aborted"


class TestWhoHasSpoken:
    def test_a_message_after_an_interrupted_run_counts(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """The run had just used up its limit."""
        graph = build(talks_after(*["I stop."] * 3, turn("", call("fail"))), FEW)
        graph.invoke(SEEDED, config)
        with pytest.raises(KeyboardInterrupt):
            graph.invoke(MORE, config)
        graph.invoke(MORE, config)
        assert continuations(graph, config) == 4

    def test_a_message_after_a_tools_result_counts(
        self, build: Build, config: RunnableConfig
    ) -> None:
        graph = build(talks_after(*["I stop."] * 3), FEW)
        graph.invoke(SEEDED, config)
        ended = [turn("", made := call("ask_first")), _result(made)]
        graph.invoke({"messages": [*ended, HumanMessage("Go on.")]}, config)
        assert continuations(graph, config) == 4

    def test_resuming_without_a_message_resets_nothing(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """A picture that a tool added meanwhile resets nothing either."""
        calls = turn("", call("look"), call("ask_first"))
        graph = build(talks_after(turn("I stop."), turn("I stop."), calls), FEW)
        graph.invoke(SEEDED, config)
        graph.invoke(Command(resume="Yes."), config)
        assert continuations(graph, config) == 2
        assert loop_of(graph, config)["outcome"] == "limit_in_turn"

    def test_a_message_counts_once(self) -> None:
        said = [HumanMessage("Begin.", id="u1"), HumanMessage("Now.", id="u2")]
        begun = at_start({}, said)
        assert begun == {"in_a_row": 0, "in_turn": 0, "idle": 0, "heard": ["u1", "u2"]}
        counted: LoopState = {**begun, "in_turn": 1}
        assert at_start(counted, said) == counted

    def test_what_is_added_before_a_later_stop_is_no_message_of_the_user(self) -> None:
        counted: LoopState = {"in_a_row": 1, "in_turn": 1, "heard": ["u1"]}
        said = [HumanMessage("Begin.", id="u1"), HumanMessage("The time is 12:00.", id="c1")]
        later = within_run(counted, said)
        assert later == {**counted, "heard": ["u1", "c1"]}
        assert at_start(later, said) == later

    def test_what_a_tool_adds_is_no_message_of_the_user_in_a_later_run(self) -> None:
        picture = HumanMessage([{"type": "image", "url": "https://a.b/c.png"}], id="p1")
        begin = HumanMessage("Begin.", id="u1")
        messages = [begin, turn("", made := call("look")), _result(made), picture, turn("Done.")]
        counted: LoopState = {"in_a_row": 1, "in_turn": 1, "heard": ["u1"]}
        later = at_first_end(counted, messages)
        assert later == {**counted, "heard": ["u1", "p1"]}
        assert at_start(later, messages) == later

    def test_an_edited_message_is_not_new(self, build: Build, config: RunnableConfig) -> None:
        said = HumanMessage("Begin.", id="u1")
        graph = build(talks_after(), FEW)
        graph.invoke({"messages": [said], "todos": items("a")}, config)
        graph.invoke({"messages": [HumanMessage("Begin!", id="u1")]}, config)
        assert continuations(graph, config) == 2

    def test_removing_messages_resets_nothing(self, build: Build, config: RunnableConfig) -> None:
        """An older message that becomes the last one is not new."""
        graph = build(talks_after(), FEW)
        graph.invoke({"messages": [HumanMessage("Begin.", id="u1")], "todos": items("a")}, config)
        graph.invoke({"messages": [HumanMessage("Go on.", id="u2")]}, config)
        later = [m.id for m in graph.get_state(config).values["messages"] if m.id != "u1"]
        graph.invoke({"messages": [RemoveMessage(id=str(each)) for each in later]}, config)
        assert continuations(graph, config) == 0
        assert loop_of(graph, config)["outcome"] == "limit_in_turn"

    def test_a_thread_of_the_previous_version_keeps_its_counts(self) -> None:
        """That version recorded only the newest user message; older ones are not new either."""
        old: LoopState = {"in_a_row": 1, "in_turn": 1, "user_message": "u2"}
        said = [HumanMessage("Begin.", id="u1"), HumanMessage("Go on.", id="u2")]
        assert at_start(old, said) == old
        assert at_start(old, [*said, HumanMessage("More.", id="u3")])["in_turn"] == 0


def _result(made: Any) -> ToolMessage:
    return ToolMessage("Yes.", name=made["name"], tool_call_id=made["id"])


turns = st.sampled_from(["talk", "edit", "look", "broken"])


@given(
    script=st.lists(turns, min_size=1, max_size=6),
    build=st.sampled_from([hand_built, with_middleware]),
    in_a_row=st.integers(0, 3),
    in_turn=st.integers(0, 4),
    idle=st.none() | st.integers(0, 3),
)
def test_the_loop_ends_whatever_adds_messages(
    script: list[str], build: Build, in_a_row: int, in_turn: int, idle: int | None
) -> None:
    """The model answers without a tool call at most 1 + max_in_turn times for each message."""
    answers: dict[str, Callable[[], AIMessage]] = {
        "talk": lambda: turn("I stop here."),
        "edit": lambda: edit("start", 0),
        "look": lambda: turn("", call("look")),
        "broken": broken,
    }
    cycle = [*script, "talk"]
    model = ScriptedChatModel(script=lambda _: answers[cycle[len(model.prompts) % len(cycle)]]())
    policy = AutoContinue(max_in_a_row=in_a_row, max_in_turn=in_turn, max_idle=idle)
    graph = build(model, policy, adds=True)
    config: RunnableConfig = {"configurable": {"thread_id": "1"}, "recursion_limit": 500}
    for given_input in (SEEDED, MORE):
        before = _stops(graph, config)
        graph.invoke(given_input, config)
        assert _stops(graph, config) - before <= 1 + in_turn
        assert loop_of(graph, config)["outcome"] is not None


def _stops(graph: Graph, config: RunnableConfig) -> int:
    messages = graph.get_state(config).values.get("messages", [])
    return sum(isinstance(each, AIMessage) and not each.tool_calls for each in messages)


class Summarizes(AgentMiddleware[Any, Any, Any]):
    """Replaces the history by an untagged human message before each model call."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("In short: ...")]}


@pytest.mark.parametrize("by_hand", [True, False])
def test_the_users_own_summarizer_resets_nothing(config: RunnableConfig, *, by_hand: bool) -> None:
    """The loop ends, although the history has no user message any more."""
    policy = AutoContinue(max_in_turn=4, max_idle=None)
    if by_hand:

        def answer(state: TodoState) -> dict[str, Any]:
            messages = Summarizes().before_model(state, None)["messages"]
            return {"messages": [*messages, turn("I stop here.")]}

        builder = StateGraph(TodoState)
        builder.add_node("agent", answer)
        builder.add_node("tools", ToolNode(create_todo_tools()))
        builder.add_edge(START, "agent")
        builder.add_edge("tools", "agent")
        graph: Graph = add_auto_continue(builder, policy=policy).compile(InMemorySaver())
    else:
        middleware: list[Any] = [Summarizes(), TodoMiddleware(policy=policy)]
        graph = create_agent(talks_after(), middleware=middleware, checkpointer=InMemorySaver())
    for given_input in (SEEDED, MORE):
        graph.invoke(given_input, config)
        assert loop_of(graph, config)["in_turn"] == 4


def test_a_middleware_that_adds_human_messages_resets_nothing(
    build: Build, config: RunnableConfig
) -> None:
    """A model that flips a status back and forth is called as often as without it."""
    flips = [edit("start", 0), turn("I stop.")] * 50
    graph = build(talks_after(*flips), AutoContinue(max_in_turn=5), adds=True)
    graph.invoke(SEEDED, {**config, "recursion_limit": 2_000})
    assert continuations(graph, config) == 5
