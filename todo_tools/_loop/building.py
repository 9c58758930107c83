"""Check the builder of a graph before the loop is added to it."""

from collections.abc import Iterator
from functools import partial
from operator import add
from typing import Any, cast

from langgraph.channels import BinaryOperatorAggregate
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import StateGraph
from langgraph.managed.is_last_step import RemainingStepsManager
from langgraph.prebuilt import ToolNode


def require_channels(builder: StateGraph[Any, Any, Any, Any]) -> None:
    """Refuse a state that cannot hold what the loop and the todo tools write."""
    needed = ("messages", "todos", "todo_loop")
    # A node may bring other channels with its input, but the loop reads those of the graph.
    missing = sorted(set(needed) - builder.schemas[builder.state_schema].keys())
    if missing:
        raise ValueError(
            f"the state of this graph lacks {', '.join(missing)}; build it with "
            "StateGraph(TodoState) or with a state derived from TodoState"
        )
    plain = [name for name in needed if not _has_reducer(builder, name)]
    if plain:
        raise ValueError(
            f"the state of this graph has no reducer for {' and '.join(plain)} that can apply the "
            "updates of the loop and the todo tools; derive the state from TodoState and do not "
            "define them again"
        )


def _has_reducer(builder: StateGraph[Any, Any, Any, Any], name: str) -> bool:
    """Whether a channel folds updates and keeps what the library stores with a message.

    `operator.add` cannot add a notice to a stored answer. `add_messages(format=...)` drops ids and
    tags, so continuations would count as words of the user.
    """
    channel = cast("object", builder.channels[name])
    reducer = getattr(channel, "operator", None)
    is_formatting = isinstance(reducer, partial) and "format" in reducer.keywords
    is_folding = isinstance(channel, (BinaryOperatorAggregate, DeltaChannel))
    return is_folding and reducer is not add and not is_formatting


def require_no_other_way(builder: StateGraph[Any, Any, Any, Any], agent: str, tools: str) -> None:
    """Refuse an agent that chooses its next node, and other ways to the tools.

    LangGraph follows every edge. For example, the tools would run while a person reviews the calls.
    """
    for name, ends in _other_ways(builder, agent, tools):
        if ends:
            raise ValueError(
                f"edges or commands of the node {name!r} lead to {', '.join(sorted(ends))}, "
                "directly or by other nodes, and LangGraph would follow them beside the loop; "
                f"remove them, and name the node that takes the calls of {agent!r} as tools, or "
                "the one after the loop as end"
            )


def _other_ways(
    builder: StateGraph[Any, Any, Any, Any], agent: str, tools: str
) -> Iterator[tuple[str, set[str]]]:
    """Yield nodes, and where they lead but must not."""
    nodes = builder.nodes.items()
    run_calls = {name for name, node in nodes if isinstance(node.runnable, ToolNode)}
    run_calls |= {tools, _ANY_NODE}
    yield agent, _choices(builder, agent)
    yield agent, run_calls & _beside(builder, agent)
    for start, end in builder.edges:
        if end == agent:
            yield start, run_calls & _choices(builder, start)


_ANY_NODE = "any node (annotate the conditional edge that does not say where it leads)"


def _choices(builder: StateGraph[Any, Any, Any, Any], name: str) -> set[str]:
    """Return where the conditional edges of a node and its `Command`s lead."""
    branches = builder.branches.get(name, {}).values()
    ends = [{_ANY_NODE} if each.ends is None else each.ends.values() for each in branches]
    node = builder.nodes.get(name)
    return set((node.ends if node else None) or ()).union(*ends)


def _beside(builder: StateGraph[Any, Any, Any, Any], agent: str) -> set[str]:
    """Return all nodes that run beside the loop until the agent is called again."""
    edges = [*builder.edges]
    edges += [(start, end) for starts, end in builder.waiting_edges for start in starts]
    found, leading = set[str](), {agent}
    while leading:
        name = leading.pop()
        ends = {end for start, end in edges if start == name} | _choices(builder, name)
        leading |= ends - found - {agent}
        found |= ends - {agent}
    return found


def steps_key(builder: StateGraph[Any, Any, Any, Any]) -> str | None:
    """Return the key of LangGraph's `RemainingSteps`. A key of the same name may be another one."""
    managed = cast("dict[str, object]", builder.managed)
    return next((key for key, kind in managed.items() if kind is RemainingStepsManager), None)
