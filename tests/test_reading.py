"""Continuations outside the history: the model reads them where they would be stored."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from tests.conversations import (
    POLICY,
    Conversation,
    ModelCall,
    conversations,
    hand_built,
    model_calls,
    with_middleware,
)
from tests.support import BEGIN, Graph, items, loop_of
from todo_tools import AutoContinue, TodoMiddleware, todos_from_messages
from todo_tools._thread.notes import note_of, read_notes, with_continuation, with_list
from todo_tools._thread.transcript import is_injected
from todo_tools.testing import ScriptedChatModel

Build = Callable[..., Graph]
UNSTORED = replace(POLICY, store=False)


def texts(messages: list[BaseMessage]) -> list[tuple[str, Any]]:
    """The prompt without ids."""
    return [(message.type, message.content) for message in messages]


def prompts(calls: list[ModelCall]) -> list[list[tuple[str, Any]]]:
    return [texts(call.prompt) for call in calls]


@pytest.mark.parametrize("build", [hand_built, with_middleware])
class TestKeptOut:
    @settings(max_examples=25)
    @given(conversation=conversations)
    def test_the_model_reads_the_same_as_if_they_were_stored(
        self, build: Build, conversation: Conversation
    ) -> None:
        """The prompts are identical, whatever happens to the runs."""
        stored = model_calls(build, conversation)
        kept = model_calls(partial(build, policy=UNSTORED), conversation)
        assert prompts(kept) == prompts(stored)
        assert not any(is_injected(message) for message in kept[-1].history)

    def test_the_prompt_after_an_answer_ends_with_its_continuation(
        self, build: Build, config: RunnableConfig
    ) -> None:
        """Providers require a user message at the end. The history has only the answers."""
        model = ScriptedChatModel(script=lambda _: "I stop here.")
        graph = build(model, policy=replace(UNSTORED, max_in_turn=2))
        final = graph.invoke({**BEGIN, "todos": items("a", "b")}, config)
        assert [message.type for message in final["messages"]] == ["human", "ai", "ai", "ai"]
        types = [message.type for message in model.prompts[-1] if message.type != "system"]
        assert types == ["human", "ai", "human", "ai", "human"]
        assert is_injected(model.prompts[-1][-1])
        assert loop_of(graph, config)["in_turn"] == 2


@pytest.mark.parametrize("policy", [AutoContinue(store=False), lambda _: AutoContinue()])
def test_an_agent_without_a_view_keeps_its_continuations_in_the_history(policy: Any) -> None:
    """It could not read them anywhere else; what a function returns is not known yet."""
    with pytest.raises(ValueError, match="view=None is not allowed"):
        TodoMiddleware(policy=policy, view=None)


def test_a_list_shown_at_a_continuation_is_noted_with_the_answer_before_it() -> None:
    """The continuation itself is not stored."""
    stored = with_continuation(AIMessage("Done.", id="1"), "Go on.", "")
    _, (continuation, _, _) = read_notes([stored])
    again = with_list(continuation, stored, items("a"))
    assert note_of(again)["then"]["list"] == items("a")


def test_a_result_with_no_list_for_a_list_changes_nothing() -> None:
    artifact = {"action": "replace", "todos": 7}
    strange = ToolMessage("Wrote", name="write_todos", tool_call_id="1", artifact=artifact)
    assert todos_from_messages([strange]) == []
