"""Leave out of a prompt the work of items that are finished.

The work of an item is at the end of the prompt when the item is finished. Leaving it out there
keeps the provider's cache of everything before it, and makes every later call cheaper. The rules
depend on the messages alone, so forks, replays and restarts need nothing stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list.prompts import EMPTY_ANSWER, FOLDED
from todo_tools._list.todos import TodoItem, incomplete, is_mapping, texts_of
from todo_tools._thread.reading import Entry, Turn
from todo_tools._thread.transcript import is_rejection


@dataclass(frozen=True, slots=True)
class Folds:
    """What a prompt leaves out, as indices of entries."""

    left_out: set[int] = field(default_factory=set[int])
    """Messages."""
    cut: set[int] = field(default_factory=set[int])
    """Results that become one fixed line."""
    unbound: set[int] = field(default_factory=set[int])
    """Answers whose reasoning is bound to a text that is no longer before them."""


def folded(shown: Sequence[AnyMessage], folds: Folds) -> list[AnyMessage | None]:
    """Return the messages of a prompt; `None` for a message that is left out."""
    messages = [None if at in folds.left_out else message for at, message in enumerate(shown)]
    for at in folds.cut:
        if message := messages[at]:
            messages[at] = message.model_copy(update={"content": FOLDED})
    for at in folds.unbound:
        if isinstance(answer := messages[at], AIMessage):
            messages[at] = _without_reasoning(answer)
    return messages


class _Fold(NamedTuple):
    """What a prompt can leave out of a turn, and the characters that this saves."""

    turn: int
    left_out: Sequence[int]
    cut: Sequence[int]
    size: int


def folds_of(entries: Sequence[Entry], turns: Sequence[Turn], shown: Sequence[AnyMessage]) -> Folds:
    """Return what the next prompt leaves out; a turn belongs to the items in progress after it."""
    folds, sizes = Folds(), [*map(_size, shown)]
    starts = [*(turn.answer or 0 for turn in turns), len(entries)]
    spans = [range(start, end) for start, end in pairwise(starts)]
    left = [sum(sizes[at] for at in span) for span in spans]  # the size of each turn in the prompt
    items: dict[int, set[str]] = {}  # the items of each turn that is not folded; empty: the next
    todos: list[TodoItem] = []
    cached: list[int] = []  # the turns before which an earlier prompt ended that is still intact
    first = finished_before = 0
    for turn, span in enumerate(spans):
        results = [at for at in span if isinstance(entries[at].message, ToolMessage)]
        before, todos = todos, _last_list([entries[at] for at in results], todos)
        is_open = {item["text"] for _, item in incomplete(todos)}
        completed = {item["text"] for item in todos if item["status"] == "completed"}
        newly = bool((completed - is_open) & {item["text"] for _, item in incomplete(before)})
        here = set(texts_of(todos)) - is_open
        done = [at for at, own in items.items() if (own <= here if own else newly)]
        possible = [_fold_of(at, spans[at], entries, sizes, first) for at in reversed(done)]
        finished_before += newly
        calls = 1 + len(is_open) * max(1, turn // max(1, finished_before))
        cached.append(turn)
        chosen = _that_pay([each for each in possible if each.size > 0], left[:turn], cached, calls)
        for each in chosen:
            folds.left_out.update(each.left_out)
            folds.cut.update(each.cut)
            left[each.turn] -= each.size
        if chosen:
            oldest = chosen[-1].turn
            cached = [at for at in cached if at <= oldest]
            folds.unbound.update(spans[at][0] for at in range(oldest + 1, turn + 1))
        items = {at: own for at, own in items.items() if at not in done}
        if is_open:
            items[turn] = {item["text"] for item in todos if item["status"] == "in_progress"}
        others = [entries[at] for at in span if at not in results]
        todos = _last_list(others, todos)
        if any(isinstance(each.message, HumanMessage) for each in others):
            # Some Claude models refuse a run that began with thinking and no longer does.
            following = spans[turn + 1][0] if turn + 1 < len(spans) else None
            bound = following is not None and _has_reasoning(entries[following].message)
            first = turn + 1 if bound else first
    return folds


def _last_list(entries: Sequence[Entry], todos: list[TodoItem]) -> list[TodoItem]:
    shown = (entry.shows for entry in reversed(entries) if entry.shows is not None)
    return next(shown, todos)


def _that_pay(
    possible: Sequence[_Fold], left: Sequence[int], cached: Sequence[int], later_calls: int
) -> Sequence[_Fold]:
    """Return those of the folds, newest first, that save most together."""
    size = most = best = 0
    for number, each in enumerate(possible, start=1):
        size += each.size
        start = max(at for at in cached if at <= each.turn)
        removed = sum(bool(fold.left_out) for fold in possible[:number])
        if sum(map(bool, left[start:])) - removed > _LOOK_BACK:
            break
        gain = size * later_calls - (sum(left[start:]) - size) * _TIMES_DEARER
        if gain > most:
            most, best = gain, number
    return possible[:best]


def _fold_of(
    turn: int, span: range, entries: Sequence[Entry], sizes: Sequence[int], first: int
) -> _Fold:
    """Return what can be left out of a turn; the size is 0 for nothing."""
    answer, results = entries[span[0]].message, span[1:]
    plain = all(isinstance(entries[at].message, ToolMessage) for at in results) and not any(
        entries[at].block for at in results
    )
    if turn < first or not isinstance(answer, AIMessage) or not results or not plain:
        return _Fold(turn, (), (), 0)
    names = {call["name"] for call in [*answer.tool_calls, *answer.invalid_tool_calls]}
    staying = {at for at in results if _stays(entries[at].message)}
    if turn > first and names.isdisjoint(TOOLS) and not staying:
        return _Fold(turn, span, (), sum(sizes[at] for at in span))
    line = _MESSAGE + len(FOLDED)
    cut = [at for at in results if at not in staying and sizes[at] > line]
    return _Fold(turn, (), cut, sum(sizes[at] - line for at in cut))


def _stays(message: AnyMessage) -> bool:
    """Whether a result is that of a todo call, or what a person said."""
    return message.name in TOOLS or is_rejection(message) or message.text.startswith(_EDITED)


def _size(message: AnyMessage) -> int:
    """Return roughly the characters that a message takes in a prompt."""
    size = _MESSAGE + len(message.text)
    if isinstance(message, AIMessage):
        return size + sum(len(str(call)) for call in message.tool_calls)
    content = () if isinstance(message.content, str) else message.content
    pictures = [part for part in content if is_mapping(part) and part.get("type") != "text"]
    return size + _PICTURE * len(pictures)


_EDITED = "Note: a human reviewer replaced this tool call"
"""How LangChain begins the result of a call that a person edited; the history has the model's."""
_TIMES_DEARER = 12
"""How many times dearer it is to send a text again (1.25) than to read it from a cache (0.1)."""
_LOOK_BACK = 4
"""The turns at the end of a prompt among which a cache looks for an earlier end: 20 blocks."""
_MESSAGE = 30
"""The characters of a message's role and ids."""
_PICTURE = 4_000
"""A picture, in characters."""


def _without_reasoning(answer: AIMessage) -> AIMessage:
    """Return an answer without the reasoning that is bound to the text before it."""
    if not _has_reasoning(answer):
        return answer
    content: Any = [block for block in answer.content if not _is_bound(block)]
    if not content and not answer.tool_calls:
        content = EMPTY_ANSWER
    return answer.model_copy(update={"content": content})


def _has_reasoning(answer: AnyMessage) -> bool:
    # A string has no blocks; a loop over its characters takes long for a long answer.
    return not isinstance(answer.content, str) and any(map(_is_bound, answer.content))


def _is_bound(block: Any) -> bool:
    """Whether a part of an answer is reasoning that is bound to the text before it."""
    if not is_mapping(block) or block.get("type") not in _REASONING:
        return False
    # OpenAI's is not bound, and OpenAI refuses calls without the reasoning before them.
    return not str(block.get("id")).startswith("rs_")


_REASONING = ("thinking", "redacted_thinking", "reasoning", "reasoning_content")
