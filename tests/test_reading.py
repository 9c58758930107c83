"""What the library reads in a history: lists, changes, blocks, and continuations beside it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig

from tests.conversations import (
    POLICY,
    Conversation,
    ModelCall,
    conversations,
    hand_built,
    model_calls,
    whole_conversations,
    with_middleware,
)
from tests.support import (
    BEGIN,
    MIXED,
    Graph,
    calls_in_the_library,
    edit,
    items,
    loop_of,
    result_of,
)
from todo_tools import AutoContinue, TodoItem
from todo_tools._list.todos import is_mapping
from todo_tools._thread.notes import continuation_message
from todo_tools._thread.reading import Turn, read, read_messages, same_list
from todo_tools import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, turn
from todo_tools.transcript import is_from_user, is_injected

USER = HumanMessage("Begin.", id="user")
SAID = AIMessage("I stop here.", id="said")
WORKED = ToolMessage("Worked.", name="work", tool_call_id="w", id="worked")
SUMMARY = HumanMessage("In short.", additional_kwargs={"lc_source": "summarization"})
CLEARED = pytest.mark.parametrize("text", ["[cleared]", "", [], "– [0] b\n…"])  # noqa: RUF001


def wrote(*texts: str, mode: str = "replace", todos: Any = ()) -> ToolMessage:
    """The result of `write_todos`."""
    return result_of("write_todos", {"mode": mode, "todos": list(texts), "index": 0}, todos)


def set_status(action: str, *indices: int, todos: list[TodoItem]) -> ToolMessage:
    """The result of `edit_todos`."""
    return result_of("edit_todos", {"action": action, "indices": list(indices)}, todos)


def listed(todos: list[TodoItem]) -> ToolMessage:
    """The result of `list_todos`."""
    return result_of("list_todos", {}, todos)


def bare(result: ToolMessage) -> ToolMessage:
    """A result as version 0.2.0 made it, or as it is imported without its metadata."""
    return result.model_copy(update={"response_metadata": {}})


def known(*messages: AnyMessage, **blocks: Any) -> list[TodoItem]:
    """The list that a prompt of these messages shows last."""
    return read_messages(messages, blocks=blocks).known


class TestKnown:
    def test_it_is_the_list_that_was_shown_last(self) -> None:
        """Each of these shows a list: a change, a listing, a block."""
        messages: list[AnyMessage] = [wrote("a"), listed(MIXED), USER]
        assert known(*messages[:1]) == items("a")
        assert known(*messages) == MIXED
        assert known(*messages, user=items("b")) == items("b")

    def test_messages_without_a_list_show_an_empty_one(self) -> None:
        assert known(USER, SAID, WORKED) == []

    def test_a_listing_of_nothing_shows_that_the_list_is_empty(self) -> None:
        assert known(wrote("a"), listed([])) == []

    def test_a_listing_keeps_the_exact_texts_that_it_shows_with_marks(self) -> None:
        """A later status change is compared with the exact texts."""
        assert known(wrote("a\nb"), listed(items("a␊b"))) == items("a\nb")

    @pytest.mark.parametrize("replaced", [wrote("b"), bare(wrote("b")), listed(items("b"))])
    @CLEARED
    def test_a_result_whose_text_was_replaced_shows_nothing(
        self, replaced: ToolMessage, text: Any
    ) -> None:
        """Middleware clears old results or cuts them; blocks instead of a text are its own, too."""
        cleared = replaced.model_copy(update={"content": text})
        assert known(wrote("a"), cleared) == items("a")
        assert not read_messages([cleared]).entries[0].changed

    def test_a_result_may_be_replaced_by_a_text_of_the_same_length(self) -> None:
        """Middleware may mask digits, for example."""
        masked = wrote("12").model_copy(update={"content": wrote("**").content})
        assert known(wrote("a"), masked) == items("a")

    @pytest.mark.parametrize("texts", [[], ["b"], ["b", "c\nd"]])
    def test_a_result_without_metadata_shows_its_list(self, texts: list[str]) -> None:
        """Version 0.2.0 stored none, and an import may lose it; the text ends with the list."""
        assert known(wrote("a"), bare(wrote(*texts))) == items(*texts)

    @pytest.mark.parametrize("result", [wrote("b"), listed(items("b"))])
    def test_a_result_of_another_tool_shows_nothing(self, result: ToolMessage) -> None:
        """Whatever it holds."""
        assert known(wrote("a"), result.model_copy(update={"name": "work"})) == items("a")

    @pytest.mark.parametrize("name", ["list_todos", "edit_todos"])
    def test_a_refused_call_shows_nothing(self, name: str) -> None:
        """This holds even if its text looks like a list."""
        details = {"action": name.partition("_")[0], "todos": [], "error": "no call id"}
        refused = ToolMessage("– [0] b", name=name, tool_call_id="c", artifact=details)  # noqa: RUF001
        assert known(wrote("a"), refused) == items("a")


DONE = [*items("a", status="completed"), *items("b")]


class TestTold:
    """Whether the first line of a result is enough for a reader who knows the list before."""

    def told(self, before: list[TodoItem], result: ToolMessage) -> bool:
        return read_messages([listed(before), result]).entries[-1].told

    @pytest.mark.parametrize("indices", [[0], [1, 0], [0, 0]])
    def test_a_status_change_names_its_items(self, indices: list[int]) -> None:
        """The order does not matter; an item may have had the status before."""
        assert self.told(items("a", "b"), set_status("complete", *indices, todos=items("a", "b")))
        assert self.told(DONE, set_status("complete", *indices, todos=DONE))

    def test_a_new_list_with_the_same_texts_starts_again(self) -> None:
        """A reader knows that new items are not started."""
        assert self.told(DONE, wrote("a", "b"))

    def test_new_texts_are_not_told(self) -> None:
        """The first line has only their number."""
        assert not self.told(items("a"), wrote("b"))
        assert not self.told(items("a"), wrote("b", mode="append", todos=items("a")))
        assert not self.told(items("a"), wrote("b", mode="insert", todos=items("a")))

    def test_a_change_by_somebody_else_is_not_told(self) -> None:
        """A call before it was refused while it ran, or the application changed the list."""
        assert not self.told(items("a", "b"), set_status("start", 1, todos=DONE))
        assert not self.told(items("a", "b"), wrote(mode="append", todos=DONE))
        assert self.told(DONE, wrote(mode="append", todos=DONE))

    def test_without_metadata_the_line_must_name_exactly_the_changed_items(self) -> None:
        """Otherwise the whole list is shown, which is never wrong."""
        both = items("a", "b")
        assert self.told(both, bare(set_status("complete", 0, 1, todos=both)))
        assert not self.told(both, bare(set_status("complete", 1, 0, todos=both)))
        assert not self.told(both, bare(set_status("complete", 1, todos=DONE)))
        assert self.told(both, bare(wrote("a", "b")))
        assert not self.told(items("c"), bare(wrote("a", "b")))


class TestSameList:
    def test_invisible_characters_look_like_their_marks(self) -> None:
        assert same_list(items("a\nb"), items("a␊b"))

    def test_a_difference_that_a_reader_sees_counts(self) -> None:
        """It may be in a text, in a status, or in the length."""
        for other in (items("b"), DONE[:1], items("a", "a"), []):
            assert not same_list(items("a"), other)


class TestReading:
    def test_a_turn_is_an_answer_with_the_results_after_it(self) -> None:
        """Results before the first answer belong to a call that was removed."""
        messages: list[AnyMessage] = [WORKED, USER, turn(""), WORKED, SUMMARY, WORKED, SAID]
        assert read_messages(messages).turns == [Turn(None, [0]), Turn(2, [3, 5]), Turn(6, [])]

    def test_an_earlier_prompt_shows_what_came_before_it(self) -> None:
        """Its list is that of the messages before an index."""
        reading = read_messages([USER, wrote("a"), SAID, wrote("b"), SAID, wrote("c")])
        assert [reading.until(at).known for at in (1, 3, 5)] == [[], items("a"), items("b")]
        assert [entry.message for entry in reading.until(1).entries] == [USER]

    def test_the_last_message_of_a_kind_is_found(self) -> None:
        """The result is `None` if there is none."""
        reading = read_messages([USER, SAID, USER, SAID])
        assert reading.last(is_from_user) == 2
        assert reading.last(is_injected) is None

    def test_a_block_shows_the_list_of_the_state(self) -> None:
        """The reading before is not changed; a prompt may still need it."""
        before = read({"messages": [USER, SAID], "todos": items("a")})
        after = before.with_block(0)
        assert (after.entries[0].block, after.known) == (items("a"), items("a"))
        assert (before.entries[0].block, before.known) == (None, [])

    def test_blocks_whose_message_is_gone_are_stale(self) -> None:
        """A continuation that is not in the history belongs to the message before it."""
        note = {"text": "Go on.", "lines": ""}
        blocks: Any = {"user": items("a"), "gone": items("b"), "said": note, "lost": note}
        assert read_messages([USER, SAID], blocks=blocks).stale == ["gone", "lost"]

    def test_a_state_may_have_no_list(self) -> None:
        """Then no block can be due, which an empty list could need."""
        assert read({"messages": [USER]}).todos is None
        assert read({"messages": [USER], "todos": None}).todos == []

    def test_a_thread_of_version_0_2_0_keeps_its_continuations(self) -> None:
        """They were stored with the counters of the loop."""
        kept = {"said": {"text": "Go on.", "lines": ""}}
        reading = read({"messages": [USER, SAID], "todo_loop": {"continuations": kept}})
        assert [entry.message.text for entry in reading.entries][-1] == "Go on."

    def test_a_continuation_comes_after_the_results_of_its_answer(self) -> None:
        """LangChain adds results to a request for calls whose arguments are not JSON."""
        note: Any = {"said": {"text": "Go on.", "lines": ""}}
        reading = read_messages([USER, SAID, WORKED, WORKED, SUMMARY], blocks=note)
        shown = [entry.message.text for entry in reading.entries]
        assert shown == ["Begin.", "I stop here.", "Worked.", "Worked.", "Go on.", "In short."]

    @pytest.mark.parametrize("todos", [items("b"), []])
    def test_a_list_may_be_shown_at_a_continuation(self, todos: list[TodoItem]) -> None:
        """The application changed it after the loop had sent the agent back."""
        note = continuation_message("Go on.", key="said")
        blocks: Any = {"said": {"text": "Go on.", "lines": ""}, note.id: todos}
        assert known(wrote("a"), SAID, **blocks) == todos
        assert known(wrote("a"), SAID, AIMessage("Again."), **blocks) == todos

    def test_a_history_is_read_once(self) -> None:
        """The work is linear in its length, whatever it consists of."""

        def work(rounds: int) -> int:
            todos = items("a", "b")
            changes = [set_status(action, 0, todos=todos) for action in ("start", "complete")]
            messages: list[AnyMessage] = []
            blocks: dict[str, Any] = {}
            for at in range(rounds):
                messages += [HumanMessage("Go on.", id=f"user{at}"), edit("start", 0), *changes]
                messages += [AIMessage("I stop.", id=f"said{at}"), SUMMARY, listed(todos)]
                note = {"text": "Go on.", "lines": ""}
                blocks |= {f"user{at}": todos, f"said{at}": note, f"gone{at}": todos}
            state = {"messages": messages, "todos": todos, "todo_blocks": blocks}
            return calls_in_the_library(lambda: read(state))

        assert work(10) < work(20) <= 2 * work(10)


Build = Callable[..., Graph]
SEEDED: dict[str, Any] = {**BEGIN, "todos": items("a", "b")}
KEPT_OUT = AutoContinue(max_in_turn=2, max_idle=None, store=False)


def talking() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda _: "I stop here.")


def texts(messages: list[BaseMessage]) -> list[tuple[str, Any]]:
    """The prompt without ids."""
    return [(message.type, message.content) for message in messages]


def prompts(calls: list[ModelCall]) -> list[list[tuple[str, Any]]]:
    return [texts(call.prompt) for call in calls]


def notes_in(values: dict[str, Any]) -> list[str]:
    """The ids of the messages that a continuation outside the history follows."""
    return [place for place, block in values["todo_blocks"].items() if is_mapping(block)]


@pytest.mark.parametrize("build", [hand_built, with_middleware])
class TestKeptOut:
    """Continuations that are not stored in the history."""

    @settings(max_examples=25)
    @given(conversation=conversations)
    def test_the_model_reads_the_same_as_if_they_were_stored(
        self, build: Build, conversation: Conversation
    ) -> None:
        """The prompts are identical, whatever happens to the runs."""
        stored = model_calls(build, conversation)
        kept = model_calls(partial(build, policy=replace(POLICY, store=False)), conversation)
        assert prompts(kept) == prompts(stored)
        assert not any(is_injected(message) for message in kept[-1].history)

    @settings(max_examples=20)
    @given(conversation=whole_conversations)
    def test_a_prompt_begins_with_all_earlier_ones(
        self, build: Build, conversation: Conversation
    ) -> None:
        """The ids are the same too, so caches keep their prefix."""
        calls = model_calls(partial(build, policy=replace(POLICY, store=False)), conversation)
        for earlier, later in pairwise(calls):
            assert later.prompt[: len(earlier.prompt)] == earlier.prompt

    def test_the_view_of_an_answer_ends_with_its_continuation(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Providers require a user message at the end."""
        model = talking()
        graph = build(model, policy=KEPT_OUT)
        final = graph.invoke(SEEDED, config)
        assert [message.type for message in final["messages"]] == ["human", "ai", "ai", "ai"]
        assert [message.type for message in model.prompts[-1]][-5:] == [
            *["human", "ai", "human", "ai", "human"]
        ]
        assert model.prompts[-1][-1].text.endswith("on [0] in the same turn.")
        assert loop_of(graph, config)["in_turn"] == 2

    def test_a_fork_has_those_of_its_checkpoint(self, build: Build, config: RunnableConfig) -> None:
        """They are checkpointed together with the counts."""
        model = talking()
        graph = build(model, policy=KEPT_OUT)
        graph.invoke(SEEDED, config)
        before_second = next(
            snapshot
            for snapshot in graph.get_state_history(config)
            if len(notes_in(snapshot.values)) == 1
        )
        graph.invoke(None, before_second.config)
        assert texts(model.prompts[3]) == texts(model.prompts[2])
        assert len(notes_in(graph.get_state(config).values)) == 2

    def test_one_whose_answer_is_gone_is_forgotten(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Histories are trimmed, and the record must not grow without limit."""
        graph = build(talking(), policy=KEPT_OUT)
        answers = [m for m in graph.invoke(SEEDED, config)["messages"] if m.type == "ai"]
        removed = [RemoveMessage(id=answer.id) for answer in answers]
        graph.update_state(config, {"messages": removed})
        final = graph.invoke({"messages": [("user", "Go on.")]}, config)
        kept = notes_in(graph.get_state(config).values)
        assert set(kept) == {message.id for message in final["messages"][2:-1]}


@pytest.mark.parametrize("policy", [AutoContinue(store=False), lambda _: AutoContinue()])
def test_an_agent_without_a_view_keeps_its_continuations_in_the_history(policy: Any) -> None:
    """It could not read them anywhere else; what a function returns is not known yet."""
    with pytest.raises(ValueError, match="view=None is not allowed"):
        TodoMiddleware(policy=policy, view=None)
