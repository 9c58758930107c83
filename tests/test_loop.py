"""The loop in compiled graphs: routing, ending, waiting, asking."""

import asyncio
import operator
import os
import signal
import threading
import time
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NotRequired, assert_type, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.any_value import AnyValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained, GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.runtime import RunControl
from langgraph.types import Command
from pydantic import BaseModel
from typing_extensions import TypedDict

from graphs.until_done import build_graph
from tests.strategies import edit_calls, write_calls
from tests.support import BEGIN, Graph, edit, items, plan
from tests.waiting import LONG, wait_for
from todo_tools import (
    AutoContinue,
    TodoItem,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    model_view,
)
from todo_tools._thread.channels import (
    LoopState,
    fold_todos,
    merge_loop,
)
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_from_user, is_injected

IDLE = ScriptedChatModel(script=lambda _: "I am done, I think.")


def compiled(model: ScriptedChatModel = IDLE, policy: AutoContinue = AutoContinue()) -> Graph:
    return build_graph(model, policy=policy).compile(checkpointer=InMemorySaver())


async def async_policy(_: Any) -> AutoContinue:
    return AutoContinue()


class WithoutBlocks(MessagesState):
    """A state for the tools alone."""

    todos: Annotated[list[TodoItem], fold_todos]
    todo_loop: Annotated[LoopState, merge_loop]


class ModelState(BaseModel):
    """A state that is not a `TypedDict`."""

    messages: Annotated[list[AnyMessage], add_messages] = []
    todos: Annotated[list[TodoItem], fold_todos] = []
    todo_loop: Annotated[LoopState, merge_loop] = {}


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


