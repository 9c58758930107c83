"""The loop in a hand-built graph: a conditional edge, and the node behind it."""

import asyncio
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.errors import GraphDrained
from langgraph.graph import END, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, interrupt

from todo_tools.continuation import AutoContinue, Decision, decide, read_answer
from todo_tools.events import continue_question, countdown_event
from todo_tools.models import TodoItem
from todo_tools.state import TodoState, messages_in, todos_in
from todo_tools.transcript import injected

_TICKS_PER_SECOND = 10


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
    loop = _Loop(policy, agent=agent, end=end)
    runnable = RunnableLambda(loop.run, loop.arun, name=node)
    builder.add_node(node, runnable, destinations=(agent, end))
    builder.add_conditional_edges(agent, _route(tools, node), [tools, node])
    return builder


def _route(tools: str, otherwise: str) -> Callable[[Any], str]:
    def route(state: Any) -> str:
        last = next(reversed(messages_in(state)), None)
        return tools if isinstance(last, AIMessage) and last.tool_calls else otherwise

    return route


class _Loop:
    """The node: carries a decision out, waiting or asking before a continuation."""

    def __init__(self, policy: AutoContinue, *, agent: str, end: str) -> None:
        self.policy = policy
        self.agent = agent
        self.end = end

    def run(self, state: Any) -> Command[str]:
        pauses = self._steps(state)
        while True:
            try:
                pause = next(pauses)
            except StopIteration as done:
                return cast("Command[str]", done.value)
            time.sleep(pause)

    async def arun(self, state: Any) -> Command[str]:
        pauses = self._steps(state)
        while True:
            try:
                pause = next(pauses)
            except StopIteration as done:
                return cast("Command[str]", done.value)
            await asyncio.sleep(pause)

    def _steps(self, state: Any) -> Generator[float, None, Command[str]]:
        """The node in both its forms: yields the seconds to sleep, returns where to go."""
        decision = decide(state, self.policy)
        if decision.outcome:
            return self._carry_out(decision)
        if self.policy.ask:
            return self._ask(decision, todos_in(state))
        yield from self._grace_period()
        return self._carry_out(decision)

    def _grace_period(self) -> Generator[float, None, None]:
        """Count down, each second an event.

        Raises:
            GraphDrained: The run was asked to drain. Raised here rather than at the end of the
                step, so that no prompt is sent and the thread stays at the end of the agent's turn.
        """
        runtime = get_runtime()
        for second in range(self.policy.grace_seconds, 0, -1):
            runtime.stream_writer(countdown_event(second))
            for _ in range(_TICKS_PER_SECOND):
                if runtime.control and runtime.control.drain_requested:
                    raise GraphDrained(runtime.control.drain_reason or "shutdown")
                yield 1 / _TICKS_PER_SECOND

    def _ask(self, decision: Decision, todos: list[TodoItem]) -> Command[str]:
        question = continue_question(todos)
        # Asked again rather than refused: an error would leave the thread with the wrong answer.
        while (answer := read_answer(interrupt(question))) is None:
            question = continue_question(todos, repeated=True)
        if isinstance(answer, str):
            return Command(goto=self.agent, update={"messages": [HumanMessage(answer)]})
        return self._carry_out(decision if answer else replace(decision, outcome="declined"))

    def _carry_out(self, decision: Decision) -> Command[str]:
        get_runtime().stream_writer(decision.event)
        update: dict[str, Any] = {"todo_loop": decision.next_loop}
        if decision.outcome:
            return Command(goto=self.end, update=update)
        return Command(goto=self.agent, update={**update, "messages": [injected(decision.prompt)]})
