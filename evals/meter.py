"""A chat model around another: it counts, keeps to the caps, and reads calls in texts."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr, SkipValidation
from typing_extensions import override

from evals.adapter import with_call_in_text


class CapReachedError(Exception):
    """A run has used all of its calls or tokens."""


@dataclass
class Caps:
    """The most that one run may use."""

    calls: int = 200
    tokens: int = 1_000_000
    """Tokens sent and received."""


@dataclass
class Usage:
    """What a run has used, as the provider counts it."""

    calls: int = 0
    sent: int = 0
    """Tokens of the prompts, with those read from the cache."""
    cached: int = 0
    """Tokens that the provider read from its cache."""
    received: int = 0
    largest: int = 0
    """Tokens of the largest prompt."""

    def add(self, answer: AIMessage) -> None:
        """Add the usage of one answer."""
        usage = answer.usage_metadata
        self.calls += 1
        if usage:
            self.sent += usage["input_tokens"]
            self.largest = max(self.largest, usage["input_tokens"])
            self.received += usage["output_tokens"]
            self.cached += usage.get("input_token_details", {}).get("cache_read", 0)

    def as_dict(self) -> dict[str, int]:
        """Return the counts as a plain dict."""
        return asdict(self)


class MeteredChatModel(BaseChatModel):
    """Another chat model, with a count of its calls and tokens.

    Args:
        model: The chat model that answers.
        caps: The most calls and tokens; at the next call after them the run ends.
        on_stop: Called after each answer without a tool call.
    """

    model: SkipValidation[BaseChatModel]
    caps: SkipValidation[Caps] = Field(default_factory=Caps)
    on_stop: SkipValidation[Callable[[], None]] = lambda: None
    _usage: Usage = PrivateAttr(default_factory=Usage)
    _talks: dict[str, list[BaseMessage]] = PrivateAttr(default_factory=dict[str, list[BaseMessage]])

    @property
    def last(self) -> list[BaseMessage]:
        """The last prompt and its answer: the conversation as the model has read it.

        The item runner holds several conversations, which have different first user messages.
        """
        return [message for talk in self._talks.values() for message in talk]

    @property
    def usage(self) -> Usage:
        """What has been used so far."""
        return self._usage

    @property
    @override
    def _llm_type(self) -> str:
        return "metered"

    @override
    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._require_rest()
        tools: list[dict[str, Any]] = kwargs.get("tools", [])
        # Bound here and not in `bind_tools`, so that each provider converts the tools itself.
        model = self.model.bind_tools(tools) if tools else self.model
        answer = model.invoke(messages)
        self._usage.add(answer)
        answer = with_call_in_text(answer, {tool["function"]["name"] for tool in tools})
        begins = next((each.text for each in messages if each.type == "human"), "")
        self._talks[begins] = [*messages, answer]
        if not answer.tool_calls:
            self.on_stop()
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _require_rest(self) -> None:
        if self._usage.calls >= self.caps.calls:
            raise CapReachedError("calls")
        if self._usage.sent + self._usage.received >= self.caps.tokens:
            raise CapReachedError("tokens")
