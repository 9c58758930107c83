"""The loop in compiled graphs: routing, ending, waiting, asking."""

import asyncio
import os
import signal
import threading
import time
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained, GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import RunControl
from langgraph.types import Command
from typing_extensions import TypedDict

from graphs.until_done import build_graph
from tests.strategies import edit_calls, write_calls
from tests.support import BEGIN, Graph, edit, items, outcome_of, plan
from tests.waiting import LONG, wait_for
from todo_tools import (
    AutoContinue,
    TodoItem,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    model_view,
)
from todo_tools._thread.transcript import is_injected
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_from_user

IDLE = ScriptedChatModel(script=lambda _: "I am done, I think.")


def compiled(model: ScriptedChatModel = IDLE, policy: AutoContinue = AutoContinue()) -> Graph:
    return build_graph(model, policy=policy).compile(checkpointer=InMemorySaver())


class CountedState(TodoState):
    """A state that knows the steps until the recursion limit."""

    remaining_steps: RemainingSteps


class Prompt(TypedDict):
    """The input of an agent that does not read the state."""

    prompt: list[AnyMessage]


class PromptState(TodoState, Prompt):
    """The state of its graph."""


def begin(*texts: str) -> dict[str, Any]:
    """A user message with a seeded list."""
    return {**BEGIN, "todos": items(*texts)}


def begun(agent: Any, **settings: Any) -> Any:
    """A builder with an agent and its tools, which is not in a loop yet."""
    builder = StateGraph(TodoState).add_node("agent", agent, **settings).add_edge(START, "agent")
    builder.add_node("tools", ToolNode(create_todo_tools())).add_edge("tools", "agent")
    return builder


def answer(_: Any) -> dict[str, Any]:
    return {"messages": [AIMessage("Done.")]}


def review(_: Any) -> Command[Literal["tools", "__end__"]]:
    return Command(goto="tools")


class TestRouting:
    def test_an_edit_after_a_continuation_does_not_end_the_run(
        self, config: RunnableConfig
    ) -> None:
        """An application may edit the list between two steps."""
        graph = compiled(policy=AutoContinue(max_idle=None, max_in_a_row=1))
        graph.invoke(begin("a"), config, interrupt_after=["auto_continue"])
        graph.update_state(config, {"todos": items("a", "b")})
        assert graph.get_state(config).next == ("agent",)
        final = graph.invoke(None, config)
        assert outcome_of(final) == "limit_in_a_row"
        assert final["todo_loop"]["in_turn"] == 2  # an edited list is progress

    def test_the_end_can_be_another_node(self, config: RunnableConfig) -> None:
        builder = begun(answer)
        builder.add_node("report", lambda _: {"messages": [AIMessage("Reported.")]})
        add_auto_continue(builder, node="loop", end="report")
        final = builder.compile().invoke({"messages": [HumanMessage("Hello.")]}, config)
        assert final["messages"][-1].text == "Reported."

    def test_a_node_before_the_agent_may_prepare_its_prompt(self, config: RunnableConfig) -> None:
        """The agent reads that prompt only, and the loop sends it back through that node."""

        script: Any = [edit("complete", 0), "One done.", edit("complete", 1), "Both done."]
        model = ScriptedChatModel(script=script)

        def agent(state: Prompt) -> Any:
            return Command(update={"messages": [model.invoke(state["prompt"])]})

        builder: Any = StateGraph(PromptState)
        builder.add_node("prepare", lambda state: {"prompt": model_view(state)})
        builder.add_node("agent", agent)
        builder.add_node("tools", ToolNode(create_todo_tools()))
        builder.add_edge(START, "prepare").add_edge("prepare", "agent").add_edge("tools", "prepare")
        graph: Graph = add_auto_continue(builder, entry="prepare").compile()
        final = graph.invoke(begin("a", "b"), config)
        assert outcome_of(final) == "finished"
        assert is_injected(model.prompts[2][-1])

    def test_a_state_without_the_channels_is_refused_at_build_time(self) -> None:
        """The error says what is missing and what to do; the input of a node is no state."""

        def agent(state: TodoState) -> dict[str, Any]:
            return {"messages": [AIMessage("Hi.")]}

        class Plain(MessagesState):
            todos: list[TodoItem]
            todo_loop: dict[str, Any]

        by_node = StateGraph(MessagesState).add_node("agent", agent)
        with_input = StateGraph(MessagesState, input_schema=TodoState)
        for builder in (by_node, with_input, StateGraph(Plain)):
            with pytest.raises(ValueError, match=r"lacks todos, todo_loop") as caught:
                add_auto_continue(builder)
            lines = ("no reducer", "\n    todos: TodoList", "\n    todo_outcome: TodoOutcome")
            assert all(line in str(caught.value) for line in lines)

    @pytest.mark.parametrize("wrong", [None, compiled()])
    def test_anything_but_a_builder_is_refused_at_build_time(self, wrong: Any) -> None:
        """A compiled graph is easily given instead."""
        with pytest.raises(TypeError, match="must be a StateGraph that is not compiled yet, got"):
            add_auto_continue(wrong)

    @pytest.mark.parametrize("parameter", ["agent", "tools"])
    def test_a_node_is_given_by_its_name(self, parameter: str) -> None:
        """The function of the node is easily given instead."""
        given: Any = {parameter: len}
        with pytest.raises(TypeError, match=f"{parameter} must be the name of a node"):
            add_auto_continue(StateGraph(TodoState), **given)


