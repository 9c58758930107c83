"""Reading a history."""

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
from tests.support import BEGIN, Graph, items, result_of
from todo_tools import AutoContinue, TodoItem, todos_from_messages
from todo_tools._list.prompts import CUT_OFF
from todo_tools._list.todos import TodoDetails
from todo_tools._thread.channels import fold_todos
from todo_tools._thread.notes import as_read, continuation_message, listed_in, with_notice
from todo_tools._thread.notes import note_of as result_note
from todo_tools._thread.transcript import continuation_lines, place_of_call
from todo_tools.clients import to_client_todos
from todo_tools.events import LoopEvent
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import (
    details_of,
    is_from_user,
    is_injected,
    last_user_message,
    pending_calls,
)

WORKED = ToolMessage("Worked.", name="work", tool_call_id="1")
SEEDED: dict[str, Any] = {**BEGIN, "todos": items("a", "b")}
LIMITED = AutoContinue(max_in_turn=1, max_idle=None)
NOTICE = (
    "⚠ Stopped after 1 continuation for one message; 2 todo(s) remain. Send a message to go on."
)
Build = Callable[..., Graph]


def talking() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda _: "I stop here.")


def result(name: str, artifact: Any, call_id: str = "1") -> ToolMessage:
    return ToolMessage("…", name=name, tool_call_id=call_id, artifact=artifact)


def snapshot(todos: list[TodoItem]) -> ToolMessage:
    return result("edit_todos", {"action": "edit", "todos": todos})


class TestReconstruction:
    @given(todo_lists)
    def test_the_newest_change_counts(self, todos: list[TodoItem]) -> None:
        history: list[AnyMessage] = [snapshot(items("old")), snapshot(todos)]
        assert todos_from_messages(history) == todos
        as_dicts: Any = [message.model_dump() for message in history]
        assert todos_from_messages(as_dicts) == todos

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

    @pytest.mark.parametrize("text", ["", " \n", "x" * 100_001])
    def test_items_that_the_state_would_refuse_are_left_out(self, text: str) -> None:
        """So the list can seed a new thread."""
        rebuilt = todos_from_messages([snapshot(items("a", text, "b"))])
        assert rebuilt == fold_todos([], rebuilt) == items("a", "b")

    def test_a_result_with_nothing_but_damaged_items_does_not_count(self) -> None:
        """An empty list would hide the older one."""
        broken: Any = [{"text": "b"}]
        assert todos_from_messages([snapshot(items("a")), snapshot(broken)]) == items("a")

    def test_the_list_is_a_copy(self) -> None:
        """A change of it must not change the history."""
        message = snapshot(items("a"))
        rebuilt = todos_from_messages([message])
        rebuilt[0]["text"] = "b"
        rebuilt.append(items("c")[0])
        assert todos_from_messages([message]) == items("a")


