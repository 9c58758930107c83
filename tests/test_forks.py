"""Random threads: a fork at the start of an item has all of that moment, and changes nothing."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import StateSnapshot
from typing_extensions import override

from tests.conversations import look
from tests.support import Graph, edits, items
from todo_tools import (
    AutoContinue,
    DeltaTodoState,
    TodoItem,
    TodoMiddleware,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    item_starts,
    model_view,
)
from todo_tools.clients import ClientTodoState
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call

POLICY = AutoContinue(max_in_a_row=2, max_idle=None)
"""The loop sends an agent back that stops, so the counters change."""

CHANNELS = ("messages", "todos", "todo_loop")


@dataclass(frozen=True)
class Moment:
    """The state and the prompt of one call of the model."""

    state: dict[str, Any]
    prompt: list[AnyMessage]


@dataclass
class Recorder(AgentMiddleware[Any, Any, Any]):
    """A model that answers from a script, and notes the moment of each answer."""

    fold: bool
    script: Iterator[Sequence[ToolCall]] = field(default_factory=lambda: iter([]))
    """The calls of each answer; after the last one, it stops."""
    moments: dict[str, Moment] = field(default_factory=dict)

    def answer(self, state: Any, prompt: Sequence[AnyMessage]) -> AIMessage:
        known = {channel: deepcopy(state[channel]) for channel in CHANNELS if channel in state}
        planned, count = next(self.script, ()), len(todos_in(state))
        calls = [
            fitting(each, count, f"call {len(self.moments)} {n}") for n, each in enumerate(planned)
        ]
        answer = AIMessage(
            "Working." if calls else "I stop.", tool_calls=calls, id=f"answer {len(self.moments)}"
        )
        self.moments[str(answer.id)] = Moment(known, list(prompt))
        return answer

    def node(self, state: Any) -> dict[str, Any]:
        """The agent of a hand-built graph."""
        prompt = model_view(state, fold_finished=self.fold)
        return {"messages": [self.answer(state, prompt)]}

    @override
    def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> ModelResponse[Any]:
        return ModelResponse([self.answer(request.state, request.messages)])


def hand_built(state: Any, recorder: Recorder) -> Graph:
    """A hand-built graph with the loop."""
    builder = StateGraph(state)
    builder.add_node("agent", recorder.node)
    builder.add_node("tools", ToolNode([*create_todo_tools(), look]))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    add_auto_continue(builder, policy=POLICY)
    return builder.compile(checkpointer=InMemorySaver())


def with_middleware(state: Any, recorder: Recorder) -> Graph:
    """An agent of LangChain."""
    todos = TodoMiddleware(
        policy=POLICY,
        fold_finished=recorder.fold,
        todos_format="langchain" if state is ClientTodoState else "todo_tools",
    )
    schema: Any = DeltaTodoState if state is DeltaTodoState else None
    return create_agent(
        ScriptedChatModel(script=[]),
        [look],
        middleware=[todos, recorder],
        state_schema=schema,
        checkpointer=InMemorySaver(),
    )


BEGIN = "Begin."
"""The message that comes with the list of a thread."""

REFUSED = 99
"""An index that no list here has."""


def fitting(planned: ToolCall, count: int, name: str) -> ToolCall:
    """A call whose indices are in a list of so many items, except for those to be refused."""
    args = dict(planned["args"])
    if "indices" in args:
        args["indices"] = [at if at == REFUSED else at % max(count, 1) for at in args["indices"]]
    if "index" in args:
        args["index"] %= count + 1
    return {**planned, "args": args, "id": name}


def written(mode: str, index: int, *todos: str) -> ToolCall:
    return call("write_todos", mode=mode, index=index, todos=list(todos))


_texts = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3)
_indices = st.lists(st.sampled_from([*range(4), *range(4), REFUSED]), min_size=1, max_size=2)
_starts = st.builds(lambda indices: edits("start", *indices), _indices)
_finishes = st.builds(
    lambda action, indices: edits(action, *indices),
    st.sampled_from(["complete", "abandon"]),
    _indices,
)
_insertions = st.builds(
    lambda mode, index, texts: written(mode, index, *texts),
    st.sampled_from(["insert", "append"]),
    st.integers(0, 5),
    _texts,
)
_replacements = st.builds(
    lambda texts: written("replace", 0, "a", *texts), _texts | st.just(["b", "a"])
)
"""Each list has the text `a`, since the search ends where no text is of the list any more."""
_looks = st.builds(lambda path: call("look", path=path * 200), st.sampled_from("xy"))
_often = st.one_of(_starts, _starts, _finishes, _insertions, _looks)
_turns = st.lists(
    st.lists(_often, min_size=1, max_size=4) | _replacements.map(lambda made: [made]),
    min_size=1,
    max_size=4,
)
_OPENING = [
    [written("replace", 0, "a", "b", "a")],
    [edits("start", 1)],
    [edits("complete", 1), written("insert", 0, "b")],
    [edits("start", 2)],
]
"""The first calls of each thread: an item is started twice, and its index changes between."""


@dataclass(frozen=True)
class Action:
    """One run of the agent, which begins at a checkpoint or at the start of an item there."""

    place: int
    """The checkpoint; 0 is the newest one."""
    start: int | None
    """Which start; `None` is the checkpoint itself."""
    message: str | None
    """`None` makes the call of the model at the start of the item again."""
    turns: list[list[ToolCall]]


_places = st.just(0) | st.integers(0, 99)
_messages = st.sampled_from([None, "In another way."])
_forks = st.builds(Action, _places, st.integers(0, 9), _messages, _turns)
_runs = st.builds(Action, _places, st.none(), st.just("Go on."), _turns)
threads = st.builds(
    lambda first, others: [first, *others],
    st.builds(Action, st.just(0), st.integers(0, 9), _messages, _turns),  # there is a start
    st.lists(st.one_of(_forks, _forks, _runs), min_size=1, max_size=4),
)
SEED = [*items("a", status="in_progress"), *items("b")]
seeds: st.SearchStrategy[list[TodoItem]] = st.sampled_from([[], SEED])
_AGAIN = Action(0, 0, None, [[edits("start", 0)]])
_WITHOUT_SEED = Action(-1, None, "Go on.", [[written("append", 0, "a"), edits("start", 0)]])
"""A run from the oldest checkpoint, the one before the input with the list."""


@pytest.mark.slow
@settings(max_examples=20)  # each takes most of a second
@given(
    st.sampled_from([hand_built, with_middleware]),
    st.sampled_from([TodoState, DeltaTodoState, ClientTodoState]),
    st.booleans(),
    seeds,
    threads,
)
@example(hand_built, TodoState, False, SEED, [_AGAIN, _WITHOUT_SEED, _AGAIN])
def test_a_fork_is_as_it_was_then(
    build: Callable[..., Graph],
    state: Any,
    fold: bool,
    seed: list[TodoItem],
    actions: list[Action],
) -> None:
    """Its list, counters and prompt are those of the moment; old checkpoints stay as they are."""
    recorder = Recorder(fold)
    graph = build(state, recorder)
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
    recorder.script = iter(_OPENING[bool(seed) :])
    graph.invoke({"messages": [("user", BEGIN)], "todos": seed}, thread)
    known = checkpoints(graph, thread)
    forks, most = 0, 0
    for action in actions:
        place = list(known.values())[action.place % len(known)]
        found = item_starts(graph, place.config)
        assert_are_starts(found, started_by(place.values.get("messages", []), seed), recorder)
        most = max([most, *map(len, found.values())])
        starts = [start for each in found.values() for start in each]
        recorder.script = iter(action.turns)
        if action.start is None or not starts:
            graph.invoke({"messages": [("user", "Go on.")]}, place.config)
        else:
            fork(graph, starts[action.start % len(starts)], action.message, recorder)
            forks += 1
        now = checkpoints(graph, thread)
        assert {key: now[key] for key in known} == known
        known = now
    event(f"{forks} forks")
    event(f"an item with {most} starts")
    assert forks, "no example may be without a fork"


def checkpoints(graph: Graph, thread: RunnableConfig) -> dict[str, StateSnapshot]:
    """Every checkpoint of a thread."""
    return {str(each.config): each for each in graph.get_state_history(thread)}


def started_by(messages: Sequence[AnyMessage], seed: list[TodoItem]) -> dict[int, list[str]]:
    """The answers that started each item, from the arguments of the calls alone."""
    # A run from the checkpoint before the first input has no such list.
    has_seed = bool(messages) and messages[0].text == BEGIN
    todos: list[tuple[str, str]] = [(t["text"], t["status"]) for t in seed if has_seed]
    answer, first, begins, calls = "", "", True, dict[str | None, ToolCall]()
    starts, started = defaultdict[str, list[str]](list), set[str]()
    for message in messages:
        if isinstance(message, AIMessage):
            answer, calls = str(message.id), {each["id"]: each for each in message.tool_calls}
            first, begins = answer if begins else first, False
        elif isinstance(message, ToolMessage) and message.status == "success":
            args = calls[message.tool_call_id]["args"]
            after = after_call(todos, args)
            if "action" in args:
                changed = {new[0] for new, old in zip(after, todos, strict=True) if new != old}
                is_start = args["action"] == "start"
                at = answer if is_start else first
                for text in changed if is_start else changed - started:
                    starts[text] += [at] if at not in starts[text] else []
                started = started | changed if is_start else started - changed
                begins = begins or (bool(changed) and not is_start)
            elif "mode" in args:
                started = set() if args["mode"] == "replace" else started
                begins = True
            todos = after
    return {at: starts[text] for at, (text, _) in enumerate(todos) if starts.get(text)}


def after_call(todos: list[tuple[str, str]], args: dict[str, Any]) -> list[tuple[str, str]]:
    new = [(text, "not_started") for text in args.get("todos", [])]
    match args:
        case {"mode": "replace"}:
            return new
        case {"mode": "append"}:
            return [*todos, *new]
        case {"mode": "insert", "index": index}:
            return [*todos[:index], *new, *todos[index:]]
        case {"action": action, "indices": indices}:
            status = "in_progress" if action == "start" else action
            return [
                (text, status if at in indices else before)
                for at, (text, before) in enumerate(todos)
            ]
        case _:  # another tool
            return todos


def assert_are_starts(
    found: dict[int, list[StateSnapshot]], expected: dict[int, list[str]], recorder: Recorder
) -> None:
    """Each checkpoint is the last one before the answer."""
    assert {item: len(each) for item, each in found.items()} == {
        item: len(each) for item, each in expected.items()
    }
    for item, answers in expected.items():
        for start, answer in zip(found[item], answers, strict=True):
            assert start.next in [("agent",), ("model",)]
            assert_same(start.values, recorder.moments[answer].state)


def assert_same(values: Any, state: dict[str, Any]) -> None:
    assert todos_in(values) == todos_in(state)
    assert values.get("todo_loop") == state.get("todo_loop")
    assert values["messages"] == state["messages"]


def fork(graph: Graph, start: StateSnapshot, message: str | None, recorder: Recorder) -> None:
    """Run the graph from the start of an item, and compare the first call of the model."""
    moments = [
        m for m in recorder.moments.values() if m.state["messages"] == start.values["messages"]
    ]
    first = len(recorder.moments)
    given = {"messages": [HumanMessage(message, id=f"user {first}")]} if message else None
    graph.invoke(given, start.config)
    now = recorder.moments[f"answer {first}"]
    if given is None:
        assert_same(now.state, moments[0].state)
        assert now.prompt == moments[0].prompt
        return
    messages = [*moments[0].state["messages"], *given["messages"]]
    then = {**moments[0].state, "messages": messages}
    if start.next == ("model",):  # the middleware resets the counters before the first call
        counters = {"in_a_row": 0, "in_turn": 0, "idle": 0}
        assert now.state["todo_loop"].items() >= counters.items()
        then["todo_loop"] = now.state["todo_loop"]
    assert_same(now.state, then)
    assert now.prompt == model_view(then, fold_finished=recorder.fold)