class TestRoutesOfTheAgent:
    """LangGraph follows every route of a node, so the loop must be the only choice."""

    @pytest.mark.parametrize(
        "builder",
        [
            begun(answer).add_conditional_edges("agent", lambda _: "tools", ["tools"]),
            begun(answer).add_conditional_edges("agent", tools_condition),
            begun(answer).add_edge("agent", "tools"),
            begun(review),
            begun(answer, destinations={"tools": "hands over"}),
        ],
        ids=["conditional edge", "tools_condition", "edge to the tools", "command", "destinations"],
    )
    def test_another_route_is_refused_at_build_time(self, builder: Any) -> None:
        """Otherwise the tools would run while a person is asked to approve their calls."""
        with pytest.raises(ValueError, match=r"the node 'agent' already has .* remove it"):
            add_auto_continue(builder)

    @pytest.mark.parametrize("parameter", ["agent", "tools", "entry", "end"])
    def test_a_node_that_does_not_exist_is_refused_at_build_time(self, parameter: str) -> None:
        given: Any = {parameter: "nobody"}
        with pytest.raises(ValueError, match=rf"no node 'nobody'; give {parameter}='agent'"):
            add_auto_continue(begun(answer), **given)

    def test_tools_that_lead_nowhere_are_refused_at_build_time(self) -> None:
        """The run would end after the first call."""
        builder: Any = StateGraph(TodoState)
        builder.add_node("agent", answer).add_edge(START, "agent")
        builder.add_node("tools", ToolNode(create_todo_tools()))
        with pytest.raises(ValueError, match="no edge leads from 'tools' back to the agent"):
            add_auto_continue(builder)

    def test_an_agent_that_runs_its_calls_itself_may_leave_one(self) -> None:
        """A call that nobody carried out ends the run: it is for a client, or a limit was met."""
        builder = begun(lambda _: {"messages": [turn("", call("ask_in_browser"))]})
        graph: Graph = add_auto_continue(builder, tools="agent").compile()
        final = graph.invoke(begin("a"))
        assert outcome_of(final) == "ended_elsewhere"
        assert sum(isinstance(message, AIMessage) for message in final["messages"]) == 1


class TestLimits:
    def test_progress_resets_one_limit_but_not_the_other(self, config: RunnableConfig) -> None:
        """A model that makes a new plan again and again ends after 100 continuations."""

        def make_a_plan(prompt: list[Any]) -> AIMessage:
            written = sum(message.type == "tool" for message in prompt)
            return turn("Done.") if prompt[-1].type == "tool" else plan(f"plan {written}")

        final = compiled(ScriptedChatModel(script=make_a_plan)).invoke(BEGIN, config)
        assert (final["todo_loop"]["in_a_row"], final["todo_loop"]["in_turn"]) == (0, 100)
        assert outcome_of(final) == "limit_in_turn"

    def test_reads_and_refused_calls_are_no_progress(self, config: RunnableConfig) -> None:
        """They leave both counters alone."""
        calls = [call("list_todos"), call("edit_todos", action="start", indices=[9])]
        model = ScriptedChatModel(script=["Hm.", turn("", *calls), *["Hm."] * 9])
        final = compiled(model, AutoContinue(max_idle=None, max_in_a_row=2)).invoke(
            begin("a"), config
        )
        assert final["todo_loop"]["in_a_row"] == final["todo_loop"]["in_turn"] == 2

    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_a_state_with_the_remaining_steps_ends_before_the_recursion_limit(
        self, config: RunnableConfig, form: str
    ) -> None:
        """Without them the loop knows of no limit, and LangGraph raises its error."""
        policy = AutoContinue(max_idle=None)
        near: RunnableConfig = {**config, "recursion_limit": 30}
        unaware = build_graph(IDLE, policy=policy).compile()
        with pytest.raises(GraphRecursionError):
            unaware.invoke(begin("a"), near)
        aware = build_graph(IDLE, policy=policy, state_schema=CountedState).compile()
        state = begin("a")
        final = aware.invoke(state, near) if form == "sync" else await aware.ainvoke(state, near)
        assert outcome_of(final) == "out_of_steps"
        assert "before the recursion limit" in final["messages"][-1].text


turns = st.one_of(
    st.just(turn("I stop here.")),
    st.just(AIMessage("", response_metadata={"finish_reason": "refusal"})),
    st.lists(
        st.builds(lambda args: call("write_todos", **args), write_calls)
        | st.builds(lambda args: call("edit_todos", **args), edit_calls)
        | st.builds(lambda: call("list_todos"))
        | st.builds(lambda: call("no_such_tool")),
        min_size=1,
        max_size=3,
    ).map(lambda calls: turn("", *calls)),
)


