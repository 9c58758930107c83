"""Compute the cost of each item from a message history; no other data is needed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.messages.tool import ToolCall

from todo_tools._calls.records import TOOLS
from todo_tools._list.formats import from_client_todos
from todo_tools._list.todos import TodoItem, is_mapping
from todo_tools._thread.transcript import is_from_user, list_after

__all__ = ["Cost", "ItemCost", "Ledger", "ledger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a part of a run. `+` adds two costs."""

    calls: int = 0
    """The number of model calls."""
    usage: UsageMetadata = field(default_factory=lambda: add_usage(None, None))
    """The tokens as LangChain counts them. Tokens from the provider's cache are in
    `usage["input_token_details"]["cache_read"]`."""
    tools: Mapping[str, int] = field(default_factory=dict[str, int])
    """The number of calls of each tool, by name."""
    errors: int = 0
    """The number of tool calls that failed or had invalid arguments."""
    seconds: float = 0.0
    """The time between answers of the model; zero if the provider adds no time to its answers."""

    def __add__(self, other: "Cost") -> "Cost":
        names = {**self.tools, **other.tools}
        return Cost(
            calls=self.calls + other.calls,
            usage=add_usage(self.usage, other.usage),
            tools={name: self.tools.get(name, 0) + other.tools.get(name, 0) for name in names},
            errors=self.errors + other.errors,
            seconds=self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class ItemCost:
    """The last known form of an item, and its cost."""

    index: int | None
    """The index in the list; `None` if the item was removed."""
    todo: TodoItem
    cost: Cost


@dataclass(frozen=True, slots=True)
class Ledger:
    """The cost of a history. `items` and `other` add up to the total."""

    items: tuple[ItemCost, ...]
    """The items of the list in order, then the items that were removed from it."""
    other: Cost
    """The cost outside items: planning, answers between items, the final answer."""
    bookkeeping: Cost
    """The cost of turns that called only todo tools. `items` and `other` include it."""
    left_out: int = 0
    """Roughly the input tokens that `fold_finished` saved; nothing else here includes them."""

    @property
    def total(self) -> Cost:
        """The total cost; its usage is exactly the sum of what the messages report."""
        return sum((item.cost for item in self.items), self.other)


_NOTHING = Cost()


@dataclass(slots=True, eq=False)
class _Entry:
    """An item and its cost so far."""

    todo: TodoItem
    cost: Cost = _NOTHING


def ledger(messages: Sequence[AnyMessage], *, fold_finished: bool = False) -> Ledger:
    """Add up the cost of each item between its start and its completion.

    The cost of each model call and tool call goes to the item in progress at that time. If several
    items are in progress, the first one gets it. Items are matched by their text. Threads of
    LangChain's `TodoListMiddleware` also work; their lists are in the arguments of `write_todos`.

    Args:
        messages: A history, oldest first. Messages that were removed from it are not counted.
        fold_finished: Whether the agent had `fold_finished=True`; a history does not say it. For a
            history without it, the result tells what it would have saved.

    Returns:
        The cost of each item, the cost outside items, the cost of bookkeeping, and what the prompts
        left out.

    Example:
        ```python
        costs = ledger([HumanMessage("Hello."), AIMessage("Hello!")])
        assert costs.total.calls == 1
        ```
    """
    entries: list[_Entry] = []
    removed: list[_Entry] = []
    other = _Entry({"text": "", "status": "not_started"})
    bookkeeping = Cost()
    for answer, seconds, results in _turns(messages):
        cost = _model_call(answer, seconds)
        _current(entries, other).cost += cost
        if answer.tool_calls and all(call["name"] in TOOLS for call in answer.tool_calls):
            bookkeeping += cost
        for call in answer.tool_calls:
            result = results.get(call["id"] or "")
            failed = result is not None and result.status == "error"
            _current(entries, other).cost += Cost(tools={call["name"]: 1}, errors=int(failed))
            todos = _list_after(call, result)
            if todos is not None:
                before, entries = entries, _carried_on(entries, todos)
                kept = set(map(id, entries))
                spent = [entry for entry in before if entry.cost is not _NOTHING]
                removed += [entry for entry in spent if id(entry) not in kept]
    items = [ItemCost(index, entry.todo, entry.cost) for index, entry in enumerate(entries)]
    items += [ItemCost(None, entry.todo, entry.cost) for entry in removed]
    left_out = 0
    return Ledger(tuple(items), other.cost, bookkeeping, left_out)


def _turns(
    messages: Sequence[AnyMessage],
) -> Iterator[tuple[AIMessage, float, dict[str, ToolMessage]]]:
    """Yield each answer of the model, the seconds since the last one, and its tool results.

    Time before a user message does not count. Results are grouped by turn, because some model
    servers use the same call ids in every turn.
    """
    last: float | None = None
    starts = [at for at, message in enumerate(messages) if isinstance(message, AIMessage)]
    for start, end in pairwise([*starts, len(messages)]):
        answer, *others = messages[start:end]
        now = _made_at(answer)
        yield (
            cast("AIMessage", answer),
            max(now - last, 0.0) if now is not None and last is not None else 0.0,
            {m.tool_call_id: m for m in others if isinstance(m, ToolMessage)},
        )
        last = None if any(map(is_from_user, others)) else last if now is None else now


def _current(entries: Sequence[_Entry], other: _Entry) -> _Entry:
    return next((entry for entry in entries if entry.todo["status"] == "in_progress"), other)


def _model_call(message: AIMessage, seconds: float) -> Cost:
    counts = _counts(cast("Mapping[str, Any]", message.usage_metadata or {}))
    usage = add_usage(None, cast("UsageMetadata", counts) if counts else None)
    return Cost(calls=1, usage=usage, errors=len(message.invalid_tool_calls), seconds=seconds)


def _counts(given: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the token counts; some providers add other values, which `add_usage` refuses."""
    return {
        key: _counts(value) if is_mapping(value) else value
        for key, value in given.items()
        if is_mapping(value) or type(value) is int
    }


def _list_after(call: ToolCall, result: ToolMessage | None) -> list[TodoItem] | None:
    """Return the list after a call, from this library's artifact or LangChain's arguments."""
    if result is None or result.status == "error":
        return None
    if call["name"] != "write_todos" or "mode" in call["args"]:
        return list_after(result)
    try:
        return from_client_todos(call["args"].get("todos"))
    except ValueError:
        return None


def _carried_on(entries: list[_Entry], todos: list[TodoItem]) -> list[_Entry]:
    """Return the entries of a new list; an item with the same text keeps its cost."""
    before = [entry.todo["text"] for entry in entries]
    after = [todo["text"] for todo in todos]
    if before == after:
        for entry, todo in zip(entries, todos, strict=True):
            entry.todo = todo
        return entries
    kept = [_Entry(todo) for todo in todos]
    for old, new, size in SequenceMatcher(a=before, b=after, autojunk=False).get_matching_blocks():
        kept[new : new + size] = entries[old : old + size]
    for entry, todo in zip(kept, todos, strict=True):
        entry.todo = todo
    return kept


def _made_at(message: AnyMessage) -> float | None:
    """Return the time of an answer, if the provider reports it as OpenAI and Ollama do."""
    stamp: object = message.response_metadata.get("created_at")
    try:
        if isinstance(stamp, str):
            return datetime.fromisoformat(stamp).timestamp()
        # This refuses infinity, for example: it is no time in Python's calendar.
        return datetime.fromtimestamp(cast("float", stamp), UTC).timestamp()
    except (OSError, OverflowError, TypeError, ValueError):
        return None
