"""Leave out of a prompt the work of items that are finished.

The work of an item is at the end of the prompt when the item is finished. Leaving it out there
keeps the provider's cache of everything before it, and makes every later call cheaper. The rules
depend on the messages alone, so forks, replays and restarts need nothing stored.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list.prompts import EMPTY_ANSWER, FOLDED, folded_calls
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
    ticks: dict[int, int] = field(default_factory=dict[int, int])
    """The results that say so, and the number of calls whose work is left out or cut."""
    unbound: set[int] = field(default_factory=set[int])
    """Answers whose reasoning is bound to a text that is no longer before them."""


def folded(shown: Sequence[AnyMessage], folds: Folds) -> list[AnyMessage | None]:
    """Return the messages of a prompt; `None` for a message that is left out."""
    messages = [None if at in folds.left_out else message for at, message in enumerate(shown)]
    for at in folds.cut:
        if message := messages[at]:
            messages[at] = message.model_copy(update={"content": FOLDED})
    for at, number in folds.ticks.items():
        if message := messages[at]:
            first, line, rest = str(message.content).partition("\n")
            text = f"{first}; {folded_calls(number)}{line}{rest}"
            messages[at] = message.model_copy(update={"content": text})
    for at in folds.unbound:
        if isinstance(answer := messages[at], AIMessage):
            messages[at] = _without_reasoning(answer)
    return messages


def folds_of(entries: Sequence[Entry], turns: Sequence[Turn], shown: Sequence[AnyMessage]) -> Folds:
    """Return what the next prompt leaves out; a turn belongs to the items in progress after it."""
    starts = [*(turn.answer or 0 for turn in turns), len(entries)]
    prompt = _Prompt(entries, [range(start, end) for start, end in pairwise(starts)], shown)
    items, todos = _Items(), list[TodoItem]()
    for turn, span in enumerate(prompt.spans):
        results = [entries[at] for at in span if isinstance(entries[at].message, ToolMessage)]
        todos = _last_list(results, todos)
        prompt.grow(turn, items.finished_in(todos), items.later_calls(turn))
        items.add(turn)
        others = [entries[at] for at in span if not isinstance(entries[at].message, ToolMessage)]
        todos = _last_list(others, todos)
        if any(isinstance(each.message, HumanMessage) for each in others):
            prompt.begin_run(turn + 1)
    return prompt.folds


def _last_list(entries: Sequence[Entry], todos: list[TodoItem]) -> list[TodoItem]:
    shown = (entry.shows for entry in reversed(entries) if entry.shows is not None)
    return next(shown, todos)


class _Items:
    """The items of each turn that may still be folded; an item is its text."""

    def __init__(self) -> None:
        self._todos: list[TodoItem] = []
        self._open, self._started = set[str](), set[str]()
        self._of_turn: dict[int, set[str]] = {}  # an empty set: the items that are finished next
        self._times_finished = 0

    def finished_in(self, todos: list[TodoItem]) -> list[int]:
        """Take the list after a turn; return the turns whose items are all finished now."""
        if todos is self._todos:
            return []
        before, self._todos = self._open, todos
        self._open = {item["text"] for _, item in incomplete(todos)}
        self._started = {item["text"] for item in todos if item["status"] == "in_progress"}
        finished = {*texts_of(todos)} - self._open
        completed = {item["text"] for item in todos if item["status"] == "completed"}
        is_next = not before.isdisjoint(completed & finished)
        self._times_finished += is_next
        of_turn = reversed(self._of_turn.items())
        done = [turn for turn, own in of_turn if (own <= finished if own else is_next)]
        for turn in done:
            del self._of_turn[turn]
        return done

    def add(self, turn: int) -> None:
        """Let a turn belong to the items that are in progress after it."""
        if self._open:
            self._of_turn[turn] = self._started

    def later_calls(self, turn: int) -> int:
        """Estimate the model calls that follow: an open item takes as many as a finished one."""
        return 1 + len(self._open) * max(1, turn // max(1, self._times_finished))


class _Fold(NamedTuple):
    """What a prompt can leave out of a turn, and the characters and blocks that this saves."""

    turn: int
    left_out: Sequence[int] = ()
    cut: Sequence[int] = ()
    size: int = 0
    blocks: int = 0


class _Prompt:
    """A prompt that grows by one turn after the other, and what it leaves out."""

    def __init__(
        self, entries: Sequence[Entry], spans: Sequence[range], shown: Sequence[AnyMessage]
    ) -> None:
        self.folds, self.spans, self._entries = Folds(), spans, entries
        self._sizes = [*map(_size, shown)]
        # Of each turn, what the prompt still has.
        self._size_of = [sum(self._sizes[at] for at in span) for span in spans]
        self._blocks_of = [sum(_blocks(shown[at]) for at in span) for span in spans]
        sizes = accumulate(self._size_of, initial=0)
        large = (turn for turn, size in enumerate(sizes) if size >= _SMALLEST)
        self._first_cached = next(large, len(spans))  # a smaller prompt is not cached at all
        self._cached: list[int] = []  # before these turns, an earlier prompt ended that still holds
        self._first = 0  # the first turn that may be left out

    def begin_run(self, turn: int) -> None:
        """Keep the first turn of a run if some Claude models would refuse the run without it."""
        if turn < len(self.spans) and _has_reasoning(self._entries[self.spans[turn][0]].message):
            self._first = turn

    def grow(self, turn: int, done: Sequence[int], later_calls: int) -> None:
        """Add a turn, and leave out the turns that are done for good, if that pays."""
        self._cached.append(turn)
        possible = [fold for fold in map(self._fold_of, done) if fold.size]
        chosen = self._that_pay(possible, turn, later_calls)
        for each in chosen:
            self.folds.left_out.update(each.left_out)
            self.folds.cut.update(each.cut)
            self._size_of[each.turn] -= each.size
            self._blocks_of[each.turn] -= each.blocks
        if chosen:
            oldest = chosen[-1].turn
            ticks = [at for at in self.spans[turn] if self._entries[at].changed]
            self.folds.ticks.update(dict.fromkeys(ticks[-1:], sum(map(self._calls_of, chosen))))
            del self._cached[bisect_right(self._cached, oldest) :]
            self.folds.unbound.update(self.spans[at][0] for at in range(oldest + 1, turn + 1))

    def _that_pay(self, possible: Sequence[_Fold], turn: int, later_calls: int) -> Sequence[_Fold]:
        """Return those of the folds, newest first, that save most together."""
        # What is left out is saved in each later call. What comes after it is sent again once, from
        # the end of the last earlier prompt that stays as it was.
        size = blocks = most = best = 0
        for number, each in enumerate(possible, start=1):
            size, blocks = size + each.size, blocks + each.blocks
            start = self._cached[bisect_right(self._cached, each.turn) - 1]
            if sum(self._blocks_of[start : turn + 1]) - blocks >= _LOOK_BACK:
                break
            again = sum(self._size_of[start:turn]) - size
            if start < self._first_cached:
                again += _BEFORE + sum(self._size_of[:start])
            gain = size * later_calls - again * _TIMES_DEARER
            if gain > most:
                most, best = gain, number
        return possible[:best]

    def _fold_of(self, turn: int) -> _Fold:
        """Return what can be left out of a turn."""
        at, *results = self.spans[turn]
        answer, entries = self._entries[at].message, [self._entries[each] for each in results]
        plain = all(isinstance(each.message, ToolMessage) and not each.block for each in entries)
        if turn < self._first or not isinstance(answer, AIMessage) or not results or not plain:
            return _Fold(turn)  # of two people's messages, one would follow the other
        names = {call["name"] for call in [*answer.tool_calls, *answer.invalid_tool_calls]}
        cut = [each for each in results if not _stays(self._entries[each].message)]
        if turn > self._first and names.isdisjoint(TOOLS) and len(cut) == len(results):
            size, blocks = self._size_of[turn], self._blocks_of[turn]
            return _Fold(turn, self.spans[turn], (), size, blocks)
        line = _MESSAGE + len(FOLDED)
        cut = [each for each in cut if self._sizes[each] > line and not self._is_edited(each)]
        return _Fold(turn, (), cut, sum(self._sizes[each] - line for each in cut))

    def _calls_of(self, fold: _Fold) -> int:
        """Return the number of calls whose results are left out."""
        messages = (self._entries[at].message for at in [*fold.left_out, *fold.cut])
        return sum(isinstance(message, ToolMessage) for message in messages)

    def _is_edited(self, at: int) -> bool:
        """Whether a result says that a person edited its call; the history keeps the model's."""
        return self._entries[at].message.text.startswith(_EDITED)