class TestMetadata:
    """What a result holds beside its text and the details that the specification fixes."""

    def test_a_change_has_its_length_and_its_operation_without_texts(self) -> None:
        """The details have the texts."""
        result = result_of("edit_todos", {"action": "start", "indices": [0]}, items("a"))
        operation = {"op": "set_status", "status": "in_progress", "indices": [0]}
        assert result_note(result) == {"length": len(result.text), "operation": operation}

    def test_a_listing_has_its_length_and_its_list(self) -> None:
        """Its details are empty."""
        result = result_of("list_todos", {}, items("a"))
        assert result_note(result) == {"length": len(result.text), "todos": items("a")}
        assert listed_in(result) == items("a")

    def test_a_refused_call_has_none(self) -> None:
        """It shows no list."""
        result = result_of("edit_todos", {}, items("a"))
        assert result.status == "error"
        assert result_note(result) == {}
        assert listed_in(result) is None

    @pytest.mark.parametrize("junk", ["x", {"todos": "x"}, {"todos": [{"text": "a"}]}])
    def test_junk_is_no_list(self, junk: Any) -> None:
        """A client of a server can write any message."""
        result = ToolMessage("x", tool_call_id="1", response_metadata={"todo_tools": junk})
        assert listed_in(result) is None


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
        ours = continuation_message("Go on.", "- a")
        rewritten = HumanMessage(ours.text, id=ours.id)
        assert is_injected(ours)
        assert is_injected(rewritten)
        assert not is_from_user(rewritten)
        assert continuation_lines(rewritten) == ""

    def test_what_others_tag_is_not_the_loops(self) -> None:
        """The id of an answer is the provider's, whatever it begins with."""
        tagged = HumanMessage("Summary", additional_kwargs={"lc_source": "summarization"})
        assert not is_injected(tagged)
        assert not is_injected(HumanMessage("Go on."))
        assert not is_injected(AIMessage("hi", id=continuation_message("Go on.").id))

    def test_a_continuation_is_hidden_where_agent_chat_ui_hides_messages(self) -> None:
        """Its source calls the prefix `DO_NOT_RENDER_ID_PREFIX`; the rest of the id is random."""
        first, second = continuation_message("Go on."), continuation_message("Go on.")
        assert str(first.id).startswith("do-not-render-")
        assert first.id != second.id

    def test_a_continuation_has_langchains_metadata(self) -> None:
        """It equals that of `add_notification_metadata`, if LangChain has that function."""
        ours = continuation_message("Go on.\n\n- a", "- a")
        data = {"type": "continuation", "lines": "- a"}
        assert continuation_lines(ours) == "- a"
        assert ours.additional_kwargs == {"lc_source": "todo_tools", "lc_data": data}
        if add := getattr(core, "add_notification_metadata", None):
            assert add(HumanMessage(ours.text, id=ours.id), source="todo_tools", data=data) == ours

    @pytest.mark.parametrize("content", ["Wait.", [{"type": "image", "url": "https://a.b/c.png"}]])
    def test_an_untagged_message_after_a_result_counts_as_the_users(self, content: Any) -> None:
        """The previous run was interrupted, or ended with a tool's result."""
        history = [HumanMessage("a"), turn("", call("look")), WORKED, HumanMessage(content)]
        assert last_user_message(history) == 3

    def test_a_message_of_a_tool_is_known_by_its_tag(self) -> None:
        """A tool that adds pictures as messages must tag them."""
        tagged = HumanMessage("A picture:", additional_kwargs={"lc_source": "look"})
        assert last_user_message([HumanMessage("a"), turn("", call("look")), WORKED, tagged]) == 0

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

    def test_of_the_answered_calls_after_a_pending_one_only_other_tools_count(self) -> None:
        """A person answers a call of a todo tool, and it does not run."""
        first, todo, failed, other, last = (
            call(name) for name in ("edit_todos", "edit_todos", "look", "look", "edit_todos")
        )
        answers = [
            ToolMessage("Wait.", tool_call_id=str(todo["id"])),
            ToolMessage("No.", tool_call_id=str(failed["id"]), status="error"),
            ToolMessage("Red.", tool_call_id=str(other["id"])),
        ]
        history = [turn("", first, todo, failed, other, last), *answers]
        place = place_of_call({"messages": history}, last["id"])
        assert place is not None
        assert (place.begin, place.earlier) == (0, [first, other])

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

    @pytest.mark.parametrize(
        ("made", "displaced"),
        [
            (None, False),
            ("rejected", True),
            ("ran", False),
            ("edited", True),
            ("redirected", True),
            ("refused", True),
        ],
    )
    def test_calls_after_a_list_that_is_not_written_as_made_are_displaced(
        self, made: str | None, displaced: bool
    ) -> None:
        """A list that a todo tool has written is the one that the model means."""
        name = "look" if made == "redirected" else "write_todos"
        write, look, tick = call(name), call("list_todos"), call("edit_todos")
        write_id = str(write["id"])
        results = {
            "rejected": [ToolMessage("No.", tool_call_id=write_id, name="write_todos")],
            "ran": [result("write_todos", {"action": "write", "todos": []}, write_id)],
            "refused": [
                result("write_todos", {"action": "write", "todos": [], "error": "no"}, write_id)
            ],
        }
        is_edited = made in ("edited", "redirected")
        edits = {write_id: {"name": "write_todos", "args": {}}} if is_edited else {}
        history = [turn("", write, look, tick), *results.get(made or "", [])]
        state = {"messages": history, "hitl_edited_tool_calls": edits}
        place = place_of_call(state, tick["id"])
        assert place is not None
        assert place.displaced == ({look["id"], tick["id"]} if displaced else set())

    def test_a_call_that_no_model_made_has_no_siblings(self) -> None:
        """An application may run a tool by itself."""
        assert pending_calls({"messages": [turn("", call("list_todos"))]}, "unknown") == []

    def test_a_call_is_found_in_the_newest_answer_that_has_it(self) -> None:
        """Some model servers use the same ids in every turn."""
        first, second = call("list_todos"), call("list_todos")
        history = [turn("", first, second), HumanMessage("a"), turn("", second), HumanMessage("b")]
        history[0].id, history[2].id = "1", "2"
        state = {"messages": history}
        again, once = place_of_call(state, second["id"]), place_of_call(state, first["id"])
        assert again is not None
        assert (again.turn, again.position) == ("2", 0)
        assert once is not None
        assert (once.turn, once.position) == ("1", 0)
        assert place_of_call(state, "unknown") is None


