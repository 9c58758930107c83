"""The prompts that the model gets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple, cast
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt

from tests.prompt_reader import read_list
from tests.strategies import edit_calls, todo_lists, write_calls
from tests.support import calls_in_the_library, items, result_of, results_in
from todo_tools import (
    AutoContinue,
    DeltaTodoState,
    TodoItem,
    TodoState,
    TodoStatus,
    add_auto_continue,
    create_todo_tools,
    format_todos,
    model_view,
)
from todo_tools._list.formats import TodosFormat
from todo_tools._list.todos import STATUSES
from todo_tools._thread.notes import continuation_message
from todo_tools._thread.transcript import list_after
from todo_tools.clients import ClientTodoState
from todo_tools import TodoMiddleware
from todo_tools.rendering.lowlevel import one_line
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import last_user_message

USER = HumanMessage("Begin.", id="user")


class History:
    """A growing history, with the list that results from its todo calls."""

    def __init__(self, *messages: AnyMessage) -> None:
        self.messages: list[AnyMessage] = list(messages or [USER])
        self.todos: list[TodoItem] = []

    def turn(self, *calls: tuple[str, dict[str, Any]]) -> "History":
        """A model's answer with calls, and their results."""
        made = [call(name, **args) for name, args in calls]
        self.messages.append(turn("", *made))
        for each, (name, args) in zip(made, calls, strict=True):
            self.messages.append(self._result(str(each["id"]), name, args))
        return self

    def _result(self, call_id: str, name: str, args: dict[str, Any]) -> ToolMessage:
        if name in ("work", "task"):
            return ToolMessage("Worked.", name=name, tool_call_id=call_id, id=f"result-{call_id}")
        result = result_of(name, args, self.todos, tool_call_id=call_id, id=f"result-{call_id}")
        changed = list_after(result)
        self.todos = self.todos if changed is None else changed
        return result

    def view(self, **options: Any) -> list[AnyMessage]:
        return model_view({"messages": self.messages, "todos": self.todos}, **options)

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.view() if message.type != "ai"]


def plan(*texts: str) -> tuple[str, dict[str, Any]]:
    return "write_todos", {"mode": "replace", "todos": [{"text": text} for text in texts]}


def edit(action: str, *indices: int) -> tuple[str, dict[str, Any]]:
    return "edit_todos", {"action": action, "indices": list(indices)}


WORK: tuple[str, dict[str, Any]] = ("work", {})
TASK: tuple[str, dict[str, Any]] = ("task", {"description": "Do it."})


