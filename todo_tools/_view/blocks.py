"""Decide where a prompt shows the whole list again: a block at the end of an existing message."""

from collections.abc import Collection

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from todo_tools._list.todos import incomplete
from todo_tools._thread.notes import note_of
from todo_tools._thread.reading import Reading


def needs_block(reading: Reading) -> bool:
    """Whether the messages of a prompt do not show the list of the state.

    A finished list is of no use to the model, unless the prompt shows another one.
    """
    todos, known = reading.todos, reading.known
    if todos in (None, known):
        return False
    return known != [] or bool(incomplete(todos or []))


def due_block(reading: Reading) -> int | None:
    """Return the index of the message that needs a block; `None` if no block is needed or possible.

    Every model call must compute the same place, because the block may not be noted yet: the
    newest message of the user, the loop or the application, or the last tool result of the newest
    turn that showed the list. The later of the two is used.
    """
    if not needs_block(reading):
        return None
    entries = reading.entries
    shows = {at for at, entry in enumerate(entries) if entry.changed or entry.shows is not None}
    places = [turn.results[-1] for turn in reading.turns if not shows.isdisjoint(turn.results)]
    places += reading.told[-1:]
    return max(places) if places else reading.last(_takes_block)


def newest_place(prompt: Reading, stored: Collection[str | None]) -> int | None:
    """Return the index of the newest message for a block that is noted at once.

    Args:
        prompt: The messages that the model is sent; other middleware may have changed them.
        stored: The ids of the stored messages. Nobody can find the block of another message later.
    """
    answer = prompt.last_answer()
    new = range(0 if answer is None else answer + 1, len(prompt.entries))
    places = [at for at in reversed(new) if _takes_block(prompt.entries[at].message)]
    found = (at for at in places if prompt.entries[at].stored.id in stored)
    return next(found, places[0] if places else prompt.last(_takes_block))


def _takes_block(message: AnyMessage) -> bool:
    return isinstance(message, HumanMessage | ToolMessage)


def unnoted_block(reading: Reading) -> int | None:
    """Return the index of the message at which the last prompt showed a block that nobody noted."""
    answer = reading.last_answer()
    if answer is not None and "shown" in note_of(reading.entries[answer].stored):
        return None  # the middleware has noted it
    return due_block(reading.until(len(reading.entries) if answer is None else answer))


def record_block(reading: Reading) -> list[AnyMessage]:
    """Return the message of the last prompt with its block, to store it again with this note.

    `model_view` cannot write to the state. In a graph without `TodoMiddleware`, the tools and the
    loop note the block when they run next.
    """
    at = unnoted_block(reading)
    if at is None or reading.entries[at].stored.id is None:
        return []
    return [reading.entries[at].with_note(reading.todos or [])]
