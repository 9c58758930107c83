"""Show the branches of a thread: its forks, and the list at the end of each branch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from todo_tools._list.formatting import one_line
from todo_tools._thread.places import Search
from todo_tools._thread.state import todos_in
from todo_tools.rendering._lines import Line, Span, list_lines, status_lines
from todo_tools.rendering._views import View

_ID_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class Knot:
    """A checkpoint to draw: a fork, or the newest checkpoint of a branch (its tip)."""

    snapshot: StateSnapshot
    path: tuple[bool, ...]
    """For each fork on the path to this checkpoint, whether the path takes its last branch."""
    branches: int
    """The number of branches that begin here; 0 for a tip."""
    newest: bool = False
    started: tuple[str, ...] = ()
    """The texts of the items that an answer directly after this fork started."""


def show_branches(history: Iterable[StateSnapshot]) -> View:
    """Show the branches of a thread, with the list at each fork and at the tip of each branch.

    Args:
        history: The whole result of `graph.get_state_history(config)`, or its newest part. For an
            asynchronous graph, pass
            `[state async for state in graph.aget_state_history(config)]`.

    Returns:
        A tree. Each node shows the step and the end of the checkpoint's id. A fork before the start
        of an item names the item.

    Raises:
        TypeError: `history` has an element that is not a snapshot.
        ValueError: The list of a checkpoint is not a list of todos.

    Example:
        ```python
        earlier = list(graph.get_state_history(config))[1]
        graph.update_state(earlier.config, {"todos": []})
        print(show_branches(graph.get_state_history(config)))
        ```
    """
    return View(tuple(line for knot in knots_of(history) for line in _knot_lines(knot)))


def knots_of(history: Iterable[StateSnapshot]) -> Iterator[Knot]:
    """Yield the forks and tips of a thread, parents before children, older branches first."""
    snapshots = list(history)
    for snapshot in snapshots:
        if not isinstance(snapshot, StateSnapshot):
            raise TypeError(f"history must hold snapshots, got {type(snapshot).__name__}")
    children = _children(snapshots)
    waiting: list[tuple[StateSnapshot, tuple[bool, ...]]] = [
        (root, ()) for root in reversed(children.pop(None, []))
    ]
    while waiting:  # no recursion: a thread may fork at every step
        snapshot, path = waiting.pop()
        while len(following := children.get(_id(snapshot.config), [])) == 1:
            snapshot = following[0]
        started = tuple(dict.fromkeys(_started_after(snapshot, children))) if following else ()
        yield Knot(snapshot, path, len(following), snapshot is snapshots[0], started)
        for at, child in reversed(list(enumerate(following, start=1))):
            waiting.append((child, (*path, at == len(following))))


def _children(snapshots: list[StateSnapshot]) -> dict[str | None, list[StateSnapshot]]:
    """Map each checkpoint to its children, oldest first; `None` maps to the roots."""
    ids = {_id(snapshot.config) for snapshot in snapshots}
    children = dict[str | None, list[StateSnapshot]]()
    for snapshot in reversed(snapshots):
        above = snapshot.parent_config
        parent = _id(above) if above else None
        children.setdefault(parent if parent in ids else None, []).append(snapshot)
    return children


def _started_after(
    fork: StateSnapshot, children: dict[str | None, list[StateSnapshot]]
) -> Iterator[str]:
    """Yield the texts of the items that were started by an answer directly after a fork."""
    before = todos_in(fork.values)
    for child in children[_id(fork.config)]:
        branch = [fork, child]
        while (todos := todos_in(branch[-1].values)) == before:  # the answer's calls have not run
            following = children.get(_id(branch[-1].config), [])
            if len(following) != 1:
                break
            branch += following
        search = Search(branch[-1].config, len(branch))
        for snapshot in reversed(branch):
            search.take(snapshot)
        yield from (todos[item]["text"] for item, (at, *_) in search.starts.items() if at is fork)


def _id(config: RunnableConfig) -> str:
    return str(config.get("configurable", {}).get("checkpoint_id", ""))


def _head(knot: Knot) -> Line:
    """Draw the first line of a knot: mark, step, status, number of branches, end of the id."""
    step = (knot.snapshot.metadata or {}).get("step", "?")
    status = status_lines(todos_in(knot.snapshot.values)) or list_lines([])
    mark = Span("◆" if knot.branches else "●", "accent", plain="*" if knot.branches else "o")
    spans = [mark, Span(f" step {step} ", "text", bold=True), *status[0].body]
    if knot.branches:
        spans.append(Span(f", {knot.branches} branches", "muted"))
    if knot.started:
        named = ", ".join(f'"{one_line(text)}"' for text in knot.started)
        spans.append(Span(f" before {named}", "muted"))
    if knot.newest:
        spans.append(Span(", newest", "accent"))
    spans.append(Span(f" {_id(knot.snapshot.config)[-_ID_CHARACTERS:]}", "dim"))
    return Line(tuple(spans))


def _knot_lines(knot: Knot) -> Iterator[Line]:
    above = [_rail("  " if last else "│ ") for last in knot.path]
    below = (*above, _rail("│ " if knot.branches else "  "))
    if knot.path:
        above[-1] = _rail("└─" if knot.path[-1] else "├─")
    yield replace(_head(knot), lead=tuple(above))
    todos = todos_in(knot.snapshot.values)
    for line in list_lines(todos) if todos else ():
        yield replace(line, lead=(*below, *line.lead))


def _rail(text: str) -> Span:
    return Span(text, "dim", plain=text.translate(str.maketrans("│├└─", "|+`-")))
