"""Reading a history."""

from typing import Any

import pytest
from hypothesis import given
from langchain_core import messages as core
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from tests.strategies import todo_lists
from tests.support import items
from todo_tools import TodoDetails, TodoItem, todos_from_messages
from todo_tools._list.formats import in_format
from todo_tools._thread.transcript import continuation_lines, continuation_message
from todo_tools.clients import to_client_todos
from todo_tools.testing import call, turn
from todo_tools.transcript import (
    details_of,
    is_from_user,
    is_injected,
    last_user_message,
    pending_calls,
)


def result(name: str, artifact: Any, call_id: str = "1") -> ToolMessage:
    return ToolMessage("…", name=name, tool_call_id=call_id, artifact=artifact)


def snapshot(todos: list[TodoItem]) -> ToolMessage:
    return result("edit_todos", {"action": "edit", "todos": todos})


class TestReconstruction:
    @given(todo_lists)
    def test_the_newest_change_counts(self, todos: list[TodoItem]) -> None:
        history: list[AnyMessage] = [snapshot(items("old")), snapshot(todos)]
        assert todos_from_messages(history) == todos

    @given(todo_lists)
    def test_the_format_of_the_artifact_does_not_matter(self, todos: list[TodoItem]) -> None:
        """A thread may change its format, and a list may mix both."""
        theirs = in_format(todos, "langchain")
        assert todos_from_messages([snapshot(theirs)]) == todos
        assert todos_from_messages([snapshot(todos[:1] + theirs[1:])]) == todos

    def test_reads_and_errors_never_count(self) -> None:
        """They have an empty list in their details, which is ignored."""
        history: list[AnyMessage] = [
            snapshot(items("a")),
            result("list_todos", {"action": "list", "todos": []}),
            result("write_todos", {"action": "write", "todos": [], "error": "text too long"}),
        ]
        assert todos_from_messages(history) == items("a")

    def test_an_emptied_list_stays_empty(self) -> None:
        """The older list is not restored."""
        assert todos_from_messages([snapshot(items("a")), snapshot([])]) == []

    def test_without_results_there_is_no_list(self) -> None:
        """Results of other libraries' tools with the same names do not count."""
        history: list[AnyMessage] = [HumanMessage("hi"), result("write_todos", None)]
        assert todos_from_messages(history) == []

    def test_damaged_items_are_left_out(self) -> None:
        """The rest of an imported thread is still useful."""
        theirs = [{"content": "b"}, {"content": 1, "status": "pending"}, {"content": "d"}]
        stored: Any = [*items("a"), {"text": "b"}, "c", *theirs, *to_client_todos(items("d"))]
        damaged = snapshot(stored)
        assert todos_from_messages([damaged]) == items("a", "d")


