"""Leave out of a prompt the work of items that are finished.

The work of an item is at the end of the prompt when the item is finished. Leaving it out there
keeps the provider's cache of everything before it, and makes every later call cheaper. The rules
depend on the messages alone, so forks, replays and restarts need nothing stored.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count, pairwise
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list.operations import origins
from todo_tools._list.prompts import EMPTY_ANSWER, FOLDED
from todo_tools._list.todos import STATUSES, TodoItem, incomplete, is_mapping
from todo_tools._thread.reading import Entry, Turn
from todo_tools._thread.transcript import is_rejection, note_of


@dataclass(frozen=True, slots=True)
class Folds:
    """What a prompt leaves out, as indices of entries."""

    left_out: set[int] = field(default_factory=set[int])
    """Messages."""
    cut: set[int] = field(default_factory=set[int])
    """Results that become one fixed line."""
    unbound: set[int] = field(default_factory=set[int])
    """Answers whose reasoning is bound to a text that is no longer before them."""
    saved: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """For each fold, the turn after which it was made, and the characters that it leaves out."""


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


def folds_of(entries: Sequence[Entry], turns: Sequence[Turn], shown: Sequence[AnyMessage]) -> Folds:
    """Return what the next prompt leaves out.

    A turn belongs to the items in progress after it; if there are none, to the items that are
    completed next. When the last of its items is finished, it is folded for good if that pays. A
    turn without a todo call is left out. In a turn with one, or with a call that a person rejected,
    the other results are cut, unless a person edited their calls.

    Args:
        entries: The history.
        turns: Its turns.
        shown: Its messages as a prompt without folding shows them.
    """
    items, prompt = _Items(), _Prompt(entries, turns, shown)
    for turn in range(len(turns)):
        for part in prompt.parts(turn):
            finished = list(items.take([entries[at] for at in part]))
            prompt.grow(turn, part, finished, items.later_calls())
        items.work(turn)
    return prompt.folds


class _Items:
    """The items of the list, and the turns that belong to them."""

    def __init__(self) -> None:
        self._open = 0
        self._ever_finished = 0
        self._worked = 0  # the number of turns that belong to an item
        self._todos: list[TodoItem] = []
        self._keys: list[int] = []
        self._new_keys = count()
        self._finished: set[int] = set()
        self._opened: set[int] = set()
        """The items that have been open. One that was finished from the start has no work."""
        self._in_progress: list[int] = []
        self._turns: defaultdict[int, list[int]] = defaultdict(list)
        self._unfinished: dict[int, int] = {}  # the number of unfinished items of a turn

    def work(self, turn: int) -> None:
        """Note which items a turn belongs to; if all are finished, it belongs to none."""
        items = self._in_progress or ([_NEXT] if self._open else [])
        self._unfinished[turn] = len(items)
        self._worked += bool(items)
        for item in items:
            self._turns[item].append(turn)

    def later_calls(self) -> int:
        """Return how many model calls follow if open items take as many as the finished ones."""
        return 1 + self._open * max(1, self._worked // max(1, self._ever_finished))

    def take(self, entries: Sequence[Entry]) -> Iterator[int]:
        """Take in a part of a turn, and yield the turns whose last item it finishes.

        A result may show a change that was not made, for example if an earlier call of its message
        was refused. So only the changes of its own call count, and only if the list that the turn
        ends with has them: the next prompt ends the turn with a block if the state has another
        list. If something else ended the run, the block comes in a later turn.
        """
        newly: dict[int, TodoItem] = {}
        start = self._finished
        for entry in entries:
            if entry.shows is not None:
                # A block shows the list of the state, whatever the results before it showed.
                before = self._finished if entry.block is None else start
                finished = self._newly_finished(entry, entry.shows, before)
                newly |= finished if entry.own or entry.block is not None else {}
        opened = {todo["text"] for _, todo in incomplete(self._todos)}
        newly = {k: i for k, i in newly.items() if k in self._finished or i["text"] not in opened}
        self._ever_finished += len(newly)
        # If items were only abandoned, the work for the next one stays.
        completed = any(item["status"] == "completed" for item in newly.values())
        has_next = bool(newly) and (not self._open or completed)
        for item in [*sorted(newly), *([_NEXT] if has_next else [])]:
            for turn in self._turns.pop(item, ()):
                self._unfinished[turn] -= 1
                if not self._unfinished[turn]:
                    yield turn

    def _newly_finished(
        self, entry: Entry, todos: list[TodoItem], before: set[int]
    ) -> dict[int, TodoItem]:
        """Take in the list that an entry shows, and return the items that it newly finishes."""
        self._keys = self._keys_after(entry)
        self._todos = todos
        items = dict(zip(self._keys, todos, strict=True))
        self._finished = {key for key, item in items.items() if STATUSES[item["status"]].finished}
        self._in_progress = [k for k, item in items.items() if item["status"] == "in_progress"]
        self._open = len(self._keys) - len(self._finished)
        self._opened.update(items.keys() - self._finished)
        return {key: items[key] for key in (self._finished - before) & self._opened}

    def _keys_after(self, entry: Entry) -> list[int]:
        """Return a key for each item; items keep their keys until the list is replaced."""
        # A block shows the list of the state, whatever the result before it did.
        operation = None if entry.block else note_of(entry.message).get("operation")
        places = origins(self._todos, entry.shows or [], operation)
        keys = [next(self._new_keys) if at is None else self._keys[at] for at in places]
        if not set(self._keys) <= {*keys, *self._finished}:
            # The item that would have been finished next may be gone.
            self._turns.pop(_NEXT, None)
        return keys


_NEXT = -1
"""Stands for the items that are completed next."""


class _Fold(NamedTuple):
    """What a prompt could leave out of a turn."""

    turn: int
    left_out: Sequence[int]
    cut: Sequence[int]
    size: int
    """The characters that this saves."""
    blocks: int
    """The blocks that this saves."""


class _Prompt:
    """A prompt that grows turn by turn, and what it leaves out.

    Args:
        entries: The history.
        turns: Its turns.
        shown: Its messages as a prompt without folding shows them.
    """

    def __init__(
        self, entries: Sequence[Entry], turns: Sequence[Turn], shown: Sequence[AnyMessage]
    ) -> None:
        self.folds = Folds()
        starts = [turn.answer or 0 for turn in turns]
        self.spans = [range(start, end) for start, end in pairwise([*starts, len(entries)])]
        """The entries of each turn, with the messages before the next one."""
        self._entries = entries
        self._shown = shown
        self._sizes = [*map(_size, shown)]
        self._turn_sizes = [sum(self._sizes[at] for at in span) for span in self.spans]
        self._blocks = [*map(_blocks, shown)]
        self._turn_blocks = [0 for _ in turns]
        """The blocks of each turn so far."""
        sizes = accumulate(self._turn_sizes, initial=0)
        large = (turn for turn, size in enumerate(sizes) if size >= _SMALLEST - _BEFORE)
        # Nothing before this turn is left out unless that pays without a cache, so it stays first.
        self._first_cached = next(large, len(turns))
        # The turns directly after the end of an earlier prompt. Later prompts begin with that
        # prompt, so a cache has it.
        self._cached: list[int] = []
        self._runs = list[int]()
        """The turns with which the run at the end of the prompt may begin."""

    def parts(self, turn: int) -> list[range]:
        """Return the entries of a turn up to its last result, and those after them.

        A prompt may have ended between the two, for example if the model's call was cancelled. What
        it left out must not depend on what came later, except for a list, which the results may not
        show as it was.
        """
        span = self.spans[turn]
        others = (at for at in span[1:] if not isinstance(self._entries[at].message, ToolMessage))
        end = next(others, span.stop)
        if any(self._entries[at].shows is not None for at in range(end, span.stop)):
            end = span.stop
        return [range(span.start, end), range(end, span.stop)]

    def grow(self, turn: int, part: range, finished: Sequence[int], later_calls: int) -> None:
        """Add a part of a turn, and fold the earlier turns that are now finished, if that pays.

        Args:
            turn: The number of the turn.
            part: The entries of the part.
            finished: The numbers of the earlier turns whose items are all finished now.
            later_calls: The estimated number of model calls that follow.
        """
        if part.start == self.spans[turn].start:
            self._cached.append(turn)
        self._turn_blocks[turn] += sum(self._blocks[at] for at in part)
        possible = [self._fold_of(each) for each in sorted(finished, reverse=True)]
        chosen = self._that_pay([each for each in possible if each.size > 0], turn, later_calls)
        for each in chosen:
            self.folds.left_out.update(each.left_out)
            self.folds.cut.update(each.cut)
            self.folds.saved.append((turn, each.size))
            self._turn_sizes[each.turn] -= each.size
            self._turn_blocks[each.turn] -= each.blocks
        if chosen:
            first = chosen[-1].turn
            del self._cached[bisect_right(self._cached, first) :]
            self.folds.unbound.update(self.spans[each][0] for each in range(first + 1, turn + 1))
        if any(isinstance(self._entries[at].message, HumanMessage) for at in part):
            # What follows an empty answer may be appended to the message before: the run goes on.
            earlier = self._runs if self._is_empty(turn) else []
            self._runs = [*earlier, turn + 1]

    def _that_pay(self, possible: Sequence[_Fold], turn: int, later_calls: int) -> Sequence[_Fold]:
        """Return those of the folds, newest first, that save most together.

        What is left out is saved in each later call. What comes after it is sent again once, from
        the last place that a cache has; a cache also looks back only so far, and holds nothing
        small.
        """
        size = blocks = most = best = 0
        for number, each in enumerate(possible, start=1):
            size, blocks = size + each.size, blocks + each.blocks
            start = self._cached[bisect_right(self._cached, each.turn) - 1]
            if sum(self._turn_blocks[start : turn + 1]) - blocks >= _LOOK_BACK:
                break
            again = sum(self._turn_sizes[start:turn]) - size
            if start < self._first_cached:
                again += _BEFORE + sum(self._turn_sizes[:start])
            gain = size * later_calls - again * _TIMES_DEARER
            if gain > most:
                most, best = gain, number
        return possible[:best]

    def _fold_of(self, turn: int) -> _Fold:
        """Return what could be left out of a turn; the size is 0 for nothing."""
        at, *results = self.spans[turn]
        answer = self._entries[at].message
        kept = self._kept_turn()
        if turn < kept or not isinstance(answer, AIMessage) or not self._are_plain(results):
            return _Fold(turn, (), (), 0, 0)
        names = {call["name"] for call in [*answer.tool_calls, *answer.invalid_tool_calls]}
        staying = {at for at in results if self._stays(at)}
        if turn > kept and names.isdisjoint(TOOLS) and not staying:
            size, blocks = self._turn_sizes[turn], self._turn_blocks[turn]
            return _Fold(turn, self.spans[turn], (), size, blocks)
        line = _MESSAGE + len(FOLDED)
        large = [at for at in results if at not in staying and self._sizes[at] > line]
        cut = [at for at in large if not self._entries[at].message.text.startswith(_EDITED)]
        return _Fold(turn, (), cut, sum(self._sizes[at] - line for at in cut), 0)

    def _stays(self, at: int) -> bool:
        """Whether a result is that of a todo call, or what a person said."""
        message = self._entries[at].message
        return message.name in TOOLS or is_rejection(message)

    def _kept_turn(self) -> int:
        """Return the first turn of the run if its answer has to keep its reasoning, else -1.

        Some Claude models refuse a run that began with thinking and no longer begins with it.
        """
        answers = ((turn, self._entries[self.spans[turn][0]].message) for turn in self._runs)
        bound = (turn for turn, answer in answers if _has_reasoning(answer))
        return max(bound, default=-1)

    def _is_empty(self, turn: int) -> bool:
        at = next(iter(self.spans[turn]), None)
        return at is not None and self._shown[at].content == EMPTY_ANSWER

    def _are_plain(self, results: Sequence[int]) -> bool:
        """Whether a turn has results without a list block, and no messages of others after them.

        Otherwise two messages of people could follow each other.
        """
        entries = [self._entries[at] for at in results]
        return bool(results) and all(
            isinstance(entry.message, ToolMessage) and entry.block is None for entry in entries
        )


def _size(message: AnyMessage) -> int:
    """Return roughly the characters that a message takes in a prompt."""
    size = _MESSAGE + len(message.text)
    if isinstance(message, AIMessage):
        return size + sum(len(str(call)) for call in message.tool_calls)
    content = () if isinstance(message.content, str) else message.content
    pictures = [part for part in content if is_mapping(part) and part.get("type") != "text"]
    return size + _PICTURE * len(pictures)


def _blocks(message: AnyMessage) -> int:
    """Return the number of blocks in which a provider caches a message."""
    if isinstance(message, AIMessage):
        return len(message.tool_calls) + bool(message.text)
    return 1


_EDITED = "Note: a human reviewer replaced this tool call"
"""How LangChain begins the result of a call that a person edited; the history has the model's."""
_TIMES_DEARER = 12
"""How many times dearer it is to send a text again (1.25) than to read it from a cache (0.1)."""
_LOOK_BACK = 20
"""The number of blocks at the end of a prompt among which Anthropic's cache looks for an entry."""
_SMALLEST = 4_096
"""The characters of the smallest prompt that most providers cache: 1,024 tokens."""
_BEFORE = 2_000
"""The characters of the todo tools and their prompts, which are before the messages."""
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
    """Whether a part of an answer is reasoning that is bound to the exact text before it.

    Anthropic's is. OpenAI's is not, and OpenAI refuses calls without the reasoning before them.
    """
    if not is_mapping(block) or block.get("type") not in _REASONING:
        return False
    return not str(block.get("id")).startswith("rs_")


_REASONING = ("thinking", "redacted_thinking", "reasoning", "reasoning_content")
