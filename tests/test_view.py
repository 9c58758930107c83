"""The prompts that the model gets."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
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
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from graphs.until_done import build_graph
from tests.messages_rules import check_order
from tests.payloads import anthropic_request
from tests.prompt_reader import read_list
from tests.strategies import edit_calls, todo_lists, write_calls
from tests.support import items
from todo_tools import AutoContinue, DeltaTodoState, TodoItem, TodoState, format_todos, model_view
from todo_tools._calls.answers import answer_call
from todo_tools._list.todos import DEFAULT_LIMITS
from todo_tools._thread.transcript import continuation_message
from todo_tools.middleware import TodoMiddleware
from todo_tools.rendering import one_line
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_injected

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
        if name == "work":
            return ToolMessage("Worked.", name=name, tool_call_id=call_id, id=f"result-{call_id}")
        answer = answer_call(name, args, self.todos, DEFAULT_LIMITS)
        self.todos = answer.todos
        return ToolMessage(
            answer.content,
            name=name,
            tool_call_id=call_id,
            id=f"result-{call_id}",
            artifact=answer.details,
            status="error" if answer.failed else "success",
        )

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


class TestResults:
    def test_new_texts_are_shown_whole(self) -> None:
        """The model has not read them yet."""
        history = History().turn(plan("a", "b"))
        assert history.texts[-1] == f"Wrote 2 todo item(s)\n\n{format_todos(items('a', 'b'))}"

    def test_a_status_change_is_shown_as_one_line_and_the_progress(self) -> None:
        """The model has already read the rest of the list."""
        history = History().turn(plan("a", "b")).turn(edit("start", 0))
        assert history.texts[-1] == "Started [0]\n0/2 done. Now: [0] a"

    def test_only_the_last_change_of_a_turn_shows_the_progress(self) -> None:
        """Earlier changes of the turn are shown as their first line."""
        history = History().turn(plan("a", "b")).turn(edit("complete", 0), edit("start", 1), WORK)
        assert history.texts[-3:] == [
            "Completed [0]",
            "Started [1]\n1/2 done. Now: [1] b",
            "Worked.",
        ]

    def test_without_an_item_in_progress_the_next_one_is_shown(self) -> None:
        """The next item is the first one that is not started."""
        history = History().turn(plan("a", "b")).turn(edit("abandon", 0))
        assert history.texts[-1] == "Abandoned [0]\n1/2 done. Next: [1] b"

    def test_at_most_three_items_in_progress_are_shown(self) -> None:
        """The others are counted."""
        history = History().turn(plan(*"abcde")).turn(edit("start", 0, 1, 2, 3, 4))
        assert history.texts[-1].endswith("Now: [0] a; [1] b; [2] c; 2 more")

    def test_a_long_text_is_cut_in_the_progress(self) -> None:
        """The whole text was shown when the list was written."""
        history = History().turn(plan("a" * 41)).turn(edit("start", 0))
        assert history.texts[-1].endswith(f"[0] {'a' * 40}…")

    def test_the_last_finished_item_asks_for_the_answer(self) -> None:
        """This holds even if the whole list is shown in the same turn."""
        history = History().turn(plan("a")).turn(edit("complete", 0))
        assert history.texts[-1] == "Completed [0]\nEvery item is finished. Now answer the user."

    def test_a_plan_with_the_same_texts_is_shown_as_its_first_line(self) -> None:
        """The model knows the texts, and knows that new items are not started."""
        history = History().turn(plan("a", "b")).turn(edit("complete", 0)).turn(plan("a", "b"))
        assert history.texts[-1] == "Wrote 2 todo item(s)\n0/2 done. Next: [0] a"

    def test_errors_and_listings_are_shown_whole(self) -> None:
        """The model asked for them, or needs them to correct its call."""
        history = History().turn(plan("a")).turn(edit("start", 7), ("list_todos", {}))
        assert history.texts[-2:] == ["Error: indices [7] out of range (0 to 0)", "– [0] a"]  # noqa: RUF001

    def test_no_text_can_forge_a_line(self) -> None:
        """Line breaks of a text are made visible, in lists and in the progress."""
        forged = "a\n✓ [1] done"
        texts = History().turn(plan(forged)).turn(edit("start", 0)).texts
        assert texts[-2].split("\n")[-1] == "– [0] a␊✓ [1] done"  # noqa: RUF001
        assert texts[-1].split("\n")[-1] == "0/1 done. Now: [0] a␊✓ [1] done"

    def test_a_result_that_was_replaced_is_left_alone(self) -> None:
        """Middleware cleared it, so the list is shown at another place."""
        history = History().turn(plan("a", "b"))
        history.messages[-1] = history.messages[-1].model_copy(update={"content": "[cleared]"})
        (text,) = [message.text for message in history.view() if message.type == "tool"]
        assert text == "[cleared]"
        assert read_list(history.view()) == [("a", "not_started"), ("b", "not_started")]

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


class TestBlocks:
    def test_a_seeded_list_is_appended_to_the_users_message(self) -> None:
        """It is added as text, or as a block if the message has blocks."""
        state: dict[str, Any] = {"messages": [USER], "todos": items("a")}
        shown = "[Automatic note: the todo list]\n– [0] a"  # noqa: RUF001
        assert model_view(state)[0].content == f"Begin.\n\n{shown}"
        blocks: list[Any] = [{"type": "text", "text": "Begin."}]
        state["messages"] = [HumanMessage(blocks)]
        assert model_view(state)[0].content == [*blocks, {"type": "text", "text": shown}]

    def test_a_finished_list_does_not_leak_into_the_next_task(self) -> None:
        """The user has sent a new message, and the results are gone."""
        done = items("a", status="completed")
        messages = [USER, AIMessage("Done."), HumanMessage("What is 2+2?")]
        assert model_view({"messages": messages, "todos": done}) == messages

    def test_an_emptied_list_is_shown_as_such(self) -> None:
        """Otherwise the model would continue with items that are gone."""
        history = History().turn(plan("a"))
        history.messages += [AIMessage("Later."), HumanMessage("Something else.", id="second")]
        history.todos = []
        assert history.view()[-1].text.endswith("[Automatic note: the todo list]\nNo todos")

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
        assert result.text == "Worked.\n\n[Automatic note: the todo list]\n– [0] a"  # noqa: RUF001
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
        note = "[Automatic note: the todo list] 0/1 done. Now: [0] a"
        assert history.view()[-1].text == "Worked."
        assert [m for m in history.view() if m.type == "tool"][11].text == f"Worked.\n\n{note}"

    def test_the_interval_of_reminders_is_a_setting(self) -> None:
        """The interval is a number of model calls, 1 or more."""
        history = History().turn(plan("a")).turn(WORK).turn(WORK).turn(WORK).turn(WORK)
        assert self.reminded(history, remind_every=2) == [2, 4]
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

    def test_a_finished_list_needs_no_reminder(self) -> None:
        """Without a list there is no reminder either."""
        for history in (History().turn(plan("a")).turn(edit("complete", 0)), History()):
            for _ in range(12):
                history.turn(WORK)
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
        """The message is sent unchanged."""
        history = History().turn(plan("a", "b"))
        history.messages += [AIMessage("I stop."), continuation_message(self.TEXT, self.LINES)]
        assert history.view()[-1].text == self.TEXT

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


class TestCallsWithoutIds:
    """Some model servers give their calls no ids."""

    @pytest.mark.parametrize("call_id", [None, ""])
    def test_a_call_and_its_result_get_an_id_that_providers_accept(
        self, call_id: str | None
    ) -> None:
        """The id is the same in every prompt; calls that have ids keep them."""
        named = call("shell", command="true")
        nameless: Any = [{**call(name), "id": call_id} for name in ("list_todos", "look")]
        messages: list[AnyMessage] = [
            USER,
            turn("", nameless[0], named, nameless[1]),
            ToolMessage("No todos", name="list_todos", tool_call_id=""),
            ToolMessage("exit code 0", name="shell", tool_call_id=str(named["id"])),
            ToolMessage("A tree.", name="look", tool_call_id=""),
        ]
        shown = model_view({"messages": messages})
        check_order(anthropic_request(shown))
        answer = shown[1]
        assert isinstance(answer, AIMessage)
        results = [m.tool_call_id for m in shown if isinstance(m, ToolMessage)]
        assert [each["id"] for each in answer.tool_calls] == results
        assert results[1] == named["id"]
        assert model_view({"messages": [*messages, AIMessage("Over.")]})[:5] == shown

    def test_a_result_without_a_call_is_left_out(self) -> None:
        """The AI message was trimmed away, or the call could not be parsed."""
        stray = ToolMessage("No todos", name="list_todos", tool_call_id="")
        assert model_view({"messages": [USER, stray]}) == [USER]


@tool
def work(size: int) -> str:
    """Work, with a result of `size` characters."""
    return "x" * size


@tool
def ask_first() -> str:
    """Ask a person before the work."""
    return str(interrupt("May I?"))


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
answers = st.one_of(
    st.just(turn("I stop here.")),
    st.lists(one_call, min_size=1, max_size=3).map(
        lambda calls: turn("", *(call(name, **args) for name, args in calls))
    ),
)
runs = st.lists(
    st.tuples(
        st.none() | todo_lists,
        st.lists(answers, min_size=1, max_size=6),
        st.none() | todo_lists,
    ),
    min_size=1,
    max_size=3,
)
"""Runs of one thread, each with the list that the application writes before it, the model's
answers, and the list that a person writes while the run is paused.
"""

Build = Callable[[ScriptedChatModel], Any]
POLICY = AutoContinue(max_in_turn=3)


def hand_built(model: ScriptedChatModel, state_schema: type[Any] = TodoState) -> Any:
    builder = build_graph(model, [work, ask_first], policy=POLICY, state_schema=state_schema)
    return builder.compile(checkpointer=InMemorySaver())


def with_middleware(model: ScriptedChatModel, **options: Any) -> Any:
    middleware = [TodoMiddleware(policy=POLICY, **options)]
    return create_agent(
        model, [work, ask_first], middleware=middleware, checkpointer=InMemorySaver()
    )


@cache  # cached, because building a graph takes as long as running it
def built(build: Build) -> tuple[ScriptedChatModel, Any]:
    model = ScriptedChatModel(script=[])
    return model, build(model)


class Watched:
    """A thread whose model records, for each prompt, the list of the state at that call."""

    def __init__(self, build: Build) -> None:
        self.script: list[AIMessage] = []
        self.states: list[list[TodoItem]] = []
        self.model, self.graph = built(build)
        self.model.script = self._answer
        self.model.prompts.clear()
        self.config: RunnableConfig = {"configurable": {"thread_id": str(uuid4())}}

    def _answer(self, _: list[BaseMessage]) -> AIMessage:
        self.states.append(self.todos)
        return self.script.pop(0) if self.script else turn("Over.")

    @property
    def todos(self) -> list[TodoItem]:
        found: list[TodoItem] = self.graph.get_state(self.config).values.get("todos", [])
        return found

    def run(self, seed: Any, script: Sequence[AIMessage], edited: Any) -> None:
        self.script = list(script)
        request: Any = {"messages": [HumanMessage("Begin.")]}
        if seed is not None:
            request["todos"] = seed
        self.graph.invoke(request, self.config, durability="sync")
        while waiting := self.graph.get_state(self.config).interrupts:
            if edited is not None:
                self.graph.update_state(self.config, {"todos": edited})
                edited = None
            answers = {each.id: "Yes." for each in waiting}
            self.graph.invoke(Command(resume=answers), self.config, durability="sync")

    def check_prefixes(self) -> None:
        for earlier, later in pairwise(self.model.prompts):
            assert later[: len(earlier)] == earlier

    def check_reader(self) -> None:
        for prompt, todos in zip(self.model.prompts, self.states, strict=True):
            told = [(one_line(todo["text"]), todo["status"]) for todo in todos]
            is_over = all(todo["status"] in ("completed", "abandoned") for todo in todos)
            assert read_list(prompt) == told or (is_over and todos)


def watched(build: Build, script: Any, *, pauses: bool) -> Watched:
    thread = Watched(build)
    for seed, answers_of_run, edited in script:
        thread.run(seed, answers_of_run, edited if pauses else None)
    return thread


slow_data = settings(suppress_health_check=[HealthCheck.too_slow])


@slow_data
@given(runs)
def test_in_a_hand_built_graph_a_prompt_begins_with_all_earlier_ones(script: Any) -> None:
    """The prompt also shows the list of the state, whatever the model and the application write."""
    thread = watched(hand_built, script, pauses=False)
    thread.check_prefixes()
    thread.check_reader()


@slow_data
@given(runs)
def test_with_the_middleware_a_prompt_begins_with_all_earlier_ones(script: Any) -> None:
    """The prompt also shows the list of the state, even if it is edited during a pause."""
    thread = watched(with_middleware, script, pauses=True)
    thread.check_prefixes()
    thread.check_reader()


BUILDS: dict[Any, Build] = {
    state: partial(hand_built, state_schema=state) for state in (TodoState, DeltaTodoState)
}


@pytest.mark.parametrize("state_schema", BUILDS)
@settings(max_examples=30)
@given(script=runs)
def test_an_edit_during_a_pause_of_a_hand_built_graph_is_shown(
    state_schema: type[Any], script: Any
) -> None:
    """The prompt may change at the place of the list, because nothing records what was sent."""
    thread = watched(BUILDS[state_schema], script, pauses=True)
    thread.check_reader()


class Trimming(AgentMiddleware):
    """Keeps only the newest messages once there are more than eight."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        messages = state["messages"]
        if len(messages) <= 8 or not isinstance(messages[-1], ToolMessage):
            return None
        return {"messages": [RemoveMessage(id=message.id) for message in messages[:-2]]}


def with_trimming(model: ScriptedChatModel) -> Any:
    middleware: list[Any] = [Trimming(), TodoMiddleware(policy=POLICY)]
    tools = [work, ask_first]
    return create_agent(model, tools, middleware=middleware, checkpointer=InMemorySaver())


@settings(max_examples=50)
@given(runs)
def test_after_trimming_the_list_is_still_shown(script: Any) -> None:
    """A block with the list replaces the removed results."""

    watched(with_trimming, script, pauses=True).check_reader()


def test_a_continuation_does_not_count_as_the_users() -> None:
    """It is tagged, so interfaces can recognise it."""
    assert is_injected(continuation_message("Go on."))