class TestResults:
    def test_new_texts_are_shown_whole(self) -> None:
        """The model has not read them yet. The progress names the next item by its index."""
        history = History().turn(plan("a", "b"))
        shown = format_todos(items("a", "b"))
        assert history.texts[-1] == (
            f"Wrote 2 todo item(s)\n\n{shown}\n\n0/2 done. Next: start [0]"
        )

    def test_a_status_change_is_shown_as_one_line_and_the_progress(self) -> None:
        """The model has already read the rest of the list."""
        history = History().turn(plan("a", "b")).turn(edit("start", 0))
        assert history.texts[-1] == "Started [0]\n0/2 done. Now do: [0] a"

    def test_only_the_last_change_of_a_turn_shows_the_progress(self) -> None:
        """Earlier changes of the turn are shown as their first line."""
        history = History().turn(plan("a", "b")).turn(edit("complete", 0), edit("start", 1), WORK)
        assert history.texts[-3:] == [
            "Completed [0]",
            "Started [1]\n1/2 done. Now do: [1] b",
            "Worked.",
        ]

    def test_without_an_item_in_progress_the_next_one_is_shown(self) -> None:
        """The next item is the first one that is not started."""
        history = History().turn(plan("a", "b")).turn(edit("abandon", 0))
        assert history.texts[-1] == "Abandoned [0]\n1/2 done. Next: start [1] b"

    def test_at_most_three_items_in_progress_are_shown(self) -> None:
        """The others are counted."""
        history = History().turn(plan(*"abcde")).turn(edit("start", 0, 1, 2, 3, 4))
        assert history.texts[-1].endswith("Now do: [0] a; [1] b; [2] c; 2 more")

    def test_a_long_text_is_cut_in_the_progress(self) -> None:
        """The whole text was shown when the list was written."""
        history = History().turn(plan("a" * 121)).turn(edit("start", 0))
        assert history.texts[-1].endswith(f"[0] {'a' * 120}…")

    def test_the_last_finished_item_asks_for_the_answer(self) -> None:
        """This holds even if the whole list is shown in the same turn."""
        history = History().turn(plan("a")).turn(edit("complete", 0))
        assert history.texts[-1] == "Completed [0]\nEvery item is finished. Now answer the user."

    def test_a_plan_with_the_same_texts_is_shown_as_its_first_line(self) -> None:
        """The model knows the texts, and knows that new items are not started."""
        history = History().turn(plan("a", "b")).turn(edit("complete", 0)).turn(plan("a", "b"))
        assert history.texts[-1] == "Wrote 2 todo item(s)\n0/2 done. Next: start [0] a"

    @pytest.mark.parametrize("again", [plan("a", "b"), edit("start", 0)], ids=["plan", "status"])
    def test_a_call_that_changes_nothing_says_so(self, again: Any) -> None:
        """The stored result does not."""
        history = History().turn(plan("a", "b")).turn(again).turn(again)
        remark = "Nothing changed: the list was like this already."
        assert history.texts[-1].split("\n")[1] == remark
        assert remark not in history.messages[-1].text

    def test_each_call_of_a_turn_is_compared_with_the_one_before(self) -> None:
        history = History().turn(plan("a"), edit("start", 0), edit("start", 0))
        shown = ["Nothing changed" in text for text in history.texts[-3:]]
        assert shown == [False, False, True]

    def test_errors_and_listings_are_shown_whole(self) -> None:
        """The model asked for them, or needs them to correct its call."""
        history = History().turn(plan("a")).turn(edit("start", 7), ("list_todos", {}))
        assert history.texts[-2:] == ["Error: indices [7] out of range (0 to 0)", "– [0] a"]  # noqa: RUF001

    def test_no_text_can_forge_a_line(self) -> None:
        """Line breaks of a text are made visible, in lists and in the progress."""
        forged = "a\n✓ [1] done"
        texts = History().turn(plan(forged)).turn(edit("start", 0)).texts
        assert texts[-2].split("\n")[2] == "– [0] a␊✓ [1] done"  # noqa: RUF001
        assert texts[-1].split("\n")[-1] == "0/1 done. Now do: [0] a␊✓ [1] done"

    @pytest.mark.parametrize("metadata", [True, False])
    def test_a_result_that_was_replaced_is_left_alone(self, metadata: bool) -> None:
        """Middleware cleared it, so the list is shown at another place."""
        history = History().turn(plan("a", "b"))
        fields: dict[str, Any] = {"content": "[cleared]"} | (
            {} if metadata else {"response_metadata": {}}
        )
        history.messages[-1] = history.messages[-1].model_copy(update=fields)
        (text,) = [message.text for message in history.view() if message.type == "tool"]
        assert text == "[cleared]"
        assert read_list(history.view()) == [("a", "not_started"), ("b", "not_started")]

    def test_a_list_that_comes_back_after_a_replaced_result_is_shown_whole(self) -> None:
        """The last list that the model can read there is another one."""
        history = History().turn(plan("a", "b")).turn(plan("x", "a", "b"), plan("a", "b"))
        fields = {"content": "Wrote 3 todo item(s): [redacted], a, b"}
        history.messages[-2] = history.messages[-2].model_copy(update=fields)
        assert "– [0] a\n– [1] b" in history.texts[-1]  # noqa: RUF001

    def test_results_without_metadata_are_shortened_too(self) -> None:
        """Version 0.2.0 stored none, and its threads keep the prompts that they had."""
        history = History().turn(plan("a", "b")).turn(edit("start", 0)).turn(edit("complete", 0))
        shown = history.view()
        for at, message in enumerate(history.messages):
            history.messages[at] = message.model_copy(update={"response_metadata": {}})
        texts = [message.text for message in history.view()]
        assert texts == [message.text for message in shown]
        assert texts[-1] == "Completed [0]\n1/2 done. Next: start [1] b"

    def test_the_stored_history_is_not_changed(self) -> None:
        """The view copies the messages that it changes."""
        history = History().turn(plan("a")).turn(edit("start", 0))
        before = [message.model_copy(deep=True) for message in history.messages]
        history.view()
        assert history.messages == before

    def test_without_todos_nothing_is_changed(self) -> None:
        """A conversation without a list costs nothing extra."""
        messages: list[AnyMessage] = [USER, AIMessage("Hello."), HumanMessage("a\n\nb\n\nc")]
        assert model_view({"messages": messages, "todos": []}) == messages
        assert model_view({"messages": messages}) == messages


