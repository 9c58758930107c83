"""The `todos` channel: whole lists that parallel nodes return are merged.

A subgraph returns the whole list of its state. Where several of them share a step, the reducer
would take the last list and lose what the others did. All updates of a step start from the same
list, which only the channel knows, so the channel turns lists into the changes made to it.
"""

from collections.abc import Sequence
from typing import Any

from langgraph.channels import BinaryOperatorAggregate
from langgraph.channels.delta import DeltaChannel
from typing_extensions import override

from todo_tools._todos import is_list
from todo_tools.clients import from_client_todos


class TodosChannel(BinaryOperatorAggregate[Any]):
    """LangGraph's reducer channel, with the whole lists of a step merged."""

    @override
    def update(self, values: Sequence[Any]) -> bool:
        return super().update(_with_merges(self.value, values))


class DeltaTodosChannel(DeltaChannel[Any]):
    """LangGraph's `DeltaChannel`, with the whole lists of a step merged."""

    @override
    def update(self, values: Sequence[Any]) -> bool:
        writes = _with_merges(self.value, values)
        if writes is not values:
            # The checkpointer keeps the writes as they came, without the limits of their steps. A
            # replay could not merge them, so it must begin at the list that is stored after them.
            self.snapshot_frequency = 1
        return super().update(writes)


def _with_merges(stored: Any, updates: Sequence[Any]) -> Sequence[Any]:
    """The updates of a step; a whole list after the first update as the changes that it makes."""
    if not any(map(is_list, updates[1:])):
        return updates
    base = from_client_todos(stored if is_list(stored) else [])
    return [
        {"op": "merge", "base": base, "todos": from_client_todos(update)}
        if at and is_list(update)
        else update
        for at, update in enumerate(updates)
    ]
