"""Graphs for the server tests: every way in which a run ends, hand-built and as an agent."""

import time
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graphs.until_done import build_graph
from tests.waiting import LONG
from todo_tools import (
    AutoContinue,
    DeltaTodoState,
    TodoMiddleware,
    TodoState,
    create_item_runner,
    has_worked,
)
from todo_tools.testing import ScriptedChatModel, call, checklist_model, turn

Graph = CompiledStateGraph[Any, Any, Any, Any]

GRACE = AutoContinue(grace_seconds=1)
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


def _note(record: str) -> str:
    """Note that the record was checked; the work of an item takes a while."""
    with Path("records").open("a", encoding="utf-8") as log:
        log.write(f"{record}\n")
    time.sleep(0.1)
    return f"{record} is right."


def _check_record(prompt: list[BaseMessage]) -> AIMessage | str:
    if isinstance(prompt[-1], ToolMessage):
        return prompt[-1].text
    return turn("", call("_note", record=prompt[-1].text))


grace = _hand_built(GRACE)
grace_agent = _agent(GRACE)
long_grace = _hand_built(LONG_GRACE)
long_grace_agent = _agent(LONG_GRACE)
ask = _hand_built(ASK)
delta = build_graph(checklist_model(rest_after=1), state_schema=DeltaTodoState).compile()
ask_agent = _agent(ASK)
blocking = StateGraph(TodoState).add_node("block", _block).add_edge(START, "block").compile()


records = create_item_runner(
    create_agent(ScriptedChatModel(script=_check_record), [_note]),
    check=has_worked,
    at_once=3,
    prompt=lambda state, index: str(state["todos"][index]["text"]),
).compile()
