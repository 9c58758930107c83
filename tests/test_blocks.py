"""Where a prompt needs the whole list as a block, and how the block is recorded."""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from tests.support import items, result_of
from todo_tools import TodoItem, model_view
from todo_tools._list.formatting import format_items
from todo_tools._list.todos import incomplete
from todo_tools._thread.notes import continuation_message
from todo_tools._thread.reading import read
from todo_tools._thread.transcript import list_after
from todo_tools._view.blocks import due_block, needs_block, newest_place, record_block
from todo_tools._view.view import block_update

USER = HumanMessage("Begin.", id="user")
LATER = HumanMessage("Something else.", id="later")
WORKED = ToolMessage("Worked.", name="work", tool_call_id="w", id="worked")
SAID = AIMessage("I stop here.", id="said")
DONE = items("a", status="completed")


def wrote(*texts: str) -> ToolMessage:
    """The result of a call that replaces the list."""
    args = {"mode": "replace", "todos": list(texts)}
    return result_of("write_todos", args, id="result")


def tagged(source: str) -> HumanMessage:
    """A message that a program added."""
    return HumanMessage("Do it.", id=source, additional_kwargs={"lc_source": source})


def due(*messages: AnyMessage, todos: list[TodoItem], **state: Any) -> str | None:
    """The id of the message that needs a block."""
    reading = read({"messages": messages, "todos": todos, **state})
    at = due_block(reading)
    return None if at is None else reading.entries[at].place