policies = st.builds(
    AutoContinue,
    max_in_a_row=st.integers(0, 4),
    max_in_turn=st.integers(0, 6),
    max_idle=st.none() | st.integers(0, 2),
    store=st.booleans(),
)


@given(script=st.lists(turns, max_size=12), policy=policies, messages=st.integers(1, 3))
def test_the_loop_ends_for_every_model(
    script: list[AIMessage], policy: AutoContinue, messages: int
) -> None:
    """It answers without a tool call at most 1 + max_in_turn times for each message.

    This holds whether the continuations are stored in the history or not.
    """
    model = ScriptedChatModel(
        script=lambda prompt: script[len(model.prompts) % len(script)] if script else "Nothing."
    )
    # A model that calls tools forever is stopped by the recursion limit, not by the loop.
    if script and all(answer.tool_calls for answer in script):
        script.append(turn("I stop here."))
    graph = compiled(model, policy)
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    for _ in range(messages):
        final = graph.invoke(begin("a"), config)
        last_word = max(i for i, m in enumerate(final["messages"]) if is_from_user(m))
        answers = [
            message
            for message in final["messages"][last_word:]
            if isinstance(message, AIMessage) and not message.tool_calls
        ]
        assert len(answers) == 1 + final["todo_loop"]["in_turn"] <= 1 + policy.max_in_turn
        assert final["todo_loop"]["in_a_row"] <= policy.max_in_a_row
        assert outcome_of(final) is not None
        assert policy.store or not any(map(is_injected, final["messages"]))


class TestGracePeriod:
    POLICY = AutoContinue(max_idle=None, max_in_a_row=1, grace_seconds=2)
    LONG = AutoContinue(max_idle=None, max_in_a_row=1, grace_seconds=LONG)  # for what interrupts it

    def check_interrupted(self, graph: Graph, config: RunnableConfig) -> None:
        """The thread is at the end of the agent's turn, and can be resumed from there."""
        snapshot = graph.get_state(config)
        assert snapshot.next == ("auto_continue",)
        assert [message.type for message in snapshot.values["messages"]] == ["human", "ai"]
        builder = build_graph(IDLE, policy=AutoContinue(max_idle=None, max_in_a_row=1))
        without_grace = builder.compile(checkpointer=graph.checkpointer)
        assert without_grace.invoke(None, config)["todo_loop"]["in_turn"] == 1

    def test_each_second_is_announced(self, config: RunnableConfig) -> None:
        """The countdown reaches one before the prompt is sent."""
        began = time.monotonic()
        events = list(compiled(policy=self.POLICY).stream(begin("a"), config, stream_mode="custom"))
        assert time.monotonic() - began >= 2
        assert [event["type"] for event in events[:3]] == ["todo_countdown"] * 2 + ["todo_loop"]
        assert events[0] == {
            "type": "todo_countdown",
            "seconds": 2,
            "text": "⏳ Auto-continuing in 2s...",
        }

    def test_ctrl_c_sends_no_prompt(self, config: RunnableConfig) -> None:
        graph = compiled(policy=self.LONG)

        def press_ctrl_c() -> None:
            wait_for(lambda: graph.get_state(config).next == ("auto_continue",), "the countdown")
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=press_ctrl_c).start()
        with pytest.raises(KeyboardInterrupt):
            graph.invoke(begin("a"), config)
        self.check_interrupted(graph, config)

    def test_a_drain_request_sends_no_prompt(self, config: RunnableConfig) -> None:
        graph, control = compiled(policy=self.LONG), RunControl()
        events = graph.stream(begin("a"), config, stream_mode="custom", control=control)
        assert next(events)["seconds"] == LONG
        control.request_drain("deploy")
        began = time.monotonic()
        with pytest.raises(GraphDrained, match="deploy"):
            next(events)
        assert time.monotonic() - began < LONG / 2
        self.check_interrupted(graph, config)

    async def test_a_cancelled_task_sends_no_prompt(self, config: RunnableConfig) -> None:
        """A server cancels a run in this way."""
        graph, counting = compiled(policy=self.LONG), asyncio.Event()

        async def run() -> None:
            async for _ in graph.astream(begin("a"), config, stream_mode="custom"):
                counting.set()

        task = asyncio.create_task(run())
        await counting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(self.check_interrupted, graph, config)


class TestAsking:
    """`tests/test_replies.py` has the replies."""

    POLICY = AutoContinue(max_idle=None, max_in_a_row=3, ask=True)

    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_no_ends_the_run_and_counts_nothing(
        self, config: RunnableConfig, form: str
    ) -> None:
        graph = compiled(policy=self.POLICY)
        if form == "sync":
            graph.invoke(begin("a"), config)
            result = graph.invoke(Command(resume="no"), config)
        else:
            await graph.ainvoke(begin("a"), config)
            result = await graph.ainvoke(Command(resume="no"), config)
        assert outcome_of(result) == "declined"
        assert result["todo_loop"].get("in_turn", 0) == 0