def _stays(message: AnyMessage) -> bool:
    """Whether a result is of a todo call, or says that a person rejected the call."""
    return message.name in TOOLS or is_rejection(message)


def _size(message: AnyMessage) -> int:
    """Return roughly the characters that a message takes in a prompt."""
    size = _MESSAGE + len(message.text)
    if isinstance(message, AIMessage):
        return size + sum(len(str(call)) for call in message.tool_calls)
    content = () if isinstance(message.content, str) else message.content
    pictures = [part for part in content if is_mapping(part) and part.get("type") != "text"]
    return size + _PICTURE * len(pictures)


def _blocks(message: AnyMessage) -> int:
    """Return the number of blocks in which a provider caches a call or a result."""
    if isinstance(message, AIMessage):
        return len(message.tool_calls) + bool(message.text)
    # A person's message may come after the prompt that ended with the results.
    return int(isinstance(message, ToolMessage))


_EDITED = "Note: a human reviewer replaced this tool call"
"""How LangChain begins the result of a call that a person edited."""
_TIMES_DEARER = 12
"""How many times dearer it is to send a text again (1.25) than to read it from a cache (0.1)."""
_LOOK_BACK = 20
"""The blocks at the end of a prompt among which Anthropic's cache looks for an entry."""
_BEFORE = 2_000
"""The characters of the todo tools and their prompts, which are before the messages."""
_SMALLEST = 4_096 - _BEFORE
"""The characters of messages in the smallest prompt that most providers cache: 1,024 tokens."""
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
