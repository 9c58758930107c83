"""`has_worked`: an item is completed only after the call of another tool.

The campaign `checks` compares it with its rule, in random threads.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from graphs.until_done import build_graph
from tests.support import BEGIN, Graph, edits, items, writes
from todo_tools import AutoContinue, TodoItem, TodoMiddleware, TodoState, has_worked
from todo_tools.testing import ScriptedChatModel, call, turn

REASON = "no other tool has worked on it yet; do its work with your other tools first"
ONE_RUN = AutoContinue(max_in_turn=0)


@tool
def shell(command: str) -> str:
    """Run a command."""
    if command == "fail":
        raise ToolException("It failed.")
    return "ok"


shell.handle_tool_error = True


def work(command: str = "make") -> ToolCall:
    return call("shell", command=command)


def hand_built(model: ScriptedChatModel, check: Any = has_worked) -> Graph:
    builder = build_graph(model, [shell], policy=ONE_RUN, check=check)
    return builder.compile(checkpointer=InMemorySaver())


def agent(model: ScriptedChatModel, check: Any = has_worked, others: Any = ()) -> Graph:
    middleware = [*others, TodoMiddleware(policy=ONE_RUN, check=check)]
    return create_agent(model, [shell], middleware=middleware, checkpointer=InMemorySaver())


Build = Callable[..., Graph]
BOTH = pytest.mark.parametrize("build", [hand_built, agent])


class Run(NamedTuple):
    """A run of an agent."""

    turns: list[list[ToolCall]]
    """The calls of each answer; then the model only talks."""
    gift: list[TodoItem] | None = None
    """The list that comes with the user's message."""


def replies(messages: list[BaseMessage], wanted: list[str | None]) -> Iterator[bool]:
    """Whether each of these calls was accepted."""
    found = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
    for call_id in wanted:
        result = found[str(call_id)]
        assert result.status == "success" or REASON in result.text
        yield result.status == "success"


def ticks(graph_of: Callable[[ScriptedChatModel], Graph], *runs: Run) -> list[bool]:
    """Whether each `complete` call of these runs was accepted."""
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    answers = iter([turn("", *calls) for run in runs for calls in [*run.turns, []]])
    graph = graph_of(ScriptedChatModel(script=lambda _: next(answers)))
    for run in runs:
        graph.invoke({**BEGIN, **({"todos": run.gift} if run.gift else {})}, config)
    calls = [each for run in runs for calls in run.turns for each in calls]
    wanted = [each["id"] for each in calls if each["args"].get("action") == "complete"]
    return list(replies(graph.get_state(config).values["messages"], wanted))


def once(build: Build, *turns: list[ToolCall], todos: Any = ("a", "b", "c")) -> list[bool]:
    """Whether the ticks of a single run are accepted."""
    return ticks(build, Run([*turns], items(*todos)))


A_START, A_TICK = edits("start", 0), edits("complete", 0)


@BOTH
class TestExamples:
    @pytest.mark.parametrize(
        ("turns", "accepted"),
        [
            ([[A_START], [work()], [A_TICK]], [True]),
            ([[work()], [A_START], [A_TICK]], [False]),
            ([[A_START], [work()], [edits("start", 1)], [A_TICK]], [True]),
            ([[work()], [edits("complete", 0, 1, 2)]], [False]),
            ([[work()], [A_TICK, edits("complete", 1)]], [True, False]),
            ([[edits("start", 0, 1)], [work()], [edits("complete", 0, 1)]], [True]),
            ([[work("fail")], [A_TICK]], [False]),
            ([[work("fail"), A_TICK]], [True]),  # its result is not known yet
            ([[A_TICK, work()]], [False]),
            ([[work()], [edits("abandon", 1)], [A_TICK]], [False]),
            ([[work()], [writes("x", "y")], [A_TICK]], [False]),
            ([[work()], [writes("x", mode="append")], [A_TICK]], [True]),
        ],
    )
    def test_a_tick_needs_work_since_the_start_the_tick_before_or_the_new_list(
        self, build: Build, turns: list[list[ToolCall]], accepted: list[bool]
    ) -> None:
        assert once(build, *turns) == accepted

    def test_a_list_that_comes_with_a_message_is_a_new_one(self, build: Build) -> None:
        first = Run([[work()], [A_TICK], [work()]], items("a"))
        again = edits("complete", 0)
        assert ticks(build, first, Run([[again]], items("b"))) == [True, False]

    def test_items_with_equal_texts_are_one_item(self, build: Build) -> None:
        starts = [edits("start", 0)], [work()], [edits("start", 1)]
        assert once(build, *starts, [edits("complete", 0)], todos=("a", "a")) == [False]

    def test_the_model_reads_why_a_tick_is_refused(self, build: Build) -> None:
        model = ScriptedChatModel(script=[turn("", edits("complete", 0)), "Done."])
        build(model).invoke({**BEGIN, "todos": items("a")}, {"configurable": {"thread_id": "1"}})
        assert model.prompts[1][-1].text.startswith(f"Error: item 0 is not done: {REASON}")

    def test_a_result_with_another_text_still_counts(self, build: Build) -> None:
        """Other code may shorten the texts of results."""
        config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        done, later = edits("complete", 0), edits("complete", 1)
        script: list[Any] = [
            turn("", work()),
            turn("", done),
            "Rest.",
            turn("", later),
            "Done.",
        ]
        graph = build(ScriptedChatModel(script=script))
        messages = graph.invoke({**BEGIN, "todos": items("a", "b")}, config)["messages"]
        results = [each for each in messages if isinstance(each, ToolMessage)]
        cleared = [each.model_copy(update={"content": "[cleared]"}) for each in results]
        node = "agent" if build is hand_built else "model"
        graph.update_state(config, {"messages": cleared}, as_node=node)
        final = graph.invoke(BEGIN, config)
        assert list(replies(final["messages"], [done["id"], later["id"]])) == [True, False]

    def test_it_can_be_used_in_a_check_of_ones_own(self, build: Build) -> None:
        def check(item: TodoItem, state: Any) -> str | None:
            return has_worked(item, state) or (None if item["text"] == "a" else REASON)

        turns = [work()], [edits("complete", 0)], [work()], [edits("complete", 1)]
        assert once(lambda model: build(model, check), *turns) == [True, False]


