"""Parallel changes of one list in one step: operations, whole lists of subgraphs, tool nodes."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt

from tests.support import Graph, edit, items, outcome_of
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
from todo_tools._list.formats import from_client_todos
from todo_tools.clients import ClientTodoState
from todo_tools.operations import append_items, set_status
from todo_tools.testing import ScriptedChatModel, turn

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}
STATES = pytest.mark.parametrize("state", [TodoState, DeltaTodoState, ClientTodoState])
PROTECTED = pytest.mark.parametrize("state", [TodoState, ClientTodoState])


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


def changes(state: type[Any], update: Any) -> Graph:
    """A subgraph that changes the list."""
    return subgraph(state, writer(update))


def idle(state: type[Any]) -> Graph:
    """A subgraph that does not change the list; it returns the list that it got."""
    return subgraph(state, lambda _: {})


class TestOneList:
    """Of the whole lists in a step, those equal to the stored list are ignored."""

    @PROTECTED
    @pytest.mark.parametrize("at", [0, 1])
    def test_the_only_changed_list_is_taken(self, state: type[Any], at: int) -> None:
        """This holds for every order of the nodes; a subgraph that changes nothing undoes nothing.

        Operations are applied after the list, so none is undone.
        """
        nodes = [idle(state), writer(append_items("new")), idle(state)]
        nodes.insert(at, changes(state, set_status("completed", 0)))
        graph = side_by_side(state, nodes)
        graph.invoke({"messages": [], "todos": items("a")}, CONFIG)
        assert stored(graph) == [*items("a", status="completed"), *items("new", "last")]

    @PROTECTED
    def test_one_that_failed_may_run_again(self, state: type[Any]) -> None:
        """The changes of the others are then read from the checkpointer."""
        failures = iter([True])

        def flaky(_: Any) -> Any:
            if next(failures, False):
                raise ConnectionError
            return {}

        graph = side_by_side(
            state, [changes(state, set_status("completed", 0)), subgraph(state, flaky)]
        )
        with pytest.raises(ConnectionError):
            graph.invoke({"messages": [], "todos": items("a", "b")}, CONFIG)
        graph.invoke(None, CONFIG)
        assert stored(graph) == [*items("a", status="completed"), *items("b", "last")]

    @PROTECTED
    def test_one_may_wait_for_a_person(self, state: type[Any]) -> None:
        def ask(_: Any) -> Any:
            return {"todos": append_items(interrupt("What else?"))}

        graph = side_by_side(
            state, [subgraph(state, ask), writer(set_status("completed", 0)), idle(state)]
        )
        graph.invoke({"messages": [], "todos": items("a")}, CONFIG)
        graph.invoke(Command(resume="b"), CONFIG)
        assert stored(graph) == [*items("a", status="completed"), *items("b", "last")]


@STATES
@pytest.mark.parametrize("name", ["a subgraph", "the subgraph"])
def test_a_subgraph_beside_the_loop_undoes_no_counter(state: type[Any], name: str) -> None:
    """LangGraph applies the updates in the order of the names; the loop is `auto_continue`."""
    model = ScriptedChatModel(script=lambda _: "Nothing yet.")
    builder = StateGraph(state)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(model_view(state))]})
    builder.add_node("tools", ToolNode(create_todo_tools()))
    builder.add_node(name, idle(state))
    builder.add_edge(START, "agent").add_edge("tools", "agent").add_edge("agent", name)
    graph = add_auto_continue(builder, policy=AutoContinue(max_idle=3)).compile()
    request = {"messages": [("user", "Go")], "todos": items("a")}
    final = graph.invoke(request, {"recursion_limit": 50})
    assert outcome_of(final) == "stalled"
    assert len(model.prompts) == 4
    assert ("⚠" in final["messages"][-1].text) == (name == "a subgraph")


@PROTECTED
class TestTwoLists:
    """Two different whole lists in one step are refused, because one would undo the other."""

    @staticmethod
    def graph(state: type[Any]) -> Graph:
        """Two agents change the list in one step."""
        updates = [set_status("completed", 0), append_items("new")]
        return side_by_side(state, [changes(state, update) for update in updates])

    def test_the_error_names_operations(self, state: type[Any]) -> None:
        with pytest.raises(InvalidUpdateError) as raised:
            self.graph(state).invoke({"messages": [], "todos": items("a")}, CONFIG)
        assert "return operations from parallel nodes" in str(raised.value)

    def test_a_new_input_goes_on_too_and_a_resumed_run_does_not(self, state: type[Any]) -> None:
        """The updates of the refused step are still stored; only new input discards them."""
        working = [True]
        nodes = [writer(items(name)) for name in "xy"]
        graph = side_by_side(
            state, [lambda given, node=node: node(given) if working else {} for node in nodes]
        )
        for request in ({"messages": [], "todos": items("a")}, None):
            with pytest.raises(InvalidUpdateError):
                graph.invoke(request, CONFIG)
        working.clear()
        graph.invoke({"messages": [("user", "Go on.")]}, CONFIG)
        assert stored(graph) == items("a", "last")


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
