"""Read the history of a thread once, entry by entry.

The view, the decision of the loop, the list blocks and time travel all take this reading. So ids,
list changes and additions are computed nowhere else, and a model call costs one pass.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list.formatting import format_todos, one_line
from todo_tools._list.todos import TodoItem
from todo_tools._thread.channels import TodoBlocks, stable_ids
from todo_tools._thread.state import blocks_in, has_channel, messages_in, todos_in
from todo_tools._thread.transcript import (
    as_read,
    continuation_message,
    is_from_user,
    is_injected,
    list_after,
    listed_in,
    result_note,
)

Todos = list[TodoItem]


class Entry(NamedTuple):
    """One message of the history, and what the reading found out about it."""

    message: AnyMessage
    """The message as the model reads it: without the loop's notice to the user."""
    place: str
    """The id of the message; blocks are recorded under it."""
    shows: Todos | None = None
    """The list that a prompt shows with this message; `None` for most messages."""
    changed: bool = False
    """Whether the message is the result of a call that changed the list."""
    own: bool = False
    """Whether the list differs from the one before only by what the call itself changed."""
    told: bool = False
    """Whether a reader who knows the list before can infer the new one from the first line."""
    block: Todos | None = None
    """The list that is appended to the message in every prompt."""
    replaced: Todos | None = None
    """The list of a result whose text other code replaced; the rest may look like a list."""


class Turn(NamedTuple):
    """An answer of the model and the tool results after it, as indices of entries."""

    answer: int | None
    """`None` for results before the first answer, whose call was removed from the history."""
    results: list[int]


@dataclass(frozen=True, slots=True)
class Reading:
    """A history that has been read.

    Args:
        entries: The messages in order, with continuations that are not in the history.
        todos: The list of the state; `None` if the state has no list.
        known: The list that a prompt of these messages shows last.
        stale: The recorded blocks whose messages are no longer in the history.
    """

    entries: list[Entry]
    todos: Todos | None
    known: Todos
    stale: list[str]

    @property
    def turns(self) -> list[Turn]:
        """The turns of the history."""
        found = [Turn(None, [])]
        for at, entry in enumerate(self.entries):
            if isinstance(entry.message, AIMessage):
                found.append(Turn(at, []))
            elif isinstance(entry.message, ToolMessage):
                found[-1].results.append(at)
        return found

    @property
    def told(self) -> list[int]:
        """The indices of the messages by which the user, the loop or the application spoke.

        A tagged message after tool results is left out: it may come from a tool.
        """
        found: list[int] = []
        after_result = False
        for at, (message, *_) in enumerate(self.entries):
            if isinstance(message, AIMessage | ToolMessage):
                after_result = isinstance(message, ToolMessage)
            elif isinstance(message, HumanMessage) and (
                not after_result or is_from_user(message) or is_injected(message)
            ):
                found.append(at)
        return found

    def last(self, wanted: Callable[[AnyMessage], bool]) -> int | None:
        """Return the index of the last message of a kind; `None` if there is none."""
        entries = self.entries
        return next((at for at in reversed(range(len(entries))) if wanted(entries[at][0])), None)

    def last_answer(self) -> int | None:
        """Return the index of the model's last answer; `None` if there is none."""
        return self.last(lambda message: isinstance(message, AIMessage))

    def until(self, at: int) -> "Reading":
        """Return the reading of the entries before an index."""
        entries = self.entries[:at]
        shown = (entry.shows for entry in reversed(entries) if entry.shows is not None)
        return replace(self, entries=entries, known=next(shown, Todos()))

    def with_block(self, at: int) -> "Reading":
        """Append the list of the state to a message of every prompt from now on."""
        todos = self.todos or []
        entries = self.entries.copy()
        entries[at] = entries[at]._replace(block=todos, shows=todos)
        return replace(self, entries=entries, known=todos)


def read(state: object) -> Reading:
    """Read the messages, the list and the blocks of a state."""
    todos = todos_in(state) if has_channel(state, "todos") else None
    return read_messages(messages_in(state), todos, blocks_in(state))


