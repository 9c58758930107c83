"""The channels: operations, whole lists, counters, and all of it with DeltaChannel."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Overwrite

from tests.strategies import operations, todo_lists
from tests.support import items, results_in
from todo_tools import DeltaTodoState, TodoItem, TodoMiddleware, TodoState
from todo_tools._thread.channels import fold_todos, fold_todos_batch, merge_loop
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, turn

updates = st.lists(operations | todo_lists | st.none(), max_size=6)

STATES = pytest.mark.parametrize("state", [TodoState, DeltaTodoState])


def graph_of(state: type[Any]) -> Any:
    """A graph that does nothing, for updates."""
    builder = StateGraph(state)
    builder.add_node("noop", lambda _: {})
    builder.add_edge(START, "noop")
    return builder.compile(checkpointer=InMemorySaver())


class TestFold:
    @given(todo_lists, updates, updates)
    def test_the_batching_of_updates_does_not_matter(
        self, todos: list[TodoItem], xs: list[Any], ys: list[Any]
    ) -> None:
        """`DeltaChannel` requires this of its reducer."""
        apart = fold_todos_batch(fold_todos_batch(todos, xs), ys)
        assert apart == fold_todos_batch(todos, xs + ys)

    def test_a_list_in_the_format_of_langchain_clients_is_read(self) -> None:
        """LangChain's own middleware may have started the thread."""
        stored: Any = [{"content": "a", "status": "pending"}]
        assert fold_todos(stored, {"op": "append", "texts": ["b"]}) == items("a", "b")
        assert fold_todos([], stored) == items("a")
        assert todos_in({"todos": stored}) == items("a")

    def test_loop_counters_are_merged_key_by_key(self) -> None:
        """So the tools can reset one counter without knowing the others."""
        merged = merge_loop({"in_a_row": 3, "in_turn": 5}, {"in_a_row": 0})
        assert merged == {"in_a_row": 0, "in_turn": 5}
        assert merge_loop({"in_turn": 5}, None) == {"in_turn": 5}

    @pytest.mark.parametrize(
        "garbage",
        ["x", [1], {"in_turn": "9"}, {"in_turn": True}, {"in_a_row": -1}, {"k" * 500: 1}],
    )
    def test_counters_that_the_loop_did_not_write_are_refused(self, garbage: Any) -> None:
        """Pydantic's error names the counters."""
        with pytest.raises(ValueError, match=r"^1 validation error for LoopState"):
            merge_loop({"in_turn": 5}, garbage)


CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}


@STATES
class TestChannel:
    def test_a_list_can_be_seeded_and_edited(self, state: type[Any]) -> None:
        """Both the input of a run and `update_state` can set it; a thread starts without items."""
        graph = graph_of(state)
        assert graph.invoke({"messages": []}, CONFIG)["todos"] == []
        assert graph.invoke({"todos": items("a")}, CONFIG)["todos"] == items("a")
        graph.update_state(CONFIG, {"todos": items("b")})
        assert graph.get_state(CONFIG).values["todos"] == items("b")

    def test_an_invalid_list_is_refused_and_the_thread_continues(self, state: type[Any]) -> None:
        """The error gives the reason, and the next valid update is accepted."""
        graph = graph_of(state)
        graph.invoke({"todos": items("a")}, CONFIG)
        with pytest.raises(ValueError, match=r"todos\[0\] must be a text"):
            graph.update_state(CONFIG, {"todos": [5]})
        assert graph.get_state(CONFIG).values["todos"] == items("a")
        with pytest.raises(ValueError, match=r"todos\[0\] must be a text"):
            graph.invoke({"todos": [5]}, CONFIG)
        # LangGraph has already stored the input, and applies it whenever the thread is read.
        with pytest.raises(ValueError, match=r"todos\[0\] must be a text"):
            graph.get_state(CONFIG)
        assert graph.invoke({"todos": items("c")}, CONFIG)["todos"] == items("c")

    @pytest.mark.parametrize("channel", ["todos", "todo_loop"])
    def test_an_edit_ends_the_errors_after_an_invalid_command(
        self, channel: str, state: type[Any]
    ) -> None:
        """A client can write to every channel; LangGraph applies its command in each run."""
        graph = graph_of(state)
        graph.invoke({"messages": []}, CONFIG)
        runs: list[Any] = [Command(update={channel: "garbage"}), {"messages": []}, {"messages": []}]
        for run in runs:
            with pytest.raises(ValueError, match=r"input_value='garbage'|got str"):
                graph.invoke(run, CONFIG)
        graph.update_state(CONFIG, {channel: [] if channel == "todos" else {}})
        assert graph.invoke({"todos": items("a")}, CONFIG)["todos"] == items("a")

    def test_an_invalid_overwrite_is_reported_when_it_is_read(self, state: type[Any]) -> None:
        """LangGraph's `Overwrite` bypasses the channel's validation."""
        graph = graph_of(state)
        graph.update_state(CONFIG, {"todos": Overwrite("junk")})
        with pytest.raises(ValueError, match="todos must be a list of todo items, got str"):
            todos_in(graph.get_state(CONFIG).values)
        graph.update_state(CONFIG, {"todos": Overwrite(None)})
        assert todos_in(graph.get_state(CONFIG).values) == []

    def test_its_json_schema_can_be_made(self, state: type[Any]) -> None:
        """Servers publish the schema."""
        schema = graph_of(state).get_input_jsonschema()
        assert schema["properties"].keys() >= {"messages", "todo_loop", "todos"}
        assert schema["properties"]["todos"]["description"].startswith("The todo list.")
        parts = [schema["$defs"][part]["properties"].values() for part in ("LoopState", "TodoItem")]
        assert all("description" in field for fields in parts for field in fields)


class TestMessages:
    """LangGraph's own batch reducer, which `DeltaTodoState` uses."""

    def test_equal_results_of_parallel_calls_are_all_stored(self) -> None:
        """Each task reads the state after its own result alone, which must not give it an id."""
        twice = turn("", call("look"), call("look"))
        model = ScriptedChatModel(script=[twice, "Done."])
        look = StructuredTool.from_function(lambda: "Nothing.", name="look", description="Look.")
        schema: Any = DeltaTodoState
        agent: Any = create_agent(model, [look], middleware=[TodoMiddleware()], state_schema=schema)
        results = results_in(agent.invoke({"messages": [("user", "Look.")]}))
        assert [result.tool_call_id for result in results] == [c["id"] for c in twice.tool_calls]