class TestPeople:
    """They answer a call in its place."""

    @pytest.mark.parametrize(
        ("decision", "counts"),
        [({"type": "reject"}, False), ({"type": "respond", "message": "Red."}, True)],
    )
    def test_a_rejected_call_is_no_work_and_an_answered_one_is(
        self, decision: dict[str, str], counts: bool, config: RunnableConfig
    ) -> None:
        tick = edits("complete", 0)
        script: list[Any] = [turn("", work()), turn("", tick), "Done.", "Done."]
        allowed: Any = {"shell": {"allowed_decisions": ["reject", "respond"]}}
        asking = HumanInTheLoopMiddleware[Any, Any, Any](allowed)
        graph = agent(ScriptedChatModel(script=script), others=[asking])
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        final = graph.invoke(Command(resume={"decisions": [decision]}), config)
        assert list(replies(final["messages"], [tick["id"]])) == [counts]


class Shorten(AgentMiddleware[Any, Any, Any]):
    """Send only the newest messages, and keep the history."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        at = max(at for at, m in enumerate(request.messages) if not isinstance(m, ToolMessage))
        return handler(request.override(messages=request.messages[at:]))


def test_middleware_that_shortens_the_request_hides_no_new_list() -> None:
    first = Run([[work()], [edits("complete", 0)], [work()]], items("a"))
    second = Run([[edits("complete", 0)]], items("b"))
    assert ticks(lambda model: agent(model, others=[Shorten()]), first, second) == [True, False]


def test_an_agent_that_is_a_node_knows_a_new_list_in_later_runs() -> None:
    """Its private channels are empty in each run; the messages have the notes."""

    def nested(model: ScriptedChatModel) -> Graph:
        middleware = TodoMiddleware(policy=None, check=has_worked)
        builder = StateGraph(TodoState)
        builder.add_node("agent", create_agent(model, [shell], middleware=[middleware]))
        builder.add_edge(START, "agent")
        return builder.compile(checkpointer=InMemorySaver())

    runs = Run([[edits("start", 0)], [work()]], items("b")), Run([], items("a", "c"))
    assert ticks(nested, *runs, Run([[edits("complete", 0)]])) == [False]


def test_what_was_removed_from_the_history_is_not_known(config: RunnableConfig) -> None:
    """An item whose start and work were summarized away needs new work, and then is done."""
    late, again = edits("complete", 0), edits("complete", 0)
    tail = [turn("", call("list_todos")) for _ in range(6)]
    script: list[Any] = [
        turn("", edits("start", 0)),
        turn("", work()),
        *tail,
        turn("", late),
    ]
    model = ScriptedChatModel(script=[*script, turn("", work()), turn("", again), "Done."])
    writer = ScriptedChatModel(script=lambda _: "So far.")
    summary = SummarizationMiddleware(writer, trigger=("messages", 12), keep=("messages", 5))
    graph = agent(model, others=[summary])
    final = graph.invoke({**BEGIN, "todos": items("a")}, config)
    assert list(replies(final["messages"], [late["id"], again["id"]])) == [False, True]


def test_for_a_copy_of_the_item_only_the_history_counts() -> None:
    """A check may be called with any item, also outside the tools."""
    beside = {"messages": [turn("", work(), edits("complete", 0))], "todos": items("a")}
    assert has_worked(items("a")[0], beside) == REASON