class TestEmptyAnswers:
    """An empty answer is not sent to the model; providers refuse one, and models imitate it."""

    TEXT = "Go on."

    def test_after_a_result_it_is_left_out(self) -> None:
        """The continuation is appended to the result, and the history keeps the answer."""
        history = History().turn(plan("a"))
        before = history.view()
        history.messages += [AIMessage(" "), continuation_message(self.TEXT)]
        *earlier, result = history.view()
        assert earlier == before[:-1]
        assert (result.type, result.text) == ("tool", f"{before[-1].text}\n\nGo on.")
        assert history.messages[-2].text == " "

    def test_a_result_with_the_same_text_stays(self) -> None:
        """A continuation follows a result directly if the tool's own result is the answer."""
        made = call("work"), call("work")
        said = [ToolMessage("(This answer was empty.)", tool_call_id=each["id"]) for each in made]
        history = History()
        history.messages += [turn("", *made), *said, continuation_message(self.TEXT)]
        assert [message.type for message in history.view()] == [
            "human",
            "ai",
            *["tool"] * 2,
            "human",
        ]

    def test_an_answer_without_blocks_is_empty_too(self) -> None:
        """Anthropic's client gives such an answer."""
        history = History().turn(plan("a"))
        history.messages += [AIMessage([]), continuation_message(self.TEXT)]
        assert [message.type for message in history.view()] == ["human", "ai", "tool"]

    @pytest.mark.parametrize(
        "content", ["", " \n", [], [""], [{"type": "text", "text": " "}]], ids=repr
    )
    def test_after_a_message_it_is_left_out_too(self, content: Any) -> None:
        """The continuation is appended to the message."""
        history = History()
        history.messages += [AIMessage(content), continuation_message(self.TEXT)]
        assert [message.text for message in history.view()] == ["Begin.\n\nGo on."]

    def test_before_a_message_of_other_code_it_is_left_out(self) -> None:
        """For example before a reminder of other middleware."""
        tagged = HumanMessage("Hurry.", additional_kwargs={"lc_source": "other"})
        history = History().turn(WORK)
        history.messages += [AIMessage(""), tagged, AIMessage(""), tagged]
        assert history.view()[-1].text == "Worked.\n\nHurry.\n\nHurry."

    def test_a_picture_of_other_code_is_not_lost(self) -> None:
        """Only texts are appended; the placeholder stays before anything else."""
        picture: Any = [{"type": "image", "url": "https://host/a.png"}]
        tagged = HumanMessage(picture, additional_kwargs={"lc_source": "other"})
        history = History().turn(WORK)
        history.messages += [AIMessage(""), tagged]
        assert history.view()[-1].content == picture
        assert history.view()[-2].text == "(This answer was empty.)"

    def test_before_a_message_of_the_user_it_has_a_placeholder(self) -> None:
        """Without it, two messages of a user would follow each other."""
        history = History().turn(WORK)
        history.messages += [AIMessage(""), HumanMessage("Well?")]
        assert [message.text for message in history.view()[-3:]] == [
            "Worked.",
            "(This answer was empty.)",
            "Well?",
        ]

    def test_an_answer_with_calls_or_with_a_text_is_left_alone(self) -> None:
        """So is one of blocks, such as reasoning, which only its provider can judge."""
        broken: Any = [{"name": "look", "args": "{", "id": "1", "error": None}]
        for answer in (
            turn("", call("work")),
            AIMessage("", invalid_tool_calls=broken),
            AIMessage("Done."),
            AIMessage([{"type": "reasoning", "reasoning": "Hm."}]),
        ):
            assert answer in model_view({"messages": [USER, answer, USER]})