class TestDue:
    def test_a_list_that_is_shown_needs_no_block(self) -> None:
        """A result or an earlier block shows it."""
        assert due(USER, wrote("a"), todos=items("a")) is None
        assert due(USER, todos=items("a"), todo_blocks={"user": items("a")}) is None

    def test_a_list_that_looks_the_same_needs_no_block(self) -> None:
        """A reader sees a line break and its mark alike."""
        recorded = {"user": items("a␊b")}
        assert due(USER, todos=items("a\nb"), todo_blocks=recorded) is None

    def test_a_result_with_a_note_before_its_text_shows_its_list(self) -> None:
        """LangChain puts one before the result of a call that a person edited."""
        edited = wrote("b")
        edited.content = f"Note: the call was edited.\n\nTool response:\n{edited.text}"
        recorded = {"user": items("a")}
        assert due(USER, edited, todos=items("b"), todo_blocks=recorded) is None
        assert due(USER, edited, todos=items("a"), todo_blocks=recorded) == "result"

    def test_the_note_and_the_change_are_both_read(self) -> None:
        started = result_of("edit_todos", {"action": "start", "indices": [0]}, items("a"))
        started.content = f"Note: the call was edited.\n\nTool response:\n{started.text}"
        prompt = model_view({"messages": [USER, wrote("a"), started], "todos": list_after(started)})
        assert prompt[-1].text.startswith(started.text)

    def test_a_list_that_is_as_before_a_redacted_result_is_shown_again(self) -> None:
        """The redacted text still looks like the other list, and a person took the change back."""
        redacted = result_of(
            "edit_todos", {"action": "complete", "indices": [0]}, items("a"), id="redacted"
        ).model_copy(update={"content": "Completed [0]\n\n✓ [0] [REDACTED]"})
        history: list[AnyMessage] = [USER, wrote("a"), SAID, redacted, LATER]
        assert due(*history, todos=items("a")) == "later"
        assert due(*history, todos=items("a"), todo_blocks={"later": items("a")}) is None

    def test_it_comes_after_a_redacted_result_with_another_list(self) -> None:
        """The model would take the list that it reads last for the current one."""
        redacted = wrote("secret").model_copy(update={"content": "Wrote 1 item\n\n– [0] [X]"})  # noqa: RUF001
        assert due(USER, redacted, SAID, todos=items("b")) == "result"
        assert due(USER, redacted, SAID, todos=items("secret")) == "user"
        listed = result_of("list_todos", {}, items("secret"), id="listed")
        listed = listed.model_copy(update={"content": "– [0] [X]"})  # noqa: RUF001
        assert due(USER, wrote("a"), SAID, listed, SAID, todos=items("b")) == "listed"
        assert due(USER, wrote("secret"), SAID, listed, SAID, todos=items("secret")) is None

    def test_a_state_without_the_channel_needs_no_block(self) -> None:
        """A graph without todo tools may also use `model_view`."""
        assert not needs_block(read({"messages": [USER, wrote("a")]}))

    def test_it_is_placed_where_every_call_finds_it_again(self) -> None:
        """This is the user's newest message or the last result of the turn with the newest list."""
        new = items("b")
        more: list[AnyMessage] = [AIMessage("", id="called"), WORKED, SAID]
        assert due(USER, *more, todos=new) == "user"
        assert due(USER, wrote("a"), *more, todos=new) == "result"
        assert due(USER, wrote("a"), WORKED, SAID, todos=new) == "worked"
        assert due(USER, wrote("a"), LATER, *more, todos=new) == "later"

    def test_it_may_be_placed_at_a_message_of_the_application(self) -> None:
        """It is tagged. After the result of a tool, such a message may be the tool's."""
        begun: list[AnyMessage] = [AIMessage("", id="called"), WORKED, tagged("photo"), SAID]
        earlier: list[list[AnyMessage]] = [[], [USER, SAID], [USER, wrote("a"), WORKED, SAID]]
        for before in earlier:
            assert due(*before, tagged("cron"), todos=items("b")) == "cron"
            assert due(*before, tagged("cron"), *begun, todos=items("b")) == "cron"

    def test_it_is_never_placed_before_what_the_loop_said_last(self) -> None:
        """A continuation names the items that were open when it was sent."""
        lines = format_items(incomplete(items("a", "b")))
        told = continuation_message(f"Go on.\n\n{lines}", lines, key="told")
        called = AIMessage("", id="called")
        for answer in (SAID, WORKED):  # a run may also end with a result
            history: list[AnyMessage] = [USER, called, answer, told, called, WORKED]
            assert due(*history, todos=items("b")) == told.id

    def test_a_list_that_is_as_before_a_continuation_is_shown_again(self) -> None:
        """The results between them were cleared, so the model would read the continuation last."""
        lines = format_items(incomplete(items("a", "b")))
        told = continuation_message(f"Go on.\n\n{lines}", lines, key="told")
        recorded = {"user": items("a")}
        history: list[AnyMessage] = [USER, SAID, told, SAID, WORKED]
        assert due(*history, todos=items("a"), todo_blocks=recorded) == told.id
        assert due(*history, todos=items("a", "b"), todo_blocks={"user": items("a", "b")}) is None
        assert due(told, SAID, LATER, todos=[]) == "later"

    def test_without_these_it_is_placed_at_the_newest_message_of_a_tool(self) -> None:
        """An answer of the model cannot hold it."""
        assert due(SAID, WORKED, SAID, todos=items("a")) == "worked"
        assert due(SAID, todos=items("a")) is None

    def test_with_the_middleware_it_is_placed_at_the_newest_message(self) -> None:
        """The middleware records it at once, so its place need not be found again."""
        history = read({"messages": [USER, SAID, WORKED, SAID]})
        assert newest_place(history, history) == 2

    def test_with_the_middleware_it_is_placed_at_a_stored_message(self) -> None:
        """Other middleware may add a message to the request, or change the user's."""
        history, added = read({"messages": [USER]}), HumanMessage("It is noon.")
        assert newest_place(read({"messages": [USER, added]}), history) == 0
        assert newest_place(read({"messages": [added]}), history) == 0
        assert newest_place(read({"messages": [SAID]}), history) is None

    def test_with_the_middleware_it_never_comes_before_an_answer(self) -> None:
        """Another list may be shown there, and older prompts have these messages without it."""
        history, added = read({"messages": [USER, SAID]}), HumanMessage("It is noon.")
        assert newest_place(read({"messages": [USER, SAID, added]}), history) == 2
        assert newest_place(read({"messages": [USER, SAID]}), history) == 0

    def test_with_the_middleware_it_comes_after_another_list(self) -> None:
        """A result that was rebuilt without its id is not stored."""
        rebuilt = wrote("a").model_copy(update={"id": None})
        history = read({"messages": [USER, SAID, WORKED, wrote("a")]})
        assert newest_place(read({"messages": [USER, SAID, WORKED, rebuilt]}), history) == 3

    def test_a_finished_list_is_shown(self) -> None:
        """An item that the model appends has an index behind it."""
        assert due(USER, SAID, LATER, todos=DONE) == "later"
        assert due(USER, wrote("a"), LATER, todos=DONE) == "later"

    def test_a_finished_list_is_shown_if_the_prompt_has_another_one(self) -> None:
        """The model may start an item again, by its index."""
        shown = {"user": [*items("b", status="completed"), *DONE]}
        assert due(USER, SAID, LATER, todos=DONE, todo_blocks=shown) == "later"

    def test_a_list_that_is_finished_during_the_task_is_shown(self) -> None:
        """The model must not go on with an item that the application completed."""
        assert due(USER, wrote("a"), todos=DONE) == "result"
        assert due(wrote("a"), todos=DONE) == "result"

    def test_a_list_that_was_emptied_is_shown(self) -> None:
        """The results show items that are gone."""
        assert due(USER, wrote("a"), LATER, todos=[]) == "later"


