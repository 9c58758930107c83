"""Add the loop to a graph that is built by hand: a node, and the edges to it and from it."""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, NamedTuple, TypeVar, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.channels import LastValue
from langgraph.graph import END, StateGraph
from langgraph.managed.is_last_step import IsLastStepManager, RemainingStepsManager
from langgraph.prebuilt import ToolNode
from langgraph.runtime import get_runtime
from typing_extensions import override

from todo_tools._loop.decision import Ended, heard
from todo_tools._loop.ending import Answered, Ending, aend_answer, end_answer
from todo_tools._loop.policy import AutoContinue, Policy, require_policy
from todo_tools._thread.notes import note_of
from todo_tools._thread.reading import read
from todo_tools._thread.state import loop_in, messages_in, value_in
from todo_tools._view.blocks import record_block

_Builder = StateGraph[Any, Any, Any, Any]
_Given = TypeVar("_Given", bound=_Builder)


def add_auto_continue(
    builder: _Given,
    *,
    agent: str = "agent",
    tools: str = "tools",
    policy: Policy = AutoContinue(),
    node: str = "auto_continue",
    end: str = END,
    entry: str | None = None,
) -> _Given:
    """Add the loop to a graph: the agent works until every todo is finished.

    While the model calls tools, a conditional edge leads to the tools; otherwise it leads to the
    node of the loop. That node sends the agent back to work while items are open, and then ends
    the run. The reason is in `state["todo_outcome"]` and is sent as a `todo_loop` event.

    Add the edge from the tools back to the agent, and then call this function last. The agent must
    have no conditional edge of its own and no `Command(goto=...)`: LangGraph would follow both.

    Args:
        builder: A graph whose state has the channels of `TodoState`.
        agent: The name of the node that calls the model.
        tools: The name of the node that runs its tool calls, or of one that reviews them before.
            If the agent runs its calls itself, give the same name as for `agent`.
        policy: The settings of the loop, or a function that takes LangGraph's `Runtime` and returns
            them; it is called at each decision.
        node: The name of the node to add.
        end: The name of the node to go to when the loop ends.
        entry: The name of the node to go to when the agent is sent back, if another one comes
            before the agent; `None` is the agent.

    Returns:
        The same builder.

    Raises:
        TypeError: `builder` is not a `StateGraph`, `policy` is neither an `AutoContinue` nor a
            plain function, or a node is not given by its name.
        ValueError: The state lacks a channel or a reducer, a node does not exist, the agent already
            chooses its next node, or the tools lead nowhere.

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
    _require_channels(builder)
    _require_nodes(builder, {"agent": agent, "tools": tools, "entry": entry, "end": end})
    _require_edges(builder, agent, tools)
    steps = _Steps(
        _managed_key(builder, RemainingStepsManager), _managed_key(builder, IsLastStepManager)
    )
    builder.add_node(node, _node(node, policy, steps))
    if tools == agent:  # when it ends, it has carried out its calls
        builder.add_edge(agent, node)
    else:
        ends = dict[Hashable, str]({_CALLS: tools, _STOPS: node})
        if any(steps):
            # A guard answers at the last step, and then there is none left for the loop.
            ends[_LAST] = end
        _add_edges(builder, agent, steps.route, ends)
    # An edge and not a Command, so that routing also works after update_state(as_node=node).
    _add_edges(builder, node, _route_on, {_CONTINUES: entry, _ENDS: end})
    return builder


class _Untraced(Runnable[Any, Any]):
    """A function without its own span in traces; it is part of its node's span."""

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


class _Steps(NamedTuple):
    """The keys of the state under which LangGraph gives the steps that are left."""

    remaining: str | None
    is_last: str | None

    def left(self, state: Any) -> int | None:
        """Return the number of steps until the recursion limit; `None` if it is unknown."""
        if self.remaining:
            return cast("int", value_in(state, self.remaining))
        return 1 if self.is_last and value_in(state, self.is_last) else None

    def route(self, state: Any) -> str:
        """Return where an answer leads."""
        route = _route(state)
        return _LAST if route == _STOPS and (self.left(state) or 2) <= 1 else route