class TestSpeakers:
    def test_a_person_is_distinguished_from_the_loop_and_from_middleware(self) -> None:
        """Both tag their messages like LangChain."""
        tagged = HumanMessage("Summary", additional_kwargs={"lc_source": "summarization"})
        assert is_from_user(HumanMessage("hi"))
        assert not is_from_user(continuation_message("Go on."))
        assert not is_from_user(tagged)
        assert not is_from_user(AIMessage("hi"))

    def test_a_continuation_is_known_by_its_id_as_well(self) -> None:
        """Middleware that rewrites messages may drop the tag."""
        ours = continuation_message("Go on.")
        assert not is_from_user(HumanMessage(ours.text, id=ours.id))

    def test_a_continuation_is_hidden_where_agent_chat_ui_hides_messages(self) -> None:
        """Its source calls the prefix `DO_NOT_RENDER_ID_PREFIX`; the rest of the id is random."""
        first, second = continuation_message("Go on."), continuation_message("Go on.")
        assert str(first.id).startswith("do-not-render-")
        assert first.id != second.id

    def test_a_continuation_has_langchains_metadata(self) -> None:
        """It equals that of `add_notification_metadata`, if LangChain has that function."""
        ours = continuation_message("Go on.\n\n- a", "- a")
        data = {"type": "continuation", "lines": "- a"}
        assert ours.additional_kwargs == {"lc_source": "todo_tools", "lc_data": data}
        if add := getattr(core, "add_notification_metadata", None):
            assert add(HumanMessage(ours.text, id=ours.id), source="todo_tools", data=data) == ours

    def test_a_continuation_of_an_older_version_is_still_known(self) -> None:
        """It is recognised by its tag, by its id alone, and with its lines."""
        kwargs = {"lc_source": "todo_tools", "todo_lines": "- a"}
        data = {"content": "Go on.", "id": "todo-tools-1", "additional_kwargs": kwargs}
        (stored,) = core.messages_from_dict([{"type": "human", "data": data}])
        assert is_injected(stored)
        assert continuation_lines(stored) == "- a"
        assert not is_from_user(stored)
        assert not is_from_user(HumanMessage("Go on.", id="todo-tools-1"))

    def test_a_picture_directly_after_a_result_counts_as_the_tools(self) -> None:
        """Tools return pictures and files in this way, also several at once."""
        shown = ToolMessage("A picture:", tool_call_id="1")
        picture = HumanMessage(
            [{"type": "text", "text": "Look:"}, {"type": "image", "url": "https://a.b/c.png"}]
        )
        history = [HumanMessage("a"), turn("", call("look")), shown, picture]
        assert last_user_message(history) == 0
        assert last_user_message([*history, picture]) == 0
        assert last_user_message([*history, AIMessage("b"), picture]) == 5

    @pytest.mark.parametrize("content", ["Wait.", [{"type": "text", "text": "Wait."}]])
    def test_a_text_directly_after_a_result_counts_as_the_users(self, content: Any) -> None:
        """The previous run was interrupted, or ended with a tool's result."""
        result = ToolMessage("Done.", tool_call_id="1")
        history = [HumanMessage("a"), turn("", call("look")), result, HumanMessage(content)]
        assert last_user_message(history) == 3

    def test_the_last_message_of_the_user_is_found(self) -> None:
        """The result is `None` if the message was summarized away."""
        history = [HumanMessage("a"), HumanMessage("b"), AIMessage("c"), continuation_message("d")]
        assert last_user_message(history) == 1
        assert last_user_message(history[2:]) is None


class TestPendingCalls:
    def test_earlier_siblings_without_a_result_are_pending(self) -> None:
        """They keep their order; later siblings are not pending."""
        first, second, third = (call("list_todos") for _ in range(3))
        history = [turn("", first, second, third)]
        assert pending_calls({"messages": history}, third["id"]) == [first, second]
        assert pending_calls({"messages": history}, first["id"]) == []

    def test_an_answered_sibling_is_not_pending(self) -> None:
        """A person rejected the call, or it ran in an earlier step."""
        first, second = call("write_todos"), call("edit_todos")
        rejected = ToolMessage("No.", tool_call_id=str(first["id"]), status="error")
        history = [turn("", first, second), rejected]
        assert pending_calls({"messages": history}, second["id"]) == []

    def test_a_result_of_a_later_turn_answers_nothing(self) -> None:
        """Some model servers use the same ids in every turn."""
        first, second = call("write_todos"), call("edit_todos")
        later = [turn("", first), ToolMessage("Done.", tool_call_id=str(first["id"]))]
        assert pending_calls({"messages": [turn("", first, second), *later]}, second["id"]) == [
            first
        ]

    def test_an_edited_sibling_has_the_persons_arguments(self) -> None:
        """LangChain stores edits outside the AI message."""
        first, second = call("write_todos", mode="append"), call("edit_todos")
        edit = {"name": "write_todos", "args": {"mode": "replace"}}
        state = {
            "messages": [turn("", first, second)],
            "hitl_edited_tool_calls": {first["id"]: edit},
        }
        assert pending_calls(state, second["id"]) == [{**first, "args": {"mode": "replace"}}]

    def test_a_call_that_no_model_made_has_no_siblings(self) -> None:
        """An application may run a tool by itself."""
        assert pending_calls({"messages": [turn("", call("list_todos"))]}, "unknown") == []


def test_details_are_only_those_of_the_todo_tools() -> None:
    """Results of other tools, even of the same name, have no such details."""
    details: TodoDetails = {"action": "list", "todos": []}
    assert details_of(result("list_todos", details)) == details
    assert details_of(result("search", details)) is None
    assert details_of(result("write_todos", "Updated todo list")) is None
    assert details_of(AIMessage("hi")) is None
