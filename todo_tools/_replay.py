"""The list at a call: earlier calls of the same AI message are executed first."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import is_
from typing import Any

from langchain_core.messages.tool import ToolCall

from todo_tools._answers import answer_call
from todo_tools._records import TOOLS
from todo_tools._todos import DEFAULT_LIMITS, TodoItem, TodoLimits
from todo_tools.arguments import CallError
from todo_tools.state import todos_in
from todo_tools.transcript import turn_calls


def todos_at_call(state: object, call_id: str | None, limits: TodoLimits) -> list[TodoItem]:
    """The list that a call acts on.

    The state is from before the whole AI message. The todo calls before this one in that message
    are applied first; the channel folds their operations in the same order.
    """
    calls = turn_calls(state, call_id)
    at = next((at for at, call in enumerate(calls) if call["id"] == call_id), 0)
    return _lists(calls, todos_in(state), limits)[at]


def check_id(state: object, call_id: str | None, name: str, args: Mapping[str, Any]) -> None:
    """Refuse a todo call that has no id, or the id of an earlier call of its AI message.

    Raises:
        CallError: The call must not change the list.
    """
    if call_id is None:
        raise CallError("this call has no id, so it was not run; call again", "no call id")
    same_id = [call for call in turn_calls(state, call_id) if call["id"] == call_id]
    if len(same_id) > 1 and not _acts(_meaning(name, args), same_id):
        raise CallError(
            "another call of this turn has the same id, so this one was not run; call again",
            "repeated call id",
        )


def _acts(meaning: object, same_id: Sequence[ToolCall]) -> bool:
    """Whether a call acts: of several with one id the first, unless another says the same.

    A tool is told the id and the arguments of its call but not its place, so it could not tell
    which of the two it answers.
    """
    meanings = [_meaning(call["name"], call["args"]) for call in same_id]
    return meaning == meanings[0] and meanings.count(meaning) == 1


def _meaning(name: str, args: Mapping[str, Any]) -> object:
    """What a call says, as far as its tool is told: without arguments that it does not have."""
    known = TOOLS[name].parameters(DEFAULT_LIMITS) if name in TOOLS else args
    return name, [args.get(key) for key in known]


# The lists of the latest turns: without them, each call would execute all calls before it.
_latest: deque[tuple[list[ToolCall], object, list[list[TodoItem]]]] = deque(maxlen=4)


def _lists(
    calls: list[ToolCall], todos: list[TodoItem], limits: TodoLimits
) -> list[list[TodoItem]]:
    """The list before each call of a turn, and the list after the last one."""
    for known_calls, known, lists in _latest.copy():
        # By identity: arguments that are equal may differ in meaning, as `1` and `True` do.
        same = len(calls) == len(known_calls) and all(map(is_, calls, known_calls))
        if same and known == (todos, limits):
            return lists
    same_id: defaultdict[str | None, list[ToolCall]] = defaultdict(list)
    for call in calls:
        same_id[call["id"]].append(call)

    def after(todos: list[TodoItem], call: ToolCall) -> list[TodoItem]:
        name, args, others = call["name"], call["args"], same_id[call["id"]]
        is_refused = call["id"] is None or (
            len(others) > 1 and not _acts(_meaning(name, args), others)
        )
        if name not in TOOLS or is_refused:
            return todos
        return answer_call(name, args, todos, limits).todos

    lists = list(accumulate(calls, after, initial=todos))
    _latest.append((calls, (todos, limits), lists))
    return lists