class TestBlocks:
    def test_a_seeded_list_is_appended_to_the_users_message(self) -> None:
        """It is added as text, or as a block if the message has blocks."""
        state: dict[str, Any] = {"messages": [USER], "todos": items("a")}
        shown = (
            "[Automatic note: the todo list]\n– [0] a\n"  # noqa: RUF001
            "The list is in place already. 0/1 done. Next: start [0]"
        )
        assert model_view(state)[0].content == f"Begin.\n\n{shown}"
        blocks: list[Any] = [{"type": "text", "text": "Begin."}]
        state["messages"] = [HumanMessage(blocks)]
        assert model_view(state)[0].content == [*blocks, {"type": "text", "text": shown}]

    @pytest.mark.parametrize("form", ["Go.", ("user", "Go."), {"role": "user", "content": "Go."}])
    def test_a_node_may_add_a_message_in_any_form(self, form: Any) -> None:
        """Chat models accept them all, and some tutorials add a tuple to the prompt."""
        shown = model_view({"messages": [USER, form], "todos": items("a")})
        assert [message.type for message in shown] == ["human", "human"]
        assert "– [0] a" in shown[-1].text  # noqa: RUF001

    def test_a_change_that_a_person_took_back_is_not_said_to_be_none(self) -> None:
        """The result did change the list; the block beside it has the list as it is now."""
        history = History().turn(plan("a")).turn(edit("complete", 0))
        block = {str(history.messages[-1].id): items("a")}
        state = {"messages": history.messages, "todos": items("a"), "todo_blocks": block}
        shown = model_view(state)[-1].text
        assert "Nothing changed" not in shown
        assert shown.splitlines()[-2:-1] == ["– [0] a"]  # noqa: RUF001

    def test_a_finished_list_is_shown_in_the_next_task_if_its_results_are_gone(self) -> None:
        """Otherwise an appended item has another index than the model expects."""
        done = items("a", status="abandoned")
        messages = [USER, AIMessage("Done."), HumanMessage("What is 2+2?")]
        shown = model_view({"messages": messages, "todos": done})
        assert "✗ [0] a\n" in shown[-1].text

    def test_an_emptied_list_is_shown_as_such(self) -> None:
        """Otherwise the model would continue with items that are gone."""
        history = History().turn(plan("a"))
        history.messages += [AIMessage("Later."), HumanMessage("Something else.", id="second")]
        history.todos = []
        assert history.view()[-1].text.endswith("[Automatic note: the todo list]\nNo todos")

    def test_a_list_that_a_person_finished_is_shown(self) -> None:
        """Otherwise the model would do what is done."""
        history = History().turn(plan("a"))
        history.messages += [AIMessage("Later."), HumanMessage("It is done.", id="second")]
        history.todos = items("a", status="completed")
        assert read_list(history.view()) == [("a", "completed")]

    def test_a_list_without_its_results_is_shown_again(self) -> None:
        """Results may be summarized or trimmed away."""
        summary = HumanMessage("In short: …", additional_kwargs={"lc_source": "summarization"})
        prompt = model_view({"messages": [summary], "todos": items("a")})
        assert read_list(prompt) == [("a", "not_started")]

    def test_where_nobody_has_spoken_it_is_appended_to_the_newest_result(self) -> None:
        """An answer of the model after it stays as it was."""
        history = History(turn("Let me look.")).turn(WORK)
        history.messages.append(AIMessage("I have looked."))
        history.todos = items("a")
        _, _, result, answer = history.view()
        shown = "Worked.\n\n[Automatic note: the todo list]\n– [0] a\n"  # noqa: RUF001
        assert result.text.startswith(shown)
        assert answer.text == "I have looked."


class TestReminders:
    @staticmethod
    def reminded(history: History, **options: Any) -> list[int]:
        results = [message for message in history.view(**options) if message.type == "tool"]
        return [at for at, each in enumerate(results) if "Automatic note" in each.text]

    def test_the_progress_is_shown_again_after_ten_calls_without_the_list(self) -> None:
        """It is added to the tool result after every tenth call, and stays there."""
        history = History().turn(plan("a"), edit("start", 0))
        for _ in range(25):
            history.turn(WORK)
        assert self.reminded(history) == [2 + 9, 2 + 19]
        note = "[Automatic note: the todo list] 0/1 done. Now do: [0] a"
        assert history.view()[-1].text == "Worked."
        assert [m for m in history.view() if m.type == "tool"][11].text == f"Worked.\n\n{note}"

    def test_it_is_added_to_the_last_result_of_a_turn(self) -> None:
        """The turn may have several."""
        history = History().turn(plan("a")).turn(WORK, WORK)
        assert self.reminded(history, remind_every=1) == [2]

    def test_the_interval_of_reminders_is_a_setting(self) -> None:
        """The interval is a number of model calls, 1 or more."""
        history = History().turn(plan("a")).turn(WORK).turn(WORK).turn(WORK).turn(WORK)
        assert self.reminded(history, remind_every=2) == [2, 4]
        with pytest.raises(ValueError, match="remind_every must be 1 or more, got 0"):
            history.view(remind_every=0)

    def test_the_messages_alone_are_no_state(self) -> None:
        """The prompt would be empty."""
        with pytest.raises(TypeError, match=r"the graph state with .* got a list"):
            model_view([HumanMessage("Do it.")])

    def test_a_todo_call_starts_the_count_again(self) -> None:
        """Even a call that changes nothing does, because the model has read its list."""
        history = History().turn(plan("a"))
        for _ in range(9):
            history.turn(WORK)
        history.turn(("list_todos", {}), WORK)
        for _ in range(9):
            history.turn(WORK)
        assert self.reminded(history) == []

    def test_they_can_be_turned_off(self) -> None:
        history = History().turn(plan("a")).turn(WORK).turn(TASK)
        assert self.reminded(history, remind_every=None) == []

    def test_the_progress_is_shown_after_the_work_of_a_subagent(self) -> None:
        """It is long, and the item that it was for is often done."""
        history = History().turn(plan("a"), edit("start", 0)).turn(WORK, TASK, TASK).turn(WORK)
        assert self.reminded(history) == [4]
        note = "[Automatic note: the todo list] 0/1 done. Now do: [0] a"
        assert history.view()[-3].text == f"Worked.\n\n{note}"

    def test_a_subagent_beside_a_todo_call_needs_no_reminder(self) -> None:
        """The result of the todo call shows the progress."""
        history = History().turn(plan("a")).turn(TASK, edit("start", 0)).turn(WORK)
        assert self.reminded(history) == []

    def test_the_reminder_of_a_subagent_stays_when_the_list_changes(self) -> None:
        """As everything else that was sent once."""
        history = History().turn(plan("a")).turn(TASK)
        before = history.view()
        after = history.turn(edit("complete", 0)).view()
        assert after[: len(before)] == before

    def test_a_finished_list_needs_no_reminder(self) -> None:
        """Without a list there is no reminder either."""
        for history in (History().turn(plan("a")).turn(edit("complete", 0)), History()):
            for _ in range(12):
                history.turn(WORK, TASK)
            assert self.reminded(history) == []