STATE: dict[str, Any] = {
    "messages": [USER, SAID, WORKED, SAID, LATER, SAID],
    "todos": items("a"),
    "todo_blocks": {},
}


class TestRecord:
    def test_the_block_of_the_last_prompt_is_recorded(self) -> None:
        """The prompt had only the messages before the model's answer."""
        assert record_block(read(STATE)) == {"todo_blocks": {"later": items("a")}}
        earlier = {**STATE, "messages": STATE["messages"][:4]}
        assert record_block(read(earlier)) == {"todo_blocks": {"user": items("a")}}

    def test_without_an_answer_the_whole_history_was_the_prompt(self) -> None:
        """An application may run a tool by itself."""
        state = {**STATE, "messages": [USER]}
        assert record_block(read(state)) == {"todo_blocks": {"user": items("a")}}

    def test_the_blocks_of_messages_that_are_gone_are_removed(self) -> None:
        """`None` removes a block; that of a message that is still there stays."""
        state = {**STATE, "todo_blocks": {"gone": items("b"), "user": items("c")}}
        assert record_block(read(state)) == {"todo_blocks": {"gone": None, "later": items("a")}}

    def test_a_block_after_the_last_answer_stays(self) -> None:
        """It is not part of the last prompt, but its message is still there."""
        state = {**STATE, "messages": [USER, SAID, LATER], "todo_blocks": {"later": items("b")}}
        assert record_block(read(state)) == {"todo_blocks": {"user": items("a")}}

    def test_nothing_is_stored_where_nothing_is_new(self) -> None:
        """The block is recorded already, or no list needs one."""
        known = {**STATE, "todo_blocks": {"user": items("a")}}
        assert record_block(read(known)) == {}
        without = read({"messages": [USER]})
        assert block_update(without, 0, without) == {}

    def test_what_is_stored_or_sent_keeps_its_block(self) -> None:
        """Other middleware may leave out of a request what is stored, or send what is not."""
        added = HumanMessage("It is noon.", id="added")
        blocks = {"user": items("b"), "added": items("c"), "gone": items("d")}
        history = read({**STATE, "todo_blocks": blocks})
        prompt = read({**STATE, "messages": [added, LATER], "todo_blocks": blocks})
        assert block_update(prompt, 1, history) == {
            "todo_blocks": {"gone": None, "later": items("a")}
        }

    def test_a_continuation_outside_the_history_may_hold_it(self) -> None:
        """The prompt showed it there, since the history has no message of the user or a tool."""
        kept = {"said": {"text": "Go on.", "lines": ""}}
        state = {**STATE, "messages": [SAID, AIMessage("Again.")], "todo_blocks": kept}
        reading = read(state)
        assert record_block(reading) == {"todo_blocks": {reading.entries[1].place: items("a")}}
