"""Find the checkpoints to go back to: those before the items of a list were started."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import StateSnapshot

from todo_tools._list.operations import origins
from todo_tools._list.todos import TodoItem, require_whole_number
from todo_tools._thread.state import messages_in, todos_in
from todo_tools._thread.transcript import list_after, note_of

_Graph = PregelProtocol[Any, Any, Any, Any]
_Starts = dict[int, list[StateSnapshot]]


def item_starts(graph: _Graph, config: RunnableConfig, *, limit: int = 1000) -> _Starts:
    """Find the checkpoints before the items of a list were started, to do an item again.

    Invoke the graph with a message and the `config` of such a checkpoint. The run begins with the
    list, the counters and the prompt of that moment, on a new branch; the old one stays as it is.
    Only the state goes back: files and other effects of tools stay.

    Args:
        graph: A compiled graph with a checkpointer, or LangGraph's `RemoteGraph`.
        config: The config of a thread, or of the checkpoint that has the list.
        limit: The most checkpoints to read. They are read one by one, from the newest back to the
            one before the items were written. Earlier starts are not found.

    Returns:
        By the index of each item: the checkpoints before the model's answers that set the item to
        `in_progress`, oldest first. Each has its `config`, its list in `values["todos"]` and its
        time in `created_at`. An item that no answer of the model started is missing.

    Raises:
        TypeError: `limit` is not a whole number.
        ValueError: `limit` is less than 1, or `graph` has no checkpointer.

    Example:
        ```python
        before = item_starts(graph, config)[1][-1]  # the last start of item [1]
        graph.invoke({"messages": [("user", "Measure in inches.")]}, before.config)
        ```
    """
    search = Search(config, limit)
    while search.above:
        search.take(graph.get_state(search.above))
    return search.starts


async def aitem_starts(graph: _Graph, config: RunnableConfig, *, limit: int = 1000) -> _Starts:
    """Do the same as `item_starts`, for a graph with an asynchronous checkpointer.

    Example:
        ```python
        async def do_again(index: int, message: str):
            before = (await aitem_starts(graph, config))[index][-1]
            return await graph.ainvoke({"messages": [("user", message)]}, before.config)
        ```
    """
    search = Search(config, limit)
    while search.above:
        search.take(await graph.aget_state(search.above))
    return search.starts


class Search:
    """Follow the items of a list back in time, from each checkpoint to its parent."""

    def __init__(self, config: RunnableConfig, limit: int) -> None:
        require_whole_number("limit", limit, minimum=1)
        self.above: RunnableConfig | None = config
        """The config of the next checkpoint to take; `None` at the end."""
        self._left = limit
        self._newer: StateSnapshot | None = None
        self._starts: _Starts = {}
        # The index of each item in the list of `_newer`; an item that was written later is missing.
        self._indices: dict[int, int] = {}
        # The answers in the history of `_newer` that started items, and these items.
        self._answers = defaultdict[str, set[int]](set)

    @property
    def starts(self) -> _Starts:
        """The checkpoints found so far, by the index of the item in the first list."""
        return {item: found for item, found in self._starts.items() if found}

    def take(self, older: StateSnapshot) -> None:
        """Take the newest checkpoint, and then the parent of each."""
        known = {message.id for message in messages_in(older.values)}
        if self._newer is None:
            self._starts = {item: [] for item, _ in enumerate(todos_in(older.values))}
            self._indices = {item: item for item in self._starts}
        else:
            for change in reversed(_changes(older, self._newer, known)):
                self._undo(change)
        made_later = self._answers.keys() - known
        for item in set[int]().union(*map(self._answers.pop, made_later)):
            self._starts[item].insert(0, older)
        self._newer, self._left = older, self._left - 1
        goes_on = self._left and (self._indices or self._answers)
        self.above = older.parent_config if goes_on else None

    def _undo(self, change: "_Change") -> None:
        places = origins(change.before, change.after, change.operation)
        for item, index in list(self._indices.items()):
            place = places[index]
            was = None if place is None else change.before[place]["status"]
            is_started = change.after[index]["status"] == "in_progress" and was != "in_progress"
            if change.answer and is_started:
                self._answers[change.answer].add(item)
            if place is None:
                del self._indices[item]
            else:
                self._indices[item] = place


class _Change(NamedTuple):
    before: list[TodoItem]
    after: list[TodoItem]
    operation: Any
    answer: str | None
    """The id of the model's answer; `None` if only the application changed the list."""


def _changes(
    older: StateSnapshot, newer: StateSnapshot, known: Collection[str | None]
) -> list[_Change]:
    """Return the changes of the list between two checkpoints, in order.

    Args:
        older: The checkpoint before the changes.
        newer: The checkpoint after them.
        known: The ids of the messages before them.
    """
    first, last = todos_in(older.values), todos_in(newer.values)
    changes: list[_Change] = []
    before, answer = first, None
    for message in messages_in(newer.values):
        if isinstance(message, AIMessage):
            answer = message.id
        elif message.id not in known and (after := list_after(message)) is not None:
            changes.append(_Change(before, after, note_of(message).get("operation"), answer))
            before = after
    if before == last:
        return changes
    # The application changed the list in the same step, or another call of the answer was refused.
    return [_Change(first, last, None, changes[-1].answer if changes else None)]