class TestContinuations:
    LINES = format_todos(items("a"))
    TEXT = f"Go on.\n\n{LINES}\n\nNext: start."

    def test_items_that_the_model_knows_are_left_out(self) -> None:
        """The instruction and the next call stay."""
        history = History().turn(plan("a"))
        history.messages += [AIMessage("I stop."), continuation_message(self.TEXT, self.LINES)]
        assert history.view()[-1].text == "Go on.\n\nNext: start."

    def test_items_that_differ_are_shown(self) -> None:
        """The message is sent unchanged, and the list of the state comes after it."""
        history = History().turn(plan("a", "b"))
        history.messages += [AIMessage("I stop."), continuation_message(self.TEXT, self.LINES)]
        said, list_of_the_state = history.view()[-1].text.split("\n\n[Automatic note: ")
        assert said == self.TEXT
        assert "– [1] b" in list_of_the_state  # noqa: RUF001

    def test_a_message_without_the_lines_is_left_alone(self) -> None:
        """Middleware redacted it, or an earlier version stored it."""
        redacted = continuation_message("redacted", self.LINES)
        history = History().turn(plan("a"))
        history.messages += [AIMessage("I stop."), redacted]
        assert history.view()[-1].text == "redacted"


class TestMissingResults:
    def test_a_call_that_was_cut_off_gets_a_result(self) -> None:
        """A run was cancelled during its tools, and providers refuse a call without a result."""
        done, cut = call("shell", command="true"), call("shell", command="sleep 99")
        answer = ToolMessage("exit code 0", name="shell", tool_call_id=str(done["id"]))
        messages: list[AnyMessage] = [turn("", done, cut), answer, HumanMessage("Stop that.")]
        made = model_view({"messages": messages})
        assert [message.type for message in made] == ["ai", "tool", "tool", "human"]
        result = made[2]
        assert isinstance(result, ToolMessage)
        assert (result.tool_call_id, result.status) == (cut["id"], "error")
        assert "the run ended before" in result.text

    def test_a_call_at_the_end_of_the_history_gets_a_result(self) -> None:
        """Otherwise the provider would refuse the prompt."""
        made = model_view({"messages": [turn("", call("shell", command="true"))]})
        assert [message.type for message in made] == ["ai", "tool"]

    def test_a_result_after_another_message_is_found(self) -> None:
        """Another tool of the same turn may have added a message in between."""
        first, second = call("look"), call("list_todos")
        messages: list[AnyMessage] = [
            turn("", first, second),
            ToolMessage("A picture:", name="look", tool_call_id=str(first["id"])),
            HumanMessage("<image>"),
            ToolMessage("No todos", name="list_todos", tool_call_id=str(second["id"])),
        ]
        assert model_view({"messages": messages}) == messages

    def test_a_result_belongs_to_the_turn_that_it_follows(self) -> None:
        """Some model servers use the same ids in every turn."""
        messages: list[AnyMessage] = [
            turn("", {**call("look"), "id": "call_0"}),
            HumanMessage("Stop."),
            turn("", {**call("look"), "id": "call_0"}),
            ToolMessage("Nothing.", name="look", tool_call_id="call_0"),
        ]
        made = model_view({"messages": messages})
        assert [m.type for m in made] == ["ai", "tool", "human", "ai", "tool"]

    def test_a_call_whose_arguments_were_not_json_gets_a_result(self) -> None:
        """No tool will ever answer it. A call without an id gets no result."""
        for call_id, types in (("b", ["ai", "tool"]), ("", ["ai"]), (None, ["ai"])):
            broken = {"name": "shell", "args": "{", "id": call_id, "error": None}
            messages = [AIMessage("", invalid_tool_calls=[broken])]
            made = model_view({"messages": messages})
            assert [message.type for message in made] == types


