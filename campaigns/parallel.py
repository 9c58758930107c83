"""Parallel work: nodes and agents that change one list in one step."""

from dataclasses import dataclass
from random import Random
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from campaigns.agents import STATES
from campaigns.cases import Case, Trial
from tests.support import Graph, items
from todo_tools import DeltaTodoState, TodoItem
from todo_tools._list.operations import Operation, apply
from todo_tools.operations import append_items, set_status
from todo_tools.state import todos_in

MOST_NODES = 5
_THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}


@dataclass(frozen=True)
class Branch:
    """What one node of a step does."""

    kind: str
    """An `operation`, a subgraph with a `list` that it changes, or an `idle` one."""
    change: Operation
    accident: str = ""
    """What happens first: it `fails` and runs again, or `asks` a person."""


def branches(case: Case) -> None:
    """Nodes of one step; nothing is lost, and two different whole lists are refused."""
    state, chance = case.random.choice(list(STATES.values())), case.random
    # Among whole lists in a `DeltaChannel` the last one wins.
    kinds = ["operation"] if state is DeltaTodoState else ["operation", "operation", "list", "idle"]
    found = [_branch(chance, at, kinds) for at in range(chance.randint(1, MOST_NODES))]
    before = items("a", "b", "c")
    graph = _side_by_side(state, found)
    expected = after_step(before, found)
    if expected is None:
        _check_refused(graph, before, found)
        return
    _run(graph, before)
    stored = todos_in(graph.get_state(_THREAD).values)
    assert stored == expected, f"the list is {stored}, not {expected}: {found}"


TRIALS: dict[Trial, int] = {branches: 1}


def after_step(before: list[TodoItem], found: list[Branch]) -> list[TodoItem] | None:
    """The list after a step as the documentation says it; `None` if the step is refused."""
    lists = [apply(before, each.change) for each in found if each.kind == "list"]
    changed = [each for each in lists if each != before]
    # A single update is applied as it is.
    if any(each != changed[0] for each in changed):
        return None
    todos = changed[0] if changed else before
    for each in found:
        todos = apply(todos, each.change) if each.kind == "operation" else todos
    return todos


def _branch(chance: Random, at: int, kinds: list[str]) -> Branch:
    new = [f"new {at} {number}" for number in range(chance.randrange(3))]
    indices = chance.sample(range(4), chance.choice([1, 1, 2]))
    change: list[Operation] = [
        set_status("completed", *indices),
        set_status("abandoned", *indices),
        set_status("in_progress", 0),
        append_items(*new),
        {"op": "insert", "index": chance.randrange(5), "texts": new},
        {"op": "replace", "texts": new},
    ]
    accident = chance.choice(["", "", "", "fails", "asks"])
    return Branch(chance.choice(kinds), chance.choice(change), accident)


def _side_by_side(state: type[Any], found: list[Branch]) -> Graph:
    """A graph that runs all branches in one step; nodes are applied in the order of their names."""
    builder = StateGraph(state)
    for at, each in enumerate(found):
        builder.add_node(f"node_{at}", _node(state, each)).add_edge(START, f"node_{at}")
    return builder.compile(checkpointer=InMemorySaver())


def _node(state: type[Any], branch: Branch) -> Any:
    """A node, or a subgraph, which returns its whole list; an accident happens first."""
    times = iter([True])

    def node(_: Any) -> dict[str, Any]:
        if branch.accident == "asks":
            interrupt("Now?")
        elif branch.accident == "fails" and next(times, False):
            raise ConnectionError
        return {} if branch.kind == "idle" else {"todos": branch.change}

    if branch.kind == "operation":
        return node
    work: Any = node
    return StateGraph(state).add_node("work", work).add_edge(START, "work").compile()


def _run(graph: Graph, before: list[TodoItem]) -> None:
    """Run the step until nothing fails or waits any more."""
    request: Any = {"messages": [], "todos": before}
    for _ in range(4 * MOST_NODES):
        try:
            graph.invoke(request, _THREAD)
        except ConnectionError:
            request = None
            continue
        waiting = graph.get_state(_THREAD).interrupts
        if not waiting:
            return
        request = Command(resume={each.id: "yes" for each in waiting})
    raise AssertionError("the step does not end")


def _check_refused(graph: Graph, before: list[TodoItem], found: list[Branch]) -> None:
    """Check that the step is refused whole, and that the thread goes on from the list before."""
    try:
        _run(graph, before)
    except InvalidUpdateError:
        pass
    else:
        raise AssertionError(f"two different lists were taken: {found}")
    graph.update_state(_THREAD, {"todos": append_items("later")}, as_node="node_0")
    stored = todos_in(graph.get_state(_THREAD).values)
    assert stored == [*before, *items("later")], f"after a refused step: {stored}, {found}"
