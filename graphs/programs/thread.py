"""A thread that can be gone back in: its branches, told from its checkpoints, and moves on them.

Where a thread stands is its newest checkpoint. To go back, or over to another branch, is to write a
checkpoint that takes up the state of that place; so nothing need be remembered beside the thread.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.constants import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from graphs.programs.commands import CommandError
from todo_tools import TodoItem
from todo_tools.rendering import Line, Span, View, list_lines, one_line, show_call, status_lines
from todo_tools.state import loop_in, messages_in, todos_in
from todo_tools.transcript import is_from_user, is_injected, last_user_message

Request = str | Command[Any] | None

_BRIEF_CHARACTERS = 56


def branch_numbers(history: Sequence[StateSnapshot]) -> dict[str, int]:
    """Number the branches of a thread, from 1 in the order in which they began.

    What first grew from a checkpoint is on its branch; what grew later began one of its own. So a
    branch keeps its number whatever comes after.

    Args:
        history: All checkpoints of the thread, newest first.

    Returns:
        The branch of each checkpoint, by its id.
    """
    numbers = dict[str, int]()
    continued = set[str]()
    branches = 0
    for snapshot in reversed(history):
        parent = _parent_id(snapshot)
        if parent in numbers and parent not in continued:
            continued.add(parent)
            numbers[_id(snapshot)] = numbers[parent]
        else:
            branches += 1
            numbers[_id(snapshot)] = branches
    return numbers


def tips(history: Sequence[StateSnapshot]) -> dict[int, StateSnapshot]:
    """The newest checkpoint of each branch, by its number."""
    numbers = branch_numbers(history)
    return {numbers[_id(snapshot)]: snapshot for snapshot in reversed(history)}


def current_branch(history: Sequence[StateSnapshot]) -> int:
    """The number of the branch that the thread stands on; 0 before its first checkpoint."""
    return branch_numbers(history)[_id(history[0])] if history else 0


def moments(history: Sequence[StateSnapshot]) -> list[StateSnapshot]:
    """The checkpoints on the way to the newest one, oldest first: what can be gone back to.

    Those at which a message was about to be taken in are the same as the one before; they are left
    out, but for the beginning.
    """
    known = {_id(snapshot): snapshot for snapshot in history}
    way = list[StateSnapshot]()
    at = history[0] if history else None
    while at is not None:
        if at.next != (START,) or at.parent_config is None:
            way.append(at)
        at = known.get(_parent_id(at))
    return way[::-1]


def _id(snapshot: StateSnapshot) -> str:
    return str(snapshot.config.get("configurable", {}).get("checkpoint_id", ""))


def _parent_id(snapshot: StateSnapshot) -> str:
    above = snapshot.parent_config or {}
    return str(above.get("configurable", {}).get("checkpoint_id", ""))


def history_view(way: Sequence[StateSnapshot]) -> View:
    """Show checkpoints, numbered from 1: what had happened, and the list wherever it changed."""
    lines = list[Line]()
    before: StateSnapshot | None = None
    for number, snapshot in enumerate(way, start=1):
        todos = todos_in(snapshot.values)
        lines.append(_row(number, " ", (Span(_happened(before, snapshot)),)))
        if todos != (todos_in(before.values) if before else []):
            lines += _beneath((*list_lines(todos), *status_lines(todos)))
        before = snapshot
    return View(tuple(lines))


def branches_view(history: Sequence[StateSnapshot]) -> View:
    """Show the branches, each with its own list; the one that the thread stands on is marked."""
    lines = list[Line]()
    for number, tip in tips(history).items():
        todos = todos_in(tip.values)
        messages = messages_in(tip.values)
        at = last_user_message(messages)
        said = f" {_brief(messages[at].text)}" if at is not None else ""
        mark = "▸" if tip is history[0] else " "
        lines.append(_row(number, mark, (*_status(todos), Span(said, "muted"))))
        lines += _beneath(list_lines(todos) if todos else ())
    return View(tuple(lines))


def threads_view(newest: Sequence[StateSnapshot]) -> View:
    """Show threads, one a line: id, status, what the user first said."""
    lines = list[Line]()
    for snapshot in newest:
        name = str(snapshot.config.get("configurable", {}).get("thread_id", ""))
        said = next((m.text for m in messages_in(snapshot.values) if is_from_user(m)), "")
        lead = (Span(f"  {one_line(name)}", "accent"), Span("  "))
        status = _status(todos_in(snapshot.values))
        lines.append(Line((*status, Span(f" {_brief(said)}", "muted")), lead))
    return View(tuple(lines))


def _row(number: int, mark: str, body: tuple[Span, ...]) -> Line:
    return Line(body, (Span(mark, "success", plain=mark.strip() and ">"), _number_span(number)))


def _number_span(number: int) -> Span:
    return Span(f"{number:>3}  ", "accent")


def _beneath(lines: tuple[Line, ...]) -> Iterator[Line]:
    return (replace(line, lead=(Span(" " * 6), *line.lead)) for line in lines)


def _status(todos: list[TodoItem]) -> tuple[Span, ...]:
    return (status_lines(todos) or list_lines(todos))[0].spans


def _happened(before: StateSnapshot | None, snapshot: StateSnapshot) -> str:
    """What led to a checkpoint, in a few words."""
    if (snapshot.metadata or {}).get("source") == "update":
        same = before is not None and todos_in(before.values) == todos_in(snapshot.values)
        return "taken up here" if same else "list edited by hand"
    messages = messages_in(snapshot.values)
    if before is not None and len(messages) == len(messages_in(before.values)):
        return f"let go: {loop_in(snapshot.values).get('outcome')}"
    return _said(messages[-1]) if messages else "the beginning"


def _said(message: BaseMessage) -> str:
    if is_injected(message):
        return "↻ sent back to work"
    if isinstance(message, ToolMessage):
        first, *rest = message.text.splitlines() or [""]
        return _brief(f"│ {message.name}: {first}{' …' if rest else ''}")
    if isinstance(message, AIMessage):
        calls = [str(show_call(call["name"], call["args"])) for call in message.tool_calls]
        return _brief(" → ".join(["💬 " + message.text if message.text else "", *calls]).strip())
    return _brief(f"› {message.text}")  # noqa: RUF001  the mark of the prompt


def _brief(text: str) -> str:
    shown = one_line(text)
    return shown if len(shown) <= _BRIEF_CHARACTERS else f"{shown[:_BRIEF_CHARACTERS]}…"


class Thread:
    """One thread of a graph.

    Args:
        graph: A compiled graph with a checkpointer.
        config: The config of the thread, with the metadata that its checkpoints are to carry.
    """

    def __init__(
        self, graph: CompiledStateGraph[Any, Any, Any, Any], config: RunnableConfig
    ) -> None:
        self.graph = graph
        self.config = config

    async def now(self) -> StateSnapshot:
        """Where the thread stands."""
        return await self.graph.aget_state(self.config)

    async def history(self) -> list[StateSnapshot]:
        """All its checkpoints, newest first."""
        return [snapshot async for snapshot in self.graph.aget_state_history(self.config)]

    @property
    def name(self) -> str:
        """Its id."""
        return str(self.config.get("configurable", {}).get("thread_id", ""))

    def run(self, message: Request) -> AsyncGenerator[tuple[str, Any], None]:
        """Let the agent work on a message, or go on where it was stopped.

        Args:
            message: What the user says; `None` to go on, a `Command` to answer what it asked.

        Returns:
            The stream of the run, in the modes `updates` and `custom`.
        """
        said = isinstance(message, str)
        request: Any = {"messages": [("user", message)]} if said else message
        stream = self.graph.astream(request, self.config, stream_mode=["updates", "custom"])
        return cast("AsyncGenerator[tuple[str, Any], None]", stream)

    async def replace_todos(self, todos: list[TodoItem]) -> None:
        """Put another list in the place of the list; what is under way stays under way."""
        await self._write_at(await self.now(), {"todos": todos})

    async def fork(self, number: int) -> None:
        """Go back to a moment of this branch, from which the thread then grows anew.

        Raises:
            CommandError: There is no such moment.
        """
        way = moments(await self.history())
        if not 1 <= number <= len(way):
            raise CommandError(f"there is no checkpoint {number}; /history lists {len(way)}")
        if number < len(way):
            await self._write_at(way[number - 1])

    async def switch(self, number: int) -> None:
        """Go over to another branch.

        Raises:
            CommandError: There is no such branch.
        """
        history = await self.history()
        branches = tips(history)
        if number not in branches:
            raise CommandError(f"there is no branch {number}; /branches lists {len(branches)}")
        if branches[number] is not history[0]:
            await self._write_at(branches[number])

    async def _write_at(self, place: StateSnapshot, values: dict[str, Any] | None = None) -> None:
        config: RunnableConfig = {**self.config, **place.config}
        # LangGraph finds out which node wrote last, but for a place that no node has written to.
        empty = place.metadata is None or place.next == (START,)
        await self.graph.aupdate_state(config, values, as_node=START if empty else None)


async def newest_of_threads(
    saver: AsyncSqliteSaver, graph: CompiledStateGraph[Any, Any, Any, Any], count: int
) -> list[StateSnapshot]:
    """Where the threads stand that were worked at last, newest first.

    Args:
        saver: The checkpointer of the graph, set up.
        graph: The compiled graph.
        count: How many threads to tell of, at the most.

    Returns:
        A snapshot for each.
    """
    # The saver itself can only be asked for all checkpoints of all threads.
    query = (
        "select thread_id from checkpoints where checkpoint_ns = '' "
        "group by thread_id order by max(checkpoint_id) desc limit ?"
    )
    async with saver.lock, saver.conn.execute(query, (count,)) as rows:
        names = [str(row[0]) async for row in rows]
    return [await graph.aget_state({"configurable": {"thread_id": name}}) for name in names]
