"""The list that the messages of a prompt show, and the block that a prompt needs beside them."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from todo_tools._view.shown_list import known_list

from tests.support import MIXED, items
from todo_tools import TodoItem
from todo_tools._calls.answers import answer_call
from todo_tools._list.todos import DEFAULT_LIMITS
from todo_tools._thread.reading import same_list
from todo_tools._view.blocks import due_block, record_block

USER = HumanMessage("Begin.", id="user")
LATER = HumanMessage("Something else.", id="later")
WORKED = ToolMessage("Worked.", name="work", tool_call_id="w", id="worked")
SAID = AIMessage("I stop here.", id="said")
DONE = items("a", status="completed")


def result(name: str, args: dict[str, Any], todos: list[TodoItem]) -> ToolMessage:
    answer = answer_call(name, args, todos, DEFAULT_LIMITS)
    details: Any = answer.details
    return ToolMessage(answer.content, name=name, tool_call_id="c", id="result", artifact=details)


def wrote(*texts: str) -> ToolMessage:
    """The result of a call that replaces the list."""
    return result("write_todos", {"mode": "replace", "todos": list(texts)}, [])


def listed(todos: list[TodoItem]) -> ToolMessage:
    """The result of a call that reads the list."""
    return result("list_todos", {}, todos)


def due(*messages: AnyMessage, todos: list[TodoItem], **state: Any) -> dict[str, list[TodoItem]]:
    """The block of a hand-built graph's next prompt."""
    return due_block({"messages": [*messages], "todos": todos, **state}, at_newest=False)


class TestKnown:
    def test_it_is_the_list_that_was_shown_last(self) -> None:
        """Each of these shows a list: a change, a listing, a block."""
        messages = [wrote("a"), listed(MIXED), LATER]
        assert known_list(messages[:1], {}) == items("a")
        assert known_list(messages, {}) == MIXED
        assert known_list(messages, {"later": items("b")}) == items("b")

    def test_messages_without_a_list_show_an_empty_one(self) -> None:
        assert known_list([USER, SAID, WORKED], {}) == []

    def test_a_listing_of_nothing_shows_that_the_list_is_empty(self) -> None:
        assert known_list([wrote("a"), listed([])], {}) == []

    @pytest.mark.parametrize("replaced", [wrote("b"), listed(items("b"))])
    @pytest.mark.parametrize("text", ["[cleared]", "", "– [0] b\n…"])  # noqa: RUF001
    def test_a_result_whose_text_was_replaced_shows_nothing(
        self, replaced: ToolMessage, text: str
    ) -> None:
        """Middleware clears old results or cuts them."""
        cleared = replaced.model_copy(update={"content": text})
        assert known_list([wrote("a"), cleared], {}) == items("a")

    @pytest.mark.parametrize("action", ["list", "edit"])
    def test_a_refused_call_shows_nothing(self, action: str) -> None:
        """This holds even if its text looks like a list."""
        refused = ToolMessage(
            "– [0] b",  # noqa: RUF001
            name=f"{action}_todos",
            tool_call_id="c",
            artifact={"action": action, "todos": [], "error": "no call id"},
        )
        assert known_list([wrote("a"), refused], {}) == items("a")


class TestSameList:
    def test_invisible_characters_look_like_their_marks(self) -> None:
        assert same_list(items("a\nb"), items("a␊b"))

    def test_a_difference_that_a_reader_sees_counts(self) -> None:
        """It may be in a text, in a status, or in the length."""
        for other in (items("b"), DONE, items("a", "a"), []):
            assert not same_list(items("a"), other)


class TestDue:
    def test_a_list_that_is_shown_needs_no_block(self) -> None:
        assert due(USER, wrote("a"), todos=items("a")) == {}
        assert due(USER, todos=items("a"), todo_blocks={"user": items("a")}) == {}

    def test_a_state_without_the_channel_needs_no_block(self) -> None:
        """A graph without todo tools may also use `model_view`."""
        state = {"messages": [USER, wrote("a")]}
        assert due_block(state, at_newest=False) == {}

    def test_it_is_placed_where_every_call_finds_it_again(self) -> None:
        """This is the user's newest message or the last result of the turn with the newest list."""
        new = items("b")
        more: list[AnyMessage] = [AIMessage("", id="called"), WORKED, SAID]
        assert due(USER, *more, todos=new) == {"user": new}
        assert due(USER, wrote("a"), *more, todos=new) == {"result": new}
        assert due(USER, wrote("a"), WORKED, SAID, todos=new) == {"worked": new}
        assert due(USER, wrote("a"), LATER, *more, todos=new) == {"later": new}

    def test_without_these_it_is_placed_at_the_newest_message_of_a_tool(self) -> None:
        """An answer of the model cannot hold it."""
        assert due(SAID, WORKED, SAID, todos=items("a")) == {"worked": items("a")}
        assert due(SAID, todos=items("a")) == {}

    def test_with_the_middleware_it_is_placed_at_the_newest_message(self) -> None:
        """The middleware records it at once, so its place need not be found again."""
        state = {"messages": [USER, SAID, WORKED, SAID], "todos": items("a")}
        assert due_block(state, at_newest=True) == {"worked": items("a")}

    def test_a_list_that_was_finished_before_the_users_message_needs_none(self) -> None:
        """The application finished it, so the results show it as open."""
        assert due(USER, wrote("a"), LATER, todos=DONE) == {}

    def test_a_list_that_is_finished_during_the_task_is_shown(self) -> None:
        """The model must not go on with an item that the application completed."""
        assert due(USER, wrote("a"), todos=DONE) == {"result": DONE}
        assert due(wrote("a"), todos=DONE) == {"result": DONE}

    def test_a_list_that_was_emptied_is_shown(self) -> None:
        assert due(USER, wrote("a"), LATER, todos=[]) == {"later": []}


STATE: dict[str, Any] = {
    "messages": [USER, SAID, WORKED, SAID, LATER, SAID],
    "todos": items("a"),
    "todo_blocks": {},
}


class TestRecord:
    def test_the_block_of_an_earlier_prompt_is_recorded(self) -> None:
        """The prompt had only the messages before the model's answer."""
        assert record_block(STATE, 5) == {"todo_blocks": {"later": items("a")}}
        assert record_block(STATE, 3) == {"todo_blocks": {"user": items("a")}}

    def test_the_blocks_of_messages_that_are_gone_are_removed(self) -> None:
        """`None` removes a block; that of a message that is still there stays."""
        state = {**STATE, "todo_blocks": {"gone": items("b"), "user": items("c")}}
        assert record_block(state, 5) == {"todo_blocks": {"gone": None, "later": items("a")}}

    def test_nothing_is_stored_where_nothing_is_new(self) -> None:
        """The block may be recorded already, and the graph may have no channel for it."""
        known = {**STATE, "todo_blocks": {"user": items("a")}}
        assert record_block(known, 5) == {}
        without = {key: STATE[key] for key in ("messages", "todos")}
        assert record_block(without, 5) == {}

    def test_a_continuation_outside_the_history_may_hold_it(self) -> None:
        """The prompt showed it there, since the history has no message of the user or a tool."""
        loop = {"continuations": {"said": {"text": "Go on.", "lines": ""}}}
        state = {**STATE, "messages": [SAID, AIMessage("Again.")], "todo_loop": loop}
        (recorded,) = record_block(state, 1).values()
        assert list(recorded.values()) == [items("a")]
