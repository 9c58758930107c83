"""Defects of the item runner; the campaign `runner` calls one first in each of its processes."""

import time
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph
from langgraph.types import RetryPolicy

from campaigns import runner as campaign
from todo_tools._runner import runner

_Run: Any = runner._Run


def tick_before_check() -> None:
    """An item is completed as soon as the agent reports, whatever the check says then."""
    heard = _Run.heard

    def eager(run: Any, result: Any) -> bool:
        if is_report := heard(run, result):
            run.turns_to("completed")
        return bool(is_report)

    _Run.heard = eager


def tick_in_node() -> None:
    """The run of an item ticks it, at the place where the item was when the run began."""
    ended = _Run.ended

    def ticking(run: Any) -> Any:
        tick = {"op": "set_status", "status": run.status, "indices": [run.job["index"]]}
        return {**ended(run), "todos": tick}

    _Run.ended = ticking


def retry_around_agent() -> None:
    """The node is repeated, and not the step of the agent that failed."""
    add: Any = StateGraph.add_node
    stored: Any = runner._stored_with_runner
    policy = RetryPolicy(initial_interval=0.01, retry_on=ConnectionError)

    def added(graph: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
        retried = {"retry_policy": policy} if name == "item" else {}
        return add(graph, name, *args, **kwargs, **retried)

    planted: Any = runner
    planted._stored_with_runner = lambda agent, _: stored(agent, ())
    planted.StateGraph = type("Retrying", (StateGraph,), {"add_node": added})


def async_durability() -> None:
    """The caller chooses another durability, and the database is slow."""
    campaign.DURABILITY = "async"
    put: Any = SqliteSaver.put

    def slow(*args: Any) -> Any:
        time.sleep(0.05)
        return put(*args)

    saver: Any = SqliteSaver
    saver.put = slow
