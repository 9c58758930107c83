"""What a live view knows, chunk by chunk."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Interrupt

from tests.strategies import json_values
from tests.support import items
from todo_tools import TodoItem
from todo_tools.clients import to_client_todos
from todo_tools.events import continue_question, countdown_event, todos_event
from todo_tools.rendering._run import Followed, advance, changes, status_part
from todo_tools.testing import turn

A = items("a")
B = items("a", "b")
CLIENT_A: Any = to_client_todos(A)
PLANNED: Any = turn(
    "",
    {"name": "write_todos", "args": {}, "id": "first", "type": "tool_call"},
    {"name": "edit_todos", "args": {}, "id": "second", "type": "tool_call"},
)


def after(*chunks: object) -> Followed:
    followed = Followed()
    for chunk in chunks:
        followed = advance(followed, chunk)
    return followed


def result(call_id: str, todos: list[TodoItem], **details: Any) -> dict[str, Any]:
    artifact = {"action": "edit", "todos": todos, **details}
    message = ToolMessage("...", name="edit_todos", tool_call_id=call_id, artifact=artifact)
    return {"tools": {"messages": [message]}}


def loop_event(outcome: str | None, text: str = "") -> dict[str, Any]:
    return {"type": "todo_loop", "outcome": outcome, "in_a_row": 1, "in_turn": 1, "text": text}


class TestModes:
    @pytest.mark.parametrize(
        "chunk",
        [
            ("custom", todos_event(A)),
            todos_event(A),
            ((), "custom", todos_event(A)),
            ((), todos_event(A)),
            {"type": "custom", "ns": (), "data": todos_event(A)},
            ("values", {"messages": [], "todos": A}),
            {"messages": [], "todos": A},
            ("updates", {"agent": {"todos": A}}),
            {"agent": {"todos": A}},
            ("updates", result("1", A)),
            ("updates", {"tools": [{"todos": {"op": "append"}}, result("1", A)["tools"]]}),
        ],
    )
    def test_a_list_is_found_in_every_form_of_a_chunk(self, chunk: object) -> None:
        """Streams have one mode or several, with or without subgraphs, in two versions."""
        assert after(chunk).todos == A

    @pytest.mark.parametrize(
        "chunk",
        [
            ("values", {"todos": CLIENT_A}),
            ("custom", todos_event(A, todos_format="langchain")),
            ("updates", result("1", CLIENT_A)),
        ],
    )
    def test_a_list_in_client_format_is_read(self, chunk: object) -> None:
        """All lists of a graph may have that format."""
        assert after(chunk).todos == A

    @pytest.mark.parametrize(
        "chunk",
        [
            ("custom", {"type": "todos", "todos": [{"title": "a", "done": False}]}),
            ("values", {"todos": [{"title": "a", "done": False}]}),
            (("worker:1",), "custom", todos_event(A)),
            (("worker:1",), todos_event(A)),
            {"type": "custom", "ns": ("worker:1",), "data": todos_event(A)},
            ("updates", result("1", [], error="no todos exist")),
            ("updates", {"agent": None}),
            ("messages", (AIMessage("a"), {})),
            (AIMessage("a"), {}),
            None,
            "todos",
        ],
    )
    def test_what_is_not_the_list_of_this_graph_changes_nothing(self, chunk: object) -> None:
        """Lists of other libraries and of subgraphs, errors and other modes are ignored."""
        assert after(("custom", todos_event(B)), chunk).todos == B

    @given(json_values | st.tuples(json_values, json_values))
    def test_no_chunk_breaks_it(self, chunk: object) -> None:
        """An application may write anything to its stream."""
        assert isinstance(after(("custom", chunk), ("updates", chunk), chunk), Followed)


class TestOrder:
    def test_the_last_call_of_a_message_wins_whatever_arrives_last(self) -> None:
        """The calls of one message run at the same time."""
        chunks: list[object] = [
            ("updates", {"agent": {"messages": [PLANNED]}}),
            ("custom", todos_event(B)),
            ("updates", result("second", B)),
            ("custom", todos_event(A)),
            ("updates", result("first", A)),
        ]
        assert after(*chunks).todos == B

    def test_the_calls_of_the_next_message_come_after_all_of_this_one(self) -> None:
        chunks: list[object] = [
            ("updates", {"agent": {"messages": [PLANNED]}}),
            ("updates", result("second", B)),
            ("updates", {"agent": {"messages": [PLANNED]}}),
            ("updates", result("first", A)),
        ]
        assert after(*chunks).todos == A


class TestNotices:
    def test_the_countdown_is_shown_until_the_agent_continues(self) -> None:
        counting = after(("custom", countdown_event(2)), ("custom", countdown_event(1)))
        assert "in 1s" in counting.shown[1]
        assert advance(counting, ("custom", loop_event(None))).shown[1] == ""

    def test_a_notice_stays_until_the_list_changes(self) -> None:
        """It says why the loop stopped."""
        stopped = after(("custom", loop_event("limit_in_turn", "⚠ Stopped")))
        assert list(map(str, status_part(stopped))) == ["⚠ Stopped"]
        assert advance(stopped, ("custom", todos_event(A))).shown == (A, "")

    def test_a_question_is_shown(self) -> None:
        """The loop asks it before it continues."""
        asked = ("updates", {"__interrupt__": (Interrupt(value=continue_question(A)),)})
        assert "Continue?" in after(asked).shown[1]


class TestChanges:
    def test_only_what_changed_is_printed_again(self) -> None:
        """The status line follows it."""
        done = [*items("a", status="completed"), *items("b")]
        assert list(map(str, changes(Followed(B), Followed(done)))) == ["✓ [0] a", "📋 1/2"]

    def test_added_items_are_printed_alone(self) -> None:
        """This holds where they were added at the end."""
        assert list(map(str, changes(Followed(A), Followed(B)))) == [
            "– [1] b",  # noqa: RUF001
            "📋 0/2",
        ]

    def test_a_list_that_moved_is_printed_whole(self) -> None:
        """Every index has another meaning then."""
        moved = items("b", "a")
        lines = changes(Followed(B), Followed(moved))
        assert list(map(str, lines)) == ["– [0] b", "– [1] a", "📋 0/2"]  # noqa: RUF001

    def test_an_emptied_list_says_so(self) -> None:
        assert list(map(str, changes(Followed(A), Followed([])))) == ["No todos"]

    def test_a_second_of_the_countdown_is_one_line(self) -> None:
        """Nothing else is repeated."""
        lines = changes(Followed(A), Followed(A, countdown="⏳ 3s"))
        assert list(map(str, lines)) == ["⏳ 3s"]
