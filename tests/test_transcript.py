"""What a history tells: the list, who spoke, calls without a result, notices for people."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core import messages as core
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from tests.conversations import hand_built, with_middleware
from tests.strategies import todo_lists
from tests.support import BEGIN, Graph, items
from todo_tools import AutoContinue, TodoItem, model_view, todos_from_messages
from todo_tools._thread.transcript import details_of, is_injected
from todo_tools.clients import to_client_todos
from todo_tools.state import validate_todos
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_from_user, pending_calls

WORKED = ToolMessage("Worked.", name="work", tool_call_id="1")
SEEDED: dict[str, Any] = {**BEGIN, "todos": items("a", "b")}
LIMITED = AutoContinue(max_in_turn=1, max_idle=None)
Build = Callable[..., Graph]


def talking() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda _: "I stop here.")


def result(name: str, artifact: Any, call_id: str = "1") -> ToolMessage:
    return ToolMessage("…", name=name, tool_call_id=call_id, artifact=artifact)


def snapshot(todos: Any) -> ToolMessage:
    return result("edit_todos", {"action": "edit", "todos": todos})


def tagged(source: str) -> HumanMessage:
    return HumanMessage("Go on.", additional_kwargs={"lc_source": source})


class TestReconstruction:
    @given(todo_lists)
    def test_the_newest_change_counts(self, todos: list[TodoItem]) -> None:
        """In either format, or in a mix of both; messages may be dicts."""
        history: list[AnyMessage] = [snapshot(items("old")), snapshot(todos)]
        assert todos_from_messages(history) == todos
        as_dicts: Any = [message.model_dump() for message in history]
        assert todos_from_messages(as_dicts) == todos
        theirs = to_client_todos(todos)
        assert todos_from_messages([snapshot([*todos[:1], *theirs[1:]])]) == todos

    def test_reads_and_errors_never_count(self) -> None:
        """They have an empty list in their details; an emptied list stays empty."""
        history: list[AnyMessage] = [
            snapshot(items("a")),
            result("list_todos", {"action": "list", "todos": []}),
            result("write_todos", {"action": "write", "todos": [], "error": "text too long"}),
        ]
        assert todos_from_messages(history) == items("a")
        assert todos_from_messages([*history, snapshot([])]) == []

    def test_items_that_the_state_would_refuse_are_left_out(self) -> None:
        """So the rest of an imported thread can seed a new one."""
        theirs = [{"content": "b"}, {"content": 1, "status": "pending"}, {"content": "d"}]
        blank = items("", " \n", "x" * 100_001)
        stored = [*items("a"), {"text": "b"}, "c", *theirs, *blank, *to_client_todos(items("d"))]
        rebuilt = todos_from_messages([snapshot(stored)])
        assert rebuilt == validate_todos(rebuilt) == items("a", "d")


def test_details_are_only_those_of_the_todo_tools() -> None:
    """Results of other tools, even of the same name, have no such details."""
    details: Any = {"action": "list", "todos": []}
    assert details_of(result("list_todos", details)) == details
    assert details_of(result("search", details)) is None
    assert details_of(result("write_todos", "Updated todo list")) is None
    assert details_of(AIMessage("hi")) is None


@pytest.mark.parametrize("junk", ["x", {"todos": "x"}, {"todos": [{"text": "a"}]}, {"list": "x"}])
def test_notes_that_are_no_list_are_ignored(junk: Any) -> None:
    """A client of a server can write any message."""
    listed = ToolMessage("x", name="list_todos", tool_call_id="1")
    listed.response_metadata = {"todo_tools": junk}
    history = [HumanMessage("a"), turn("", {**call("list_todos"), "id": "1"}), listed]
    shown = model_view({"messages": history, "todos": []})
    assert [message.content for message in shown] == [message.content for message in history]


class TestSpeakers:
    def test_a_person_is_distinguished_from_the_loop_and_from_middleware(self) -> None:
        """Both tag their messages like LangChain."""
        assert is_from_user(HumanMessage("hi"))
        assert is_injected(tagged("todo_tools"))
        assert not is_injected(tagged("summarization"))
        assert not is_injected(HumanMessage("Go on."))
        for other in (tagged("todo_tools"), tagged("summarization"), AIMessage("hi")):
            assert not is_from_user(other)

    @pytest.mark.parametrize("content", ["Wait.", [{"type": "image", "url": "https://a.b/c.png"}]])
    def test_an_untagged_message_after_a_result_counts_as_the_users(self, content: Any) -> None:
        """The previous run was interrupted, or ended with a tool's result."""
        history = [HumanMessage("a"), turn("", call("look")), WORKED, HumanMessage(content)]
        assert is_from_user(history[3])

    @pytest.mark.parametrize("build", [hand_built, with_middleware])
    def test_a_continuation_is_known_by_its_tag_or_its_id(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Middleware may drop the tag; agent-chat-ui hides messages whose ids begin like this.

        The tag equals that of `add_notification_metadata`, if LangChain has that function.
        """
        told = build(talking(), LIMITED).invoke(SEEDED, config)["messages"][-2]
        assert is_injected(told)
        rewritten = HumanMessage("x", id=told.id)
        assert is_injected(rewritten)
        assert not is_from_user(rewritten)
        assert not is_injected(AIMessage("hi", id=told.id))  # a provider chose it
        assert str(told.id).startswith("do-not-render-")
        if add := getattr(core, "add_notification_metadata", None):
            data = told.additional_kwargs["lc_data"]
            made = add(HumanMessage(told.text), source="todo_tools", data=data)
            assert made.additional_kwargs == told.additional_kwargs


class TestPendingCalls:
    def test_earlier_siblings_without_a_result_are_pending(self) -> None:
        """They keep their order. A person may have answered one, and it does not run."""
        first, second, third = (call("list_todos") for _ in range(3))
        history: list[AnyMessage] = [turn("", first, second, third)]
        assert pending_calls({"messages": history}, third["id"]) == [first, second]
        assert pending_calls({"messages": history}, first["id"]) == []
        assert pending_calls({"messages": history}, "of another history") == []
        history.append(ToolMessage("No.", tool_call_id=str(first["id"]), status="error"))
        assert pending_calls({"messages": history}, third["id"]) == [second]

    def test_some_model_servers_use_the_same_ids_in_every_turn(self) -> None:
        """A call is one of the newest answer that has it, and so is a result."""
        first, second = call("write_todos"), call("edit_todos")
        later = [turn("", first), ToolMessage("Done.", tool_call_id=str(first["id"]))]
        state = {"messages": [turn("", first, second), *later]}
        assert pending_calls(state, second["id"]) == [first]
        state = {"messages": [turn("", first, second), HumanMessage("a"), turn("", second)]}
        assert pending_calls(state, second["id"]) == []

    def test_an_edited_sibling_has_the_persons_arguments(self) -> None:
        """LangChain stores edits outside the AI message."""
        first, second = call("write_todos", mode="append"), call("edit_todos")
        edit = {"name": "write_todos", "args": {"mode": "replace"}}
        state = {
            "messages": [turn("", first, second)],
            "hitl_edited_tool_calls": {first["id"]: edit},
        }
        assert pending_calls(state, second["id"]) == [{**first, "args": {"mode": "replace"}}]


@pytest.mark.parametrize("build", [hand_built, with_middleware])
class TestNotices:
    """The notice for people about the end of the loop."""

    def test_a_reached_limit_is_part_of_the_last_answer(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Any interface shows it, and no message is added. The model never reads it."""
        model = talking()
        graph = build(model, LIMITED)
        *_, before, last = graph.invoke(SEEDED, config)["messages"]
        assert before.type == "human"
        assert last.text.startswith("I stop here.\n\n⚠ Stopped after 1 continuation for one")
        graph.invoke({"messages": [("user", "Go on.")]}, config)
        assert not any("Stopped" in message.text for message in model.prompts[-1])


_texts = st.text(min_size=1).filter(str.strip)


@given(
    content=_texts
    | st.lists(_texts.map(lambda text: {"type": "text", "text": text}), min_size=1, max_size=3),
    metadata=st.dictionaries(st.sampled_from("abc"), st.text()),
)
def test_the_models_answer_is_restored_exactly(content: Any, metadata: dict[str, str]) -> None:
    """The model reads its own answers without the notices, whatever their form."""
    answer = AIMessage(content, id="1", response_metadata=metadata)
    graph = hand_built(ScriptedChatModel(script=[answer]), replace(LIMITED, max_in_turn=0))
    final = graph.invoke(SEEDED, {"configurable": {"thread_id": "1"}})
    assert "⚠ Stopped" in final["messages"][-1].text
    assert model_view(final)[-1] == answer


@pytest.mark.parametrize(
    ("result_id", "text", "is_made_up"),
    [
        ("do-not-render-1", "Successfully handled tool call.", True),
        ("do-not-render-1", "Worked.", False),
        ("1", "Successfully handled tool call.", False),
    ],
)
def test_a_result_that_agent_chat_ui_made_up_is_none(
    result_id: str, text: str, is_made_up: bool
) -> None:
    """It makes one for each call that waits, if a person writes a message instead of deciding."""
    made = call("work")
    given_result = ToolMessage(text, name="work", tool_call_id=made["id"], id=result_id)
    shown: Any = model_view({"messages": [turn("", made), given_result]})[-1]
    assert ("the run ended before" in shown.text) is is_made_up
    assert shown.status == ("error" if is_made_up else "success")
    assert given_result.text == text