class TestRouting:
    def test_an_agent_is_continued_until_its_list_is_finished(self, config: RunnableConfig) -> None:
        """It stops too early twice, and reads the next call both times."""
        model = ScriptedChatModel(
            script=[
                plan("a", "b"),
                "I have a plan.",
                edit("complete", 0),
                "Half of it is done.",
                edit("abandon", 1),
                "Here is your answer.",
            ]
        )
        final = compiled(model).invoke(BEGIN, config)
        assert final["messages"][-1].text == "Here is your answer."
        assert final["todo_loop"]["outcome"] == "finished"
        assert final["todo_loop"]["in_turn"] == 2
        assert [message.text[-14:] for message in final["messages"] if is_injected(message)] == [
            "the same turn.",
            "the same turn.",
        ]

    def test_its_edges_are_labelled(self) -> None:
        """A picture of the graph says when each edge is taken."""
        edges = compiled().get_graph().edges
        assert {(edge.source, edge.data, edge.target) for edge in edges if edge.conditional} == {
            ("agent", "calls tools", "tools"),
            ("agent", "stops", "auto_continue"),
            ("auto_continue", "items remain", "agent"),
            ("auto_continue", "ends", "__end__"),
        }

    def test_a_conversation_without_todos_just_ends(self, config: RunnableConfig) -> None:
        """No message is added."""
        final = compiled().invoke({"messages": [("user", "Hello.")]}, config)
        assert [m.type for m in final["messages"]] == ["human", "ai"]
        assert final["todo_loop"]["outcome"] == "no_todos"

    def test_an_edit_after_a_continuation_does_not_end_the_run(
        self, config: RunnableConfig
    ) -> None:
        """An application may edit the list between two steps."""
        graph = compiled(policy=AutoContinue(max_idle=None, max_in_a_row=1))
        graph.invoke(begin("a"), config, interrupt_after=["auto_continue"])
        graph.update_state(config, {"todos": items("a", "b")})
        assert graph.get_state(config).next == ("agent",)
        final = graph.invoke(None, config)
        assert final["todo_loop"]["outcome"] == "limit_in_a_row"

    def test_the_builder_keeps_its_types(self) -> None:
        """A type checker knows the state of the returned builder."""
        given = StateGraph(TodoState)
        given.add_node("agent", lambda _: {"messages": [AIMessage("Done.")]})
        builder = add_auto_continue(given)
        assert assert_type(builder, "StateGraph[TodoState, None, TodoState, TodoState]") is given

    def test_the_end_can_be_another_node(self, config: RunnableConfig) -> None:
        builder = StateGraph(TodoState)
        builder.add_node("agent", lambda _: {"messages": [AIMessage("Done.")]})
        builder.add_node("tools", ToolNode(create_todo_tools()))
        builder.add_node("report", lambda _: {"messages": [AIMessage("Reported.")]})
        builder.add_edge(START, "agent")
        add_auto_continue(builder, node="loop", end="report")
        final = builder.compile().invoke({"messages": [HumanMessage("Hello.")]}, config)
        assert final["messages"][-1].text == "Reported."

    @pytest.mark.parametrize("form", [list, lambda answers: answers[0]])
    def test_a_node_before_the_agent_may_prepare_its_prompt(
        self, form: Any, config: RunnableConfig
    ) -> None:
        """The agent reads that prompt only, and the loop sends it back through that node."""

        script: Any = [edit("complete", 0), "One done.", edit("complete", 1), "Both done."]
        model = ScriptedChatModel(script=script)

        def agent(state: Prompt) -> Any:
            return Command(update={"messages": form([model.invoke(state["prompt"])])})

        builder: Any = StateGraph(PromptState)
        builder.add_node("prepare", lambda state: {"prompt": model_view(state)})
        builder.add_node("agent", agent)
        builder.add_node("tools", ToolNode(create_todo_tools()))
        builder.add_edge(START, "prepare").add_edge("prepare", "agent").add_edge("tools", "prepare")
        graph: Graph = add_auto_continue(builder, entry="prepare").compile()
        final = graph.invoke(begin("a", "b"), config)
        assert final["todo_loop"]["outcome"] == "finished"
        assert is_injected(model.prompts[2][-1])

    async def test_a_change_of_the_state_before_the_tools_makes_no_other_way(
        self, config: RunnableConfig
    ) -> None:
        """LangGraph asks the edge again, which reads the whole state for an agent without it."""

        def agent(_: Prompt) -> Any:
            return {"messages": [plan("a")]}

        builder: Any = StateGraph(PromptState)
        builder.add_node("agent", agent).add_edge(START, "agent")
        builder.add_node("tools", ToolNode(create_todo_tools()))
        add_auto_continue(builder)
        graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["tools"])
        await graph.ainvoke(BEGIN, config)
        await graph.aupdate_state(config, {"prompt": []})
        assert (await graph.aget_state(config)).next == ("tools",)

    def test_a_state_of_the_library_may_be_an_output_schema(self) -> None:
        """LangGraph does not allow managed values there, so the states have none."""

        class State(TodoState):
            extra: str

        builder = StateGraph(State, input_schema=TodoState, output_schema=TodoState)
        builder.add_node("agent", lambda _: {"messages": [AIMessage("Hi.")]})
        builder.add_node("tools", ToolNode(create_todo_tools()))
        builder.add_edge(START, "agent")
        graph: Graph = add_auto_continue(builder).compile()
        assert graph.invoke(BEGIN)["todo_loop"]["outcome"] == "no_todos"

    async def test_it_works_asynchronously(self, config: RunnableConfig) -> None:
        policy = AutoContinue(max_idle=None, max_in_a_row=2)
        final = await compiled(policy=policy).ainvoke(begin("a"), config)
        assert final["todo_loop"]["outcome"] == "limit_in_a_row"

    @pytest.mark.parametrize(
        ("state", "missing"),
        [(MessagesState, "todo_blocks, todo_loop, todos"), (WithoutBlocks, "todo_blocks")],
    )
    def test_a_state_without_the_channels_is_refused_at_build_time(
        self, state: type[Any], missing: str
    ) -> None:
        """The error says what is missing and what to do."""
        with pytest.raises(ValueError, match=rf"lacks {missing}; .* StateGraph\(TodoState\)"):
            add_auto_continue(StateGraph(state))

    def test_channels_that_only_the_input_of_a_node_or_of_the_graph_has_are_too_few(self) -> None:
        """The nodes of the loop read the state of the graph."""

        def agent(state: TodoState) -> dict[str, Any]:
            return {"messages": [AIMessage("Hi.")]}

        by_node = StateGraph(MessagesState).add_node("agent", agent)
        for builder in (by_node, StateGraph(MessagesState, input_schema=TodoState)):
            with pytest.raises(ValueError, match=r"lacks todo_blocks, .* StateGraph\(TodoState\)"):
                add_auto_continue(builder)

    def test_a_channel_without_a_reducer_is_refused_at_build_time(self) -> None:
        """Such a channel could not fold the tools' operations."""

        class Plain(MessagesState):
            todos: list[TodoItem]
            todo_loop: dict[str, Any]
            todo_blocks: dict[str, Any]

        with pytest.raises(ValueError, match="no reducer for todos and todo_loop and todo_blocks"):
            add_auto_continue(StateGraph(Plain))

    @pytest.mark.parametrize(
        "reducer",
        [None, operator.add, AnyValue, cast("Any", add_messages)(format="langchain-openai")],
    )
    def test_messages_without_a_reducer_that_replaces_and_keeps_are_refused(
        self, reducer: Any
    ) -> None:
        """The notice would be a second answer, or a continuation would lose its tag."""

        class Added(TodoState):
            messages: Annotated[list[AnyMessage], reducer]

        with pytest.raises(ValueError, match=r"no reducer for messages that .* from TodoState"):
            add_auto_continue(StateGraph(Added))

    def test_a_state_may_be_a_model(self, config: RunnableConfig) -> None:
        """Its channels are the same."""
        model = ScriptedChatModel(script=[plan("a"), "Planned.", edit("complete", 0), "Done."])
        graph = build_graph(model, state_schema=ModelState).compile(checkpointer=InMemorySaver())
        final = graph.invoke(BEGIN, config)
        assert final["todo_loop"]["outcome"] == "finished"
        assert sum(map(is_injected, final["messages"])) == 1

    @pytest.mark.parametrize("wrong", [AutoContinue, None, True, async_policy])
    def test_a_policy_of_another_type_is_refused_at_build_time(self, wrong: Any) -> None:
        """It is easy to pass a class instead of an instance, or an async function."""
        with pytest.raises(TypeError, match="policy must be an AutoContinue or a plain function"):
            add_auto_continue(StateGraph(TodoState), policy=wrong)

    @pytest.mark.parametrize("wrong", [None, compiled()])
    def test_anything_but_a_builder_is_refused_at_build_time(self, wrong: Any) -> None:
        """A compiled graph is easily given instead."""
        with pytest.raises(TypeError, match="must be a StateGraph that is not compiled yet, got"):
            add_auto_continue(wrong)

    @pytest.mark.parametrize("parameter", ["agent", "tools", "node", "end", "entry"])
    def test_a_node_is_given_by_its_name(self, parameter: str) -> None:
        """The function of the node is easily given instead."""
        given: Any = {parameter: len}
        with pytest.raises(TypeError, match=f"{parameter} must be the name of a node"):
            add_auto_continue(StateGraph(TodoState), **given)


