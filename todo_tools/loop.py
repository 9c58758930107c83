"""The loop in a hand-built graph: a conditional edge, and the node behind it."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.channels import LastValue
from langgraph.graph import END, StateGraph

from todo_tools.continuation import AutoContinue
from todo_tools.state import TodoState, loop_in, messages_in
from todo_tools.turn import aend_turn, end_turn


def add_auto_continue(
    builder: StateGraph[Any, Any, Any, Any],
    *,
    agent: str = "agent",
    tools: str = "tools",
    policy: AutoContinue = AutoContinue(),
    node: str = "auto_continue",
    end: str = END,
) -> StateGraph[Any, Any, Any, Any]:
    """Keep an agent going until every todo is finished.

    Adds a conditional edge from the agent: to the tools while the model calls tools, otherwise to
    a node that sends the agent back to work while items are incomplete, and else lets it go. Why it
    was let go stands in `state["todo_loop"]["outcome"]` and goes out as a `LoopEvent`.

    The edge from the tools back to the agent is yours to add.

    Args:
        builder: A graph whose state is `TodoState` or derived from it.
        agent: The node that calls the model.
        tools: The node that runs its tool calls.
        policy: Limits, grace period, asking, your own stop condition.
        node: The name of the node to add.
        end: Where to go when the agent is let go.

    Returns:
        The same builder.

    Raises:
        TypeError: `policy` is not an `AutoContinue`.
        ValueError: The state of the graph lacks a channel that the loop needs.

    Example:
        >>> builder.add_edge(START, "agent").add_edge("tools", "agent")
        >>> graph = add_auto_continue(builder).compile(checkpointer=InMemorySaver())
    """
    if not isinstance(policy, AutoContinue):
        raise TypeError(f"policy must be an AutoContinue, got {policy!r}")
    missing = sorted(TodoState.__annotations__.keys() - builder.channels.keys())
    if missing:
        raise ValueError(
            f"the state of this graph lacks {', '.join(missing)}; build it with "
            "StateGraph(TodoState) or with a state derived from TodoState"
        )
    folded = ("todos", "todo_loop")
    plain = [name for name in folded if isinstance(builder.channels[name], LastValue)]
    if plain:
        raise ValueError(
            f"this graph's state has no reducer for {' and '.join(plain)}, so what the tools write "
            "cannot be folded; derive the state from TodoState"
        )
    runnable = RunnableLambda(
        lambda state: end_turn(state, policy).update, _async_node(policy), name=node
    )
    builder.add_node(node, runnable)
    builder.add_conditional_edges(agent, _route(tools, node), [tools, node])
    # An edge and not a Command: whoever edits the state right after this node is routed as well.
    builder.add_conditional_edges(node, _route_on(agent, end), [agent, end])
    return builder


def _async_node(policy: AutoContinue) -> Callable[[Any], Awaitable[dict[str, Any]]]:
    async def node(state: Any) -> dict[str, Any]:
        return (await aend_turn(state, policy)).update

    return node


def _route(tools: str, otherwise: str) -> Callable[[Any], str]:
    def route(state: Any) -> str:
        last = next(reversed(messages_in(state)), None)
        return tools if isinstance(last, AIMessage) and last.tool_calls else otherwise

    return route


def _route_on(agent: str, end: str) -> Callable[[Any], str]:
    def route_on(state: Any) -> str:
        return end if loop_in(state).get("outcome") else agent

    return route_on
