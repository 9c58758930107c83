"""The channels: operations, whole lists, and both with DeltaChannel."""

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.graph.message import _messages_delta_reducer as add_messages_batch
from langgraph.types import Command, Overwrite
from pydantic import ValidationError

from tests.strategies import operations, todo_lists
from tests.support import items, results_in
from todo_tools import DeltaTodoState, TodoItem, TodoState
from todo_tools._thread.channels import (
    fold_todos,
    fold_todos_batch,
    merge_loop,
)
from todo_tools._thread.state import loop_in
from todo_tools import TodoMiddleware
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

    def test_none_changes_nothing_and_an_empty_list_empties(self) -> None:
        assert fold_todos(items("a"), None) == items("a")
        assert fold_todos(items("a"), []) == []

    def test_an_operation_is_applied(self) -> None:
        assert fold_todos(items("a"), {"op": "append", "texts": ["b"]}) == items("a", "b")

    def test_a_list_in_the_format_of_langchain_clients_is_read(self) -> None:
        """LangChain's own middleware may have started the thread."""
        stored: Any = [{"content": "a", "status": "pending"}]
        assert fold_todos(stored, {"op": "append", "texts": ["b"]}) == items("a", "b")
        assert fold_todos([], stored) == items("a")
        assert todos_in({"todos": stored}) == items("a")

    def test_loop_counters_are_merged_key_by_key(self) -> None:
        """So the tools can reset one counter without knowing the others."""
        assert merge_loop({"in_a_row": 3, "in_turn": 5}, {"in_a_row": 0}) == {
            "in_a_row": 0,
            "in_turn": 5,
        }
        assert merge_loop({"in_turn": 5}, None) == {"in_turn": 5}

    @pytest.mark.parametrize(
        ("garbage", "place"),
        [
            ("x", ""),
            ([1], ""),
            ({"in_turn": "9"}, "['in_turn']"),
            ({"in_turn": True}, "['in_turn']"),
            ({"in_a_row": -1}, "['in_a_row']"),
            ({"idle": 1.5}, "['idle']"),
            ({"outcome": "bored"}, "['outcome']"),
            ({"k" * 500: 1}, "['kkk"),
        ],
    )
    def test_counters_that_the_loop_did_not_write_are_refused(
        self, garbage: Any, place: str
    ) -> None:
        """The error names the place, the value and the solution, and is short."""
        with pytest.raises(ValueError, match="pass the value from get_state") as refused:
            merge_loop({"in_turn": 5}, garbage)
        assert str(refused.value).startswith(f"todo_loop{place}")
        assert len(str(refused.value)) < 400

    def test_a_block_that_was_recorded_stays(self) -> None:
        """The prompt that showed it was sent."""
        blocks = merge_blocks({"first": items("a")}, {"first": items("b"), "second": items("c")})
        assert blocks == {"first": items("a"), "second": items("c")}
        assert merge_blocks(blocks, None) == blocks

    def test_none_removes_a_block(self) -> None:
        """Its message is gone; the other blocks stay."""
        blocks = merge_blocks({"first": items("a"), "second": []}, {"first": None, "third": None})
        assert blocks == {"second": []}

    def test_a_continuation_is_recorded_like_a_list(self) -> None:
        """It is not in the history, so the prompts need it from here."""
        note: Any = {"text": "Go on.", "lines": "– [0] a"}  # noqa: RUF001
        assert merge_blocks({"first": items("a")}, {"second": note})["second"] == note

    @given(st.lists(st.dictionaries(st.sampled_from("abc"), st.none() | todo_lists)), st.data())
    def test_the_batching_of_blocks_does_not_matter(self, updates: list[Any], data: Any) -> None:
        """`DeltaChannel` requires this of its reducer."""
        cut = data.draw(st.integers(0, len(updates)))
        apart = merge_blocks_batch(merge_blocks_batch({}, updates[:cut]), updates[cut:])
        assert apart == merge_blocks_batch({}, updates)

    @pytest.mark.parametrize(
        ("garbage", "place"),
        [
            *[("x", ""), ([1], ""), ({1: []}, r"\[1\]"), ({"id": 5}, r"\['id'\]")],
            *[({"id": ["a"]}, r"\['id'\]"), ({"id": {"text": "Go on."}}, r"\['id'\]")],
        ],
    )
    def test_blocks_that_the_view_did_not_record_are_refused(
        self, garbage: Any, place: str
    ) -> None:
        """The error names the place, the value and the solution."""
        message = f"^todo_blocks{place}.* is invalid: .*, got .*; leave it out"
        with pytest.raises(ValueError, match=message):
            merge_blocks({}, garbage)


