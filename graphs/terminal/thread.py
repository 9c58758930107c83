"""A thread with branches, which are derived from its checkpoints, and moves between them.

The current state of a thread is its newest checkpoint. To go back or to another branch, a new
checkpoint copies the state from there. So nothing is stored except checkpoints.
"""

from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.constants import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from graphs.terminal.commands import CommandError, within
from todo_tools import TodoItem, aitem_starts
from todo_tools.state import messages_in, todos_in

Request = str | Command[Any] | None


def branch_numbers(history: Sequence[StateSnapshot]) -> dict[str, int]:
    """The number of the branch of each checkpoint, by its id; the history is newest first.

    The first child of a checkpoint continues its branch; each later child starts a new branch. So
    the number of a branch never changes.
    """
    numbers = dict[str, int]()
    continued = set[str]()
    branches = 0
    for snapshot in reversed(history):
        parent = _id(snapshot.parent_config)
        if parent in numbers and parent not in continued:
            continued.add(parent)
            numbers[_id(snapshot.config)] = numbers[parent]
        else:
            branches += 1
            numbers[_id(snapshot.config)] = branches
    return numbers


def tips(history: Sequence[StateSnapshot]) -> dict[int, StateSnapshot]:
    """The newest checkpoint of each branch, by its number."""
    numbers = branch_numbers(history)
    return {numbers[_id(snapshot.config)]: snapshot for snapshot in reversed(history)}


def current_branch(history: Sequence[StateSnapshot]) -> int:
    """The number of the current branch; 0 before the first checkpoint."""
    return branch_numbers(history)[_id(history[0].config)] if history else 0


def moments(history: Sequence[StateSnapshot]) -> list[StateSnapshot]:
    """The checkpoints that lead to the newest one, oldest first; the user can go back to each.

    Checkpoints that look like the one before are skipped: they received input, or a node of the
    middleware ran.
    """
    known = {_id(snapshot.config): snapshot for snapshot in history}
    way, at = list[StateSnapshot](), history[0] if history else None
    while at is not None:
        if at.next != (START,) or at.parent_config is None:
            way.insert(0, at)
        at = known.get(_id(at.parent_config))
    return way[:1] + [new for old, new in pairwise(way) if _is_news(old, new)]


def _is_news(old: StateSnapshot, new: StateSnapshot) -> bool:
    """Whether a person sees a message, a list or an outcome that is new, or has moved here."""
    outcome = new.values.get("todo_outcome")
    return (
        (new.metadata or {}).get("source") == "update"
        or len(messages_in(new.values)) != len(messages_in(old.values))
        or todos_in(new.values) != todos_in(old.values)
        or (outcome is not None and outcome != old.values.get("todo_outcome"))
    )


def _id(config: RunnableConfig | None) -> str:
    return str((config or {}).get("configurable", {}).get("checkpoint_id", ""))


class Thread:
    """One thread of a graph.

    Args:
        graph: A compiled graph with a checkpointer.
        config: The config of the thread, with the metadata for its checkpoints.
    """

    def __init__(
        self, graph: CompiledStateGraph[Any, Any, Any, Any], config: RunnableConfig
    ) -> None:
        self.graph = graph
        self.config = config

    async def now(self) -> StateSnapshot:
        """The newest checkpoint."""
        return await self.graph.aget_state(self.config)

    async def history(self) -> list[StateSnapshot]:
        """All its checkpoints, newest first."""
        return [snapshot async for snapshot in self.graph.aget_state_history(self.config)]

    def run(self, request: Request) -> AsyncGenerator[tuple[str, Any], None]:
        """Run the agent on a message, or continue it: with `None`, or with answers to a question.

        The stream has the modes `updates`, `custom` and `messages`. Each step is stored before the
        next one begins, so a kill repeats no finished step.
        """
        stream = self.graph.astream(
            {"messages": [("user", request)]} if isinstance(request, str) else request,
            self.config,
            stream_mode=["updates", "custom", "messages"],
            durability="sync",
        )
        return cast("AsyncGenerator[tuple[str, Any], None]", stream)

    async def replace_todos(self, todos: list[TodoItem]) -> None:
        """Replace the list; the next steps of the run stay the same.

        Raises:
            CommandError: The results of the last answer are not in a checkpoint yet. They are kept
                for this checkpoint only, so after an edit its calls would run again.
        """
        now = await self.now()
        # `next` would be empty if all results of a step are stored but its checkpoint is not.
        if any(task.name == "tools" for task in now.tasks):
            raise CommandError(
                "the calls of the last answer come first; /go runs them, a message drops them"
            )
        # LangChain forgets with each write that the loop has sent the agent back to work.
        jump = {key: value for key, value in now.values.items() if key == "jump_to"}
        await self._write_at(now, {"todos": todos, **jump})

    async def fork(self, number: int) -> None:
        """Go back to a checkpoint of this branch and start a new branch there.

        Raises:
            CommandError: There is no checkpoint with this number.
        """
        way = moments(await self.history())
        if not 1 <= number <= len(way):
            raise CommandError(f"no checkpoint {number}; /history lists {len(way)}")
        if number < len(way):
            await self._write_at(way[number - 1])

    async def redo(self, index: int) -> None:
        """Go back to where an item of the list was last started, and start a new branch there.

        Raises:
            CommandError: There is no such item, or the agent has not started it.
        """
        within(todos_in((await self.now()).values), index)
        starts = await aitem_starts(self.graph, self.config)
        if index not in starts:
            raise CommandError(f"the agent has not started [{index}]; /history and /fork go back")
        await self._write_at(starts[index][-1])

    async def switch(self, number: int) -> None:
        """Go to another branch.

        Raises:
            CommandError: There is no branch with this number.
        """
        history = await self.history()
        branches = tips(history)
        if number not in branches:
            raise CommandError(f"no branch {number}; /branches lists {len(branches)}")
        if branches[number] is not history[0]:
            await self._write_at(branches[number])

    async def _write_at(self, place: StateSnapshot, values: dict[str, Any] | None = None) -> None:
        config: RunnableConfig = {**self.config, **place.config}
        # LangGraph finds the node that wrote last, but fails if no node has written yet.
        empty = place.metadata is None or place.next == (START,)
        await self.graph.aupdate_state(config, values, as_node=START if empty else None)
