"""Parallel changes of one list in one step: subgraphs, tool nodes, and the merge of their lists."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Overwrite, Send, interrupt

from tests.strategies import todo_lists
from tests.support import Graph, edit, items
from todo_tools import (
    AutoContinue,
    DeltaTodoState,
    TodoItem,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    format_todos,
    model_view,
    todos_from_messages,
)
from todo_tools._list.operations import apply
from todo_tools.clients import from_client_todos
from todo_tools.operations import abandon_items, append_items, complete_items
from todo_tools.state import ClientTodoState
from todo_tools.testing import ScriptedChatModel, turn

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}
STATES = pytest.mark.parametrize("state", [TodoState, DeltaTodoState, ClientTodoState])


def writer(update: Any) -> Any:
    """A node that writes one update to the list."""
    return lambda _: {"todos": update}


def subgraph(state: type[Any], node: Any) -> Graph:
    """A graph with one node; as a node of another graph it returns its whole list."""
    return StateGraph(state).add_node("work", node).add_edge(START, "work").compile()


def side_by_side(state: type[Any], nodes: Sequence[Any]) -> Graph:
    """A graph that runs all nodes in its first step, and an append after them."""
    builder = StateGraph(state)
    names = [f"node_{at}" for at in range(len(nodes))]
    for name, node in zip(names, nodes, strict=True):
        builder.add_node(name, node).add_edge(START, name)
    builder.add_node("last", writer(append_items("last")))
    builder.add_edge(names, "last")
    return builder.compile(checkpointer=InMemorySaver())


def stored(graph: Graph) -> list[TodoItem]:
    """The list of the thread, read from its checkpoints."""
    return from_client_todos(graph.get_state(CONFIG).values["todos"])


@STATES
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_parallel_subgraphs_keep_all_their_changes(
    state: type[Any], durability: Literal["sync", "async", "exit"]
) -> None:
    """The list that is read from the checkpoints afterwards has all changes too."""
    updates = [complete_items(0), append_items("new"), abandon_items(2)]
    graph = side_by_side(state, [subgraph(state, writer(update)) for update in updates])
    start: Any = {"messages": [], "todos": items("a", "b", "c")}
    final = graph.invoke(start, CONFIG, durability=durability)
    expected = [
        *items("a", status="completed"),
        *items("b"),
        *items("c", status="abandoned"),
        *items("new", "last"),
    ]
    assert from_client_todos(final["todos"]) == stored(graph) == expected
    graph.update_state(CONFIG, {"todos": complete_items(1)}, as_node="last")
    assert [todo["status"] for todo in stored(graph)][:2] == ["completed", "completed"]


@STATES
def test_parallel_agents_may_each_have_a_loop(state: type[Any]) -> None:
    """Each agent completes an item and is then sent back once to the item that remains."""
    tools = create_todo_tools()

    def agent(index: int) -> Graph:
        script = [edit("complete", index), turn("I stop."), turn("I stop again.")]
        model = ScriptedChatModel(script=script).bind_tools(tools)
        builder = StateGraph(state)
        builder.add_node("agent", lambda state: {"messages": [model.invoke(model_view(state))]})
        builder.add_node("tools", ToolNode(tools))
        builder.add_edge(START, "agent").add_edge("tools", "agent")
        return add_auto_continue(builder, policy=AutoContinue(max_idle=1)).compile()

    graph = side_by_side(state, [agent(0), agent(1)])
    final = graph.invoke({"messages": [("user", "Go.")], "todos": items("a", "b", "c")}, CONFIG)
    assert stored(graph) == [*items("a", "b", status="completed"), *items("c", "last")]
    assert final["todo_loop"]["outcome"] == "stalled"


@STATES
def test_a_subgraph_that_does_nothing_undoes_nothing(state: type[Any]) -> None:
    """It returns the list that it got, and the operation of a sibling survives."""
    idle = subgraph(state, lambda _: {})
    graph = side_by_side(state, [writer(complete_items(0)), idle, idle])
    graph.invoke({"messages": [], "todos": items("a", "b")}, CONFIG)
    assert stored(graph) == [*items("a", status="completed"), *items("b", "last")]


@STATES
def test_nothing_is_lost_when_one_of_them_fails_and_is_run_again(state: type[Any]) -> None:
    """The changes of the others are then read from the checkpointer."""
    failures = iter([True])

    def flaky(_: Any) -> Any:
        if next(failures, False):
            raise ConnectionError
        return {"todos": complete_items(2)}

    nodes = [subgraph(state, writer(complete_items(at))) for at in (0, 1)]
    graph = side_by_side(state, [*nodes, subgraph(state, flaky)])
    with pytest.raises(ConnectionError):
        graph.invoke({"messages": [], "todos": items("a", "b", "c")}, CONFIG)
    graph.invoke(None, CONFIG)
    assert stored(graph) == [*items("a", "b", "c", status="completed"), *items("last")]


@STATES
def test_nothing_is_lost_when_one_of_them_waits_for_a_person(state: type[Any]) -> None:
    def ask(_: Any) -> Any:
        return {"todos": append_items(interrupt("What else?"))}

    graph = side_by_side(state, [subgraph(state, ask), subgraph(state, writer(complete_items(0)))])
    graph.invoke({"messages": [], "todos": items("a")}, CONFIG)
    graph.invoke(Command(resume="b"), CONFIG)
    assert stored(graph) == [*items("a", status="completed"), *items("b", "last")]


class TestToolNodes:
    """Several nodes that run tool calls in one step."""

    @staticmethod
    def run(sends: Callable[[Any], list[Send]]) -> dict[str, Any]:
        builder = StateGraph(TodoState)
        for name in ("first", "second"):
            builder.add_node(name, ToolNode(create_todo_tools()))
        builder.add_conditional_edges(START, sends, ["first", "second"])
        calls = [*edit("complete", 0).tool_calls, *edit("complete", 1).tool_calls]
        start: Any = {"messages": [turn("", *calls)], "todos": items("a", "b")}
        return builder.compile().invoke(start)

    def test_calls_of_one_message_are_answered_in_their_order(self) -> None:
        """Each tool gets the whole message, so its result includes the calls before it."""

        def sends(state: Any) -> list[Send]:
            calls = state["messages"][-1].tool_calls
            return [
                Send(name, {"__type": "tool_call_with_context", "tool_call": call, "state": state})
                for name, call in zip(["second", "first"], calls, strict=True)
            ]

        final = self.run(sends)
        assert final["todos"] == items("a", "b", status="completed")
        assert todos_from_messages(final["messages"]) == final["todos"]

    def test_after_parallel_branches_the_model_reads_the_list_of_the_state(self) -> None:
        """A branch knows only its own calls, and its results show the list of that branch."""

        def sends(state: Any) -> list[Send]:
            calls = state["messages"][-1].tool_calls
            return [
                Send(name, {**state, "messages": [turn("", call)]})
                for name, call in zip(["first", "second"], calls, strict=True)
            ]

        final = self.run(sends)
        assert final["todos"] == items("a", "b", status="completed")
        assert todos_from_messages(final["messages"]) != final["todos"]
        assert format_todos(final["todos"]) in model_view(final)[-1].text


@STATES
def test_a_list_alone_in_its_step_still_replaces(state: type[Any]) -> None:
    graph = side_by_side(state, [writer(items("new"))])
    graph.invoke({"messages": [], "todos": items("a")}, CONFIG)
    assert stored(graph) == items("new", "last")


@STATES
def test_an_overwrite_still_wins(state: type[Any]) -> None:
    """LangGraph's `Overwrite` bypasses the reducer of a channel."""
    graph = side_by_side(state, [writer(items("a", "b")), writer(Overwrite(items("x")))])
    graph.invoke({"messages": [], "todos": items("a")}, CONFIG)
    assert stored(graph) == items("x", "last")