class TestStored:
    """What a thread has stored, which an `Overwrite` or another version may have written."""

    NOTE: ClassVar[dict[str, Any]] = {"text": "Go on.", "lines": ""}

    def test_only_valid_blocks_are_read(self) -> None:
        """The others are left out, as if nobody had recorded them."""
        stored = {"a": items("a"), "b": [{"text": "b"}], "c": self.NOTE, "d": {"text": 5}, "e": 5}
        assert blocks_in({"todo_blocks": stored}) == {"a": items("a"), "c": self.NOTE}
        assert blocks_in({"todo_blocks": "x"}) == blocks_in({}) == {}

    def test_the_continuations_of_version_0_2_0_are_read(self) -> None:
        """They were part of the loop's record; newer blocks win."""
        older = {"continuations": {"a": self.NOTE, "b": self.NOTE}}
        state = {"todo_loop": older, "todo_blocks": {"b": items("b")}}
        assert blocks_in(state) == {"a": self.NOTE, "b": items("b")}
        assert loop_in(state) == {}

    def test_the_valid_part_of_the_counters_is_read(self) -> None:
        """The rest counts as if the loop had never written it."""
        assert loop_in({"todo_loop": {"in_turn": 3, "in_a_row": "2", "new": 1}}) == {"in_turn": 3}
        assert loop_in({"todo_loop": "x"}) == loop_in({}) == {}


def _config() -> RunnableConfig:
    return {"configurable": {"thread_id": "1"}}


