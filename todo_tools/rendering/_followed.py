"""Hold the state of a running graph and its subgraphs, as far as the stream shows it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from todo_tools._list.todos import TodoItem
from todo_tools.rendering._chunks import Path
from todo_tools.rendering._tool_view import ToolView, ToolViews

KEPT_CHARACTERS = 4_000
"""How many characters of an answer or an output are kept; only its end is."""


class Output(NamedTuple):
    """The output of a running tool."""

    call: str
    """The id of the call."""
    text: str
    """The end of the output."""
    length: int
    """The number of characters of the whole output."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The state of a run, as far as its stream shows it."""

    todos: list[TodoItem] | None = None
    """The list; `None` before the first one arrives."""
    countdown: str = ""
    """The text of the countdown; empty if none is running."""
    notice: str = ""
    """The reason why the loop stopped, or its question."""
    turn: tuple[str | None, ...] = ()
    """The ids of the tool calls in the model's last answer, in order."""
    answer: str | None = None
    """The id of that answer."""
    settled: int = -1
    """The position of the latest of these calls that has changed the list."""
    saying: tuple[str | None, str] = (None, "")
    """The answer that the model is writing: its id and its text so far."""
    open: tuple[tuple[str | None, str], ...] = ()
    """The running tool calls: the id and the display text of each."""
    commands: tuple[tuple[str | None, object], ...] = ()
    """The id and the `command` argument of each call, to match output that has no call id; the
    calls of the todo tools are left out."""
    outputs: tuple[Output, ...] = ()
    """The latest output of the running tools; the tool that wrote last is the last one."""
    below: tuple[tuple[Path, "Followed"], ...] = ()
    """The states of its subgraphs, parents before children."""
    name: str = ""
    """The name of its agent or, as long as that is not known, of its node."""
    number: int = 1
    """Its number among the subgraphs with that name."""
    views: ToolViews = field(default_factory=dict[str, ToolView], compare=False)
    """The forms of the application's own tools, by tool name."""

    @property
    def lists(self) -> tuple[tuple[Path, list[TodoItem]], ...]:
        """The lists of the subgraphs that differ from the list of the graph."""
        known = ((path, each.todos) for path, each in self.below)
        return tuple((path, todos) for path, todos in known if todos and todos != self.todos)

    @property
    def shown(self) -> tuple[list[TodoItem] | None, str, object]:
        """The parts of the state that stay visible after the run."""
        return self.todos, self.countdown or self.notice, self.lists

    @property
    def doing(self) -> tuple[object, ...]:
        """The parts of the state that are visible only during the run."""
        return self.saying[1], self.open, self.outputs


def changed_at(followed: Followed, path: Path, change: Callable[[Followed], Followed]) -> Followed:
    """Apply a change to the state of the graph or subgraph at a path."""
    below = dict(followed.below)
    before = (below.get(path) or Followed(views=followed.views)) if path else followed
    after = change(before)
    if after.todos is not before.todos:
        below |= _taken(below, path, after.todos)
    if not path:
        return replace(after, below=tuple(below.items()))
    # A graph without an agent's name inherits the metadata of the agent above it.
    above = {
        followed.name,
        *(each.name for at, each in below.items() if path[: len(at)] == at != path),
    }
    name = path[-1].partition(":")[0] if not after.name or after.name in above else after.name
    if name != before.name:
        others = [each.number for each in below.values() if each.name == name]
        after = replace(after, number=max(others, default=0) + 1)
    below[path] = replace(after, name=name)
    return replace(followed, below=tuple(_as_tree(below)))


def _taken(
    below: Mapping[Path, Followed], path: Path, todos: list[TodoItem] | None
) -> dict[Path, Followed]:
    """Forget the lists below a graph that it has just taken, or they would stay as copies."""
    under = {at: each for at, each in below.items() if at[: len(path)] == path != at}
    return {at: replace(each, todos=None) for at, each in under.items() if each.todos == todos}


def _as_tree(below: Mapping[Path, Followed], above: Path = ()) -> Iterator[tuple[Path, Followed]]:
    """Yield each subgraph before its own subgraphs, in the order of their first chunks."""
    depth = len(above)
    steps = dict.fromkeys(path[: depth + 1] for path in below if path[:depth] == above)
    for step in steps:
        if len(step) > depth:
            if step in below:
                yield step, below[step]
            yield from _as_tree(below, step)
