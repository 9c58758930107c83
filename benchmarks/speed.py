"""The time that `model_view` takes, beside that of LangChain's conversion of the same history."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from statistics import median
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    ToolMessage,
    convert_to_openai_messages,
)

from benchmarks.lists import PACK
from benchmarks.run import run_work
from benchmarks.work import Case
from todo_tools import model_view, todos_from_messages

SIZES = (100, 1_000, 5_000, 20_000)
"""The number of messages in a history."""
REPEATED = Case(20, 3, 300)
"""The work that a history repeats: each time the user asks again and a new list is written."""
TIMES = 7
"""How often both are timed, by turns."""


@dataclass(frozen=True)
class Speed:
    """The times of one history."""

    messages: int
    view: float
    """Seconds of `model_view`."""
    converted: float
    """Seconds of `convert_to_openai_messages`."""

    @property
    def share(self) -> float:
        """The time of the view as a share of the conversion's."""
        return self.view / self.converted

    @property
    def each(self) -> float:
        """The microseconds of the view for each message."""
        return 1e6 * self.view / self.messages


def measure(size: int) -> Speed:
    """Time both on the same history, by turns, so that a slow moment of the machine hits both."""
    messages = history(size)
    state: dict[str, Any] = {"messages": messages, "todos": todos_from_messages(messages)}
    times = [
        (_seconds(model_view, state), _seconds(convert_to_openai_messages, messages))
        for _ in range(TIMES)
    ]
    view, converted = (median(each) for each in zip(*times, strict=True))
    return Speed(len(messages), view, converted)


def _seconds(function: Callable[[Any], object], argument: object) -> float:
    began = time.perf_counter()
    function(argument)
    return time.perf_counter() - began


def history(size: int) -> list[AnyMessage]:
    """A history of at most `size` messages; it ends where the model is called next."""
    work = run_work(REPEATED, "beside", PACK).messages
    messages = list(islice(_repeated(work), size + 1))
    while not isinstance(messages[-1], AIMessage):
        messages.pop()
    return messages[:-1]


def _repeated(work: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """The work without end; each time its messages and calls have other ids."""
    for nth in count():
        for message in work:
            yield _with_ids(message, suffix=f"-{nth}")


def _with_ids(message: AnyMessage, suffix: str) -> AnyMessage:
    update: dict[str, Any] = {"id": f"{message.id}{suffix}"}
    if isinstance(message, AIMessage):
        calls = message.tool_calls
        update["tool_calls"] = [{**call, "id": f"{call['id']}{suffix}"} for call in calls]
    if isinstance(message, ToolMessage):
        update["tool_call_id"] = f"{message.tool_call_id}{suffix}"
    return message.model_copy(update=update)
