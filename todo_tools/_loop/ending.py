"""Carry out the decision of the loop: wait or ask, send events, build the state update.

The node of a hand-built graph and the hook of the middleware both call `end_answer`.
"""

import asyncio
import time
from collections.abc import Generator
from dataclasses import replace
from typing import Any, NamedTuple, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.errors import GraphDrained
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from langsmith import get_current_run_tree

from todo_tools._list.todos import TodoItem, incomplete
from todo_tools._loop.decision import Decision, Ended, decide, reset
from todo_tools._loop.policy import AutoContinue, Policy
from todo_tools._loop.said import read_reply
from todo_tools._thread.channels import LoopState
from todo_tools._thread.events import continue_question, countdown_event
from todo_tools._thread.notes import continuation_message, with_continuation, with_notice
from todo_tools._thread.reading import Reading
from todo_tools._thread.state import messages_in

# How often the loop looks for a drain request in the grace period.
_TICKS_PER_SECOND = 10


class Answered(NamedTuple):
    """An answer without a tool call, and all that the loop needs to go on from it."""

    state: Any
    reading: Reading
    loop: LoopState
    """The counters, after `heard`."""
    runtime: Runtime[Any]
    ended: Ended = Ended()

    @property
    def todos(self) -> list[TodoItem]:
        """The list of the state."""
        return self.reading.todos or []


class Ending(NamedTuple):
    """The result of `end_answer`: the next step and the state update."""

    continues: bool
    """Whether to call the model again."""
    update: dict[str, Any]
    """The state update."""


def end_answer(answered: Answered, policy: Policy) -> Ending:
    """After an answer without a tool call, send the agent back or end the loop, inside a node."""
    steps = _steps(answered, policy)
    while True:
        try:
            pause = next(steps)
        except StopIteration as done:
            return cast("Ending", done.value)
        time.sleep(pause)


async def aend_answer(answered: Answered, policy: Policy) -> Ending:
    """Do the same as `end_answer` without blocking the event loop."""
    steps = _steps(answered, policy)
    while True:
        try:
            pause = next(steps)
        except StopIteration as done:
            return cast("Ending", done.value)
        await asyncio.sleep(pause)


def _steps(answered: Answered, policy: Policy) -> Generator[float, None, Ending]:
    """Run the steps shared by the sync and async form; yield the seconds to sleep."""
    settings = _chosen(policy, answered.runtime)
    state, reading, loop, runtime, ended = answered
    decision = decide(reading, loop, settings, state, ended)
    if decision.outcome:
        return _carry_out(decision, answered, settings)
    if settings.ask:
        return _ask(decision, answered, settings)
    yield from _grace_period(settings.grace_seconds, runtime)
    return _carry_out(decision, answered, settings)


def _chosen(policy: Policy, runtime: Runtime[Any]) -> AutoContinue:
    """Return the policy of the current run."""
    if isinstance(policy, AutoContinue):
        return policy
    chosen = policy(runtime)
    if not isinstance(chosen, AutoContinue):
        raise TypeError(f"the policy function must return an AutoContinue, got {chosen!r}")
    return chosen


def _grace_period(seconds: int, runtime: Runtime[Any]) -> Generator[float, None, None]:
    """Count down, and leave the thread as it is if the server asks the run to shut down."""
    for second in range(seconds, 0, -1):
        runtime.stream_writer(countdown_event(second))
        for _ in range(_TICKS_PER_SECOND):
            if runtime.control and runtime.control.drain_requested:
                raise GraphDrained(runtime.control.drain_reason or "shutdown")
            yield 1 / _TICKS_PER_SECOND


def _ask(decision: Decision, answered: Answered, policy: AutoContinue) -> Ending:
    reply, problem = None, ""
    # Repeat the question instead of raising: after an error, the thread would keep the bad reply.
    while reply is None:
        try:
            question = continue_question(answered.todos, problem=problem)
            reply = read_reply(interrupt(question))
        except ValueError as error:
            problem = str(error)
    decision = decision if reply.continues else replace(decision, outcome="declined")
    if reply.words:
        return _told(decision, reply.words, answered)
    return _carry_out(decision, answered, policy)


def _told(decision: Decision, words: str, answered: Answered) -> Ending:
    """Add the person's own message to the history; after a "no", the next run reads it."""
    if decision.outcome:
        _report(decision, answered)
    message_id = str(uuid4())
    update = {
        "messages": [HumanMessage(words, id=message_id)],
        "todo_loop": reset(decision.loop, message_id),
        "todo_outcome": decision.outcome,
    }
    return Ending(not decision.outcome, update)


def _carry_out(decision: Decision, answered: Answered, policy: AutoContinue) -> Ending:
    _report(decision, answered)
    update: dict[str, Any] = {
        "todo_loop": decision.next_loop,
        "todo_outcome": decision.outcome,
    }
    entries = answered.reading.entries
    if decision.outcome:
        if policy.explain and (explained := _explained(decision, answered)):
            update["messages"] = [explained]
    elif policy.store or not entries:
        update["messages"] = [continuation_message(decision.prompt, decision.mark)]
    else:
        last = entries[-1].stored
        update["messages"] = [with_continuation(last, decision.prompt, decision.mark)]
    return Ending(continues=not decision.outcome, update=update)


def _report(decision: Decision, answered: Answered) -> None:
    """Send the decision to the stream, and to LangSmith so that runs can be filtered by it."""
    answered.runtime.stream_writer(decision.event)
    if run := get_current_run_tree():
        todos = answered.todos
        finished = len(todos) - len(incomplete(todos))
        outcome = decision.outcome or "sent_back"
        figures = {"todo_items": len(todos), "todo_finished": finished, "todo_outcome": outcome}
        run.add_metadata(figures)


def _explained(decision: Decision, answered: Answered) -> AIMessage | None:
    """Return the last answer with the notice appended; `None` if there is no notice."""
    messages = reversed(messages_in(answered.state))
    answer = next((each for each in messages if isinstance(each, AIMessage)), None)
    # Without an id, the changed answer would be added to the history and not replace the old one.
    if not decision.notice or answer is None or answer.id is None:
        return None
    return with_notice(answer, decision.notice)
