"""Whether the user has spoken since the loop last looked: a pure comparison of messages.

The user speaks by a message that is in the state when a run begins. What a tool or a middleware
adds during a run is only remembered, so that no later run takes it for the user's.
"""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from todo_tools._ids import stable_ids
from todo_tools.state import LoopState
from todo_tools.transcript import is_from_user, last_user_message

# Several, since the newest ones may be removed; few, since they are in every checkpoint.
_REMEMBERED = 20


def at_start(loop: LoopState, messages: Sequence[BaseMessage]) -> LoopState:
    """The counters when a run begins: zero if there is a new message."""
    new = _new_ids(loop, messages)
    return after_message(loop, *new) if new else loop


def at_first_end(loop: LoopState, messages: Sequence[BaseMessage]) -> LoopState:
    """The counters when the agent stops for the first time in a run.

    A tool may have added messages by then; those do not count (`last_user_message`).
    """
    new = _new_ids(loop, messages)
    at = last_user_message(messages)
    if at is not None and list(stable_ids(messages))[at] in new:
        return after_message(loop, *new)
    return _remembering(loop, new)


def within_run(loop: LoopState, messages: Sequence[BaseMessage]) -> LoopState:
    """The counters when the agent stops again in the same run: the user cannot have spoken."""
    return _remembering(loop, _new_ids(loop, messages))


def after_message(loop: LoopState, *message_ids: str) -> LoopState:
    """The counters after the user's message: all at zero."""
    return {**_remembering(loop, message_ids), "in_a_row": 0, "in_turn": 0, "idle": 0}


def _remembering(loop: LoopState, message_ids: Sequence[str]) -> LoopState:
    if not message_ids:
        return loop
    return {**loop, "heard": [*_heard(loop), *message_ids][-_REMEMBERED:]}


def _heard(loop: LoopState) -> list[str]:
    """The messages remembered; a thread of an older version names only the newest one."""
    older = [loop["user_message"]] if "user_message" in loop else []
    return loop.get("heard", older)


def _new_ids(loop: LoopState, messages: Sequence[BaseMessage]) -> list[str]:
    """The messages of people after the last one that is remembered.

    One that was edited keeps its id and is not new; neither is an older one that becomes the last
    because others were removed.
    """
    heard = set(_heard(loop))
    new: list[str] = []
    for message, message_id in zip(messages, stable_ids(messages), strict=True):
        if message_id in heard:
            new.clear()
        elif is_from_user(message):
            new.append(message_id)
    return new
