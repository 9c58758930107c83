"""The roles and kinds of blocks that the provider packages would send for messages.

All of it comes from the packages' own code, just before it would send a request.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_aws import ChatBedrockConverse
from langchain_core.messages import BaseMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_mistralai import ChatMistralAI
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI

from todo_tools import create_todo_tools

Messages = Sequence[BaseMessage]
Shape = list[tuple[str, tuple[str, ...]]]
"""The role of each message in a payload, and the kinds of its blocks."""

CLAUDE_ON_BEDROCK = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


class ConverseClient:
    """A fake client of Bedrock's Converse API that records requests and answers each."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def converse(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        return {
            "output": {"message": {"role": "assistant", "content": [{"text": "Done."}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            "metrics": {"latencyMs": 1},
            "ResponseMetadata": {},
        }


_anthropic = ChatAnthropic(model="claude-sonnet-4-5", api_key="none")  # type: ignore[arg-type,call-arg]
_openai = ChatOpenAI(model="gpt-5", api_key="none")  # type: ignore[arg-type]
_responses = ChatOpenAI(model="gpt-5", api_key="none", use_responses_api=True)  # type: ignore[arg-type]
_google = ChatGoogleGenerativeAI(model="gemini-2.5-pro", google_api_key="none")
_mistral = ChatMistralAI(api_key="none")  # type: ignore[arg-type]
_ollama = ChatOllama(model="qwen3")
_bedrock_client = ConverseClient()
_bedrock = ChatBedrockConverse(
    model=CLAUDE_ON_BEDROCK,
    client=_bedrock_client,
    bedrock_client=_bedrock_client,
    region_name="us-east-1",
).bind_tools(create_todo_tools())


def openai_messages(messages: Messages) -> list[dict[str, Any]]:
    """The messages that a server with OpenAI's API gets and passes to a template."""
    payload: dict[str, Any] = _openai._get_request_payload(list(messages))
    return list(payload["messages"])


def mistral_messages(messages: Messages) -> list[dict[str, Any]]:
    """The messages that Mistral's API gets."""
    return _mistral._create_message_dicts(list(messages), None)[0]


def anthropic_request(messages: Messages) -> dict[str, Any]:
    """The request that Anthropic's API gets."""
    return dict(_anthropic._get_request_payload(list(messages)))


def _anthropic_shape(messages: Messages) -> Shape:
    return _shape(anthropic_request(messages)["messages"])


def _openai_shape(messages: Messages) -> Shape:
    return _shape(openai_messages(messages))


def _responses_shape(messages: Messages) -> Shape:
    sent = _responses._get_request_payload(list(messages))["input"]
    return [(item.get("role", ""), (item["type"],)) for item in sent]


def _google_shape(messages: Messages) -> Shape:
    contents = _google._prepare_request(list(messages))["contents"]
    sent = [content.model_dump(exclude_none=True) for content in contents]
    return [(message["role"], _kinds(message["parts"])) for message in sent]


def _mistral_shape(messages: Messages) -> Shape:
    return _shape(mistral_messages(messages))


def _ollama_shape(messages: Messages) -> Shape:
    return _shape(_ollama._chat_params(list(messages))["messages"])


def _bedrock_shape(messages: Messages) -> Shape:
    _bedrock_client.requests.clear()
    _bedrock.invoke(list(messages))
    return _shape(_bedrock_client.requests[-1]["messages"])


SHAPES: dict[str, Callable[[Messages], Shape]] = {
    "Anthropic": _anthropic_shape,
    "OpenAI": _openai_shape,
    "OpenAI Responses": _responses_shape,
    "Google": _google_shape,
    "Mistral": _mistral_shape,
    "Ollama": _ollama_shape,
    "Bedrock Converse": _bedrock_shape,
}


def _shape(sent: Sequence[Mapping[str, Any]]) -> Shape:
    return [(message["role"], _kinds(message.get("content"))) for message in sent]


def _kinds(content: Any) -> tuple[str, ...]:
    """The kinds of a message's blocks in order; all texts count once, at the first one.

    More text in a message that has text does not change the kinds. Text in a message without text
    does. With Llama and Mistral models, Bedrock's Converse API refuses text next to tool results.
    Anthropic names it as a cause of empty answers.
    """
    if not isinstance(content, list):
        return ("text",) if content else ()
    kinds = [_kind(block) for block in content]
    return tuple(kind for at, kind in enumerate(kinds) if kind != "text" or kind not in kinds[:at])


def _kind(block: Mapping[str, Any]) -> str:
    """Converse and Google name a block's kind by its only key."""
    return str(block.get("type") or next(iter(block)))
