"""The prompt has the same order of messages as the history."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

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
class TestMessages:
    @few
    @given(conversation=conversations)
    def test_the_prompt_has_the_messages_of_the_history(
        self, build: Build, conversation: Conversation
    ) -> None:
        """Only missing results are added; no message is left out or moved."""
        for sent in model_calls(build, conversation):
            assert outline(without_added_results(sent)) == outline(sent.history)

    @few
    @given(conversation=conversations)
    def test_messages_of_others_are_only_appended_to(
        self, build: Build, conversation: Conversation
    ) -> None:
        """A text stays a text, blocks stay blocks, and this package's text comes last."""
        for sent in model_calls(build, conversation):
            for shown, stored in zip(without_added_results(sent), sent.history, strict=True):
                if not is_of_the_pack(stored):
                    assert shown.content[: len(stored.content)] == stored.content


@agents
class TestProviders:
    @few
    @given(conversation=conversations)
    def test_every_call_has_its_result(self, build: Build, conversation: Conversation) -> None:
        """Missing results are the only messages that are added."""
        for sent in model_calls(build, conversation):
            assert is_answered(openai_messages(sent.prompt))

    @few
    @given(conversation=conversations)
    def test_every_provider_gets_the_roles_and_blocks_of_the_history(
        self, build: Build, conversation: Conversation
    ) -> None:
        """This package adds text only to messages with text, or inside tool results."""
        for sent in model_calls(build, conversation):
            assert shapes(without_added_results(sent)) == shapes(sent.history)


@agents
class TestChatTemplates:
    @few
    @given(conversation=whole_conversations)
    def test_users_and_answers_alternate(self, build: Build, conversation: Conversation) -> None:
        """Ministral's and Devstral's templates refuse any other order."""
        for sent in model_calls(build, conversation):
            assert is_alternating(openai_messages(sent.prompt))

    @few
    @given(conversation=whole_conversations)
    def test_mistral_accepts_every_prompt(self, build: Build, conversation: Conversation) -> None:
        """No user message comes directly after a tool result."""
        for sent in model_calls(build, conversation):
            assert mistral_refusal(mistral_messages(sent.prompt)) is None

    @few
    @given(conversation=conversations)
    def test_qwen_keeps_the_same_reasoning_as_without_the_library(
        self, build: Build, conversation: Conversation
    ) -> None:
        """A user message after a tool result would drop the reasoning of the current tool loop."""
        for sent in model_calls(build, conversation):
            kept = with_reasoning(openai_messages(sent.prompt))
            assert kept == with_reasoning(openai_messages(sent.history))


LOOK = call("look", path="a")
WORK: list[BaseMessage] = [
    HumanMessage("Look."),
    turn("", LOOK),
    ToolMessage("the content of a", name="look", tool_call_id=str(LOOK["id"])),
]
NOTE = HumanMessage("A note.")


class TestTheRules:
    """The checkers find a note after a tool result, which this package must not send."""

    def test_alternation(self) -> None:
        """Two user messages without an answer in between are found, even around tool calls."""
        assert is_alternating(openai_messages(WORK))
        assert is_alternating(openai_messages([*WORK, AIMessage("Done."), NOTE]))
        assert not is_alternating(openai_messages([*WORK, NOTE]))
        assert not is_alternating(openai_messages([NOTE, NOTE]))

    def test_mistral(self) -> None:
        """A user message after a tool result is found."""
        assert mistral_refusal(mistral_messages(WORK)) is None
        refusal = mistral_refusal(mistral_messages([*WORK, NOTE]))
        assert refusal is not None
        assert "after role" in refusal

    def test_qwen(self) -> None:
        """The current tool loop loses its reasoning; a text in blocks does not count as a query."""
        assert with_reasoning(openai_messages(WORK)) == [0]
        assert with_reasoning(openai_messages([*WORK, NOTE])) == []
        in_blocks = HumanMessage([{"type": "text", "text": "Look."}])
        assert with_reasoning(openai_messages([in_blocks, *WORK[1:]])) == []

    def test_results(self) -> None:
        """A missing, a late and a superfluous result are found."""
        assert is_answered(openai_messages(WORK))
        assert not is_answered(openai_messages([*WORK[:2], NOTE]))
        assert not is_answered(openai_messages([*WORK[:2], NOTE, WORK[2]]))
        assert not is_answered(openai_messages([*WORK, WORK[2]]))
