"""The notes tool: its answers, its ids, several calls in one turn, branches."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from graphs.notes import Notes, NotesState, answer_note, build_graph, fold_notes, notes_tool
from tests.support import Graph, items, results_in, tool_graph
from todo_tools.testing import ScriptedChatModel, call, turn

AT = "2025-01-15T14:30:00.000Z"
LATER = "2025-01-15T14:31:00.000Z"


def noted(*texts: str, next_id: int | None = None) -> Notes:
    """Notes with the ids 1, 2 and so on."""
    notes: Notes = {"notes": [], "nextId": next_id or len(texts) + 1}
    for number, text in enumerate(texts, start=1):
        notes["notes"].append({"id": number, "text": text, "createdAt": AT})
    return notes


def notes_graph(state: Any = NotesState) -> Graph:
    """A graph that only runs the notes calls of the last message."""
    return tool_graph([notes_tool()], state)


def agent_graph(*calls: ToolCall, **settings: Any) -> Graph:
    """A `create_agent` agent whose model makes calls in one AI message; each call is one task."""
    model = ScriptedChatModel(script=[turn("", *calls), "Done."])
    state: Any = NotesState  # despite the annotation, it need not derive from AgentState
    return create_agent(model, [notes_tool()], state_schema=state, **settings)


def texts(values: Mapping[str, Any]) -> list[tuple[int, str]]:
    return [(note["id"], note["text"]) for note in values["notes"]["notes"]]


class TestAnswers:
    """The text and the details are exactly as specified."""

    @pytest.mark.parametrize(
        ("args", "before", "content", "details"),
        [
            (
                {"action": "add", "text": "b"},
                noted("a"),
                'Note #2 saved: "b"',
                {"action": "add", **noted("a", "b")},
            ),
            (
                {"action": "add"},
                noted("a"),
                "Error: 'text' is required for action 'add'",
                {"action": "add", **noted("a"), "error": "text required"},
            ),
            (
                {"action": "add", "text": ""},
                noted(),
                "Error: 'text' is required for action 'add'",
                {"action": "add", **noted(), "error": "text required"},
            ),
            ({"action": "list"}, noted(), "No notes saved yet.", {"action": "list", **noted()}),
            (
                {"action": "list"},
                noted("a", "b"),
                f"#1 [{AT}]: a\n#2 [{AT}]: b",
                {"action": "list", **noted("a", "b")},
            ),
            (
                {"action": "get", "id": 2},
                noted("a", "b"),
                "#2: b",
                {"action": "get", **noted("a", "b")},
            ),
            (
                {"action": "get"},
                noted("a"),
                "Error: 'id' is required for action 'get'",
                {"action": "get", **noted("a"), "error": "id required"},
            ),
            (
                {"action": "get", "id": 7},
                noted("a"),
                "Note #7 not found.",
                {"action": "get", **noted("a"), "error": "#7 not found"},
            ),
            (
                {"action": "get", "id": 1.5},
                noted("a"),
                "Note #1.5 not found.",
                {"action": "get", **noted("a"), "error": "#1.5 not found"},
            ),
            (
                {"action": "remove", "id": 2},
                noted("a", "b"),
                'Removed note #2: "b"',
                {"action": "remove", **noted("a", next_id=3)},
            ),
            (
                {"action": "remove"},
                noted("a"),
                "Error: 'id' is required for action 'remove'",
                {"action": "remove", **noted("a"), "error": "id required"},
            ),
            (
                {"action": "remove", "id": 0},
                noted("a"),
                "Note #0 not found.",
                {"action": "remove", **noted("a"), "error": "#0 not found"},
            ),
            (
                {"action": "search"},
                noted("a"),
                "Unknown action: search",
                {"action": "list", **noted("a"), "error": "unknown action: search"},
            ),
        ],
    )
    def test_a_call_is_answered_as_specified(
        self, args: dict[str, Any], before: Notes, content: str, details: dict[str, Any]
    ) -> None:
        """Every action and every wrong use of it is covered."""
        answered, details_after, operation = answer_note(args, before, AT)
        assert (answered, details_after) == (content, details)
        after = fold_notes(before, operation)
        assert after == {"notes": details["notes"], "nextId": details["nextId"]}

    @pytest.mark.parametrize("number", ["2", 2.0, " 2 "])
    def test_a_number_in_another_form_is_accepted(self, number: object) -> None:
        """Models also write numbers as strings or floats."""
        assert answer_note({"action": "get", "id": number}, noted("a", "b"), AT)[0] == "#2: b"

    @pytest.mark.parametrize(
        ("args", "content"),
        [
            ({}, "Unknown action: null"),
            ({"action": ["add"]}, "Unknown action: a list of 1"),
            ({"action": "add", "text": 5}, "Error: 'text' must be a string, got 5"),
            ({"action": "get", "id": True}, "Note #true not found."),
            ({"action": "get", "id": 10**9000}, "Note #a very large number not found."),
            ({"action": "remove", "id": {"id": 1}}, "Note #an object not found."),
        ],
    )
    def test_malformed_arguments_are_named(self, args: dict[str, Any], content: str) -> None:
        """The error does not repeat the arguments."""
        assert answer_note(args, noted("a"), AT)[0] == content

    @given(
        st.dictionaries(
            st.sampled_from(["action", "text", "id", "runtime"]),
            st.sampled_from(["add", "list", "get", "remove", "x" * 9000, 1, 2])
            | st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            ),
        )
    )
    def test_any_arguments_get_an_answer(self, args: dict[str, Any]) -> None:
        """Errors are short and change nothing; the given notes are not changed."""
        before = noted("a")
        content, details, operation = answer_note(args, before, LATER)
        assert before == noted("a")
        if "error" in details:
            assert operation is None
            assert len(content) < 150
        after = fold_notes(before, operation)
        assert (after["notes"], after["nextId"]) == (details["notes"], details["nextId"])


class TestFold:
    def test_ids_never_repeat_after_a_removal(self) -> None:
        """This holds even if the last note or all notes are removed."""
        notes = fold_notes(noted("a", "b"), {"op": "remove", "id": 2})
        notes = fold_notes(notes, {"op": "remove", "id": 1})
        assert notes == noted(next_id=3)
        notes = fold_notes(notes, {"op": "add", "text": "c", "createdAt": LATER})
        assert notes == {"notes": [{"id": 3, "text": "c", "createdAt": LATER}], "nextId": 4}

    @given(st.lists(st.none() | st.integers(1, 9)))
    def test_no_sequence_gives_an_id_twice(self, removals: list[int | None]) -> None:
        """`None` adds a note, and a number removes the note with that id."""
        notes, given_ids = noted(), list[int]()
        for removed in removals:
            if removed is None:
                given_ids.append(notes["nextId"])
                update: dict[str, Any] = {"op": "add", "text": "x", "createdAt": AT}
            else:
                update = {"op": "remove", "id": removed}
            notes = fold_notes(notes, update)
        assert given_ids == list(range(1, len(given_ids) + 1))

    def test_a_whole_value_replaces_the_notes_but_no_id_is_freed(self) -> None:
        """Subgraphs and applications write whole values; `None` changes nothing."""
        assert fold_notes(noted("a", "b"), noted("c")) == noted("c", next_id=3)
        assert fold_notes(noted(), noted("a", "b", next_id=1)) == noted("a", "b")
        assert fold_notes(noted("a"), None) == noted("a")

    @pytest.mark.parametrize(
        ("update", "reason"),
        [
            ({"op": "rename"}, "takes an operation .* got {'op': 'rename'}"),
            ({"op": "add", "text": 1}, "takes an operation"),
            ({"op": "add", "id": "7", "text": "a", "createdAt": AT}, "takes an operation"),
            ({"notes": "a", "nextId": 1}, "should be a valid list"),
            (
                {"notes": [{"id": 1, "text": "a"}], "nextId": 2},
                r"notes.0.createdAt\s+Field required",
            ),
        ],
    )
    def test_anything_else_is_refused(self, update: dict[str, Any], reason: str) -> None:
        """The error says what is allowed and what was given."""
        with pytest.raises(ValueError, match=reason):
            fold_notes(noted(), update)


SIBLINGS = (
    call("notes", action="add", text="a"),
    call("notes", action="add", text="b"),
    call("notes", action="remove", id=1),
    call("notes", action="get", id=1),
    call("notes", action="add", text="c"),
    call("notes", action="list"),
)


class TestSeveralCallsInOneTurn:
    """Calls are applied in order, and each sees the changes of those before it."""

    def check(self, final: dict[str, Any]) -> None:
        *answers, listing = [message.text for message in results_in(final)]
        assert answers == [
            'Note #1 saved: "a"',
            'Note #2 saved: "b"',
            'Removed note #1: "a"',
            "Note #1 not found.",
            'Note #3 saved: "c"',
        ]
        assert texts(final) == [(2, "b"), (3, "c")]
        stored = final["notes"]
        assert listing == "\n".join(
            f"#{note['id']} [{note['createdAt']}]: {note['text']}" for note in stored["notes"]
        )
        assert results_in(final)[-1].artifact == {"action": "list", **stored}

    def test_in_a_tool_node(self) -> None:
        """One task runs all of them in threads."""
        self.check(notes_graph().invoke({"messages": [turn("", *SIBLINGS)]}))

    async def test_in_a_tool_node_asynchronously(self) -> None:
        """One task gathers all of them."""
        self.check(await notes_graph().ainvoke({"messages": [turn("", *SIBLINGS)]}))

    def test_in_create_agent(self) -> None:
        """Each call is one task."""
        self.check(agent_graph(*SIBLINGS).invoke({"messages": [("user", "Begin.")]}))

    async def test_in_create_agent_asynchronously(self) -> None:
        """Each call is one task."""
        self.check(await agent_graph(*SIBLINGS).ainvoke({"messages": [("user", "Begin.")]}))

    def test_many_at_once_have_one_time(self) -> None:
        """So every result matches the state, to the millisecond."""
        calls = [call("notes", action="add", text=str(n)) for n in range(12)]
        final = agent_graph(*calls).invoke({"messages": [("user", "Begin.")]})
        stored = final["notes"]["notes"]
        assert [note["id"] for note in stored] == list(range(1, 13))
        for at, message in enumerate(results_in(final), start=1):
            assert message.artifact["notes"] == stored[:at]

    def test_calls_of_other_tools_between_them_do_not_count(self) -> None:
        """Notes and todos are in one state and do not affect each other."""
        model = ScriptedChatModel(
            script=[
                turn(
                    "",
                    call("notes", action="add", text="a"),
                    call("write_todos", mode="replace", todos=["t"]),
                    call("notes", action="add", text="b"),
                    call("edit_todos", action="complete", indices=[0]),
                ),
                "Done.",
            ]
        )
        final = build_graph(model).compile().invoke({"messages": [("user", "Begin.")]})
        assert texts(final) == [(1, "a"), (2, "b")]
        assert final["todos"] == items("t", status="completed")
        assert final["todo_loop"]["outcome"] == "finished"

    def test_a_note_has_the_id_that_the_model_was_told(self, config: RunnableConfig) -> None:
        """A person may reject an earlier call of the message, which this one cannot know."""
        asks = HumanInTheLoopMiddleware[Any, Any, Any]({"notes": True}, interrupt_mode="per_call")
        calls = [call("notes", action="add", text=text) for text in ("a", "b")]
        agent = agent_graph(*calls, middleware=[asks], checkpointer=InMemorySaver())
        agent.invoke({"messages": [("user", "Begin.")]}, config)
        first, second = (each.id for each in agent.get_state(config).interrupts)
        answers = {first: {"type": "reject"}, second: {"type": "approve"}}
        final = agent.invoke(Command(resume=answers), config)
        assert results_in(final)[-1].text == 'Note #2 saved: "b"'
        assert texts(final) == [(2, "b")]


class TestResults:
    def run(self, *calls: ToolCall, **state: Any) -> dict[str, Any]:
        return notes_graph().invoke({"messages": [turn("", *calls)], **state})

    def test_the_time_is_that_of_the_call(self) -> None:
        """It is ISO 8601 in UTC, with milliseconds and `Z`."""
        before = datetime.now(UTC) - timedelta(milliseconds=1)  # the precision of the last digit
        (note,) = self.run(call("notes", action="add", text="a"))["notes"]["notes"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", note["createdAt"])
        assert before <= datetime.fromisoformat(note["createdAt"]) <= datetime.now(UTC)

    def test_an_error_is_flagged(self) -> None:
        """The model and the application both see it."""
        final = self.run(call("notes", action="get", id=3), call("notes", action="list"))
        assert [message.status for message in results_in(final)] == ["error", "success"]
        assert results_in(final)[0].artifact["error"] == "#3 not found"
        assert final["notes"] == {}

    @pytest.mark.parametrize(
        "args", [{}, {"action": 5}, {"config": 1, "self": 2, "run_manager": 3, "args": [4]}]
    )
    async def test_malformed_arguments_never_raise(self, args: dict[str, Any]) -> None:
        """Argument names may clash with names that Python or LangChain use."""
        bad = ToolCall(name="notes", args=args, id="1", type="tool_call")
        state = {"messages": [turn("", bad)]}
        for final in (notes_graph().invoke(state), await notes_graph().ainvoke(state)):
            (message,) = results_in(final)
            assert message.status == "error"
            assert message.text.startswith("Unknown action: ")

    def test_a_forged_runtime_is_replaced(self) -> None:
        """The model cannot pass its own state."""
        forged = call("notes", action="get", id=1, runtime={"state": {"notes": noted("forged")}})
        (message,) = results_in(self.run(forged, notes=noted("real")))
        assert message.text == "#1: real"

    def test_details_share_nothing_with_the_state(self) -> None:
        """A reader may change the details without changing the state."""
        final = self.run(call("notes", action="list"), notes=noted("a"))
        final["notes"]["notes"][0]["text"] = "changed"
        assert results_in(final)[0].artifact["notes"] == noted("a")["notes"]

    def test_changes_are_written_to_the_custom_stream(self) -> None:
        """Each has a status line; reads and errors write nothing."""
        state: dict[str, Any] = {"messages": [turn("", *SIBLINGS)]}
        events = list(notes_graph().stream(state, stream_mode="custom"))
        assert sorted(event["status"] for event in events) == [
            "Notes: 1 saved",
            "Notes: 1 saved",
            "Notes: 2 saved",
            "Notes: 2 saved",
        ]

    @pytest.mark.parametrize("state", [MessagesState, None])
    def test_without_the_channel_the_tool_says_so(self, state: Any) -> None:
        """This is so in another graph and outside any graph."""
        add = call("notes", action="add", text="a")
        if state:
            (message,) = results_in(notes_graph(state).invoke({"messages": [turn("", add)]}))
        else:
            message = notes_tool().invoke(add)
        assert message.status == "error"
        assert "NotesState" in message.text


def three_notes() -> ScriptedChatModel:
    """A model that keeps one note for each message of the user."""
    adds = [turn("", call("notes", action="add", text=text)) for text in ("a", "b", "c")]
    return ScriptedChatModel(script=[adds[0], "Kept.", adds[1], "Kept.", adds[2], "Kept."])


def only_a(values: dict[str, Any]) -> bool:
    return bool(values.get("notes")) and texts(values) == [(1, "a")]


class TestBranches:
    """Each branch has its own notes and its own next id."""

    def test_a_fork_has_its_own_notes_and_next_id(
        self, tmp_path: Path, config: RunnableConfig
    ) -> None:
        """It starts at a checkpoint in a SQLite file; the other branch keeps its own notes."""
        path = str(tmp_path / "threads.sqlite")
        with SqliteSaver.from_conn_string(path) as saver:
            graph = build_graph(three_notes()).compile(checkpointer=saver)
            graph.invoke({"messages": [("user", "First.")]}, config)
            main = graph.invoke({"messages": [("user", "Second.")]}, config)
            tip = graph.get_state(config).config
            early = next(s for s in graph.get_state_history(config) if only_a(s.values))
            fork = graph.invoke({"messages": [("user", "Third.")]}, early.config)
        assert texts(main) == [(1, "a"), (2, "b")]
        assert texts(fork) == [(1, "a"), (2, "c")]
        with SqliteSaver.from_conn_string(path) as saver:
            graph = build_graph(three_notes()).compile(checkpointer=saver)
            assert graph.get_state(config).values["notes"] == fork["notes"]
            assert graph.get_state(tip).values["notes"] == main["notes"]
            assert fork["notes"]["nextId"] == main["notes"]["nextId"] == 3

    async def test_a_fork_works_asynchronously(
        self, tmp_path: Path, config: RunnableConfig
    ) -> None:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
            graph = build_graph(three_notes()).compile(checkpointer=saver)
            await graph.ainvoke({"messages": [("user", "First.")]}, config)
            await graph.ainvoke({"messages": [("user", "Second.")]}, config)
            history = [snapshot async for snapshot in graph.aget_state_history(config)]
            early = next(snapshot for snapshot in history if only_a(snapshot.values))
            fork = await graph.ainvoke({"messages": [("user", "Third.")]}, early.config)
        assert texts(fork) == [(1, "a"), (2, "c")]

    def test_the_application_edits_a_branch_with_operations(self, config: RunnableConfig) -> None:
        """`update_state` takes the same operations as the tool."""
        graph = build_graph(three_notes()).compile(checkpointer=InMemorySaver())
        graph.invoke({"messages": [("user", "First.")]}, config)
        graph.update_state(config, {"notes": {"op": "remove", "id": 1}})
        assert graph.get_state(config).values["notes"] == noted(next_id=2)

    @pytest.mark.parametrize(
        ("made", "seed", "after"),
        [
            (call("notes", action="add", text="b"), {"notes": noted("a")}, [(1, "a"), (2, "b")]),
            (call("notes", action="list"), {"notes": noted("a")}, [(1, "a")]),
            (call("notes", action="list"), {}, []),
        ],
    )
    def test_an_agent_in_a_larger_graph_returns_its_notes(
        self, made: ToolCall, seed: dict[str, Any], after: list[tuple[int, str]]
    ) -> None:
        """The agent is a subgraph that shares the channel."""
        builder = StateGraph(NotesState)
        builder.add_node("agent", agent_graph(made))
        builder.add_edge(START, "agent")
        begin: Any = {"messages": [("user", "Go.")], **seed}
        final = builder.compile().invoke(begin)
        assert [(note["id"], note["text"]) for note in final["notes"].get("notes", [])] == after


class TestSchema:
    def test_the_schema_is_small_and_names_what_each_action_needs(self) -> None:
        """The model does not see the runtime."""
        schema = convert_to_openai_tool(notes_tool())["function"]["parameters"]
        assert schema["required"] == ["action"]
        assert list(schema["properties"]) == ["action", "text", "id"]
        assert schema["properties"]["action"]["enum"] == ["add", "list", "get", "remove"]
        assert schema["properties"]["text"]["type"] == "string"
        assert schema["properties"]["id"]["type"] == "integer"
