"""Graphs for the server tests: every way in which a run ends, hand-built and as an agent."""

from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graphs.until_done import build_graph
from tests.waiting import LONG
from todo_tools import AutoContinue, DeltaTodoState, TodoMiddleware, TodoState
from todo_tools.testing import checklist_model

Graph = CompiledStateGraph[Any, Any, Any, Any]

GRACE = AutoContinue(grace_seconds=3)
LONG_GRACE = AutoContinue(grace_seconds=LONG)
ASK = AutoContinue(ask=True)


def _hand_built(policy: AutoContinue) -> Graph:
    return build_graph(checklist_model(rest_after=1), policy=policy).compile()


def _agent(policy: AutoContinue) -> Graph:
    middleware = [TodoMiddleware(policy=policy)]
    return create_agent(checklist_model(rest_after=1), middleware=middleware)


async def _block(state: TodoState) -> dict[str, Any]:
    """Block the event loop, which a server must not do; the report names this function."""
    Path("nowhere").readlink()  # noqa: ASYNC240
    return {}


grace = _hand_built(GRACE)
grace_agent = _agent(GRACE)
long_grace = _hand_built(LONG_GRACE)
long_grace_agent = _agent(LONG_GRACE)
ask = _hand_built(ASK)
delta = build_graph(checklist_model(rest_after=1), state_schema=DeltaTodoState).compile()
ask_agent = _agent(ASK)
blocking = StateGraph(TodoState).add_node("block", _block).add_edge(START, "block").compile()
