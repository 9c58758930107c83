"""The prompt has the same order of messages as the history."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolMessage

from tests.chat_templates import is_alternating, is_answered, mistral_refusal, with_reasoning
from tests.conversations import (
    Conversation,
    ModelCall,
    conversations,
    hand_built,
    model_calls,
    whole_conversations,
    with_middleware,
)
from tests.payloads import SHAPES, Shape, mistral_messages, openai_messages
from todo_tools.testing import call, turn

Build = Callable[[Any], Any]

few = settings(max_examples=30)
agents = pytest.mark.parametrize("build", [hand_built, with_middleware])


def has_result(message: BaseMessage, messages: list[AnyMessage]) -> bool:
    """Whether the message is the result of a call in the messages."""
    ids = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
    return isinstance(message, ToolMessage) and message.tool_call_id in ids


def without_added_results(sent: ModelCall) -> list[BaseMessage]:
    """The prompt without the added results of calls that have no result in the history."""
    return [
        message
        for message in sent.prompt
        if not isinstance(message, ToolMessage) or has_result(message, sent.history)
    ]


def is_of_the_pack(message: BaseMessage) -> bool:
    """Whether the message is a todo result or a continuation."""
    if message.additional_kwargs.get("lc_source") == "todo_tools":
        return True
    return message.name in {"write_todos", "edit_todos", "list_todos"}


def outline(messages: list[Any]) -> list[tuple[Any, ...]]:
    """Each message without its text: type, identity, the form of its content.

    A tool result is known by its call. It may have no id yet: `create_agent` itself answers calls
    whose arguments are no JSON, and stores the result only after the model has seen it.
    """
    return [(m.type, getattr(m, "tool_call_id", m.id), type(m.content)) for m in messages]


def shapes(messages: list[Any]) -> dict[str, Shape]:
    """The request of each provider's package."""
    return {provider: shape(messages) for provider, shape in SHAPES.items()}


@agents
@few
@given(conversation=conversations)
def test_every_prompt_is_the_history_with_more_text(
    build: Build, conversation: Conversation
) -> None:
    """Missing results are added; no other message is added, left out or moved."""
    for sent in model_calls(build, conversation):
        assert is_answered(openai_messages(sent.prompt))
        known = without_added_results(sent)
        assert outline(known) == outline(sent.history)
        # A text stays a text, blocks stay blocks, and this package's text comes last.
        for shown, stored in zip(known, sent.history, strict=True):
            if not is_of_the_pack(stored):
                assert shown.content[: len(stored.content)] == stored.content
        # Text is added only to messages with text, or inside tool results.
        assert shapes(known) == shapes(sent.history)
        # A user message after a tool result would drop the reasoning of the current tool loop.
        kept = with_reasoning(openai_messages(sent.prompt))
        assert kept == with_reasoning(openai_messages(sent.history))


@agents
@few
@given(conversation=whole_conversations)
def test_chat_templates_accept_every_prompt(build: Build, conversation: Conversation) -> None:
    """Those of Ministral and Devstral want users and answers in turn; Mistral's validator refuses
    a user message directly after a tool result.
    """
    for sent in model_calls(build, conversation):
        assert is_alternating(openai_messages(sent.prompt))
        assert mistral_refusal(mistral_messages(sent.prompt)) is None


LOOK = call("look", path="a")
WORK: list[BaseMessage] = [
    HumanMessage("Look."),
    turn("", LOOK),
    ToolMessage("the content of a", name="look", tool_call_id=str(LOOK["id"])),
]
NOTE = HumanMessage("A note.")


def test_the_rules_find_a_note_after_a_result() -> None:
    """This package must not send one; these checks would notice it."""
    noted = openai_messages([*WORK, NOTE])
    assert is_alternating(openai_messages(WORK))
    assert not is_alternating(noted)
    assert with_reasoning(openai_messages(WORK)) == [0]
    assert with_reasoning(noted) == []
    assert mistral_refusal(mistral_messages(WORK)) is None
    assert "after role" in str(mistral_refusal(mistral_messages([*WORK, NOTE])))
    assert is_answered(openai_messages(WORK))
    assert not is_answered(openai_messages([*WORK[:2], NOTE]))
