"""Check the builder of a graph before the loop is added to it."""

from typing import Any, cast

from langgraph.channels import LastValue
from langgraph.graph import StateGraph
from langgraph.managed.is_last_step import RemainingStepsManager

_Builder = StateGraph[Any, Any, Any, Any]


def require_channels(builder: _Builder) -> None:
    """Refuse a state that cannot hold what the loop and the todo tools write."""
    needed = ("messages", "todos", "todo_loop")
    # A node may bring other channels with its input, but the loop reads those of the graph.
    given = builder.schemas[builder.state_schema]
    missing = [name for name in needed if isinstance(given.get(name), LastValue | None)]
    if missing:
        raise ValueError(
            f"the state of this graph lacks {', '.join(missing)}, or has no reducer for it; build "
            "it with StateGraph(TodoState) or with a state derived from TodoState"
        )


def require_no_other_way(builder: _Builder, agent: str, tools: str) -> None:
    """Refuse an agent that chooses its next node: LangGraph would follow both edges."""
    node = builder.nodes.get(agent)
    if (agent, tools) in builder.edges or builder.branches.get(agent) or (node and node.ends):
        raise ValueError(
            f"the node {agent!r} already has an edge or a command to another node, and LangGraph "
            "would follow it beside the loop; remove it, and name the node that takes its calls as "
            "tools, or the one after the loop as end"
        )


def steps_key(builder: _Builder) -> str | None:
    """Return the key of LangGraph's `RemainingSteps`. A key of the same name may be another one."""
    managed = cast("dict[str, object]", builder.managed)
    return next((key for key, kind in managed.items() if kind is RemainingStepsManager), None)
