"""The checkpoints before the items of a list were started, and forks there."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, StateSnapshot, interrupt

from graphs.until_done import build_graph
from tests.support import BEGIN, Graph, edit, items, plan
from tests.test_checkpoints import ASYNC_SAVERS, SAVERS, uri
from todo_tools import (
    AutoContinue,
    DeltaItemsState,
    DeltaTodoState,
    ItemsState,
    TodoMiddleware,
    TodoState,
    aitem_starts,
    create_item_runner,
    item_starts,
)
from todo_tools.clients import ClientTodoState
from todo_tools.operations import set_status
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, turn

__all__ = ["uri"]  # a fixture

ONCE = AutoContinue(max_in_a_row=0)
"""The loop never sends the agent back, so each script is one run."""

AGAIN: dict[str, Any] = {"messages": [("user", "In another way.")]}


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"the content of {path} " * 2000


@tool
def ask(question: str) -> str:
    """Ask a person."""
    return str(interrupt(question))


def edge(state: Any) -> Callable[..., Graph]:
    """A hand-built graph."""

    def build(model: ScriptedChatModel, saver: BaseCheckpointSaver[Any], **options: Any) -> Graph:
        policy = options.get("policy", ONCE)
        builder = build_graph(model, [look, ask], policy=policy, state_schema=state)
        return builder.compile(checkpointer=saver)

    return build


def middleware(state: Any = None, **settings: Any) -> Callable[..., Graph]:
    """An agent of LangChain."""

    def build(model: ScriptedChatModel, saver: BaseCheckpointSaver[Any], **options: Any) -> Graph:
        before = options.pop("before", [])
        todos = TodoMiddleware(**{"policy": ONCE, **settings, **options})
        hooks = [*before, todos]
        return create_agent(
            model, [look, ask], middleware=hooks, state_schema=state, checkpointer=saver
        )

    return build


def deep(model: ScriptedChatModel, saver: BaseCheckpointSaver[Any], **options: Any) -> Graph:
    """An agent of deepagents."""
    before = options.pop("before", [])
    todos = TodoMiddleware(**{"policy": ONCE, **options})
    hooks = [*before, todos]
    return create_deep_agent(model, [look, ask], middleware=hooks, checkpointer=saver)


AGENTS = {
    "edge": edge(TodoState),
    "edge, deltas": edge(DeltaTodoState),
    "edge, client format": edge(ClientTodoState),
    "middleware": middleware(),
    "middleware, deltas": middleware(DeltaTodoState),
    "middleware, client format": middleware(todos_format="langchain"),
    "deepagents": deep,
}
EACH_AGENT = pytest.mark.parametrize("build", AGENTS.values(), ids=AGENTS)


def edited(action: str, *indices: int) -> Any:
    """A call of `edit_todos`."""
    return call("edit_todos", action=action, indices=list(indices))


def inserted(index: int, *texts: str) -> Any:
    """A call of `write_todos`."""
    return call("write_todos", mode="insert", index=index, todos=list(texts))


Script = list[AIMessage | str]


def two_items() -> Script:
    """A script that does one item of two, and starts the other one in the same turn."""
    return [
        plan("a", "b"),
        edit("start", 0),
        turn("", call("look", path="a")),
        turn("", edited("complete", 0), edited("start", 1)),
        turn("", call("look", path="b")),
        edit("complete", 1),
        "Done.",
    ]


def ran(
    *script: AIMessage | str, build: Callable[..., Graph] | None = None, **given: Any
) -> tuple[Graph, RunnableConfig]:
    """A graph whose agent has followed a script, and then only says that it stops; its thread."""
    answers = iter(script)
    model = ScriptedChatModel(script=lambda _: next(answers, "I stop."))
    graph = (build or edge(TodoState))(model, InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    graph.invoke({**BEGIN, **given}, config)
    return graph, config


def lists(found: Sequence[StateSnapshot]) -> list[list[tuple[str, str]]]:
    """The lists at checkpoints, in a short form."""
    return [[(t["text"], t["status"]) for t in todos_in(each.values)] for each in found]


def shown(prompt: Sequence[BaseMessage]) -> list[tuple[str, Any]]:
    """What a prompt says, without the system prompt."""
    return [(m.type, m.content) for m in prompt if not isinstance(m, SystemMessage)]


def steps(found: dict[int, list[StateSnapshot]]) -> dict[int, list[int]]:
    """The number of answers in the history of each checkpoint."""
    return {
        item: [sum(isinstance(m, AIMessage) for m in each.values["messages"]) for each in places]
        for item, places in found.items()
    }


class TestEachAgent:
    @EACH_AGENT
    def test_each_item_has_the_checkpoint_before_the_answer_that_started_it(
        self, build: Callable[..., Graph]
    ) -> None:
        """It has the list of that moment, its time, and a config."""
        graph, config = ran(*two_items(), build=build)
        found = item_starts(graph, config)
        assert steps(found) == {0: [1], 1: [3]}
        assert lists(found[0]) == [[("a", "not_started"), ("b", "not_started")]]
        assert lists(found[1]) == [[("a", "in_progress"), ("b", "not_started")]]
        times = [found[item][0].created_at for item in (0, 1)]
        assert times == sorted(times, key=str)

    @EACH_AGENT
    def test_a_run_from_there_has_the_prompt_of_that_moment(
        self, build: Callable[..., Graph], config: RunnableConfig
    ) -> None:
        """The new message comes after it; without a message the prompt is the same."""
        model = ScriptedChatModel(script=[*two_items(), "I stop.", "I stop."])
        graph = build(model, InMemorySaver())
        graph.invoke(BEGIN, config)
        (start,) = item_starts(graph, config)[1]
        forked = graph.invoke(AGAIN, start.config)
        assert shown(model.prompts[-1]) == [*shown(model.prompts[3]), ("human", "In another way.")]
        assert todos_in(forked) == todos_in(start.values)
        graph.invoke(None, start.config)
        assert shown(model.prompts[-1]) == shown(model.prompts[3])


SOME = ["edge", "edge, deltas", "middleware, client format", "deepagents"]
SOME_AGENTS = pytest.mark.parametrize("build", [AGENTS[name] for name in SOME], ids=SOME)


class TestSavers:
    @SAVERS
    @SOME_AGENTS
    def test_another_process_finds_and_forks_them(
        self,
        open_saver: Any,
        build: Callable[..., Graph],
        tmp_path: Path,
        uri: str,
        config: RunnableConfig,
    ) -> None:
        """The checkpoints contain everything that it needs."""
        with open_saver(tmp_path, uri) as saver:
            build(ScriptedChatModel(script=two_items()), saver).invoke(BEGIN, config)
            model = ScriptedChatModel(script=[edit("start", 1), "I stop."])
            graph = build(model, saver)
            found = item_starts(graph, config)
            assert steps(found) == {0: [1], 1: [3]}
            forked = graph.invoke(AGAIN, found[0][-1].config)
            assert todos_in(forked) == [*items("a"), *items("b", status="in_progress")]
            assert steps(item_starts(graph, config)) == {1: [1]}

    @ASYNC_SAVERS
    @SOME_AGENTS
    async def test_asynchronous_graphs_have_a_function_of_their_own(
        self,
        open_saver: Any,
        build: Callable[..., Graph],
        tmp_path: Path,
        uri: str,
        config: RunnableConfig,
    ) -> None:
        """It finds the same."""
        async with open_saver(tmp_path, uri) as saver:
            model = ScriptedChatModel(script=[*two_items(), "I stop."])
            graph = build(model, saver)
            await graph.ainvoke(BEGIN, config)
            found = await aitem_starts(graph, config)
            assert steps(found) == {0: [1], 1: [3]}
            forked = await graph.ainvoke(AGAIN, found[1][-1].config)
            assert todos_in(forked) == todos_in(found[1][-1].values)


class TestWhichStarts:
    def test_an_item_that_nobody_started_begins_after_its_list_or_the_last_tick(self) -> None:
        """An open item has no places, nor has a thread without a list; a new thread is refused."""
        work = turn("", call("look", path="a"))
        rest = [work, edit("complete", 0), work.model_copy(), edit("abandon", 1)]
        graph, config = ran(plan("a", "b", "c"), *rest)
        assert steps(item_starts(graph, config)) == {0: [1], 1: [3]}
        assert item_starts(*ran("Hello.")) == {}
        with pytest.raises(ValueError, match="this thread has no checkpoints"):
            item_starts(graph, {"configurable": {"thread_id": "new"}})

    def test_every_start_of_an_item_counts(self) -> None:
        """They are in order; the last one is the newest. To start a started item is no start."""
        graph, config = ran(
            plan("a"), edit("start", 0), edit("start", 0), edit("complete", 0), edit("start", 0)
        )
        found = item_starts(graph, config)
        assert steps(found) == {0: [1, 4]}
        assert lists(found[0]) == [[("a", "not_started")], [("a", "completed")]]


class TestWhichItem:
    def test_an_item_is_its_text(self) -> None:
        """Its index may change, and items with one text share their starts."""
        graph, config = ran(
            plan("a", "b"),
            edit("start", 0),
            turn("", inserted(0, "a", "c"), edited("start", 3)),
            turn("", inserted(1, "d"), edited("complete", 3, 4)),
        )
        final = todos_in(graph.get_state(config).values)
        assert [todo["text"] for todo in final] == ["a", "d", "c", "a", "b"]
        assert steps(item_starts(graph, config)) == {0: [1], 3: [1], 4: [2]}
        todos = [*items("c", "b"), *items("a", status="completed")]
        graph.update_state(config, {"todos": todos}, as_node="agent")
        insert = {"op": "insert", "index": 0, "texts": ["e"]}
        graph.update_state(config, {"todos": insert}, as_node="agent")
        assert steps(item_starts(graph, config)) == {2: [2], 3: [1]}

    def test_the_list_is_that_of_the_given_checkpoint(self) -> None:
        """Each branch has its own items and starts."""
        graph, config = ran(
            plan("a", "b"), edit("start", 0), edit("start", 1), "I stop.", plan("c")
        )
        first = graph.get_state(config).config
        forked = graph.invoke(AGAIN, item_starts(graph, first)[1][0].config)
        assert forked["todos"] == items("c")
        assert item_starts(graph, config) == {}
        assert steps(item_starts(graph, first)) == {0: [1], 1: [2]}

    def test_it_is_found_after_the_history_was_removed(self) -> None:
        """The earlier checkpoints still have it, for example after a summary."""
        graph, config = ran(plan("a"), edit("start", 0), edit("complete", 0))
        removed = RemoveMessage(id=REMOVE_ALL_MESSAGES)
        update = {
            "messages": [removed, SystemMessage("Summary.")],
            "todos": set_status("completed", 0),
        }
        graph.update_state(config, update, as_node="agent")
        assert steps(item_starts(graph, config)) == {0: [1]}


def test_at_most_so_many_checkpoints_are_read() -> None:
    """Starts before the last one read are not found."""
    graph, config = ran(*two_items())
    assert steps(item_starts(graph, config)) == {0: [1], 1: [3]}
    assert steps(item_starts(graph, config, limit=9)) == {1: [3]}
    assert item_starts(graph, config, limit=1) == {}
    with pytest.raises(ValueError, match="limit must be 1 or more"):
        item_starts(graph, config, limit=0)


UNANSWERED: Script = [
    plan("a", "b"),
    turn("", edited("start", 0), call("ask", question="Which?"), edited("start", 1)),
    "I stop.",
    edit("complete", 0, 1),
]
"""A script with a call that waits for a person, and what comes after a fork and the answer."""


class TestHeldRuns:
    """A fork of a run that waits for a person."""

    @pytest.mark.parametrize("build", [middleware(), middleware(DeltaTodoState), deep])
    def test_of_a_turn_that_is_not_over(self, build: Callable[..., Graph]) -> None:
        """One of its calls waits. The fork is before the whole turn; the old branch still waits."""
        graph, config = ran(*UNANSWERED, build=build)
        tip = graph.get_state(config)
        found = item_starts(graph, config)
        assert steps(found) == {0: [1], 1: [1]}
        forked = graph.invoke(AGAIN, found[1][-1].config)
        assert todos_in(forked) == items("a", "b")
        assert graph.get_state(config).interrupts == ()
        answered = graph.invoke(Command(resume="This."), tip.config)
        assert todos_in(answered) == items("a", "b", status="completed")


class TestItemRunner:
    """Each item is a run of its own, whose conversation is not in the history of the thread."""

    @pytest.mark.parametrize("state", [ItemsState, DeltaItemsState])
    @pytest.mark.parametrize(
        ("at_once", "reports", "again"),
        [
            (1, {0: [0], 1: [1], 2: [2, 3], 3: [2, 3]}, "abb"),
            (3, {0: [0], 1: [0], 2: [0, 3], 3: [0, 3]}, "xabb"),
        ],
    )
    def test_the_place_is_before_the_runner_handed_the_item_out(
        self, state: Any, at_once: int, reports: Any, again: str, config: RunnableConfig
    ) -> None:
        """A run from there has the reports of that moment; what comes after runs again."""
        begun = list[str]()

        def work(state: Any) -> Any:
            begun.append(state["messages"][0].text)
            return {"messages": [AIMessage("Done.")]}

        def prompt(state: Any, index: int) -> str:
            return f"{todos_in(state)[index]['text']} {state['messages'][-1].text}"

        agent: Any = work
        runner = create_item_runner(agent, at_once=at_once, prompt=prompt, state_schema=state)
        graph = runner.compile(checkpointer=InMemorySaver())
        graph.invoke({**BEGIN, "todos": ["x", "a", "b", "b"]}, config)
        found = item_starts(graph, config)
        assert {
            item: [len(each.values.get("reports", {})) for each in places]
            for item, places in found.items()
        } == reports
        values = graph.invoke(AGAIN, found[1][0].config)
        assert sorted(begun[4:]) == sorted(f"{text} In another way." for text in again)
        assert todos_in(values) == items("x", "a", "b", "b", status="completed")