def _node(name: str, policy: Policy, steps: _Steps) -> _Untraced:
    def node(state: Any) -> dict[str, Any]:
        answered = _answered(state, steps)
        return _update(answered, end_answer(answered, policy))

    async def anode(state: Any) -> dict[str, Any]:
        answered = _answered(state, steps)
        return _update(answered, await aend_answer(answered, policy))

    return _Untraced(name, node, anode)


def _add_edges(
    builder: _Builder,
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


def _answered(state: Any, steps: _Steps) -> Answered:
    reading = read(state)
    last = reading.entries[-1].message if reading.entries else None
    ended = Ended(
        # An agent that runs its calls itself may leave one to somebody else.
        by_model=not (isinstance(last, AIMessage) and last.tool_calls),
        steps_left=steps.left(state),
    )
    return Answered(state, reading, heard(loop_in(state), reading), get_runtime(), ended)


def _update(answered: Answered, ending: Ending) -> dict[str, Any]:
    """Return the update of the node; it also notes the block of the last prompt."""
    messages = [*record_block(answered.reading), *ending.update.get("messages", [])]
    return {**ending.update, **({"messages": messages} if messages else {})}


# The labels of the edges in a picture of the graph.
_CALLS, _STOPS = "calls tools", "stops"
_LAST = "no step is left"
_CONTINUES, _ENDS = "items remain", "ends"


def _route(state: Any) -> str:
    last = next(reversed(messages_in(state)), None)
    return _CALLS if isinstance(last, AIMessage) and last.tool_calls else _STOPS


def _route_on(state: Any) -> str:
    last = next(reversed(messages_in(state)), None)
    # After `update_state` on a thread that has ended, there is no outcome.
    is_over = isinstance(last, AIMessage) and "then" not in note_of(last)
    return _ENDS if is_over or value_in(state, "todo_outcome") else _CONTINUES


def _require_channels(builder: _Builder) -> None:
    """Refuse a state that cannot hold what the loop and the todo tools write."""
    # A node may bring other channels with its input, but the loop reads those of the graph.
    given = cast("dict[str, object]", builder.schemas[builder.state_schema])
    missing = [name for name in _CHANNELS if type(given.get(name)) in _PLAIN]
    if missing:
        lines = "".join(f"\n    {name}: {_CHANNELS[name]}" for name in missing)
        raise ValueError(
            f"the state of this graph lacks {', '.join(missing)}, or has no reducer for it; derive "
            f"it from todo_tools.TodoState, or add to your class:{lines}\nThese types are in "
            "todo_tools.state; a dataclass needs defaults, such as field(default_factory=list)"
        )


_PLAIN = (type(None), LastValue)
_CHANNELS = {
    "messages": "Annotated[list[AnyMessage], add_messages]",
    "todos": "TodoList",
    "todo_loop": "TodoLoop",
    "todo_outcome": "TodoOutcome",
}


def _require_nodes(builder: _Builder, names: Mapping[str, str]) -> None:
    """Refuse the name of a node that does not exist."""
    for parameter, name in names.items():
        if name not in builder.nodes and (parameter, name) != ("end", END):
            present = " or ".join(f"{parameter}={each!r}" for each in builder.nodes)
            raise ValueError(
                f"there is no node {name!r}; give {present or 'it to the graph first'}"
            )


def _require_edges(builder: _Builder, agent: str, tools: str) -> None:
    """Refuse an agent that chooses its next node, and tools that lead nowhere."""
    node = builder.nodes[agent]
    if (agent, tools) in builder.edges or builder.branches.get(agent) or node.ends:
        raise ValueError(
            f"the node {agent!r} already has an edge or a command to another node, and LangGraph "
            "would follow it beside the loop; remove it, and name the node that takes its calls as "
            "tools, or the one after the loop as end"
        )
    starts = {start for start, _ in builder.edges}
    is_tool_node = isinstance(builder.nodes[tools].runnable, ToolNode)
    if is_tool_node and tools not in starts and not builder.branches.get(tools):
        raise ValueError(
            f"no edge leads from {tools!r} back to the agent, so the run would end after the first "
            f"tool call; add builder.add_edge({tools!r}, {agent!r}) first"
        )


def _managed_key(builder: _Builder, manager: type) -> str | None:
    """Return the key of a value of LangGraph. A key of the same name may be another one."""
    managed = cast("dict[str, object]", builder.managed)
    return next((key for key, kind in managed.items() if kind is manager), None)
