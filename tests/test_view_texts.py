"""What the view shows of a history: results, lists, reminders, calls without a result."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    ToolMessage,
)

from tests.prompt_reader import read_list
from tests.support import calls_in_the_library, items, result_of
from todo_tools import (
    TodoItem,
    format_todos,
    model_view,
)
from todo_tools.testing import call, turn

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
        is_change = name != "list_todos" and result.status == "success"
        self.todos = result.artifact["todos"] if is_change else self.todos
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
    @pytest.mark.parametrize(
        ("texts", "made", "shown"),
        [
            ("ab", edit("start", 0), "Started [0]\n0/2 done. Now do: [0] a"),
            ("abc", edit("complete", 1), "Completed [1]\n2/3 done. Next: [2] c"),
            (
                "a",
                edit("complete", 0),
                "Completed [0]\nEvery item is finished. Now answer the user.",
            ),
            ("ab", plan("a", "b"), "Wrote 2 todo item(s)\n0/2 done. Next: [0] a"),
            (
                "abcde",
                edit("start", 0, 1, 2, 3, 4),
                "Started [0, 1, 2, 3, 4]\n0/5 done. Now do: [0] a; [1] b; [2] c; 2 more",
            ),
            (["a" * 121], edit("start", 0), f"Started [0]\n0/1 done. Now do: [0] {'a' * 120}…"),
            (["a\n✓"], edit("start", 0), "Started [0]\n0/1 done. Now do: [0] a␊✓"),
        ],
        ids=["start", "next", "last", "same texts", "many", "long text", "line break"],
    )
    def test_a_change_is_shown_as_its_first_line_and_the_progress(
        self, texts: Sequence[str], made: Any, shown: str
    ) -> None:
        """The model has read the texts already; it is told the items in progress or the next."""
        history = History().turn(plan(*texts), edit("abandon", 0)).turn(made)
        assert history.texts[-1] == shown

    def test_new_texts_are_shown_whole(self) -> None:
        """The model has not read them yet. The progress names the next item by its index."""
        history = History().turn(plan("a", "b"))
        shown = format_todos(items("a", "b"))
        assert history.texts[-1] == f"Wrote 2 todo item(s)\n\n{shown}\n\n0/2 done. Next: [0]"

    def test_only_the_last_change_of_a_turn_shows_the_progress(self) -> None:
        """Beside other calls it does not say what to do."""
        history = History().turn(plan("a", "b")).turn(edit("complete", 0), edit("start", 1), WORK)
        assert history.texts[-3:] == [
            "Completed [0]",
            "Started [1]\n1/2 done.",
            "Worked.",
        ]

    def test_a_call_that_changes_nothing_says_so(self) -> None:
        """Each call of a turn is compared with the one before; the stored result says nothing."""
        history = History().turn(plan("a"), edit("start", 0), edit("start", 0))
        shown = ["Nothing changed" in text for text in history.texts[-3:]]
        assert shown == [False, False, True]
        assert "Nothing changed" not in history.messages[-1].text

    def test_errors_and_listings_are_shown_whole(self) -> None:
        """The model asked for them, or needs them to correct its call."""
        history = History().turn(plan("a")).turn(edit("start", 7), ("list_todos", {}))
        assert history.texts[-2:] == ["Error: indices [7] out of range (0 to 0)", "– [0] a"]  # noqa: RUF001

    @pytest.mark.parametrize("text", ["{} 🦊", "[12:00] {}", "", [{"type": "text", "text": "…"}]])
    def test_a_status_is_shown_short_whatever_other_code_did_with_its_text(self, text: Any) -> None:
        """Middleware may redact or move the texts of results; no list is due because of it."""
        history = History().turn(plan("a", "b")).turn(edit("start", 0)).turn(WORK)
        started = history.messages[-3]
        content = text.format(started.text) if isinstance(text, str) else text
        history.messages[-3] = started.model_copy(update={"content": content})
        assert history.texts[-2] == "Started [0]\n0/2 done. Now do: [0] a"
        assert history.texts[-1] == "Worked."

    def test_a_list_whose_text_was_replaced_is_shown_once(self) -> None:
        """Nobody knows what the model reads there; the later changes are short again."""
        history = History().turn(plan("a", "b"))
        cleared = history.messages[-1].model_copy(update={"content": "[cleared]"})
        history.messages[-1] = cleared
        assert history.texts[-1].startswith("[cleared]\n\n")
        assert read_list(history.view()) == [("a", "not_started"), ("b", "not_started")]

    def test_without_todos_nothing_is_changed(self) -> None:
        messages: list[AnyMessage] = [USER, AIMessage("Hello."), HumanMessage("a\n\nb\n\nc")]
        assert model_view({"messages": messages, "todos": []}) == messages
        assert model_view({"messages": messages}) == messages

    def test_the_messages_alone_are_no_state(self) -> None:
        """The prompt would be empty."""
        with pytest.raises(TypeError, match=r"the graph state with .* got a list"):
            model_view([HumanMessage("Do it.")])

    @pytest.mark.parametrize("form", ["Go.", ("user", "Go."), {"role": "user", "content": "Go."}])
    def test_a_node_may_add_a_message_in_any_form(self, form: Any) -> None:
        """Chat models accept them all, and some tutorials add a tuple to the prompt."""
        shown = model_view({"messages": [USER, form], "todos": items("a")})
        assert [message.type for message in shown] == ["human", "human"]
        assert read_list(shown) == [("a", "not_started")]


DONE = items("a", status="completed")
NOTE = "[Automatic note: the todo list]"


class TestBlocks:
    """The whole list, where the results do not show it."""

    def test_a_seeded_list_is_appended_to_the_users_message(self) -> None:
        """It is added as text, or as a block if the message has blocks."""
        shown = f"{NOTE}\n– [0] a\nThe list is in place already. 0/1 done. Next: [0]"  # noqa: RUF001
        state: dict[str, Any] = {"messages": [USER], "todos": items("a")}
        assert model_view(state)[0].content == f"Begin.\n\n{shown}"
        blocks: list[Any] = [{"type": "text", "text": "Begin."}]
        state["messages"] = [HumanMessage(blocks)]
        assert model_view(state)[0].content == [*blocks, {"type": "text", "text": f"\n\n{shown}"}]

    @pytest.mark.parametrize(
        "todos",
        [DONE, [], items("b"), items("a", "b"), items("a", status="in_progress")],
        ids=["finished", "emptied", "other", "longer", "started"],
    )
    def test_a_list_that_a_person_edited_is_shown_at_the_users_message(
        self, todos: list[TodoItem]
    ) -> None:
        """Otherwise the model would go on with items that are gone or done."""
        history = History().turn(plan("a"))
        history.messages += [AIMessage("Later."), HumanMessage("Go on.", id="second")]
        assert history.view()[-1].text == "Go on."
        history.todos = todos
        shown = history.view()
        assert [at for at, message in enumerate(shown) if NOTE in message.text] == [4]
        assert read_list(shown) == [(todo["text"], todo["status"]) for todo in todos]

    def test_a_list_that_was_finished_before_the_users_message_is_not_shown(self) -> None:
        """The new request is something else."""
        messages = [USER, AIMessage("Done."), HumanMessage("What is 2+2?")]
        shown = model_view({"messages": messages, "todos": DONE})
        assert shown == messages

    def test_a_list_that_is_edited_during_a_run_is_shown_at_its_last_result(self) -> None:
        """The result that showed the list before, so that each call finds the same place."""
        history = History().turn(plan("a"), WORK).turn(WORK)
        history.todos = DONE
        places = [at for at, message in enumerate(history.view()) if NOTE in message.text]
        assert places == [3]
        assert history.turn(WORK).view()[3] == history.view()[3]

    def test_without_a_message_of_a_person_it_is_placed_at_the_newest_result(self) -> None:
        """An answer of the model cannot hold it."""
        history = History(turn("Let me look.")).turn(WORK)
        history.messages.append(AIMessage("I have looked."))
        history.todos = items("a")
        assert [NOTE in message.text for message in history.view()] == [False, False, True, False]
        state = {"messages": history.messages[-1:], "todos": items("a")}
        assert model_view(state) == history.messages[-1:]


class TestEmptyAnswers:
    """Providers refuse an answer without content, and models imitate it."""

    @pytest.mark.parametrize(
        "content", ["", " \n", [], [""], [{"type": "text", "text": " "}]], ids=repr
    )
    def test_it_has_a_placeholder(self, content: Any) -> None:
        """So two messages of the user never follow each other. The history keeps the answer."""
        history = History().turn(WORK)
        history.messages += [AIMessage(content), HumanMessage("Well?")]
        assert history.texts[-2:] == ["Worked.", "Well?"]
        assert history.view()[-2].content == "(This answer was empty.)"
        assert history.messages[-2].content == content

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


class TestReminders:
    @staticmethod
    def reminded(history: History, **options: Any) -> list[int]:
        results = [message for message in history.view(**options) if message.type == "tool"]
        return [at for at, each in enumerate(results) if "Automatic note" in each.text]

    def test_the_progress_is_shown_again_after_ten_calls_without_the_list(self) -> None:
        """It is added to the last result of every tenth turn, and stays there."""
        history = History().turn(plan("a"), edit("start", 0))
        for _ in range(25):
            history.turn(WORK, WORK)
        assert self.reminded(history) == [2 + 2 * 10 - 1, 2 + 2 * 20 - 1]
        note = "[Automatic note: the todo list] 0/1 done. Now do: [0] a"
        shown = [message.text for message in history.view() if message.type == "tool"]
        assert shown[21] == f"Worked.\n\n{note}"

    def test_the_interval_is_a_setting(self) -> None:
        """A number of model calls, 1 or more; `None` turns all reminders off."""
        history = History().turn(plan("a")).turn(WORK).turn(WORK).turn(WORK).turn(WORK).turn(TASK)
        assert self.reminded(history, remind_every=2) == [2, 4, 5]
        assert self.reminded(history, remind_every=None) == []
        with pytest.raises(ValueError, match="remind_every must be 1 or more, got 0"):
            history.view(remind_every=0)

    def test_a_todo_call_starts_the_count_again(self) -> None:
        """Even a call that changes nothing does, because the model has read its list."""
        history = History().turn(plan("a"))
        for _ in range(9):
            history.turn(WORK)
        history.turn(("list_todos", {}), WORK)
        for _ in range(9):
            history.turn(WORK)
        assert self.reminded(history) == []

    def test_the_progress_is_shown_after_the_work_of_a_subagent(self) -> None:
        """It is long, and its item is often done. Beside a todo call nothing is added."""
        history = History().turn(plan("a"), edit("start", 0)).turn(WORK, TASK, TASK)
        assert self.reminded(history) == [4]
        before = history.view()
        history.turn(TASK, edit("complete", 0)).turn(WORK)
        assert self.reminded(history) == [4]
        assert history.view()[: len(before)] == before


class TestMissingResults:
    """Providers refuse a call without a result."""

    def test_a_call_that_was_cut_off_gets_a_result(self) -> None:
        """Directly after the others of its turn, or at the end of the history."""
        done, cut = call("shell", command="true"), call("shell", command="sleep 99")
        answer = ToolMessage("exit code 0", name="shell", tool_call_id=str(done["id"]))
        messages: list[AnyMessage] = [turn("", done, cut), answer, HumanMessage("Stop that.")]
        for history in (messages, messages[:2]):
            result = model_view({"messages": history})[2]
            assert isinstance(result, ToolMessage)
            assert (result.tool_call_id, result.status) == (cut["id"], "error")
            assert "the run ended before" in result.text

    def test_a_result_belongs_to_the_turn_that_it_follows(self) -> None:
        """Some model servers use the same ids in every turn."""
        again: Any = {**call("look"), "id": "call_0"}
        result = ToolMessage("Nothing.", name="look", tool_call_id="call_0")
        made = model_view({"messages": [turn("", again), USER, turn("", again), result]})
        assert [m.type for m in made] == ["ai", "tool", "human", "ai", "tool"]

    def test_a_second_result_of_one_call_is_left_out(self) -> None:
        """A node that answers a rejected call, and the tool that runs it all the same."""
        made = call("look")
        said = [ToolMessage(text, name="look", tool_call_id=made["id"]) for text in ("No.", "Yes.")]
        shown = model_view({"messages": [USER, turn("", made), *said]})
        assert [message.text for message in shown] == ["Begin.", "", "No."]

    def test_a_call_whose_arguments_were_not_json_gets_a_result(self) -> None:
        """No tool will ever answer it. A call without an id gets no result."""
        for call_id, types in (("b", ["ai", "tool"]), ("", ["ai"]), (None, ["ai"])):
            broken = {"name": "shell", "args": "{", "id": call_id, "error": None}
            messages = [AIMessage("", invalid_tool_calls=[broken])]
            assert [message.type for message in model_view({"messages": messages})] == types


def test_the_work_of_a_view_is_linear_in_the_history() -> None:
    """Each model call builds one."""

    def work(rounds: int) -> int:
        history = History()
        for _ in range(rounds):
            history.turn(plan("a", "b"), WORK).turn(edit("start", 0)).turn(WORK).turn(WORK)
            history.messages += [AIMessage("Later."), HumanMessage("Go on.")]
        return calls_in_the_library(lambda: history.view(remind_every=2))

    assert work(10) < work(20) <= 2 * work(10)
