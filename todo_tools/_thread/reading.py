"""Read the history of a thread once, entry by entry.

The view, the decision of the loop and the list blocks all take this reading, so a model call costs
one pass.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from zlib import crc32

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list.operations import apply
from todo_tools._list.todos import TodoItem, are_todos, mark_of, texts_of
from todo_tools._thread.notes import read_notes
from todo_tools._thread.state import has_channel, messages_in, todos_in
from todo_tools._thread.transcript import is_from_user, is_injected, list_after

Todos = list[TodoItem]


class Entry(NamedTuple):
    """One message of the history, and what its notes say."""

    message: AnyMessage
    """The message as the model reads it: without what was noted later."""
    stored: AnyMessage
    """The message of the history; a continuation outside the history is noted with this one."""
    shows: Todos | None = None
    """The list that a prompt shows with this message; `None` for most messages."""
    summary: str | None = None
    """What a prompt shows of a result from which the model can infer the list: its first line."""
    changed: bool = False
    """Whether the message is the result of a call that changed the list."""
    block: Todos | None = None
    """The list that is appended to the message in every prompt."""
    lost: bool = False
    """Whether other code replaced the text of a list, so nobody knows what a prompt shows."""

    def after(self, known: Todos | None) -> Todos | None:
        """Return the list that a prompt shows last, if it showed `known` before this message."""
        return self.shows if self.shows is not None or self.lost else known


class Turn(NamedTuple):
    """An answer of the model and the tool results after it, as indices of entries."""

    answer: int | None
    """`None` for results before the first answer, whose call was removed from the history."""
    results: list[int]


@dataclass(frozen=True, slots=True)
class Reading:
    """A history that has been read."""

    entries: list[Entry]
    todos: Todos | None
    known: Todos | None

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
        """The messages by which the user, the loop or the application spoke, as indices."""
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
        return replace(self, entries=self.entries[:at], known=self.known_before()[at])

    def known_before(self) -> list[Todos | None]:
        """Return the list that a prompt shows before each entry, and after the last one."""
        known: list[Todos | None] = [[]]
        for entry in self.entries:
            known.append(entry.after(known[-1]))
        return known

    def with_block(self, at: int) -> "Reading":
        """Append the list of the state to a message of every prompt from now on."""
        todos = self.todos or []
        entries = self.entries.copy()
        entries[at] = entries[at]._replace(block=todos, shows=todos)
        return replace(self, entries=entries, known=todos)


def read(state: object) -> Reading:
    """Read the messages and the list of a state."""
    todos = todos_in(state) if has_channel(state, "todos") else None
    return read_messages(messages_in(state), todos)


def read_messages(messages: Sequence[AnyMessage], todos: Todos | None = None) -> Reading:
    """Read a history, with the list of its thread."""
    entries: list[Entry] = []
    known: Todos | None = []
    for message, stored, note in read_notes(messages):
        entry = Entry(message, stored)
        if isinstance(message, ToolMessage) and message.name in TOOLS:
            entry = _result(entry, message, note, known)
        if "list" in note and are_todos(block := note["list"]):
            entry = entry._replace(block=block, shows=block, lost=False)
        entries.append(entry)
        known = entry.after(known)
    return Reading(entries, todos, known)


def _result(
    entry: Entry, message: ToolMessage, note: Mapping[str, Any], known: Todos | None
) -> Entry:
    """Read a result of a todo tool."""
    if are_todos(listed := note.get("todos")):
        return entry._replace(shows=listed) if _is_whole(message, note) else entry
    if message.status == "error":
        return entry
    is_own = known is not None and note.get("before") == mark_of(known)
    if note.get("operation", {}).get("op") == "set_status":
        # It gives no texts, so its first line is enough, whatever became of the rest.
        shows = apply(known or [], note["operation"]) if is_own else None
        return entry._replace(changed=True, shows=shows, lost=not is_own, summary=note["summary"])
    todos = list_after(message)
    if todos is None and "operation" not in note:
        return entry
    entry = entry._replace(changed=True)
    if todos is None or not _is_whole(message, note):
        return entry._replace(lost=True)
    is_same = is_own and texts_of(known or []) == texts_of(todos)
    return entry._replace(shows=todos, summary=note["summary"] if is_same else None)


def _is_whole(message: ToolMessage, note: Mapping[str, Any]) -> bool:
    return note.get("text") == crc32(message.text.encode(errors="replace"))
