"""Find the checkpoints to go back to: those before the items of a list were started."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import StateSnapshot

from todo_tools._list.todos import require_whole_number, texts_of
from todo_tools._thread.notes import note_of
from todo_tools._thread.state import messages_in, todos_in, value_in

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
        limit: The most checkpoints to read, from the newest back.

    Returns:
        By the index of each item: the checkpoints before the model's answers that started it,
        oldest first. An item that was finished without a start began with the answer after the last
        tick, or after its list. Of an item runner: the checkpoints before it handed the item out.
        An item that nothing touched is missing.

    Raises:
        TypeError: `limit` is not a whole number.
        ValueError: `limit` is less than 1, `graph` has no checkpointer, or the thread none.

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
    """Follow a thread back in time, from each checkpoint to its parent."""

    def __init__(self, config: RunnableConfig, limit: int) -> None:
        require_whole_number("limit", limit, minimum=1)
        self.above: RunnableConfig | None = config
        """The config of the next checkpoint to take; `None` at the end."""
        self._left = limit
        self._texts: list[str] | None = None
        self._found: defaultdict[str, list[StateSnapshot]] = defaultdict(list)
        self._runs: dict[str, str] = {}
        """The runs of the item runner in the last checkpoint, and the texts of their items."""
        self._answers: dict[str, set[str]] = {}
        """The answers in the last history that started items, and the texts of these items."""

    @property
    def starts(self) -> _Starts:
        """The checkpoints found so far, by the index of the item in the first list."""
        texts = enumerate(self._texts or [])
        return {index: self._found[text] for index, text in texts if self._found.get(text)}

    def take(self, older: StateSnapshot) -> None:
        """Take the newest checkpoint, and then the parent of each."""
        if self._texts is None and older.created_at is None:
            raise ValueError("this thread has no checkpoints; give the config of one that has run")
        messages, texts = messages_in(older.values), texts_of(todos_in(older.values))
        self._texts = texts if self._texts is None else self._texts
        runs = _handed_out(older.values)
        for text in {self._runs[each] for each in self._runs.keys() - runs.keys()}:
            self._found[text].insert(0, older)
        self._runs = runs
        known = {message.id for message in messages}
        for answer in self._answers.keys() - known:
            for text in self._answers.pop(answer):
                self._found[text].insert(0, older)
        for answer, begun in _started(messages).items():
            self._answers.setdefault(answer, set()).update(begun)
        self._left -= 1
        goes_on = self._left and (self._answers or not set(texts).isdisjoint(self._texts))
        self.above = older.parent_config if goes_on else None


def _handed_out(state: object) -> dict[str, str]:
    """Return the runs that the item runner handed out last, and the texts of their items."""
    jobs: Any = value_in(state, "running") or []
    return {job["id"]: job["item"]["text"] for job in jobs}


def _started(messages: Sequence[AnyMessage]) -> dict[str, set[str]]:
    """Return the answers of a history that started items, and the texts of these items."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    started, answer, first, begins = set[str](), "", "", True
    for message in messages:
        if isinstance(message, AIMessage):
            answer = message.id or ""
            first, begins = answer if begins else first, False
        match note_of(message).get("operation") if answer else None:
            case {"op": "set_status", "status": "in_progress", "texts": [*texts]}:
                found[answer].update(texts)
                started.update(texts)
            case {"op": "set_status", "texts": [_, *_] as texts}:
                found[first].update(text for text in texts if text not in started)
                started.difference_update(texts)
                begins = True
            case {"op": "replace" | "append" | "insert" as op}:
                started = started if op != "replace" else set[str]()
                begins = True
            case _:
                pass
    return found