@STATES
class TestChannel:
    def test_a_list_can_be_seeded_and_edited(self, state: type[Any]) -> None:
        """Both the input of a run and `update_state` can set it."""
        graph, config = graph_of(state), _config()
        assert graph.invoke({"todos": items("a")}, config)["todos"] == items("a")
        graph.update_state(config, {"todos": items("b")})
        assert graph.get_state(config).values["todos"] == items("b")

    def test_a_thread_starts_with_an_empty_list(self, state: type[Any]) -> None:
        assert graph_of(state).invoke({"messages": []}, _config())["todos"] == []

    def test_an_invalid_list_is_refused_and_the_thread_continues(self, state: type[Any]) -> None:
        """The error gives the reason, and the next valid update is accepted."""
        graph, config = graph_of(state), _config()
        graph.invoke({"todos": items("a")}, config)
        with pytest.raises(ValueError, match=r"todos\[0\] must be a dict"):
            graph.update_state(config, {"todos": ["b"]})
        assert graph.get_state(config).values["todos"] == items("a")
        with pytest.raises(ValueError, match=r"todos\[0\] must be a dict"):
            graph.invoke({"todos": ["b"]}, config)
        # LangGraph has already stored the input, and applies it whenever the thread is read.
        with pytest.raises(ValueError, match=r"todos\[0\] must be a dict"):
            graph.get_state(config)
        assert graph.invoke({"todos": items("c")}, config)["todos"] == items("c")

    @pytest.mark.parametrize("channel", ["todos", "todo_loop", "todo_blocks"])
    def test_an_edit_ends_the_errors_after_an_invalid_command(
        self, channel: str, state: type[Any]
    ) -> None:
        """LangGraph keeps the command's update and applies it in each run, before the input."""
        graph, config = graph_of(state), _config()
        graph.invoke({"messages": []}, config)
        runs: list[Any] = [Command(update={channel: "garbage"}), {"messages": []}, {"messages": []}]
        for run in runs:
            with pytest.raises(ValueError, match=r"got ('garbage'|str)"):
                graph.invoke(run, config)
        graph.update_state(config, {channel: [] if channel == "todos" else {}})
        assert graph.invoke({"todos": items("a")}, config)["todos"] == items("a")

    def test_invalid_values_from_clients_are_refused(self, state: type[Any]) -> None:
        """A client of a server can write to every channel; the thread is not changed."""
        graph, config = graph_of(state), _config()
        graph.invoke({"todo_loop": {"in_turn": 2}}, config)
        with pytest.raises(ValueError, match="todo_loop is invalid"):
            graph.invoke({"todo_loop": "garbage"}, config)
        with pytest.raises(ValueError, match=r"todo_blocks is invalid: .*, got \['garbage'\]"):
            graph.update_state(config, {"todo_blocks": ["garbage"]})
        assert graph.invoke({"messages": []}, config)["todo_loop"] == {"in_turn": 2}

    def test_overwrite_works_in_all_its_forms(self, state: type[Any]) -> None:
        """LangGraph's `Overwrite` bypasses a reducer."""
        graph, config = graph_of(state), _config()
        for form in (
            Overwrite(items("a")),
            {"__overwrite__": items("a")},
            {"type": "__overwrite__", "value": items("a")},
        ):
            graph.update_state(config, {"todos": []})
            graph.update_state(config, {"todos": form})
            assert graph.get_state(config).values["todos"] == items("a")

    def test_an_invalid_overwrite_is_reported_when_it_is_read(self, state: type[Any]) -> None:
        """An overwrite bypasses the channel's validation."""
        graph, config = graph_of(state), _config()
        graph.update_state(config, {"todos": Overwrite("junk")})
        with pytest.raises(ValueError, match="todos must be a list of todo items, got str"):
            todos_in(graph.get_state(config).values)
        graph.update_state(config, {"todos": Overwrite(None)})
        assert todos_in(graph.get_state(config).values) == []

    def test_its_json_schema_can_be_made(self, state: type[Any]) -> None:
        """Servers publish the schema."""
        schema = graph_of(state).get_input_jsonschema()
        channels = {"messages", "todo_blocks", "todo_loop", "todos"}
        assert schema["properties"].keys() == channels
        assert schema["properties"]["todos"]["description"].startswith("The todo list.")
        types = ("LoopState", "Note", "TodoItem")
        parts = [schema["$defs"][part]["properties"].values() for part in types]
        assert all("description" in field for fields in parts for field in fields)

    @pytest.mark.parametrize("block", [items("a"), [], {"text": "Go on.", "lines": ""}])
    def test_a_block_fits_the_published_schema(self, state: type[Any], block: Any) -> None:
        """A client may copy a thread with what `get_state` returns."""
        schema = graph_of(state).get_input_schema()
        schema.model_validate({"messages": [], "todo_blocks": {"id": block}})
        with pytest.raises(ValidationError):
            schema.model_validate({"messages": [], "todo_blocks": {"id": "x"}})


