"""The `todos` channel, which merges whole lists that parallel nodes return.

A subgraph returns the whole list of its state. If several subgraphs run in one step, the reducer
alone would keep only the last list and lose the changes of the others. All updates of a step start
from the same list, and only the channel knows that list. So the channel compares each whole list
with it and applies the differences.
"""

from collections.abc import Sequence
from typing import Any, Self

from langgraph.channels import BinaryOperatorAggregate
from langgraph.channels.delta import DeltaChannel
from typing_extensions import override

from todo_tools._list.todos import is_list
from todo_tools.clients import from_client_todos


class TodosChannel(BinaryOperatorAggregate[Any]):
    """LangGraph's reducer channel, extended to merge the whole lists of a step."""

    @override
    def update(self, values: Sequence[Any]) -> bool:
        return super().update(_with_merges(self.value, values))


class DeltaTodosChannel(DeltaChannel[Any]):
    """LangGraph's `DeltaChannel`, extended to merge the whole lists of a step."""

    @override
    def update(self, values: Sequence[Any]) -> bool:
        writes = _with_merges(self.value, values)
        if writes is not values:
            # The checkpointer stores the original writes but not which step each belongs to. A
            # replay could not merge them, so store a snapshot that replays start from.
            self.snapshot_frequency = 1
        return super().update(writes)


def _with_merges(stored: Any, updates: Sequence[Any]) -> Sequence[Any]:
    """Return the updates of a step, with whole lists after the first update as `Merge`."""
    if not any(map(is_list, updates[1:])):
        return updates
    base = from_client_todos(stored if is_list(stored) else [])
    return [
        {"op": "merge", "base": base, "todos": from_client_todos(update)}
        if at and is_list(update)
        else update
        for at, update in enumerate(updates)
    ]


class _LangChain(str):
    """A string that defaults to `langchain`, because channels call the type without arguments."""

    __slots__ = ()

    def __new__(cls, value: str = "langchain") -> Self:
        return super().__new__(cls, value)


def _constant(value: _LangChain, _: _LangChain) -> _LangChain:
    return value


LANGCHAIN_FORMAT = BinaryOperatorAggregate(_LangChain, _constant)
"""A channel that marks a state as being in LangChain's format; its value never changes."""
