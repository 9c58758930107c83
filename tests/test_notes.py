"""The notes tool: its answers, its ids, several calls in one turn, branches."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from graphs.notes import Notes, NotesState, answer_note, fold_notes, notes_tool
from graphs.until_done import build_graph
from tests.support import BEGIN, Graph, items, results_in, tool_graph
from todo_tools.testing import ScriptedChatModel, call, turn

AT = "2025-01-15T14:30:00.000Z"


def noted(*texts: str, next_id: int | None = None) -> Notes:
    """Notes with the ids 1, 2 and so on."""
    notes = [{"id": at, "text": text, "createdAt": AT} for at, text in enumerate(texts, start=1)]
    return {"notes": notes, "nextId": next_id or len(texts) + 1}


def texts(values: Any) -> list[tuple[int, str]]:
    return [(note["id"], note["text"]) for note in values["notes"].get("notes", [])]


def agent_graph(*calls: ToolCall, **settings: Any) -> Graph:
    """A `create_agent` agent whose model makes calls in one AI message; each call is one task."""
    model = ScriptedChatModel(script=[turn("", *calls), "Done."])
    state: Any = NotesState  # despite the annotation, it need not derive from AgentState
    return create_agent(model, [notes_tool()], state_schema=state, **settings)


@pytest.mark.parametrize(
    ("args", "content", "error"),
    [
        ({"action": "add", "text": "c"}, 'Note #3 saved: "c"', ""),
        ({"action": "add"}, "Error: 'text' is required for action 'add'", "text required"),
        (
            {"action": "add", "text": ""},
            "Error: 'text' is required for action 'add'",
            "text required",
        ),
        ({"action": "list"}, f"#1 [{AT}]: a\n#2 [{AT}]: b", ""),
        ({"action": "get", "id": 2}, "#2: b", ""),
        ({"action": "get", "id": "2"}, "#2: b", ""),
        ({"action": "get"}, "Error: 'id' is required for action 'get'", "id required"),
        ({"action": "get", "id": 7}, "Note #7 not found.", "#7 not found"),
        ({"action": "remove", "id": 2}, 'Removed note #2: "b"', ""),
        ({"action": "remove", "id": None}, "Error: 'id' is required for action 'remove'", "id "),
        ({"action": "search"}, "Unknown action: search", "unknown action: search"),
    ],
)
def test_a_call_is_answered(args: dict[str, Any], content: str, error: str) -> None:
    """Every action and every wrong use of it has its text."""
    answered, operation, short = answer_note(args, noted("a", "b"))
    assert answered == content
    assert short.startswith(error)
    assert bool(operation) == (args["action"] in ("add", "remove") and not error)


@given(
    st.dictionaries(
        st.sampled_from(["action", "text", "id"]),
        st.sampled_from(["add", "list", "get", "remove", "x" * 9000, 1, 2])
        | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists),
    )
)
def test_any_arguments_get_an_answer(args: dict[str, Any]) -> None:
    """Errors are short and change nothing; the given notes are not changed."""
    before = noted("a")
    content, operation, error = answer_note(args, before)
    fold_notes(before, operation)
    assert before == noted("a")
    assert not error or (operation is None and len(content) < 150)


@given(st.lists(st.none() | st.integers(1, 9)))
def test_no_sequence_gives_an_id_twice(removals: list[int | None]) -> None:
    """`None` adds a note, and a number removes the note with that id."""
    notes: Notes = {}
    given_ids: list[int] = []
    for removed in removals:
        if removed is None:
            operation = answer_note({"action": "add", "text": "x"}, notes)[1]
            given_ids.append(operation["note"]["id"])
        else:
            operation = answer_note({"action": "remove", "id": removed}, notes)[1]
        notes = fold_notes(notes, operation)
    assert given_ids == list(range(1, len(given_ids) + 1))


def test_a_whole_value_replaces_the_notes_but_frees_no_id() -> None:
    """Subgraphs and applications write whole values; anything else is refused."""
    assert fold_notes(noted("a", "b"), noted("c")) == noted("c", next_id=3)
    assert fold_notes(noted("a"), None) == noted("a")
    with pytest.raises(ValueError, match="takes an operation"):
        fold_notes(noted(), {"op": "rename"})


SIBLINGS = (
    call("notes", action="add", text="a"),
    call("notes", action="add", text="b"),
    call("notes", action="remove", id=1),
    call("notes", action="get", id=1),
    call("write_todos", mode="replace", todos=["t"]),
    call("notes", action="add", text="c"),
    call("notes", action="list"),
)


@pytest.mark.parametrize("is_agent", [False, True])
async def test_calls_of_one_turn_are_applied_in_order(is_agent: bool) -> None:
    """Each sees the changes of those before it, in a tool node and in tasks of their own."""
    calls = SIBLINGS if not is_agent else [each for each in SIBLINGS if each["name"] == "notes"]
    hand_built = build_graph(
        ScriptedChatModel(script=[turn("", *calls), "Stop.", "Stop."]),
        [notes_tool()],
        state_schema=NotesState,
    ).compile()
    final = await (agent_graph(*calls) if is_agent else hand_built).ainvoke(BEGIN)
    answers = [each.text for each in results_in(final) if each.name != "write_todos"]
    assert answers[:-1] == [
        'Note #1 saved: "a"',
        'Note #2 saved: "b"',
        'Removed note #1: "a"',
        "Note #1 not found.",
        'Note #3 saved: "c"',
    ]
    assert re.fullmatch(r"#2 \[\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z\]: b\n#3 \[.{24}\]: c", answers[-1])
    assert texts(final) == [(2, "b"), (3, "c")]
    assert is_agent or final["todos"] == items("t")


def test_a_result_has_details_for_an_interface() -> None:
    """An error is flagged, and the custom stream has a line with the number of notes."""
    graph = tool_graph([notes_tool()], NotesState)
    calls = turn("", call("notes", action="get", id=3), call("notes", action="list"))
    given: Any = {"messages": [calls], "notes": noted("a")}
    failed, listed = results_in(graph.invoke(given))
    assert (failed.status, failed.artifact["error"]) == ("error", "#3 not found")
    assert listed.artifact == {"action": "list", **noted("a")}
    events = list(graph.stream(given, stream_mode="custom"))
    assert {event["status"] for event in events} == {"Notes: 1 saved"}


def test_a_fork_has_its_own_notes_and_next_id(tmp_path: Path, config: RunnableConfig) -> None:
    """It starts at a checkpoint in a SQLite file; the other branch keeps its own notes."""
    adds = [turn("", call("notes", action="add", text=text)) for text in ("a", "b", "c")]
    model = ScriptedChatModel(script=[answer for add in adds for answer in (add, "Kept.")])
    builder = build_graph(model, [notes_tool()], state_schema=NotesState)
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke(BEGIN, config)
        early = graph.get_state(config).config
        main = graph.invoke(BEGIN, config)
        tip = graph.get_state(config).config
        fork = graph.invoke(BEGIN, early)
        assert (texts(main), texts(fork)) == ([(1, "a"), (2, "b")], [(1, "a"), (2, "c")])
        assert texts(graph.get_state(tip).values) == texts(main)


@pytest.mark.parametrize("action", ["add", "list"])
def test_an_agent_in_a_larger_graph_returns_its_notes(action: str) -> None:
    """The agent is a subgraph that shares the channel; the application may edit the notes."""
    builder = StateGraph(NotesState)
    builder.add_node("agent", agent_graph(call("notes", action=action, text="b")))
    graph = builder.add_edge(START, "agent").compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    seeded: Any = {**BEGIN, "notes": noted("a")}
    graph.invoke(seeded, config)
    graph.update_state(config, {"notes": {"op": "remove", "id": 1}})
    assert texts(graph.get_state(config).values) == ([(2, "b")] if action == "add" else [])