@pytest.mark.parametrize("build", [hand_built, with_middleware])
class TestNotices:
    """The notice for people about the end of the loop."""

    def test_a_reached_limit_is_part_of_the_last_answer(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Any interface shows the notice. Its event is stored with it, and no message is added."""
        final = build(talking(), policy=LIMITED).invoke(SEEDED, config)
        *_, before, last = final["messages"]
        assert last.text == f"I stop here.\n\n{NOTICE}"
        assert last.response_metadata["todo_loop"]["outcome"] == "limit_in_turn"
        assert before.type == "human"

    def test_the_model_reads_its_own_answer_without_the_notice(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Its reasoning is bound to the answer, and the notice would cost tokens at every call."""
        model = talking()
        graph = build(model, policy=LIMITED)
        graph.invoke(SEEDED, config)
        graph.invoke({"messages": [("user", "Go on.")]}, config)
        assert not any("Stopped" in message.text for message in model.prompts[-1])

    def test_a_refused_answer_is_explained(self, build: Build, config: RunnableConfig) -> None:
        """Such an answer is often empty."""
        refusal = AIMessage("", response_metadata={"finish_reason": "content_filter"})
        model = ScriptedChatModel(script=[refusal])
        final = build(model, policy=LIMITED).invoke(SEEDED, config)
        assert final["messages"][-1].text.startswith(
            "⚠ Stopped after the provider refused or filtered the answer; 2 todo(s) remain."
        )

    def test_a_streamed_answer_is_not_repeated(self, build: Build, config: RunnableConfig) -> None:
        """Interfaces join the parts of a streamed message, and get the notice with the values."""
        graph = build(talking(), policy=AutoContinue(max_in_turn=0, max_idle=None))
        streamed: Any = graph.stream(SEEDED, config, stream_mode="messages")
        assert [message.text for message, _ in streamed] == ["I stop here."]
        assert graph.get_state(config).values["messages"][-1].text.startswith("I stop here.\n\n⚠")

    def test_it_can_be_left_out(self, build: Build, config: RunnableConfig) -> None:
        """Programs that show the event do not need it."""
        final = build(talking(), policy=replace(LIMITED, explain=False)).invoke(SEEDED, config)
        assert final["messages"][-1].text == "I stop here."


@given(
    content=st.text()
    | st.lists(st.text().map(lambda text: {"type": "text", "text": text}), max_size=3),
    metadata=st.dictionaries(st.text().filter(lambda key: key != "todo_loop"), st.text()),
)
def test_the_models_answer_is_restored_exactly(content: Any, metadata: dict[str, str]) -> None:
    """This holds for every form of answer, and after one notice replaced another.

    The key `todo_loop` of the metadata belongs to the notice.
    """
    answer = AIMessage(content, id="1", response_metadata=metadata)
    event: LoopEvent = {
        "type": "todo_loop",
        "outcome": "limit_in_turn",
        "in_a_row": 1,
        "in_turn": 1,
        "text": NOTICE,
    }
    told = with_notice(answer, event)
    assert told.text.endswith(NOTICE)
    assert without_notice(told) == answer
    assert with_notice(told, event) == told


@pytest.mark.parametrize("junk", ["mine", {"text": 5}, {"text": ""}])
def test_a_message_without_a_notice_is_left_alone(junk: Any) -> None:
    """Other code may use the same key."""
    message = HumanMessage("Hello.", response_metadata={"todo_loop": junk})
    assert without_notice(message) is message


@pytest.mark.parametrize(
    ("call_id", "text", "read"),
    [
        ("do-not-render-1", "Successfully handled tool call.", ("error", CUT_OFF)),
        ("do-not-render-1", "Worked.", ("success", "Worked.")),
        ("1", "Successfully handled tool call.", ("success", "Successfully handled tool call.")),
    ],
)
def test_a_result_that_agent_chat_ui_made_up_is_none(
    call_id: str, text: str, read: tuple[str, str]
) -> None:
    """It makes one for each call that waits, if a person writes a message instead of deciding."""
    made = ToolMessage(text, name="work", tool_call_id="1", id=call_id)
    message = as_read(made)
    assert isinstance(message, ToolMessage)
    assert (message.status, message.text) == read
    assert made.text == text


def test_details_are_only_those_of_the_todo_tools() -> None:
    """Results of other tools, even of the same name, have no such details."""
    details: TodoDetails = {"action": "list", "todos": []}
    assert details_of(result("list_todos", details)) == details
    assert details_of(result("search", details)) is None
    assert details_of(result("write_todos", "Updated todo list")) is None
    assert details_of(AIMessage("hi")) is None
