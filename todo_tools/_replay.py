"""Make the parallel todo calls of one AI message behave as if they ran one after the other."""

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from langchain_core.messages.tool import ToolCall

from todo_tools._answers import Answer, answer_call, refuse_call
from todo_tools._checks import Check, Steps, not_done, to_check
from todo_tools._records import TOOLS
from todo_tools._todos import DEFAULT_LIMITS, TodoItem, TodoLimits
from todo_tools.arguments import CallError
from todo_tools.state import todos_in
from todo_tools.transcript import turn_calls


class Turn:
    """The calls of one AI message that have no result yet; each is executed once.

    Every call receives the state from before the message. So each call first computes the list that
    the earlier calls produce; the channel applies their operations in the same order. Hold one of
    the locks while the steps run.
    """

    def __init__(
        self, calls: list[ToolCall], todos: list[TodoItem], limits: TodoLimits, check: Check | None
    ) -> None:
        self.calls = calls
        self._settings = (todos, limits, check)
        self.lock = threading.Lock()
        self.async_lock = asyncio.Lock()
        self._limits = limits
        self._has_check = check is not None
        # The list before each call, up to the first call that was not executed yet.
        self._lists = [todos]
        # The results of the check, by the position of the call and the index of the item.
        self._reasons: dict[tuple[int, int], str | None] = {}
        self._answered: set[str | None] = set()
        self._same_id: defaultdict[str | None, list[ToolCall]] = defaultdict(list)
        for call in calls:
            self._same_id[call["id"]].append(call)

    def todos_at(self, call_id: str | None) -> Steps[list[TodoItem]]:
        """Compute the list before a call."""
        at = self._place(call_id)
        while len(self._lists) <= at:
            before = len(self._lists) - 1
            call = self.calls[before]
            if call["name"] in TOOLS:
                answer = yield from self._executed(before, call["id"], call["name"], call["args"])
                self._lists.append(answer.todos)
            else:
                self._lists.append(self._lists[-1])
        return self._lists[at]

    def answer(self, call_id: str | None, name: str, args: Mapping[str, Any]) -> Steps[Answer]:
        """Compute the answer of a todo tool to its call."""
        self._answered.add(call_id)
        yield from self.todos_at(call_id)
        return (yield from self._executed(self._place(call_id), call_id, name, args))

    def serves(self, calls: list[ToolCall], settings: object, call_id: str | None) -> bool:
        """Whether a call belongs to this turn; a call that runs again needs a new turn."""
        # Compare by identity: equal arguments such as `1` and `True` may differ in meaning.
        same = len(calls) == len(self.calls) and all(map(is_, calls, self.calls))
        return same and settings == self._settings and call_id not in self._answered

    def _place(self, call_id: str | None) -> int:
        return next((at for at, call in enumerate(self.calls) if call["id"] == call_id), 0)

    def _executed(
        self, at: int, call_id: str | None, name: str, args: Mapping[str, Any]
    ) -> Steps[Answer]:
        todos = self._lists[at]
        try:
            _check_id(call_id, name, args, self._same_id[call_id])
        except CallError as error:
            return refuse_call(name, error, todos)
        answer = answer_call(name, args, todos, self._limits)
        for index in to_check(answer.operation, todos) if self._has_check else ():
            if (at, index) not in self._reasons:
                self._reasons[at, index] = yield todos[index]
            reason = self._reasons[at, index]
            if reason is not None:
                refused = refuse_call(name, not_done(index, reason), todos)
                return replace(refused, check_failed=True)
        return answer


# The latest turns. Without this cache, each call would execute and check all calls before it again.
_latest: deque[Turn] = deque(maxlen=64)
_latest_lock = threading.Lock()


def turn_of(
    state: object, call_id: str | None, limits: TodoLimits, check: Check | None = None
) -> Turn:
    """Return the turn of a call; all calls of an AI message share one turn."""
    calls = turn_calls(state, call_id)
    settings = (todos_in(state), limits, check)
    with _latest_lock:
        for turn in _latest:
            if calls and turn.serves(calls, settings, call_id):
                return turn
        turn = Turn(calls, *settings)
        _latest.append(turn)
    return turn


def _check_id(
    call_id: str | None, name: str, args: Mapping[str, Any], same_id: Sequence[ToolCall]
) -> None:
    """Raise an error if a todo call has no id, or the id of another call of its AI message.

    Raises:
        CallError: The call must not change the list.
    """
    if call_id is None:
        raise CallError("this call has no id, so it was not run; call again", "no call id")
    if len(same_id) > 1 and not _acts(_meaning(name, args), same_id):
        raise CallError(
            "another call of this turn has the same id, so this one was not run; call again",
            "repeated call id",
        )


def _acts(meaning: object, same_id: Sequence[ToolCall]) -> bool:
    """Whether a call with a repeated id is the first one with it, and no other call is equal to it.

    A tool receives the id and the arguments of its call but not its position. So it cannot
    distinguish two equal calls with the same id.
    """
    meanings = [_meaning(call["name"], call["args"]) for call in same_id]
    return meaning == meanings[0] and meanings.count(meaning) == 1


def _meaning(name: str, args: Mapping[str, Any]) -> object:
    """Return the name of a call and the arguments that its tool receives, for a comparison."""
    known = TOOLS[name].parameters(DEFAULT_LIMITS) if name in TOOLS else args
    return name, [args.get(key) for key in known]
