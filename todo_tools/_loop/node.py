"""Run the loop: wait or ask, send events, build the state update, and add the node to a graph.

`todo_tools._loop.decision` makes the decision. The node of a hand-built graph and the hook of the
middleware both call `end_answer`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from typing import Any, NamedTuple, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.channels import LastValue
from langgraph.errors import GraphDrained
from langgraph.graph import END, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import interrupt
from langsmith import get_current_run_tree

from todo_tools._list.todos import TodoItem, incomplete
from todo_tools._loop.decision import AutoContinue, Decision, Policy, decide, require_policy
from todo_tools._loop.replies import read_reply
from todo_tools._loop.speaker import after_message
from todo_tools._loop.steps import with_steps
from todo_tools._view.shown_history import with_continuation, with_notice
from todo_tools._view.shown_list import record_block
from todo_tools.events import continue_question, countdown_event
from todo_tools.state import format_in, loop_in, messages_in, run_in, todos_in
from todo_tools.transcript import continuation_message

# How often the grace period looks for a drain request.
_TICKS_PER_SECOND = 10


class Ending(NamedTuple):
    """The result of `end_answer`: the next step and the state update."""

    continues: bool
    """Whether to call the model again."""
    update: dict[str, Any]
    """The state update."""


def end_answer(state: Any, policy: Policy, *, own_answer: bool = True, in_run: bool) -> Ending:
    """Continue or stop the loop after an answer without a tool call. Call it inside a node.

    Args:
        state: The graph state.
        policy: The settings of the loop.
        own_answer: Whether the model's own answer ends the run, and not another middleware.
        in_run: Whether this run has already been checked for new user messages.

    Returns:
        Whether to call the model again, and the state update.

    Raises:
        GraphDrained: The run was asked to drain during the grace period.
    """
    steps = _steps(state, policy, own_answer=own_answer, in_run=in_run)
    while True:
        try:
            pause = next(steps)
        except StopIteration as done:
            return cast("Ending", done.value)
        time.sleep(pause)


async def aend_answer(
    state: Any, policy: Policy, *, own_answer: bool = True, in_run: bool
) -> Ending:
    """Do the same as `end_answer` without blocking the event loop."""
    steps = _steps(state, policy, own_answer=own_answer, in_run=in_run)
    while True:
        try:
            pause = next(steps)
        except StopIteration as done:
            return cast("Ending", done.value)
        await asyncio.sleep(pause)


def _steps(
    state: Any, policy: Policy, *, own_answer: bool, in_run: bool
) -> Generator[float, None, Ending]:
    """Run the steps shared by the sync and async form; yield the seconds to sleep."""
    settings = _chosen(policy)
    decision = decide(state, settings, own_answer=own_answer, in_run=in_run)
    # No prompt: the model only reads the errors for its invalid calls, as after any tool call.
    if decision.outcome or not decision.prompt:
        return _carry_out(decision, state, settings)
    if settings.ask:
        return _ask(decision, state, settings)
    yield from _grace_period(settings.grace_seconds)
    return _carry_out(decision, state, settings)


def _chosen(policy: Policy) -> AutoContinue:
    """Return the policy of the current run."""
    if isinstance(policy, AutoContinue):
        return policy
    chosen = policy(get_runtime())
    if not isinstance(chosen, AutoContinue):
        raise TypeError(f"the policy function must return an AutoContinue, got {chosen!r}")
    return chosen


def _grace_period(seconds: int) -> Generator[float, None, None]:
    """Count down and send an event each second.

    If the server asks the run to shut down, the run stops here and not at the end of the step. So
    no continuation is sent, and the thread stays as the agent's answer left it.
    """
    runtime = get_runtime()
    for second in range(seconds, 0, -1):
        runtime.stream_writer(countdown_event(second))
        for _ in range(_TICKS_PER_SECOND):
            if runtime.control and runtime.control.drain_requested:
                raise GraphDrained(runtime.control.drain_reason or "shutdown")
            yield 1 / _TICKS_PER_SECOND


def _ask(decision: Decision, state: Any, policy: AutoContinue) -> Ending:
    todos = todos_in(state)
    reply, problem = None, ""
    # Repeat the question instead of raising: after an error, the thread would keep the bad reply.
    while reply is None:
        try:
            question = continue_question(todos, problem=problem, todos_format=format_in(state))
            reply = read_reply(interrupt(question))
        except ValueError as error:
            problem = str(error)
    decision = decision if reply.continues else replace(decision, outcome="declined")
    if reply.words:
        return _heard(decision, reply.words, todos)
    return _carry_out(decision, state, policy)


def _heard(decision: Decision, words: str, todos: list[TodoItem]) -> Ending:
    """Add the person's message to the history; after a no, the next run reads it."""
    if decision.outcome:
        _report(decision, todos)
    message_id = str(uuid4())
    loop = {**after_message(decision.loop, message_id), "outcome": decision.outcome}
    messages = [HumanMessage(words, id=message_id)]
    return Ending(not decision.outcome, {"messages": messages, "todo_loop": loop})


def _carry_out(decision: Decision, state: Any, policy: AutoContinue) -> Ending:
    _report(decision, todos_in(state))
    loop, messages = decision.next_loop, list[BaseMessage]()
    if decision.outcome:
        messages = _explained(decision, state) if policy.explain else []
    elif decision.prompt and policy.store:
        messages = [continuation_message(decision.prompt, decision.lines)]
    elif decision.prompt:
        loop = with_continuation(loop, state, decision.prompt, decision.lines)
    update: dict[str, Any] = {"todo_loop": loop, **({"messages": messages} if messages else {})}
    return Ending(continues=not decision.outcome, update=update)