def read_messages(
    messages: Sequence[AnyMessage], todos: Todos | None = None, blocks: TodoBlocks | None = None
) -> Reading:
    """Read a history, with the list and the blocks of its thread."""
    entries: list[Entry] = []
    blocks = blocks or {}
    known: Todos = []
    for message, place in _with_continuations(messages, blocks):
        entry = Entry(message, place)
        if isinstance(message, ToolMessage) and message.name in TOOLS:
            entry = _result(entry, message, known)
        block = blocks.get(place)
        if isinstance(block, list):
            entry = entry._replace(block=block, shows=block)
        entries.append(entry)
        known = known if entry.shows is None else entry.shows
    places = {entry.place for entry in entries} if blocks else ()
    return Reading(entries, todos, known, [place for place in blocks if place not in places])


def _with_continuations(
    messages: Sequence[AnyMessage], blocks: TodoBlocks
) -> Iterable[tuple[AnyMessage, str]]:
    """Return each message with its id, and the continuations that are not in the history."""
    placed = list(zip(map(as_read, messages), list(stable_ids(messages)), strict=True))
    has_notes = any(isinstance(block, dict) for block in blocks.values())
    return _noted(placed, blocks) if has_notes else placed


def _noted(
    placed: Iterable[tuple[AnyMessage, str]], blocks: TodoBlocks
) -> Iterator[tuple[AnyMessage, str]]:
    told: list[HumanMessage] = []
    for message, place in placed:
        # LangChain adds results to a request for calls with broken JSON; nothing may precede them.
        if not isinstance(message, ToolMessage):
            yield from ((note, note.id or "") for note in told)
            told = []
        yield message, place
        note = blocks.get(place)
        if isinstance(note, dict):
            told.append(continuation_message(note["text"], note["lines"], key=place))
    yield from ((note, note.id or "") for note in told)


def _result(entry: Entry, message: ToolMessage, known: Todos) -> Entry:
    """Read the result of a todo tool."""
    note, after = result_note(message), list_after(message)
    todos = listed_in(message) if after is None else after
    if todos is None:
        return entry
    if _is_replaced(message, note, todos):
        return entry._replace(replaced=todos)
    if after is None:
        # A listing shows marks instead of control characters, so keep the exact texts if known.
        return entry._replace(shows=known if same_list(known, todos) else todos)
    own = _is_own(message, note, known, todos)
    told = own and not _is_extended(message, note)
    return entry._replace(shows=todos, changed=True, own=own, told=told)


def _is_replaced(message: ToolMessage, note: Mapping[str, Any], todos: Todos) -> bool:
    """Whether middleware replaced the text, for example to save tokens; then it shows no list.

    LangChain's `HumanInTheLoopMiddleware` only puts a note before the text of an edited call.
    """
    text = message.content
    if not isinstance(text, str):
        return True
    last = todos[-1]["text"] if todos else ""
    if note.get("length") == len(text) and text.endswith(last):
        return False
    # Such a note, a result of version 0.2.0, or one that was imported without its metadata.
    return not text.endswith(format_todos(todos))


def _is_extended(message: ToolMessage, note: Mapping[str, Any]) -> bool:
    return note.get("length") not in (None, len(message.text))


def _is_own(message: ToolMessage, note: Mapping[str, Any], known: Todos, todos: Todos) -> bool:
    """Whether the call of a result made every change of the list since the one before."""
    if len(known) != len(todos):
        return False
    changed = [at for at, todo in enumerate(todos) if todo != known[at]]
    if any(todos[at]["text"] != known[at]["text"] for at in changed):
        return False
    match note.get("operation"):
        case {"op": "replace"}:
            return True
        case {"op": "set_status", "indices": [*indices]}:
            return all(at in indices for at in changed)
        case None:  # a result of version 0.2.0, or one that was imported without its metadata
            # No action sets this status, so the list was written again.
            written = all(todo["status"] == "not_started" for todo in todos)
            first: str = message.text.partition("\n")[0]
            return written or not changed or first.endswith(f" {changed}")
        case _:
            return not changed


def same_list(known: Todos, todos: Todos) -> bool:
    """Whether two lists look the same to a reader, who sees marks for invisible characters."""
    return [*map(_as_read, known)] == [*map(_as_read, todos)]


def _as_read(todo: TodoItem) -> tuple[str, str]:
    return one_line(todo["text"]), todo["status"]
