"""Define the stored counters of the loop, and merge updates into them."""

import reprlib
from typing import Annotated, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from todo_tools._list.todos import is_mapping
from todo_tools.events import Outcome

_Count = Annotated[int, Field(ge=0)]
_EXACT = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


@with_config(_EXACT)
class _Continuation(TypedDict):
    text: str
    """The whole continuation message."""
    lines: str
    """The part of it that lists the incomplete items."""


@with_config(_EXACT)
class LoopState(TypedDict, total=False):
    """The stored counters of the loop; a missing counter is zero."""

    in_a_row: _Count
    """Continuations since the list last changed or the user last spoke."""
    in_turn: _Count
    """Continuations since the user's last message."""
    idle: _Count
    """Continuations since the model last called a tool."""
    heard: list[str]
    """The ids of the newest human messages that were already in a run; they are no longer new."""
    user_message: str
    """Written by version 0.1.0 instead of `heard`: the id of the user's last message."""
    continuations: dict[str, _Continuation]
    """Continuations that are not in the history (`AutoContinue(store=False)`). The key is the id of
    the message that a continuation follows."""
    answers: _Count
    """Number of AI messages before the model's latest answer; set by the middleware."""
    answer: str
    """The id of that answer; empty until the model answers in this run, and after each decision
    of the loop. Set by the middleware."""
    steps_left: _Count
    """Steps that LangGraph's `recursion_limit` left at that answer; set by the middleware."""
    round_steps: _Count
    """Steps between the model's latest two answers; set by the middleware."""
    outcome: Outcome | None
    """The reason why the loop last stopped; `None` after a continuation or a change of the list."""
    refused: str | None
    """The item that the application's check last refused to complete, and the reason; `None` after
    a change of the list."""


_LOOP_STATE = TypeAdapter(LoopState)


def merge_loop(loop: LoopState, update: LoopState | None) -> LoopState:
    """Merge an update into the `todo_loop` channel; new values replace old ones, key by key.

    Invalid values that were stored are dropped; only an `Overwrite`, which bypasses reducers, can
    store them.

    Raises:
        ValueError: `update` has an unknown key or an invalid value.
    """
    if update is None:
        return loop
    try:
        _LOOP_STATE.validate_python(update)
    except ValidationError as error:
        fault = error.errors()[0]
        place = "".join(f"[{reprlib.repr(key)}]" for key in fault["loc"])
        raise ValueError(
            f"todo_loop{place} is invalid: {fault['msg']}, got "
            f"{reprlib.repr(fault['input'])}; leave it out, or pass the value from get_state"
        ) from None
    return {**valid_counters(loop), **update}


def valid_counters(stored: object) -> LoopState:
    """Return the counters without the invalid ones."""
    try:
        return _LOOP_STATE.validate_python(stored)
    except ValidationError as error:
        invalid = {fault["loc"][:1] for fault in error.errors()}
        items = stored.items() if is_mapping(stored) else ()
        return cast("LoopState", {key: value for key, value in items if (key,) not in invalid})
