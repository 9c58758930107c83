"""Decide where a prompt needs the whole list, and record it, so that later prompts repeat it.

The model knows the list from tool results and from earlier blocks. If that list differs from the
one in the state, the next prompt needs a block with the whole list.
"""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from todo_tools._list.todos import incomplete
from todo_tools._thread.reading import Reading, same_list
from todo_tools._thread.transcript import is_from_user


def due_block(reading: Reading, *, at_newest: bool) -> int | None:
    """Return the index of the message that needs a block; `None` if no block is needed or possible.

    Args:
        reading: The history.
        at_newest: Append the block to the newest message. Use this only if every model call is
            intercepted and the block is recorded at once. Otherwise every call must compute the
            same place: the user's newest message, or the last tool result of the newest turn that
            showed the list. The later of the two is used.
    """
    if reading.todos is None or same_list(reading.known, reading.todos) or _is_over(reading):
        return None
    return reading.last(_takes_block) if at_newest else _stable_place(reading)


def _takes_block(message: AnyMessage) -> bool:
    return isinstance(message, HumanMessage | ToolMessage)


def _is_over(reading: Reading) -> bool:
    """Whether the list was finished before the user's last message, so no prompt needs it."""
    if not reading.todos or incomplete(reading.todos):
        return False
    since = reading.entries[reading.last(is_from_user) or 0 :]
    return not any(entry.changed for entry in since)


def _stable_place(reading: Reading) -> int | None:
    places = [
        turn.results[-1]
        for turn in reading.turns
        if any(reading.entries[at].shows is not None for at in turn.results)
    ]
    spoken = reading.last(is_from_user)
    if spoken is not None:
        places.append(spoken)
    return max(places) if places else reading.last(_takes_block)


def block_update(reading: Reading, at: int | None) -> dict[str, Any]:
    """Build the state update that records the list at a place; empty for no place.

    It also removes the blocks of messages that are no longer in the history. Otherwise a run whose
    history is summarized again and again would store more and more blocks.
    """
    if at is None or reading.todos is None:
        return {}
    removed: dict[str, Any] = dict.fromkeys(reading.stale)
    return {"todo_blocks": {**removed, reading.entries[at].place: reading.todos}}


def record_block(reading: Reading) -> dict[str, Any]:
    """Build the state update that records the block of the last prompt for later ones.

    `model_view` cannot write to the state. In a graph without `TodoMiddleware`, the tools and the
    loop record the block when they run next.

    Args:
        reading: The whole history; the prompt of its last answer is meant.
    """
    answer = reading.last(lambda message: isinstance(message, AIMessage))
    prompt = reading.until(len(reading.entries) if answer is None else answer)
    return block_update(prompt, due_block(prompt, at_newest=False))
