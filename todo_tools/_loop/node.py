"""Run the loop: wait or ask, send events, build the state update, and add the node to a graph.

`todo_tools._loop.decision` makes the decision. The node of a hand-built graph and the hook of the
middleware both call `end_answer`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Hashable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.graph import END, StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import interrupt
from langsmith import get_current_run_tree
from typing_extensions import override

from todo_tools._list.todos import TodoItem, incomplete
from todo_tools._loop.building import require_channels, require_no_other_way, steps_key
from todo_tools._loop.decision import Decision, Ended, decide, heard, reset
from todo_tools._loop.policy import AutoContinue, Policy, require_policy
from todo_tools._loop.replies import read_reply
from todo_tools._thread.channels import LoopState
from todo_tools._thread.events import continue_question, countdown_event
from todo_tools._thread.reading import Reading, read
from todo_tools._thread.state import loop_in, messages_in, value_in
from todo_tools._thread.transcript import continuation_message, noted, with_notice
from todo_tools._view.view import record_block

# How often the grace period looks for a drain request.
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
    """Continue or stop the loop after an answer without a tool call. Call it inside a node.

    Raises:
        GraphDrained: The run was asked to drain during the grace period.
    """
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
    """Count down and send an event each second.

    If the server asks the run to shut down, the run stops here and not at the end of the step. So
    no continuation is sent, and the thread stays as the agent's answer left it.
    """
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
    """Add the person's message to the history; after a no, the next run reads it."""
    if decision.outcome:
        _report(decision, answered)
    message_id = str(uuid4())
    loop = {**reset(decision.loop, message_id), "outcome": decision.outcome}
    messages = [HumanMessage(words, id=message_id)]
    return Ending(not decision.outcome, {"messages": messages, "todo_loop": loop})


def _carry_out(decision: Decision, answered: Answered, policy: AutoContinue) -> Ending:
    _report(decision, answered)
    update: dict[str, Any] = {"todo_loop": decision.next_loop}
    if decision.outcome:
        if policy.explain and (explained := _explained(decision, answered)):
            update["messages"] = [explained]
    elif policy.store or not answered.reading.entries:
        update["messages"] = [continuation_message(decision.prompt, decision.lines)]
    else:
        then = {"text": decision.prompt, "lines": decision.lines}
        update["messages"] = [noted(answered.reading.entries[-1].stored, then=then)]
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


_Builder = TypeVar("_Builder", bound=StateGraph[Any, Any, Any, Any])


def add_auto_continue(
    builder: _Builder,
    *,
    agent: str = "agent",
    tools: str = "tools",
    policy: Policy = AutoContinue(),
    node: str = "auto_continue",
    end: str = END,
    entry: str | None = None,
) -> _Builder:
    """Add the loop to a graph: the agent works until every todo is finished.

    Adds a node and a conditional edge from the agent. While the model calls tools, the edge leads
    to the tools. Otherwise it leads to the node. The node sends the agent back to work while items
    are incomplete, and then ends the run. The reason is in `state["todo_loop"]["outcome"]` and is
    sent as a `LoopEvent`.

    You must add the edge from the tools back to the agent yourself. The agent must have no
    conditional edge of its own and no `Command(goto=...)`: LangGraph would follow both. A node on a
    plain edge of the agent runs beside the tools or the loop. Call this function last: it refuses
    the edges that it sees.

    Args:
        builder: A graph whose state is `TodoState` or derived from it.
        agent: The name of the node that calls the model.
        tools: The name of the node that runs its tool calls, or of one that reviews them before.
            If the agent runs its calls itself, as one of `create_agent` does, give the same name as
            for `agent`.
        policy: The settings of the loop, or a function that takes LangGraph's `Runtime` and returns
            them. It is called at each decision, and can choose by the `context` of the run.
        node: The name of the node to add.
        end: The name of the node to go to when the loop stops.
        entry: The name of the node to go to when the agent is sent back, if another node comes
            before the agent: for example one that prepares its prompt. `None` is the agent.

    Returns:
        The same builder.

    Raises:
        TypeError: `builder` is not a `StateGraph`, `policy` is neither an `AutoContinue` nor a
            plain function, or a node is not given by its name.
        ValueError: The state of the graph lacks a channel or a reducer that the loop needs, or the
            agent already chooses its next node.

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
    entry = agent if entry is None else entry
    names = {"agent": agent, "tools": tools, "node": node, "end": end, "entry": entry}
    for parameter, name in names.items():
        if not isinstance(name, str):
            raise TypeError(f"{parameter} must be the name of a node, got {type(name).__name__}")
    require_channels(builder)
    require_no_other_way(builder, agent, tools)
    builder.add_node(node, _node(node, policy, steps_key(builder)))
    if tools == agent:  # its calls are carried out when it ends
        builder.add_edge(agent, node)
    else:
        _add_edges(builder, agent, _route, {_CALLS: tools, _STOPS: node})
    # An edge and not a Command, so that routing also works after update_state(as_node=node).
    _add_edges(builder, node, _route_on, {_CONTINUES: entry, _ENDS: end})
    return builder


class _Untraced(Runnable[Any, Any]):
    """A function that has no span of its own in traces, inside that of its node.

    LangGraph gives this to a plain function, which cannot have an async form.
    """

    def __init__(
        self, name: str, run: Callable[[Any], Any], arun: Callable[[Any], Awaitable[Any]]
    ) -> None:
        self.name = name
        self._run = run
        self._arun = arun

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._run(input)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return await self._arun(input)


def _node(name: str, policy: Policy, steps: str | None) -> _Untraced:
    def node(state: Any) -> dict[str, Any]:
        answered = _answered(state, steps)
        return _update(answered, end_answer(answered, policy))

    async def anode(state: Any) -> dict[str, Any]:
        answered = _answered(state, steps)
        return _update(answered, await aend_answer(answered, policy))

    return _Untraced(name, node, anode)


def _add_edges(
    builder: StateGraph[Any, Any, Any, Any],
    start: str,
    route: Callable[[Any], str],
    ends: dict[Hashable, str],
) -> None:
    async def aroute(state: Any) -> str:
        return route(state)

    name = route.__name__
    builder.add_conditional_edges(start, _Untraced(name, route, aroute), ends)
    # LangGraph would let it read only the channels of the node, whose input may have no messages.
    edges = builder.branches[start]
    edges[name] = edges[name]._replace(input_schema=builder.state_schema)


def _answered(state: Any, steps: str | None) -> Answered:
    reading = read(state)
    last = reading.entries[-1].message if reading.entries else None
    steps_left = value_in(state, steps) if steps else None
    ended = Ended(
        # An agent that runs its calls itself may leave one to somebody else.
        by_model=not (isinstance(last, AIMessage) and last.tool_calls),
        steps_left=cast("int | None", steps_left),
    )
    return Answered(state, reading, heard(loop_in(state), reading), get_runtime(), ended)


def _update(answered: Answered, ending: Ending) -> dict[str, Any]:
    """Return the update of the node; it also notes the block of the last prompt."""
    messages = [*record_block(answered.reading), *ending.update.get("messages", [])]
    return {**ending.update, **({"messages": messages} if messages else {})}


# The labels of the edges in a picture of the graph.
_CALLS, _STOPS = "calls tools", "stops"
_CONTINUES, _ENDS = "items remain", "ends"


def _route(state: Any) -> str:
    last = next(reversed(messages_in(state)), None)
    return _CALLS if isinstance(last, AIMessage) and last.tool_calls else _STOPS


def _route_on(state: Any) -> str:
    return _ENDS if loop_in(state).get("outcome") else _CONTINUES
