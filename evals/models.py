"""The model that is measured, and its prices."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from evals.meter import Usage


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens."""

    sent: float
    cached: float
    received: float

    @classmethod
    def parse(cls, text: str) -> "Price":
        """Read three numbers with commas between them, such as `0.25,0.025,2`."""
        sent, cached, received = map(float, text.split(","))
        return cls(sent, cached, received)

    def of(self, usage: Usage) -> float:
        """Return the cost of a run."""
        fresh = usage.sent - usage.cached
        cost = fresh * self.sent + usage.cached * self.cached + usage.received * self.received
        return cost / 1_000_000


PRICES = {
    "claude-haiku-4-5": Price(1, 0.1, 5),
    "claude-sonnet-4-5": Price(3, 0.3, 15),
    "gpt-5": Price(1.25, 0.125, 10),
    "gpt-5-mini": Price(0.25, 0.025, 2),
    "gpt-5-nano": Price(0.05, 0.005, 0.4),
}
"""List prices of November 2025; look today's up and pass them with `--price`."""


PRICE_LISTS = {
    "cheap": PRICES["gpt-5-mini"],
    "middle": PRICES["claude-haiku-4-5"],
    "strong": PRICES["claude-sonnet-4-5"],
}
"""The prices at which every report counts the cost of a run, whatever model did it."""


def price_of(model: str, given: str | None) -> Price | None:
    """Return the price of a model, `None` if it is unknown."""
    return Price.parse(given) if given else PRICES.get(model.partition(":")[2])


def chat_model(
    name: str, *, base_url: str | None, temperature: float | None, max_answer: int | None = None
) -> BaseChatModel:
    """Create the chat model.

    Args:
        name: `provider:name`, as for `init_chat_model`.
        base_url: The address of an OpenAI-compatible server; it needs no key.
        temperature: The temperature; some models take none.
        max_answer: The most tokens of one answer; a weak model sometimes repeats itself without
            end.
    """
    settings: dict[str, Any] = {"max_retries": 4, "timeout": 600}
    if temperature is not None:
        settings["temperature"] = temperature
    if max_answer is not None:
        settings["max_tokens"] = max_answer
    if base_url:
        settings |= {"base_url": base_url, "api_key": "none"}
    create = cast("Callable[..., BaseChatModel]", init_chat_model)
    return create(name, **settings)
