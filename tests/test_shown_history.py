"""The loop's messages for the model and its notices for people."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from todo_tools._view.shown_history import with_continuation

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
from tests.support import BEGIN, Graph, items, loop_of
from todo_tools import AutoContinue, model_view
from todo_tools._thread.transcript import with_notice, without_notice
from todo_tools.events import LoopEvent
from todo_tools.middleware import TodoMiddleware
from todo_tools.state import LoopState
from todo_tools.testing import ScriptedChatModel
from todo_tools.transcript import is_injected

Build = Callable[..., Graph]
SEEDED: dict[str, Any] = {**BEGIN, "todos": items("a", "b")}
KEPT_OUT = AutoContinue(max_in_turn=2, store=False)
STALLED = (
    "⚠ Stopped after 3 continuations without a tool call; 2 todo(s) remain. "
    "Send a message to go on."
)

agents = pytest.mark.parametrize("build", [hand_built, with_middleware])


def talking() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda _: "I stop here.")


def read(messages: list[BaseMessage]) -> list[tuple[str, Any]]:
    """The prompt without ids."""
    return [(message.type, message.content) for message in messages]


def prompts(calls: list[ModelCall]) -> list[list[tuple[str, Any]]]:
    return [read(call.prompt) for call in calls]


@agents
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
        assert model.prompts[-1][-1].text.endswith("on [0].")
        assert loop_of(graph, config)["in_turn"] == 2

    def test_a_fork_has_those_of_its_checkpoint(self, build: Build, config: RunnableConfig) -> None:
        """They are checkpointed together with the counts."""
        model = talking()
        graph = build(model, policy=KEPT_OUT)
        graph.invoke(SEEDED, config)
        before_second = next(
            snapshot
            for snapshot in graph.get_state_history(config)
            if len(snapshot.values["todo_loop"].get("continuations", {})) == 1
        )
        graph.invoke(None, before_second.config)
        assert read(model.prompts[3]) == read(model.prompts[2])
        assert len(loop_of(graph, config)["continuations"]) == 2

    def test_one_whose_answer_is_gone_is_forgotten(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Histories are trimmed, and the record must not grow without limit."""
        graph = build(talking(), policy=KEPT_OUT)
        answers = [m for m in graph.invoke(SEEDED, config)["messages"] if m.type == "ai"]
        removed = [RemoveMessage(id=answer.id) for answer in answers]
        graph.update_state(config, {"messages": removed})
        final = graph.invoke({"messages": [("user", "Go on.")]}, config)
        kept = loop_of(graph, config)["continuations"]
        assert list(kept) == [message.id for message in final["messages"][2:-1]]


class TestNotices:
    """The notice for people about the end of the loop."""

    @agents
    def test_a_reached_limit_is_part_of_the_last_answer(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Any interface shows the notice. Its event is stored with it, and no message is added."""
        final = build(talking(), policy=AutoContinue()).invoke(SEEDED, config)
        *_, before, last = final["messages"]
        assert last.text == f"I stop here.\n\n{STALLED}"
        assert last.response_metadata["todo_loop"]["outcome"] == "stalled"
        assert before.type == "human"

    @agents
    def test_the_model_reads_its_own_answer_without_the_notice(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Its reasoning is bound to the answer, and the notice would cost tokens at every call."""
        model = talking()
        graph = build(model, policy=AutoContinue())
        graph.invoke(SEEDED, config)
        graph.invoke({"messages": [("user", "Go on.")]}, config)
        assert not any("Stopped" in message.text for message in model.prompts[-1])

    @agents
    def test_a_refused_answer_is_explained(self, build: Build, config: RunnableConfig) -> None:
        """Such an answer is often empty."""
        refusal = AIMessage("", response_metadata={"finish_reason": "content_filter"})
        model = ScriptedChatModel(script=[refusal])
        final = build(model, policy=AutoContinue()).invoke(SEEDED, config)
        assert final["messages"][-1].text.startswith(
            "⚠ Stopped after the provider refused or filtered the answer; 2 todo(s) remain."
        )

    @agents
    def test_a_streamed_answer_is_not_repeated(self, build: Build, config: RunnableConfig) -> None:
        """Interfaces join the parts of a streamed message, and get the notice with the values."""
        graph = build(talking(), policy=AutoContinue(max_idle=0))
        streamed: Any = graph.stream(SEEDED, config, stream_mode="messages")
        assert [message.text for message, _ in streamed] == ["I stop here."]

    @agents
    def test_it_can_be_left_out(self, build: Build, config: RunnableConfig) -> None:
        """Programs that show the event do not need it."""
        final = build(talking(), policy=AutoContinue(explain=False)).invoke(SEEDED, config)
        assert final["messages"][-1].text == "I stop here."

    @given(
        content=st.text()
        | st.lists(st.text().map(lambda text: {"type": "text", "text": text}), max_size=3),
        metadata=st.dictionaries(st.text().filter(lambda key: key != "todo_loop"), st.text()),
    )
    def test_the_models_answer_is_restored_exactly(
        self, content: Any, metadata: dict[str, str]
    ) -> None:
        """This holds for every form of answer, and after one notice replaced another.

        The key `todo_loop` of the metadata belongs to the notice.
        """
        answer = AIMessage(content, id="1", response_metadata=metadata)
        event: LoopEvent = {
            "type": "todo_loop",
            "outcome": "stalled",
            "in_a_row": 3,
            "in_turn": 3,
            "text": STALLED,
        }
        told = with_notice(answer, event)
        assert told.text.endswith(STALLED)
        assert without_notice(told) == answer
        assert with_notice(told, event) == told

    def test_other_messages_are_left_alone(self) -> None:
        message = HumanMessage("Hello.", response_metadata={"todo_loop": "mine"})
        assert model_view({"messages": [message]}) == [message]


@pytest.mark.parametrize("policy", [AutoContinue(store=False), lambda _: AutoContinue()])
def test_an_agent_without_a_view_keeps_its_continuations_in_the_history(policy: Any) -> None:
    """It could not read them anywhere else; what a function returns is not known yet."""
    with pytest.raises(ValueError, match="view=None is not allowed"):
        TodoMiddleware(policy=policy, view=None)


def test_without_a_message_there_is_no_place_for_a_continuation() -> None:
    loop: LoopState = {"in_turn": 1}
    assert with_continuation(loop, {"messages": []}, "Go on.", "") == loop