def merge(todos: list[TodoItem], base: list[TodoItem], changed: list[TodoItem]) -> list[TodoItem]:
    return apply(todos, {"op": "merge", "base": base, "todos": changed})


class TestMerge:
    @given(todo_lists, todo_lists)
    def test_it_is_exact_if_one_side_did_nothing(
        self, base: list[TodoItem], changed: list[TodoItem]
    ) -> None:
        assert merge(base, base, changed) == changed
        assert merge(changed, base, base) == changed

    @given(todo_lists, todo_lists, todo_lists)
    def test_no_item_that_was_added_is_lost(
        self, base: list[TodoItem], first: list[TodoItem], second: list[TodoItem]
    ) -> None:
        texts = [todo["text"] for todo in merge([*base, *first], base, [*base, *second])]
        assert texts == [todo["text"] for todo in [*base, *first, *second]]

    @given(st.lists(st.sampled_from("aab"), max_size=8), st.data())
    def test_status_changes_add_up_even_if_items_have_the_same_text(
        self, texts: list[str], data: st.DataObject
    ) -> None:
        base = items(*texts)
        owners = data.draw(st.lists(st.integers(0, 2), min_size=len(base), max_size=len(base)))
        todos = base
        for hand in set(owners):
            mine = [index for index, owner in enumerate(owners) if owner == hand]
            todos = merge(todos, base, apply(base, complete_items(*mine)))
        assert todos == items(*texts, status="completed")

    def test_an_item_is_added_where_it_was_added(self) -> None:
        """This holds even if others added and removed items."""
        merged = merge(items("x", "a", "c", "y"), items("a", "b", "c"), items("a", "n", "b", "c"))
        assert merged == items("x", "a", "n", "c", "y")

    def test_an_item_that_one_side_removed_is_gone(self) -> None:
        ticked = [*items("a", status="completed"), *items("b")]
        assert merge(ticked, items("a", "b"), items("b")) == items("b")
        assert merge(items("b"), items("a", "b"), ticked) == items("b")
