"""A local imitation of Anthropic's Messages API, as strict about histories as the real one.

It answers from a script, in the process and without a socket. It enforces the order of messages and
blocks, calls and results in pairs, and at most four cache marks. Thinking is bound to everything
before it ("preserved thinking"). `MessagesAPI.bill` has the cost of each request.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import anthropic
import httpx2
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage
from pydantic import Field, SecretStr, SkipValidation

from tests.messages_rules import Content, RefusedError, check_marks, check_order
from tests.prompt_cache import (
    Bill,
    Block,
    Prefix,
    PromptCache,
    Request,
    blocks_of,
    count_tokens,
    prefix_of,
)

Rule = Callable[[Request], AIMessage | str]

MODEL = "claude-opus-5-5"


@dataclass(frozen=True, slots=True)
class _Thought:
    """A thinking block that was sent, and everything before it."""

    text: str
    prefix: Prefix


class MessagesAPI:
    """The API of one account.

    Args:
        script: The answers in order, or a function from the request to an answer. Each answer
            starts with a thinking block, which the script does not name.
    """

    def __init__(self, script: Sequence[AIMessage | str] | Rule) -> None:
        self.requests: list[Request] = []
        """All requests, including the refused ones."""
        self._script = script
        self._cache = PromptCache()
        self._thoughts = dict[str, _Thought]()

    @property
    def bill(self) -> Bill:
        """The cost of the answered requests."""
        return self._cache.bill

    @property
    def transport(self) -> httpx2.MockTransport:
        """The transport for an HTTP client, synchronous or asynchronous."""
        return httpx2.MockTransport(self._respond)

    def answer(self, request: Request) -> dict[str, Any]:
        """Answer a request with a message.

        Raises:
            RefusedError: The request breaks a rule of the API.
        """
        self.requests.append(request)
        check_marks(request)
        check_order(request)
        self._check_thinking(blocks_of(request))
        content = self._think(request, _content(self._next(request)))
        charge = self._cache.charge(request, count_tokens(content))
        calls = any(block["type"] == "tool_use" for block in content)
        return {
            "id": f"msg_{len(self.requests)}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": charge.plain,
                "cache_creation_input_tokens": charge.written,
                "cache_read_input_tokens": charge.read,
                "output_tokens": charge.received,
            },
        }

    def _respond(self, http: httpx2.Request) -> httpx2.Response:
        request = httpx2.Response(200, content=http.content).json()
        if http.url.path != "/v1/messages" or request.get("stream"):
            return _error(404, "not_found_error", f"not imitated: {http.url}, or a stream")
        try:
            return httpx2.Response(200, json=self.answer(request))
        except RefusedError as error:
            return _error(400, "invalid_request_error", str(error))
        except IndexError:
            return _error(500, "api_error", "the script has no answer left")

    def _next(self, request: Request) -> AIMessage | str:
        if callable(self._script):
            return self._script(request)
        return self._script[len(self.bill.charges)]

    def _think(self, request: Request, content: Content) -> Content:
        """The answer, starting with a thinking block that is bound to the request."""
        number = len(self._thoughts) + 1
        thought = _Thought(f"Thought {number}.", prefix_of(blocks_of(request)))
        self._thoughts[f"signature-{number}"] = thought
        block = {
            "type": "thinking",
            "thinking": thought.text,
            "signature": f"signature-{number}",
        }
        return [block, *content]

    def _check_thinking(self, blocks: list[Block]) -> None:
        for i, block in enumerate(blocks):
            if block.content.get("type") != "thinking":
                continue
            invalid = f"{block.path}: Invalid `signature` in `thinking` block."
            thought = self._thoughts.get(block.content.get("signature", ""))
            if thought is None or thought.text != block.content["thinking"]:
                raise RefusedError(invalid)
            if thought.prefix != prefix_of(blocks[:i]):
                change = _first_change(thought.prefix, blocks[:i])
                raise RefusedError(
                    f"{invalid} The block is bound to a different conversation; "
                    f"the first change is at {change}."
                )


def _first_change(prefix: Prefix, blocks: list[Block]) -> str:
    for key, block in zip(prefix, blocks, strict=False):
        if key != block.key:
            return block.path
    return "the end of what was before it"


def _content(answer: AIMessage | str) -> Content:
    """The content blocks of an answer."""
    message = AIMessage(answer) if isinstance(answer, str) else answer
    text = [{"type": "text", "text": message.text}] if message.text else []
    return text + [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
        for call in message.tool_calls
    ]


def _error(status: int, kind: str, message: str) -> httpx2.Response:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return httpx2.Response(status, json=body)


class LocalChatAnthropic(ChatAnthropic):
    """`ChatAnthropic`, talking to the imitation."""

    api: SkipValidation[MessagesAPI] = Field(exclude=True)

    @cached_property
    def _client(self) -> anthropic.Client:
        http = anthropic.DefaultHttpxClient(transport=self.api.transport)
        return anthropic.Client(**self._client_params, http_client=http)

    @cached_property
    def _async_client(self) -> anthropic.AsyncClient:
        http = anthropic.DefaultAsyncHttpxClient(transport=self.api.transport)
        return anthropic.AsyncClient(**self._client_params, http_client=http)


def chat_anthropic(api: MessagesAPI, **options: Any) -> ChatAnthropic:
    """The real chat model, connected to the imitation."""
    return LocalChatAnthropic(
        api=api, model_name=MODEL, api_key=SecretStr("none"), max_retries=0, **options
    )