def _report(decision: Decision, todos: list[TodoItem]) -> None:
    """Send the decision to the stream, and to LangSmith so that runs can be filtered by it."""
    get_runtime().stream_writer(decision.event)
    if run := get_current_run_tree():
        finished = len(todos) - len(incomplete(todos))
        outcome = decision.outcome or "sent_back"
        figures = {"todo_items": len(todos), "todo_finished": finished, "todo_outcome": outcome}
        run.add_metadata(figures)


def _explained(decision: Decision, state: Any) -> list[BaseMessage]:
    """Return the last answer with the notice appended; nothing if there is no notice."""
    answers = (each for each in reversed(messages_in(state)) if isinstance(each, AIMessage))
    answer = next(answers, None)
    # Without an id, the changed answer would be added to the history and not replace the old one.
    if not decision.notice or answer is None or answer.id is None:
        return []
    return [with_notice(answer, decision.event)]


def add_auto_continue(
    builder: StateGraph[Any, Any, Any, Any],
    *,
    agent: str = "agent",
    tools: str = "tools",
    policy: Policy = AutoContinue(),
    node: str = "auto_continue",
    end: str = END,
) -> StateGraph[Any, Any, Any, Any]:
    """Add the loop to a graph: the agent works until every todo is finished.

    Adds a node and a conditional edge from the agent. While the model calls tools, the edge leads
    to the tools. Otherwise it leads to the node. The node sends the agent back to work while items
    are incomplete, and then ends the run. The reason is in `state["todo_loop"]["outcome"]` and is
    sent as a `LoopEvent`.

    You must add the edge from the tools back to the agent yourself.

    Args:
        builder: A graph whose state is `TodoState` or derived from it.
        agent: The name of the node that calls the model.
        tools: The name of the node that runs its tool calls.
        policy: The settings of the loop, or a function that takes LangGraph's `Runtime` and returns
            them. It is called at each decision, and can choose by the `context` of the run.
        node: The name of the node to add.
        end: The name of the node to go to when the loop stops.

    Returns:
        The same builder.

    Raises:
        TypeError: `builder` is not a `StateGraph`, `policy` is neither an `AutoContinue` nor a
            plain function, or a node is not given by its name.
        ValueError: The state of the graph lacks a channel or a reducer that the loop needs.

    Example:
        ```python
        builder = StateGraph(TodoState)
        builder.add_node("agent", agent)
        builder.add_node("tools", ToolNode(create_todo_tools()))
        builder.add_edge(START, "agent")
        builder.add_edge("tools", "agent")
        graph = add_auto_continue(builder).compile(checkpointer=InMemorySaver())
        ```
    """
    require_policy(policy)
    if not isinstance(builder, StateGraph):
        given = type(builder).__name__
        raise TypeError(f"builder must be a StateGraph that is not compiled yet, got {given}")
    for parameter, name in {"agent": agent, "tools": tools, "node": node, "end": end}.items():
        if not isinstance(name, str):
            raise TypeError(f"{parameter} must be the name of a node, got {type(name).__name__}")
    missing = sorted({"messages", "todos", "todo_loop"} - builder.channels.keys())
    if missing:
        raise ValueError(
            f"the state of this graph lacks {', '.join(missing)}; build it with "
            "StateGraph(TodoState) or with a state derived from TodoState"
        )
    folded = ("todos", "todo_loop")
    plain = [name for name in folded if isinstance(builder.channels[name], LastValue)]
    if plain:
        raise ValueError(
            f"the state of this graph has no reducer for {' and '.join(plain)}, so it cannot apply "
            "the updates of the todo tools; derive the state from TodoState"
        )
    runnable = RunnableLambda(_node(policy), _async_node(policy), name=node)
    builder.add_node(node, runnable, input_schema=with_steps(builder.state_schema))
    builder.add_conditional_edges(agent, _route, {_CALLS: tools, _STOPS: node})
    # An edge and not a Command, so that routing also works after update_state(as_node=node).
    builder.add_conditional_edges(node, _route_on, {_CONTINUES: agent, _ENDS: end})
    return builder


def _node(policy: Policy) -> Callable[[Any], dict[str, Any]]:
    def node(state: Any) -> dict[str, Any]:
        return _update(state, end_answer(state, policy, in_run=run_in(state)))

    return node


def _async_node(policy: Policy) -> Callable[[Any], Awaitable[dict[str, Any]]]:
    async def node(state: Any) -> dict[str, Any]:
        return _update(state, await aend_answer(state, policy, in_run=run_in(state)))

    return node


def _update(state: Any, ending: Ending) -> dict[str, Any]:
    # False at the end, because callers without a checkpointer pass a result in as the next input.
    return {**ending.update, **_record(state), "todo_run": ending.continues}


def _record(state: Any) -> dict[str, Any]:
    """Record the list block of the last prompt, so that the next prompt shows it again."""
    return record_block(state, len(messages_in(state)) - 1)


# The labels of the edges in a picture of the graph.
_CALLS, _STOPS = "calls tools", "stops"
_CONTINUES, _ENDS = "items remain", "ends"


def _route(state: Any) -> str:
    last = next(reversed(messages_in(state)), None)
    return _CALLS if isinstance(last, AIMessage) and last.tool_calls else _STOPS


def _route_on(state: Any) -> str:
    return _ENDS if loop_in(state).get("outcome") else _CONTINUES
