"""The end of an agent's turn, carried out: waiting or asking, the events, the state update.

What decides is `todo_tools.continuation`; what routes is the conditional edge of a hand-built graph
or the hook of an agent's middleware. This is what the two have in common.
"""

import asyncio
import time
from collections.abc import Generator
from dataclasses import replace
from typing import Any, NamedTuple, cast

from langchain_core.messages import HumanMessage
from langgraph.errors import GraphDrained
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from todo_tools.continuation import AutoContinue, Decision, decide, read_answer
from todo_tools.events import continue_question, countdown_event
from todo_tools.models import TodoItem
from todo_tools.state import todos_in
from todo_tools.transcript import continuation_message

_TICKS_PER_SECOND = 10


class TurnEnd(NamedTuple):
    """What becomes of the agent."""

    continues: bool
    """Whether the model is to be called again."""
    update: dict[str, Any]
    """What to write to the state."""


def end_turn(state: Any, policy: AutoContinue, *, own_answer: bool = True) -> TurnEnd:
    """End a turn of an agent that called no tool. Call it inside a node.

    Args:
        state: The graph state.
        policy: Limits, grace period, asking, the application's stop condition.
        own_answer: Whether the model itself ended the turn, rather than some other limit.

    Returns:
        Whether the agent goes on, and the state update.

    Raises:
        GraphDrained: The run was asked to drain during the grace period.
    """
    steps = _steps(state, policy, own_answer=own_answer)
    while True:
        try:
            pause = next(steps)
        except StopIteration as done:
            return cast("TurnEnd", done.value)
        time.sleep(pause)


async def aend_turn(state: Any, policy: AutoContinue, *, own_answer: bool = True) -> TurnEnd:
    """The same as `end_turn`, without blocking the event loop."""
    steps = _steps(state, policy, own_answer=own_answer)
    while True:
        try:
            pause = next(steps)
        except StopIteration as done:
            return cast("TurnEnd", done.value)
        await asyncio.sleep(pause)


def _steps(
    state: Any, policy: AutoContinue, *, own_answer: bool
) -> Generator[float, None, TurnEnd]:
    """Both forms in one: yields the seconds to sleep, returns the end."""
    decision = decide(state, policy, own_answer=own_answer)
    if decision.outcome:
        return _carry_out(decision)
    if policy.ask:
        return _ask(decision, todos_in(state))
    yield from _grace_period(policy.grace_seconds)
    return _carry_out(decision)


def _grace_period(seconds: int) -> Generator[float, None, None]:
    """Count down, each second an event.

    A drain request is answered here rather than at the end of the step, so that no prompt is sent
    and the thread stays at the end of the agent's turn.
    """
    runtime = get_runtime()
    for second in range(seconds, 0, -1):
        runtime.stream_writer(countdown_event(second))
        for _ in range(_TICKS_PER_SECOND):
            if runtime.control and runtime.control.drain_requested:
                raise GraphDrained(runtime.control.drain_reason or "shutdown")
            yield 1 / _TICKS_PER_SECOND


def _ask(decision: Decision, todos: list[TodoItem]) -> TurnEnd:
    question = continue_question(todos)
    # Asked again rather than refused: an error would leave the thread with the wrong answer.
    while (answer := read_answer(interrupt(question))) is None:
        question = continue_question(todos, repeated=True)
    if isinstance(answer, str):
        update = {"messages": [HumanMessage(answer)], "todo_loop": {"outcome": None}}
        return TurnEnd(continues=True, update=update)
    return _carry_out(decision if answer else replace(decision, outcome="declined"))


def _carry_out(decision: Decision) -> TurnEnd:
    get_runtime().stream_writer(decision.event)
    update: dict[str, Any] = {"todo_loop": decision.next_loop}
    if decision.outcome:
        return TurnEnd(continues=False, update=update)
    return TurnEnd(
        continues=True, update={**update, "messages": [continuation_message(decision.prompt)]}
    )