class TestMessagesBatch:
    def test_it_adds_replaces_and_removes_like_add_messages(self) -> None:
        first, second = HumanMessage("a", id="1"), HumanMessage("b", id="2")
        writes = [[first], [second], [HumanMessage("c", id="1")], [RemoveMessage(id="2")]]
        expected: Any = []
        for write in writes:
            expected = add_messages(expected, write)  # type: ignore[arg-type]  # lists are invariant
        assert add_messages_batch([], writes) == expected

    def test_all_messages_can_be_removed(self) -> None:
        """LangGraph's own batch reducer cannot do this."""
        state: list[AnyMessage] = [HumanMessage("a", id="1")]
        assert add_messages_batch(state, [[RemoveMessage(id=REMOVE_ALL_MESSAGES)]]) == []

    def test_messages_that_a_server_gives_as_dicts_are_restored(self) -> None:
        """LangGraph's development server replays threads in this form, before and after a fork."""
        invalid = invalid_tool_call(name="a", args="{", id="2", error=None)
        usage = UsageMetadata(input_tokens=1, output_tokens=2, total_tokens=3)
        stored = [
            HumanMessage("a", id="1"),
            AIMessage("", id="2", invalid_tool_calls=[invalid], usage_metadata=usage),
            ToolMessage("c", id="3", tool_call_id="2", artifact={"b": 1}, status="error"),
        ]
        dumped: Any = [message.model_dump() for message in stored]
        added = HumanMessage("d", id="4")
        assert add_messages_batch(dumped, [[added]]) == [*stored, added]
        assert add_messages_batch([], [dumped, [added.model_dump()]]) == [*stored, added]
        roles: Any = [{"role": "user", "content": "a", "id": "1"}]
        assert add_messages_batch(roles, [[added]]) == [stored[0], added]

    def test_equal_results_of_parallel_calls_are_all_stored(self) -> None:
        """Each task reads the state after its own result alone, which must not give it an id."""
        twice = turn("", call("look"), call("look"))
        model = ScriptedChatModel(script=[twice, "Done."])
        look = StructuredTool.from_function(lambda: "Nothing.", name="look", description="Look.")
        schema: Any = DeltaTodoState
        agent: Any = create_agent(model, [look], middleware=[TodoMiddleware()], state_schema=schema)
        results = results_in(agent.invoke({"messages": [("user", "Look.")]}))
        assert [result.tool_call_id for result in results] == [c["id"] for c in twice.tool_calls]

    @given(st.lists(st.lists(st.tuples(st.just("user"), st.sampled_from("ab")), max_size=3)))
    def test_raw_messages_get_the_same_ids_on_every_replay(self, writes: list[Any]) -> None:
        """The batching of checkpoints does not matter, and no two messages share an id."""
        at_once = add_messages_batch([], writes)
        one_by_one: list[AnyMessage] = []
        for write in writes:
            one_by_one = add_messages_batch(one_by_one, [write])
        assert at_once == one_by_one
        assert len({message.id for message in at_once}) == sum(map(len, writes))

    def test_the_last_id_is_that_of_a_reading(self) -> None:
        """A `DeltaChannel` keeps a raw message without an id."""
        history: list[AnyMessage] = [AIMessage("Hm.", id="1"), HumanMessage("hi")]
        assert last_id(history) == [*stable_ids(history)][-1]
        assert (last_id(history[:1]), last_id([])) == ("1", None)

    def test_a_raw_message_replaces_none_that_has_its_predecessor_and_text(self) -> None:
        """For example, a program updates a draft in place and asks the same again."""
        update = [AIMessage("Draft", id="draft"), ("user", "Better, please.")]
        assert [m.type for m in add_messages_batch([], [update] * 3)] == ["ai", *["human"] * 3]

    @pytest.mark.parametrize("role", ["user", "human", "ai", "assistant", "system", "developer"])
    def test_a_tuple_is_one_message_after_a_serializer_made_it_a_list(self, role: str) -> None:
        """`{"messages": ("user", "hi")}` is a common short form."""
        forms = (role, "hi"), [role, "hi"], [(role, "hi")]
        given, replayed, listed = (add_messages_batch([], [each]) for each in forms)
        assert given == replayed == listed

    def test_half_an_emoji_gets_the_id_of_the_text_that_is_stored(self) -> None:
        """Browsers may cut a text in the middle of a character; checkpointers store `?` for it."""
        cut, stored = (add_messages_batch([], [[("user", text)]]) for text in ("a\ud83d", "a?"))
        assert cut[0].text == "a\ud83d"
        assert cut[0].id == stored[0].id


def test_an_object_state_can_be_read() -> None:
    """LangGraph allows dataclasses and models as states."""

    class Thing:
        todos = items("a")

    assert todos_in(Thing()) == items("a")
    assert todos_in(object()) == []
