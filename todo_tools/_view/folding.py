"""Decide what of a prompt is left out because the items that it worked on are finished.

The work of an item is at the end of the prompt when the item is finished. Leaving it out there
keeps the provider's cache of everything before it, and makes every later call cheaper. The rules
depend on the messages alone, so forks, replays and restarts need nothing stored.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list.prompts import FOLDED
from todo_tools._list.todos import STATUSES, TodoItem, is_mapping
from todo_tools._thread.reading import Entry, Reading, Turn
from todo_tools._thread.transcript import result_note

_Key = tuple[int, str, int]
"""An item: the number of its list, its text, and its place among items of this text."""


@dataclass(frozen=True, slots=True)
class Folds:
    """What a prompt leaves out, as indices of entries."""

    left_out: set[int] = field(default_factory=set[int])
    """Messages."""
    cut: set[int] = field(default_factory=set[int])
    """Results that become one fixed line."""
    unbound: set[int] = field(default_factory=set[int])
    """Answers whose reasoning is bound to a text that is no longer before them."""


def folds_of(reading: Reading) -> Folds:
    """Return what the next prompt leaves out.

    A turn belongs to the items in progress after its own todo calls; if there are none, to the
    items that are finished next. It is folded for good as soon as all of them are finished, but
    never while it is the newest turn.
    """
    turns = reading.turns[1:]
    folded_at = _Work(reading.entries).folded_at(len(turns))
    folds = Folds()
    last_fold = -1
    for number, turn in enumerate(turns[:-1]):
        if number <= last_fold and turn.answer is not None:
            folds.unbound.add(turn.answer)
        since = folded_at.get(number)
        if since is not None and _fold(turn, reading.entries, folds):
            last_fold = max(last_fold, since)
    if turns and turns[-1].answer is not None and len(turns) - 1 <= last_fold:
        folds.unbound.add(turns[-1].answer)
    return folds


def _fold(turn: Turn, entries: list[Entry], folds: Folds) -> bool:
    """Add a turn to the folds; return whether anything of it is left out."""
    results = turn.results
    answer = None if turn.answer is None else entries[turn.answer].message
    if not isinstance(answer, AIMessage) or not answer.tool_calls or not results:
        return False
    if any(entries[at].block is not None for at in results):
        return False
    if not any(call["name"] in TOOLS for call in answer.tool_calls):
        following = entries[results[-1] + 1 : results[-1] + 2]
        if following and isinstance(following[0].message, HumanMessage):
            return False  # or two human messages might follow each other
        folds.left_out.update([turn.answer or 0, *results])
        return True
    cut = [at for at in results if _is_long_work(entries[at].message)]
    folds.cut.update(cut)
    return bool(cut)


def _is_long_work(message: AnyMessage) -> bool:
    is_work = isinstance(message, ToolMessage) and message.name not in TOOLS
    return is_work and (not isinstance(message.content, str) or len(message.text) > len(FOLDED))


class _Work:
    """Which turns worked on which items, and when these items were finished.

    Args:
        entries: The history.
    """

    def __init__(self, entries: list[Entry]) -> None:
        self._list_number = 0
        self._items: dict[_Key, TodoItem] = {}
        # The turns in which an item was finished, and the items that a turn finished.
        self._finishes: defaultdict[_Key, list[int]] = defaultdict(list)
        self._finished_in: dict[int, tuple[int, set[_Key]]] = {}
        # The items in progress after each turn, and the number of its list.
        self._owners: list[tuple[int, list[_Key]]] = []
        turn = -1
        for entry in entries:
            if isinstance(entry.message, AIMessage):
                self._close(turn)
                turn += 1
            if entry.shows is not None:
                self._take(entry, turn)
        self._close(turn)

    def _close(self, turn: int) -> None:
        if turn >= 0:
            started = [k for k, todo in self._items.items() if todo["status"] == "in_progress"]
            self._owners.append((self._list_number if self._items else -1, started))

    def _take(self, entry: Entry, turn: int) -> None:
        """Take in a list that an entry shows."""
        todos = entry.shows or []
        operation: Any = result_note(entry.message).get("operation", {})
        replaced = entry.changed and operation.get("op") == "replace"
        if replaced and [t["text"] for t in todos] != [t["text"] for t in self._items.values()]:
            self._list_number += 1
        items = self._keyed(todos)
        for key, todo in items.items():
            before = self._items.get(key)
            was_finished = before is not None and STATUSES[before["status"]].finished
            if STATUSES[todo["status"]].finished and not was_finished:
                self._finishes[key].append(turn)
                self._finished_in.setdefault(turn, (self._list_number, set()))[1].add(key)
        self._items = items

    def _keyed(self, todos: list[TodoItem]) -> dict[_Key, TodoItem]:
        seen = Counter[str]()
        items: dict[_Key, TodoItem] = {}
        for todo in todos:
            items[self._list_number, todo["text"], seen[todo["text"]]] = todo
            seen[todo["text"]] += 1
        return items

    def folded_at(self, turns: int) -> dict[int, int]:
        """Return the turn whose results finish the last item of a turn, by turn."""
        found: dict[int, int] = {}
        for turn in range(turns):
            list_number, owners = self._owners[turn]
            ends = [self._next_finish(key, turn) for key in owners]
            if not owners and list_number >= 0:
                ends = [self._next_turn_that_finishes(turn, list_number)]
            if ends and None not in ends:
                found[turn] = max(end for end in ends if end is not None)
        return found

    def _next_finish(self, key: _Key, turn: int) -> int | None:
        finishes = self._finishes[key]
        at = bisect_right(finishes, turn)
        return finishes[at] if at < len(finishes) else None

    def _next_turn_that_finishes(self, turn: int, list_number: int) -> int | None:
        later = (each for each in self._finished_in if each > turn)
        following = next(later, None)
        if following is None or self._finished_in[following][0] != list_number:
            return None
        return following


def without_reasoning(answer: AIMessage) -> AIMessage:
    """Return an answer without the reasoning that is bound to the exact text before it."""
    kwargs = {k: v for k, v in answer.additional_kwargs.items() if k not in _REASONING_KEYS}
    content = answer.content
    if not isinstance(content, str):
        kept = (block for block in content if not _is_reasoning(block))
        # OpenAI refuses a call by its id if the reasoning before it is missing.
        content = [_without_id(block) for block in kept]
    return answer.model_copy(update={"content": content, "additional_kwargs": kwargs})


_REASONING_BLOCKS = ("thinking", "redacted_thinking", "reasoning", "reasoning_content")
_REASONING_KEYS = ("reasoning", "reasoning_content", "__openai_function_call_ids__")


def _is_reasoning(block: Any) -> bool:
    return is_mapping(block) and block.get("type") in _REASONING_BLOCKS


def _without_id(block: Any) -> Any:
    if not is_mapping(block) or block.get("type") not in ("text", "function_call"):
        return block
    return {key: value for key, value in block.items() if key != "id"}
