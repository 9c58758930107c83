"""Decide where a prompt shows the whole list again: a block at the end of an existing message."""

from collections.abc import Collection

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from todo_tools._list.todos import incomplete
from todo_tools._thread.notes import note_of, with_list
from todo_tools._thread.reading import Reading


def needs_block(reading: Reading) -> bool:
    """Whether a prompt does not show the list; a finished list is not shown to a new prompt."""
    todos, known = reading.todos, reading.known
    if todos in (None, known):
        return False
    return known != [] or bool(incomplete(todos or []))


def due_block(reading: Reading) -> int | None:
    """Return the index of the message that needs a block, the same until it is noted."""
    if not needs_block(reading):
        return None
    entries = reading.entries
    shows = {at for at, entry in enumerate(entries) if entry.changed or entry.shows is not None}
    places = [turn.results[-1] for turn in reading.turns if not shows.isdisjoint(turn.results)]
    places += reading.told[-1:]
    return max(places) if places else reading.last(_takes_block)


def newest_place(prompt: Reading, stored: Collection[str | None]) -> int | None:
    """Return the index of the newest message for a block; `stored` are the ids that can keep it."""
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
    """Return the message of the last prompt with its block noted, to store it again."""
    at = unnoted_block(reading)
    if at is None or reading.entries[at].stored.id is None:
        return []
    entry = reading.entries[at]
    return [with_list(entry.message, entry.stored, reading.todos or [])]