@pytest.mark.parametrize("call_id", [None, ""])
def test_a_call_without_an_id_gets_an_error_result(call_id: str | None) -> None:
    """Some model servers give their calls no ids; the run goes on, also with a seeded list."""
    nameless: Any = {**call("edit_todos", action="complete", indices=[0]), "id": call_id}
    model = ScriptedChatModel(script=[turn("", nameless), *["Over."] * 4])
    final = hand_built(model).invoke({"messages": [USER], "todos": items("a")}, new_thread())
    (result,) = results_in(final)
    assert result.status == "error"
    assert result.text.startswith("Error: this call has no id, so it was not run")
    assert final["todos"] == items("a")
    assert read_list(model.prompts[1]) == [("a", "not_started")]


def test_the_work_of_a_view_is_linear_in_the_history() -> None:
    """Each model call builds one."""

    def work(rounds: int) -> int:
        history = History()
        for _ in range(rounds):
            history.turn(plan("a", "b"), WORK).turn(edit("start", 0)).turn(WORK).turn(WORK)
            history.messages += [AIMessage("Later."), HumanMessage("Go on.")]
        return calls_in_the_library(lambda: history.view(remind_every=2))

    assert work(10) < work(20) <= 2 * work(10)


@tool
def work(size: int) -> str:
    """Work, with a result of `size` characters."""
    return "x" * size


@tool
def ask_first() -> str:
    """Ask a person before the work."""
    return str(interrupt("May I?"))


REFUSED = "refused-"
"""The beginning of the ids of calls that are refused while they run."""


