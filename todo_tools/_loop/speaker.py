"""Detect new user messages and reset the counters of the loop; no function has side effects.

A user message is one that is in the state when a run begins. The ids of messages that tools or
middleware add during a run are also remembered, so that no later run counts them as the user's.
"""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from todo_tools._thread.ids import stable_ids
from todo_tools.state import LoopState
from todo_tools.transcript import is_from_user, last_user_message

# More than one, because the newest messages may be removed; few, because every checkpoint has them.
_REMEMBERED = 20


def at_start(loop: LoopState, messages: Sequence[BaseMessage]) -> LoopState:
    """Return the counters at the beginning of a run; a new user message resets them."""
    new = _new_ids(loop, messages)
    return after_message(loop, *new) if new else loop


def at_first_end(loop: LoopState, messages: Sequence[BaseMessage]) -> LoopState:
    """Return the counters when the agent stops for the first time in a run.

    Tools may have added human messages before that; those do not count (`last_user_message`).
    """
    new = _new_ids(loop, messages)
    at = last_user_message(messages)
    if at is not None and list(stable_ids(messages))[at] in new:
        return after_message(loop, *new)
    return _remembering(loop, new)


def within_run(loop: LoopState, messages: Sequence[BaseMessage]) -> LoopState:
    """Return the counters when the agent stops again in a run; they are not reset."""
    return _remembering(loop, _new_ids(loop, messages))


def after_message(loop: LoopState, *message_ids: str) -> LoopState:
    """Return the counters after these user messages: all are zero."""
    return {**_remembering(loop, message_ids), "in_a_row": 0, "in_turn": 0, "idle": 0}


def _remembering(loop: LoopState, message_ids: Sequence[str]) -> LoopState:
    if not message_ids:
        return loop
    return {**loop, "heard": [*_heard(loop), *message_ids][-_REMEMBERED:]}


def _heard(loop: LoopState) -> list[str]:
    """Return the remembered ids; threads of version 0.1.0 store only the newest one."""
    older = [loop["user_message"]] if "user_message" in loop else []
    return loop.get("heard", older)


def _new_ids(loop: LoopState, messages: Sequence[BaseMessage]) -> list[str]:
    """Return the ids of user messages after the last remembered one.

    An edited message keeps its id, so it is not new. An older message is not new either when it
    becomes the last one because others were removed.
    """
    heard = set(_heard(loop))
    new: list[str] = []
    for message, message_id in zip(messages, stable_ids(messages), strict=True):
        if message_id in heard:
            new.clear()
        elif is_from_user(message):
            new.append(message_id)
    return new
