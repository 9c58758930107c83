"""Make the parallel todo calls of one AI message behave as if they ran one after the other."""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from langchain_core.messages.tool import ToolCall
from langgraph.prebuilt import ToolRuntime

from todo_tools._calls.answers import Answer, answer_call, refuse_call
from todo_tools._calls.records import TOOLS
from todo_tools._list.todos import DEFAULT_LIMITS, TodoItem, TodoLimits
from todo_tools._tools.checks import Check, Steps, Verdict, not_done, to_check
from todo_tools.arguments import CallError
from todo_tools.state import todos_in
from todo_tools.transcript import turn_calls


class Turn:
    """The calls of one AI message that have no result yet; each is executed once.

    Every call receives the state from before the message. So each call first computes the list that
    the earlier calls produce; the channel applies their operations in the same order. Hold a lock
    while the steps run: `lock` in sync code, `async_lock` in async code, never both in one turn.

    Args:
        calls: The calls.
        attempt: Identifies the run of the node. Another run of the same calls is another turn.
        todos: The list before all of them.
        limits: The limits of the tools.
        check: The check of the tools.
    """

    def __init__(
        self,
        calls: list[ToolCall],
        attempt: object,
        todos: list[TodoItem],
        limits: TodoLimits,
        check: Check | None,
    ) -> None:
        self._calls = calls
        self._attempt = attempt
        self._settings = (attempt, todos, limits, check)
        self.lock = threading.Lock()
        self.async_lock = asyncio.Lock()
        self._limits = limits
        # The list before each call, up to the first call that was not executed yet.
        self._lists = [todos]
        # The results of the check, by the position of the call and the index of the item.
        self._verdicts: dict[tuple[int, int], Verdict] = {}
        self._answered: set[str | None] = set()
        self._same_id: defaultdict[str | None, list[ToolCall]] = defaultdict(list)
        for call in calls:
            self._same_id[call["id"]].append(call)

    def todos_at(self, call_id: str | None) -> Steps[list[TodoItem]]:
        """Compute the list before a call."""
        at = self._place(call_id)
        while len(self._lists) <= at:
            before = len(self._lists) - 1
            self._lists.append((yield from self._after(before, self._calls[before])))
        return self._lists[at]

    def _after(self, at: int, call: ToolCall) -> Steps[list[TodoItem]]:
        """Compute the list after a call that another call asks about."""
        if call["name"] in TOOLS:
            # What its check raises is raised by the call itself, which then changes nothing.
            with suppress(_CheckRaisedError):
                answer = yield from self._executed(at, call["id"], call["name"], call["args"])
                return answer.todos
        return self._lists[at]

    def answer(self, call_id: str | None, name: str, args: Mapping[str, Any]) -> Steps[Answer]:
        """Compute the answer of a todo tool to its call."""
        self._answered.add(call_id)
        yield from self.todos_at(call_id)
        try:
            return (yield from self._executed(self._place(call_id), call_id, name, args))
        except _CheckRaisedError as raised:
            raise raised.error from None

    def serves(self, calls: list[ToolCall], settings: object, call_id: str | None) -> bool:
        """Whether a call belongs to this turn; a call that runs again needs a new turn."""
        if call_id in self._answered or settings != self._settings:
            return False
        if [id(call["args"]) for call in calls] == [id(call["args"]) for call in self._calls]:
            return True
        # A resumed run may read the state of each call from the checkpoint. Compare the texts:
        # equal arguments such as `1` and `True` may differ in meaning.
        return self._attempt is not None and repr(calls) == repr(self._calls)

    @property
    def in_use(self) -> bool:
        """Whether a call is computing its answer."""
        return self.lock.locked() or self.async_lock.locked()

    @property
    def is_over(self) -> bool:
        """Whether every todo call has computed its answer."""
        ids = (call["id"] for call in self._calls if call["name"] in TOOLS)
        return not self.in_use and self._answered.issuperset(ids)

    def _place(self, call_id: str | None) -> int:
        return next((at for at, call in enumerate(self._calls) if call["id"] == call_id), 0)

    def _verdict(self, at: int, index: int) -> Steps[str | None]:
        """Return what the check says of an item, at the place of a call; it runs once."""
        if (at, index) not in self._verdicts:
            self._verdicts[at, index] = yield self._lists[at][index].copy()
        verdict = self._verdicts[at, index]
        if isinstance(verdict, Exception):
            raise _CheckRaisedError(verdict)
        return verdict

    def _executed(
        self, at: int, call_id: str | None, name: str, args: Mapping[str, Any]
    ) -> Steps[Answer]:
        todos = self._lists[at]
        try:
            _check_id(call_id, name, args, self._same_id[call_id])
        except CallError as error:
            return refuse_call(name, error, todos)
        answer = answer_call(name, args, todos, self._limits)
        for index in to_check(answer.operation, todos):
            verdict = yield from self._verdict(at, index)
            if verdict is not None:
                refused = refuse_call(name, not_done(index, verdict), todos)
                return replace(refused, check_failed=True)
        return answer


class _CheckRaisedError(Exception):
    """The check of an item raised `error`."""

    def __init__(self, error: Exception) -> None:
        self.error = error


# The latest turns. Without them, each call would execute and check all earlier calls again.
_latest: list[Turn] = []
_latest_lock = threading.Lock()
_MOST = 32
# Turns with unanswered calls are kept longer: many runs at once may have some, and calls of a
# cancelled run are never answered.
_MOST_OPEN = 1000


def turn_of(runtime: ToolRuntime[Any, Any], limits: TodoLimits, check: Check | None = None) -> Turn:
    """Return the turn of a call; all calls of an AI message share one turn."""
    calls, info = turn_calls(runtime.state, runtime.tool_call_id), runtime.execution_info
    attempt = info and (
        info.checkpoint_id,
        info.checkpoint_ns.rpartition("|")[0],
        info.node_attempt,
    )
    settings = (attempt, todos_in(runtime.state), limits, check)
    with _latest_lock:
        for turn in reversed(_latest):
            if calls and turn.serves(calls, settings, runtime.tool_call_id):
                return turn
        _forget_old_turns()
        turn = Turn(calls, *settings)
        _latest.append(turn)
    return turn


def _forget_old_turns() -> None:
    """Make room for a new turn."""
    surplus = len(_latest) + 1 - _MOST
    if surplus <= 0:
        return
    old = [turn for turn in _latest if turn.is_over][:surplus]
    if not old and len(_latest) >= _MOST_OPEN:
        old = [turn for turn in _latest if not turn.in_use][:1]
    for turn in old:
        _latest.remove(turn)


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