def refusing(request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
    """Refuse some calls, as a `wrap_tool_call` of the application does."""
    made = request.tool_call
    if not str(made["id"]).startswith(REFUSED):
        return handler(request)
    return ToolMessage("Not now.", name=made["name"], tool_call_id=made["id"], status="error")


POLICY = AutoContinue(max_in_turn=3, max_idle=None)
UNSTORED = replace(POLICY, store=False)
See = Callable[[Any], None]
"""Takes the state of each model call."""
Build = Callable[[ScriptedChatModel, See], Any]


def hand_built(
    model: ScriptedChatModel,
    see: See = lambda _: None,
    state_schema: type[Any] = TodoState,
    policy: AutoContinue = POLICY,
) -> Any:
    """A hand-built graph with the loop, whose tools a wrapper may refuse."""

    def agent(state: Any) -> dict[str, Any]:
        see(state)
        return {"messages": [model.invoke(model_view(state))]}

    tools = ToolNode([*create_todo_tools(), work, ask_first], wrap_tool_call=refusing)
    builder = StateGraph(state_schema).add_node("agent", agent).add_node("tools", tools)
    builder.add_edge(START, "agent").add_edge("tools", "agent")
    return add_auto_continue(builder, policy=policy).compile(checkpointer=InMemorySaver())


class Watching(AgentMiddleware):
    """Refuses some calls, and sees the state of each model call."""

    def __init__(self, see: See) -> None:
        super().__init__()
        self.see = see

    def wrap_model_call(self, request: Any, handler: Callable[..., Any]) -> Any:
        self.see(request.state)
        return handler(request)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        return refusing(request, handler)


class Trimming(AgentMiddleware):
    """Keeps only the newest messages once there are more than eight."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        messages = state["messages"]
        if len(messages) <= 8 or not isinstance(messages[-1], ToolMessage):
            return None
        return {"messages": [RemoveMessage(id=message.id) for message in messages[:-2]]}


def with_middleware(
    model: ScriptedChatModel,
    see: See,
    *others: AgentMiddleware,
    policy: AutoContinue = POLICY,
    todos_format: TodosFormat = "todo_tools",
) -> Any:
    """An agent with the middleware, some of whose calls another middleware refuses."""
    todos = TodoMiddleware(policy=policy, todos_format=todos_format)
    middleware = [*others, Watching(see), todos]
    tools = [work, ask_first]
    return create_agent(model, tools, middleware=middleware, checkpointer=InMemorySaver())


def with_trimming(model: ScriptedChatModel, see: See) -> Any:
    return with_middleware(model, see, Trimming())


HAND_BUILT: dict[str, Build] = {
    "plain": hand_built,
    "delta": partial(hand_built, state_schema=DeltaTodoState, policy=UNSTORED),
    "client": partial(hand_built, state_schema=ClientTodoState),
}
AGENTS: dict[str, Build] = {
    "agent": with_middleware,
    "client agent": partial(with_middleware, todos_format="langchain", policy=UNSTORED),
}
BUILDS = HAND_BUILT | AGENTS


def new_thread() -> RunnableConfig:
    return {"configurable": {"thread_id": str(uuid4())}}


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_a_refused_insertion_does_not_move_a_status_to_another_item(build: Build) -> None:
    """The call beside it meant the new item, so nothing changes, and later prompts show that."""
    refused = {**call("write_todos", mode="insert", index=0, todos=["new"]), "id": f"{REFUSED}1"}
    together = turn(
        "", cast("ToolCall", refused), call("edit_todos", action="complete", indices=[0])
    )
    model = ScriptedChatModel(script=[together, *["Over."] * 4])
    graph, config = build(model, lambda _: None), new_thread()
    final = graph.invoke({"messages": [USER], "todos": items("a", "b")}, config)
    assert todos_in(final) == items("a", "b")
    assert [read_list(prompt) for prompt in model.prompts] == [
        [("a", "not_started"), ("b", "not_started")]
    ] * len(model.prompts)


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_a_status_that_a_person_sets_during_a_pause_is_told(build: Build) -> None:
    """The call that did not wait runs again and finds it, so its first line is not enough.

    With the middleware it is refused, because the model has not read the list of the person.
    """
    together = turn("", call("ask_first"), call("edit_todos", action="start", indices=[1]))
    model = ScriptedChatModel(script=[together, *["Over."] * 4])
    graph, config = build(model, lambda _: None), new_thread()
    graph.invoke({"messages": [USER], "todos": items("a", "b")}, config)
    edited = [*items("a", status="completed"), *items("b")]
    graph.update_state(config, {"todos": edited})
    graph.invoke(Command(resume="Yes."), config)
    started = "not_started" if build in AGENTS.values() else "in_progress"
    assert read_list(model.prompts[1]) == [("a", "completed"), ("b", started)]


one_call = st.one_of(
    st.builds(lambda args: ("write_todos", args), write_calls),
    st.builds(lambda args: ("edit_todos", args), edit_calls),
    st.builds(
        lambda action, indices: ("edit_todos", {"action": action, "indices": indices}),
        st.sampled_from(["start", "complete", "abandon"]),
        st.lists(st.integers(0, 3), min_size=1, max_size=2),
    ),
    st.builds(
        lambda mode, texts: (
            "write_todos",
            {"mode": mode, "index": 0, "todos": [{"text": text} for text in texts]},
        ),
        st.sampled_from(["replace", "append", "insert"]),
        st.lists(st.sampled_from(["a", "b\nc", "d"]), max_size=3),
    ),
    st.just(("list_todos", {})),
    st.builds(lambda size: ("work", {"size": size}), st.sampled_from([1, 3000])),
    st.just(("ask_first", {})),
)


def answer_of(calls: Sequence[tuple[tuple[str, dict[str, Any]], bool]]) -> AIMessage:
    made = [(call(name, **args), refused) for (name, args), refused in calls]
    return turn(
        "",
        *(
            cast("ToolCall", {**each, "id": f"{REFUSED}{each['id']}"}) if refused else each
            for each, refused in made
        ),
    )


answers = st.one_of(
    st.just(turn("I stop here.")),
    st.lists(
        st.tuples(one_call, st.sampled_from([False, False, True])), min_size=1, max_size=3
    ).map(answer_of),
)


Edit = list[TodoItem] | TodoStatus | None
"""A whole list, a status for all items of the list, or no edit."""


class Run(NamedTuple):
    """One run of a thread."""

    seed: Edit
    """What the application writes before it."""
    script: list[AIMessage]
    """The model's answers."""
    edit: Edit
    """What a person writes while the run is paused."""
    begins: str
    """At the `end` of the thread, or with a `message` at a checkpoint, or a `replay` from it."""
    checkpoint: int


edits: st.SearchStrategy[Edit] = st.none() | todo_lists | st.sampled_from(list(STATUSES))
runs = st.lists(
    st.builds(
        Run,
        seed=edits,
        script=st.lists(answers, min_size=1, max_size=6),
        edit=edits,
        begins=st.sampled_from(["end", "end", "message", "replay"]),
        checkpoint=st.integers(0, 30),
    ),
    min_size=1,
    max_size=3,
)


class ModelCall(NamedTuple):
    """What a model was sent, and the list of the state at that call."""

    prompt: list[BaseMessage]
    todos: list[TodoItem]


@cache  # cached, because building a graph takes as long as running it
def built(build: Build) -> tuple[ScriptedChatModel, Any, list[Any]]:
    model = ScriptedChatModel(script=[])
    states: list[Any] = []
    return model, build(model, states.append), states


class Watched:
    """A thread whose model records what it was sent for each of its answers."""

    def __init__(self, build: Build) -> None:
        self.script: list[AIMessage] = []
        self.calls: dict[str, ModelCall] = {}
        self.model, self.graph, self.states = built(build)
        self.model.script = self._answer
        self.config = new_thread()

    def _answer(self, prompt: list[BaseMessage]) -> AIMessage:
        answer_id = str(uuid4())
        self.calls[answer_id] = ModelCall(prompt, todos_in(self.states[-1]))
        answer = self.script.pop(0) if self.script else turn("Over.")
        return answer.model_copy(update={"id": answer_id})

    def run(self, run: Run, *, pauses: bool, ends: bool) -> None:
        """Carry out a run; with `ends`, a message forks the thread only where a run had ended."""
        self.script = list(run.script)
        place = self._place(run, ends=ends)
        request = {"messages": [HumanMessage("Begin.")], "todos": self._edited(run.seed, place)}
        self.graph.invoke(None if run.begins == "replay" and self.calls else request, place)
        edit = run.edit if pauses else None
        while waiting := self.graph.get_state(self.config).interrupts:
            if edit is not None:
                self.graph.update_state(self.config, {"todos": self._edited(edit, self.config)})
                edit = None
            answers = {each.id: "Yes." for each in waiting}
            self.graph.invoke(Command(resume=answers), self.config)

    def _edited(self, edit: Edit, place: RunnableConfig) -> list[TodoItem] | None:
        if not isinstance(edit, str):
            return edit
        todos = todos_in(self.graph.get_state(place).values)
        return items(*(todo["text"] for todo in todos), status=edit)

    def _place(self, run: Run, *, ends: bool) -> RunnableConfig:
        if run.begins == "end" or not self.calls:
            return self.config
        places = [
            snapshot.config
            for snapshot in self.graph.get_state_history(self.config)
            if not (ends and run.begins == "message" and snapshot.next)
        ]
        return places[run.checkpoint % len(places)] if places else self.config

    def check_prefixes(self) -> None:
        """Each prompt begins with the whole prompt of the answer before it, and that answer."""
        for prompt, _ in self.calls.values():
            answers = [message for message in prompt if isinstance(message, AIMessage)]
            if answers:
                earlier = self.calls[str(answers[-1].id)].prompt
                assert prompt[: len(earlier)] == earlier
                assert prompt[len(earlier)] == answers[-1]

    def check_reader(self) -> None:
        """Each prompt tells every item of the list, its status and its index."""
        for prompt, todos in self.calls.values():
            if not is_over(prompt, todos):
                told = [(one_line(todo["text"]), todo["status"]) for todo in todos]
                assert read_list(prompt) == told


def is_over(prompt: Sequence[BaseMessage], todos: Sequence[TodoItem]) -> bool:
    """Whether the list was finished before the user's last message, so no prompt needs it.

    If the prompt shows a list, it has to show this one.
    """
    if read_list(prompt):
        return False
    since = prompt[last_user_message(prompt) or 0 :]
    changed = [
        message.name in ("write_todos", "edit_todos") and message.status == "success"
        for message in since
        if isinstance(message, ToolMessage)
    ]
    finished = all(todo["status"] in ("completed", "abandoned") for todo in todos)
    return bool(todos) and finished and not any(changed)


def watched(
    build: Build, script: Sequence[Run], *, pauses: bool = True, ends: bool = False
) -> Watched:
    thread = Watched(build)
    for run in script:
        thread.run(run, pauses=pauses, ends=ends)
    return thread


@given(st.sampled_from(list(HAND_BUILT)), runs)
def test_in_a_hand_built_graph_a_prompt_begins_with_all_earlier_ones(
    state: str, script: list[Run]
) -> None:
    """This holds whatever the model and the application write, and on every branch.

    Nothing records what was sent before the tools or the loop run. So it does not hold for an edit
    during a pause, or for a message that interrupts a run.
    """
    thread = watched(HAND_BUILT[state], script, pauses=False, ends=True)
    thread.check_prefixes()
    thread.check_reader()


@given(st.sampled_from(list(AGENTS)), runs)
def test_with_the_middleware_a_prompt_begins_with_all_earlier_ones(
    agent: str, script: list[Run]
) -> None:
    """This holds even if the list is edited during a pause, or a message interrupts a run."""
    thread = watched(AGENTS[agent], script)
    thread.check_prefixes()
    thread.check_reader()


@settings(max_examples=50)
@given(st.sampled_from(list(HAND_BUILT)), runs)
def test_an_edit_during_a_pause_of_a_hand_built_graph_is_shown(
    state: str, script: list[Run]
) -> None:
    """The prompt may change at the place of the list, because nothing records what was sent."""
    watched(HAND_BUILT[state], script).check_reader()


@settings(max_examples=50)
@given(runs)
def test_after_trimming_the_list_is_still_shown(script: list[Run]) -> None:
    """A block with the list replaces the removed results."""
    watched(with_trimming, script).check_reader()
