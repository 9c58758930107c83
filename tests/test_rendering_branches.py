"""The picture of a thread's branches."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import StateSnapshot

from graphs.until_done import build_graph
from tests.pages import ELEMENTS, page
from tests.support import BEGIN, edit, edits, items, plan
from todo_tools import AutoContinue, TodoState, item_starts
from todo_tools.rendering import show_branches
from todo_tools.rendering._branches import knots_of
from todo_tools.testing import ScriptedChatModel, turn


@pytest.fixture
def graph() -> Any:
    """A graph that does nothing; the tests write its thread."""
    builder = StateGraph(TodoState)
    builder.add_node("agent", lambda _: {})
    builder.add_edge(START, "agent")
    return builder.compile(checkpointer=InMemorySaver())


def write(graph: Any, config: RunnableConfig, *texts: str, done: int = 0) -> RunnableConfig:
    todos = [*items(*texts[:done], status="completed"), *items(*texts[done:])]
    after: RunnableConfig = graph.update_state(config, {"todos": todos}, as_node="agent")
    return after


def agent(script: list[Any]) -> Any:
    """A graph with the tools, whose agent follows a script."""
    policy = AutoContinue(max_in_a_row=0)
    builder = build_graph(ScriptedChatModel(script=script), policy=policy)
    return builder.compile(checkpointer=InMemorySaver())


def shown(history: Iterator[StateSnapshot]) -> str:
    """The picture without the ids, which differ each time."""
    return re.sub(r" [0-9a-f]{8}$", "", str(show_branches(history)), flags=re.MULTILINE)


class TestTree:
    def test_each_fork_and_each_tip_has_its_list(self, graph: Any, config: RunnableConfig) -> None:
        """Older branches come first, and the newest checkpoint is marked."""
        fork = write(graph, config, "a", "b")
        write(graph, write(graph, fork, "a", "b", done=1), "a", "b", done=2)
        second = write(graph, fork, "c")
        write(graph, second, "c", done=1)
        write(graph, second)
        write(graph, fork, "a")
        assert shown(graph.get_state_history(config)).splitlines() == [
            "◆ step 0 📋 0/2, 3 branches",
            "│ – [0] a",  # noqa: RUF001
            "│ – [1] b",  # noqa: RUF001
            "├─● step 2 ✓ Done (2 items)",
            "│   ✓ [0] a",
            "│   ✓ [1] b",
            "├─◆ step 1 📋 0/1, 2 branches",
            "│ │ – [0] c",  # noqa: RUF001
            "│ ├─● step 2 ✓ Done (1 item)",
            "│ │   ✓ [0] c",
            "│ └─● step 2 No todos",
            "└─● step 1 📋 0/1, newest",
            "    – [0] a",  # noqa: RUF001
        ]

    def test_a_fork_names_the_items_whose_start_it_precedes(self, config: RunnableConfig) -> None:
        """Each text is named once, on one line, also if several items have it."""
        script: list[Any] = [
            plan("a", "b\nc", "b\nc", "d"),
            edit("start", 0),
            turn("", edits("complete", 0), edits("start", 1, 2, 3)),
            "Done.",
            edit("start", 0),
            "Done.",
        ]
        forked = agent(script)
        forked.invoke(BEGIN, config)
        forked.invoke(BEGIN, item_starts(forked, config)[1][0].config)
        (fork, *_) = shown(forked.get_state_history(config)).splitlines()
        assert fork == '◆ step 4 📋 0/4, 2 branches before "b␊c", "d"'

    def test_a_part_of_a_history_can_be_drawn(self, graph: Any, config: RunnableConfig) -> None:
        """A checkpoint whose parent is missing starts a new tree."""
        fork = write(graph, config, "a")
        write(graph, fork, "b")
        write(graph, fork, "c")
        lines = shown(graph.get_state_history(config, limit=2)).splitlines()
        assert [line for line in lines if "step" in line] == [
            "● step 1 📋 0/1",
            "● step 1 📋 0/1, newest",
        ]

    def test_a_thread_that_forks_at_every_step_is_drawn(
        self, graph: Any, config: RunnableConfig
    ) -> None:
        """The tree may be of any depth."""
        at = write(graph, config, "a")
        for _ in range(400):
            write(graph, at, "b")
            at = write(graph, at, "a")
        knots = list(knots_of(graph.get_state_history(config)))
        assert len(knots) == 801
        assert max(len(knot.path) for knot in knots) == 400

    def test_a_value_that_is_not_a_snapshot_is_refused(self) -> None:
        """The error says what was given."""
        with pytest.raises(TypeError, match="dict"):
            show_branches([{}])  # type: ignore[list-item]


class TestDrawing:
    def test_no_text_acts(self, graph: Any, config: RunnableConfig) -> None:
        """The texts are escaped in HTML and kept on one line in plain text."""
        write(graph, config, "<script>alert(1)</script>\n└─● step 9")
        view = show_branches(graph.get_state_history(config))
        assert set(page(view).tags) <= ELEMENTS
        assert len(str(view).splitlines()) == 2