def begun(agent: Any, **settings: Any) -> Any:
    """A builder with an agent, which is not in a loop yet."""
    return StateGraph(TodoState).add_node("agent", agent, **settings).add_edge(START, "agent")


def answer(_: Any) -> dict[str, Any]:
    return {"messages": [AIMessage("Done.")]}


def review(_: Any) -> Command[Literal["tools", "__end__"]]:
    return Command(goto="tools")


def test_a_history_without_a_message_keeps_its_continuation(config: RunnableConfig) -> None:
    """There is no message beside which it could be kept with `store=False`."""
    policy = AutoContinue(max_idle=1, store=False)
    builder = begun(lambda _: None).add_node("tools", ToolNode(create_todo_tools()))
    graph: Graph = add_auto_continue(builder, policy=policy).compile()
    final = graph.invoke({"messages": [], "todos": items("a")}, config)
    assert list(map(is_injected, final["messages"])) == [True]


class TestRoutesOfTheAgent:
    """LangGraph follows every route of a node, so the loop must be the only choice."""

    @pytest.mark.parametrize("ends", [["review", "tools"], {"ask": "review"}, [END], None])
    def test_another_conditional_edge_is_refused_at_build_time(self, ends: Any) -> None:
        """Otherwise the tools would run while a person is asked to approve their calls."""
        builder = begun(answer).add_conditional_edges("agent", lambda _: "review", ends)
        self.check_refused(builder)

    def test_so_is_tools_condition(self) -> None:
        """The loop has the same edge."""
        self.check_refused(begun(answer).add_conditional_edges("agent", tools_condition))

    def test_so_is_a_command_of_the_agent(self) -> None:
        self.check_refused(begun(review))
        self.check_refused(begun(answer, destinations={"bob": "hands over"}))

    def check_refused(self, builder: Any) -> None:
        with pytest.raises(ValueError, match=r"the node 'agent' lead to .* remove them"):
            add_auto_continue(builder)

    def test_so_is_one_of_the_node_before_the_agent(self) -> None:
        """It leads to that node by a plain edge, and to the tools."""
        builder = begun(answer).add_node("redact", answer).add_edge("agent", "redact")
        builder.add_conditional_edges("agent", tools_condition)
        with pytest.raises(
            ValueError, match=r"the node 'agent' lead to tools, .* calls of 'redact'"
        ):
            add_auto_continue(builder, agent="redact", entry="agent")

    @pytest.mark.parametrize(
        "edges",
        [
            [("agent", "review")],
            [("agent", "log"), ("log", "review")],
            [(["agent", "log"], "review")],
            [("agent", "log"), ("log", "tools")],
            [("agent", "unknown")],
            [("agent", "other tools")],
        ],
    )
    def test_a_plain_edge_that_may_lead_to_the_tools_is_refused(self, edges: Any) -> None:
        builder = begun(answer).add_node("review", review).add_node("log", lambda _: None)
        builder.add_node("unknown", lambda _: None).add_node("other tools", ToolNode([]))
        builder.add_conditional_edges("unknown", lambda _: "tools")  # it does not say where
        for start, end in edges:
            builder.add_edge(start, end)
        with pytest.raises(ValueError, match=r"the node 'agent' lead to .* remove them"):
            add_auto_continue(builder)

    def test_other_plain_edges_may_stay(self) -> None:
        """Such a node runs beside the tools and the loop, and may choose among others."""
        builder = begun(answer).add_edge("agent", END).add_edge("tools", "agent")
        builder.add_node("tools", ToolNode(create_todo_tools()))
        builder.add_node("log", lambda _: None).add_edge("agent", "log")
        builder.add_conditional_edges("log", lambda _: END, [END, "agent"])
        graph: Graph = add_auto_continue(builder, policy=AutoContinue(max_idle=2)).compile()
        final = graph.invoke(begin("a"))
        assert final["todo_loop"]["outcome"] == "stalled"
        assert sum(map(is_injected, final["messages"])) == 2

    def test_an_agent_that_runs_its_calls_itself_may_leave_one(self) -> None:
        """A call that nobody carried out ends the run: it is for a client, or a limit was met."""
        builder = begun(lambda _: {"messages": [turn("", call("ask_in_browser"))]})
        graph: Graph = add_auto_continue(builder, tools="agent").compile()
        final = graph.invoke(begin("a"))
        assert final["todo_loop"]["outcome"] == "ended_elsewhere"
        assert sum(isinstance(message, AIMessage) for message in final["messages"]) == 1


class TestLimits:
    def test_twenty_continuations_happen_and_the_next_is_refused(
        self, config: RunnableConfig
    ) -> None:
        """This is so for an agent that may only talk; a notice is sent to the stream."""
        graph = compiled(policy=AutoContinue(max_idle=None))
        *_, last = graph.stream(begin("a"), config, stream_mode="custom")
        assert last["outcome"] == "limit_in_a_row"
        assert last["text"].startswith("⚠ Stopped after 20 continuations without progress")
        messages = graph.get_state(config).values["messages"]
        assert sum(map(is_injected, messages)) == 20
        assert sum(isinstance(message, AIMessage) for message in messages) == 21

    def test_progress_resets_one_limit_but_not_the_other(self, config: RunnableConfig) -> None:
        """A model that makes a new plan again and again ends after 100 continuations."""

        def make_a_plan(prompt: list[Any]) -> AIMessage:
            written = sum(message.type == "tool" for message in prompt)
            return turn("Done.") if prompt[-1].type == "tool" else plan(f"plan {written}")

        final = compiled(ScriptedChatModel(script=make_a_plan)).invoke(BEGIN, config)
        assert final["todo_loop"] == {
            "in_a_row": 0,
            "in_turn": 100,
            "idle": 0,
            "user_message": final["messages"][0].id,
            "refused": None,
            "outcome": "limit_in_turn",
        }

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
        assert final["todo_loop"]["outcome"] == "out_of_steps"
        assert "before the recursion limit" in final["messages"][-1].text

    def test_a_key_of_the_same_name_may_be_the_users_own(self, config: RunnableConfig) -> None:
        """For example, the steps of a plan that are left."""

        class PlanState(TodoState):
            remaining_steps: NotRequired[list[str]]

        graph = build_graph(IDLE, policy=AutoContinue(max_idle=1), state_schema=PlanState).compile()
        final = graph.invoke({**begin("a"), "remaining_steps": ["b"]}, config)
        assert final["todo_loop"]["outcome"] == "stalled"

    def test_the_user_resets_both(self, config: RunnableConfig) -> None:
        """A new message after the limit resets the counts."""
        graph = compiled(policy=AutoContinue(max_idle=None, max_in_a_row=3))
        graph.invoke(begin("a"), config)
        again = graph.invoke({"messages": [("user", "Go on.")]}, config)
        assert sum(map(is_injected, again["messages"])) == 6

    def test_a_fork_has_the_counts_of_its_moment(self, config: RunnableConfig) -> None:
        """The counts are checkpointed with the list."""
        graph = compiled(policy=AutoContinue(max_idle=None, max_in_a_row=5))
        graph.invoke(begin("a"), config)
        second = next(
            snapshot
            for snapshot in graph.get_state_history(config)
            if snapshot.values.get("todo_loop", {}).get("in_turn") == 2
        )
        forked = graph.invoke(None, second.config)
        assert forked["todo_loop"]["in_turn"] == 5


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
        assert final["todo_loop"]["outcome"] is not None
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

    def drained(self, config: RunnableConfig, reason: str = "shutdown") -> Graph:
        """A graph whose run gets a drain request in the first second of the countdown."""
        graph, control = compiled(policy=self.LONG), RunControl()
        events = graph.stream(begin("a"), config, stream_mode="custom", control=control)
        assert next(events)["seconds"] == LONG
        control.request_drain(reason)
        with pytest.raises(GraphDrained, match=reason):
            next(events)
        return graph

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
        self.check_interrupted(self.drained(config, "deploy"), config)

    def test_a_drain_request_is_noticed_before_the_second_is_over(
        self, config: RunnableConfig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        graph, control = compiled(policy=self.LONG), RunControl()
        pauses = list[float]()

        def sleep(pause: float) -> None:
            pauses.append(pause)
            wait_for(lambda: control.drain_requested, "the request")

        monkeypatch.setattr("todo_tools._loop.node.time", SimpleNamespace(sleep=sleep))
        events = graph.stream(begin("a"), config, stream_mode="custom", control=control)
        next(events)
        control.request_drain()
        with pytest.raises(GraphDrained):
            next(events)
        assert sum(pauses) < 1

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

    async def test_a_drain_request_sends_no_prompt_asynchronously(
        self, config: RunnableConfig
    ) -> None:
        graph, control = compiled(policy=self.LONG), RunControl()
        events = graph.astream(begin("a"), config, stream_mode="custom", control=control)
        assert (await anext(events))["seconds"] == LONG
        control.request_drain()
        with pytest.raises(GraphDrained):
            await anext(events)
        await asyncio.to_thread(self.check_interrupted, graph, config)

    def test_the_users_next_message_replaces_the_prompt(self, config: RunnableConfig) -> None:
        """The continuation that was about to be sent is dropped."""
        graph = self.drained(config)
        graph.update_state(config, {"todos": []})
        final = graph.invoke({"messages": [("user", "Never mind.")]}, config)
        assert [message.type for message in final["messages"]] == ["human", "ai", "human", "ai"]


class TestAsking:
    POLICY = AutoContinue(max_idle=None, max_in_a_row=3, ask=True)

    def asked(self, config: RunnableConfig) -> Graph:
        graph = compiled(policy=self.POLICY)
        result = graph.invoke(begin("a"), config)
        (question,) = result["__interrupt__"]
        assert question.value["type"] == "todo_continue"
        assert question.value["todos"] == items("a")
        assert question.value["status"] == "📋 0/1"
        return graph

    @pytest.mark.parametrize("yes", [True, "yes"])
    def test_yes_continues(self, config: RunnableConfig, yes: object) -> None:
        """The agent continues once; then the loop asks again."""
        result = self.asked(config).invoke(Command(resume=yes), config)
        assert sum(map(is_injected, result["messages"])) == 1
        assert result["__interrupt__"]

    @pytest.mark.parametrize("no", [False, "no"])
    def test_no_ends_the_run(self, config: RunnableConfig, no: object) -> None:
        """The outcome is `declined`, and nothing is counted."""
        result = self.asked(config).invoke(Command(resume=no), config)
        assert result["todo_loop"]["outcome"] == "declined"
        assert result["todo_loop"].get("in_turn", 0) == 0
        assert "__interrupt__" not in result

    def test_a_message_becomes_the_users_next(self, config: RunnableConfig) -> None:
        result = self.asked(config).invoke(Command(resume="Only item a, please."), config)
        message = result["messages"][2]
        assert isinstance(message, HumanMessage)
        assert message.text == "Only item a, please."
        assert is_from_user(message)

    def test_the_decisions_of_an_interface_are_understood(self, config: RunnableConfig) -> None:
        """It approves once, then edits the message, which becomes the user's next one."""
        graph = self.asked(config)
        graph.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
        action = {"name": "Items remain. Continue?", "args": {"message": "Tests first."}}
        edited = {"type": "edit", "edited_action": action}
        result = graph.invoke(Command(resume={"decisions": [edited]}), config)
        assert sum(map(is_injected, result["messages"])) == 1
        assert [m.text for m in result["messages"] if is_from_user(m)] == ["Begin.", "Tests first."]

    def test_the_reason_of_a_rejection_is_kept_for_the_next_run(
        self, config: RunnableConfig
    ) -> None:
        """The run ends without another call of the model."""
        graph = self.asked(config)
        rejected = {"type": "reject", "message": "Enough for today."}
        result = graph.invoke(Command(resume={"decisions": [rejected]}), config)
        assert result["todo_loop"]["outcome"] == "declined"
        assert [message.type for message in result["messages"]] == ["human", "ai", "human"]
        assert is_from_user(result["messages"][-1])

    def test_the_question_is_repeated_after_an_unusable_answer(
        self, config: RunnableConfig
    ) -> None:
        """It is repeated as often as needed, and nothing is decided meanwhile."""
        graph = self.asked(config)
        for answer in ({"decisions": [{"type": "maybe"}]}, ""):
            (question,) = graph.invoke(Command(resume=answer), config)["__interrupt__"]
            assert question.value["question"].startswith("That could not be read.")
            assert '"approve" | "reject"' in question.value["action_requests"][0]["description"]
        assert graph.invoke(Command(resume=False), config)["todo_loop"]["outcome"] == "declined"

    async def test_it_asks_asynchronously(self, config: RunnableConfig) -> None:
        graph = compiled(policy=self.POLICY)
        await graph.ainvoke(begin("a"), config)
        result = await graph.ainvoke(Command(resume="no"), config)
        assert result["todo_loop"]["outcome"] == "declined"
