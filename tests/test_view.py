"""Prompts of random threads: each begins with all earlier ones, and tells the list."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple, cast, get_args
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt

from tests.prompt_reader import read_list
from tests.strategies import edit_calls, todo_lists, write_calls
from tests.support import items
from todo_tools import (
    AutoContinue,
    DeltaTodoState,
    TodoItem,
    TodoMiddleware,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    model_view,
)
from todo_tools._list.todos import TodoStatus
from todo_tools.clients import ClientTodoState
from todo_tools.rendering.lowlevel import one_line
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_from_user

USER = HumanMessage("Begin.", id="user")


@tool
def work(size: int) -> str:
    """Work, with a result of `size` characters."""
    return "x" * size


@tool
def ask_first() -> str:
    """Ask a person before the work."""
    return str(interrupt("May I?"))


REFUSED = "refused-"
"""The beginning of the ids of calls that are refused while they run."""


def refusing(request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
    """Refuse some calls, as a `wrap_tool_call` of the application does."""
    made = request.tool_call
    if not str(made["id"]).startswith(REFUSED):
        return handler(request)
    return ToolMessage("Not now.", name=made["name"], tool_call_id=made["id"], status="error")


POLICY = AutoContinue(max_in_turn=3, max_idle=None)
UNSTORED = replace(POLICY, store=False)
See = Callable[[Any], None]
"""Takes the state of each model call."""
Build = Callable[[ScriptedChatModel, See], Any]


def hand_built(
    model: ScriptedChatModel,
    see: See = lambda _: None,
    state_schema: type[Any] = TodoState,
    policy: AutoContinue = POLICY,
) -> Any:
    """A hand-built graph with the loop, whose tools a wrapper may refuse."""

    def agent(state: Any) -> dict[str, Any]:
        see(state)
        return {"messages": [model.invoke(model_view(state))]}

    tools = ToolNode([*create_todo_tools(), work, ask_first], wrap_tool_call=refusing)
    builder = StateGraph(state_schema).add_node("agent", agent).add_node("tools", tools)
    builder.add_edge(START, "agent").add_edge("tools", "agent")
    return add_auto_continue(builder, policy=policy).compile(checkpointer=InMemorySaver())


class Watching(AgentMiddleware):
    """Refuses some calls, and sees the state of each model call."""

    def __init__(self, see: See) -> None:
        super().__init__()
        self.see = see

    def wrap_model_call(self, request: Any, handler: Callable[..., Any]) -> Any:
        self.see(request.state)
        return handler(request)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Any:
        return refusing(request, handler)


class Trimming(AgentMiddleware):
    """Keeps only the newest messages once there are more than eight."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        messages = state["messages"]
        if len(messages) <= 8 or not isinstance(messages[-1], ToolMessage):
            return None
        return {"messages": [RemoveMessage(id=message.id) for message in messages[:-2]]}


def with_middleware(
    model: ScriptedChatModel,
    see: See,
    *others: AgentMiddleware,
    policy: AutoContinue = POLICY,
    todos_format: Any = "todo_tools",
) -> Any:
    """An agent with the middleware, some of whose calls another middleware refuses."""
    todos = TodoMiddleware(policy=policy, todos_format=todos_format)
    middleware = [*others, Watching(see), todos]
    tools = [work, ask_first]
    return create_agent(model, tools, middleware=middleware, checkpointer=InMemorySaver())


def with_trimming(model: ScriptedChatModel, see: See) -> Any:
    return with_middleware(model, see, Trimming())


HAND_BUILT: dict[str, Build] = {
    "plain": hand_built,
    "delta": partial(hand_built, state_schema=DeltaTodoState, policy=UNSTORED),
    "client": partial(hand_built, state_schema=ClientTodoState),
}
AGENTS: dict[str, Build] = {
    "agent": with_middleware,
    "client agent": partial(with_middleware, todos_format="langchain", policy=UNSTORED),
}
BUILDS = HAND_BUILT | AGENTS


def new_thread() -> RunnableConfig:
    return {"configurable": {"thread_id": str(uuid4())}}


@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS)
def test_a_refused_insertion_does_not_move_a_status_to_another_item(build: Build) -> None:
    """The call beside it meant the new item, so nothing changes, and later prompts show that."""
    refused = {**call("write_todos", mode="insert", index=0, todos=["new"]), "id": f"{REFUSED}1"}
    together = turn(
        "", cast("ToolCall", refused), call("edit_todos", action="complete", indices=[0])
    )
    model = ScriptedChatModel(script=[together, *["Over."] * 4])
    graph, config = build(model, lambda _: None), new_thread()
    final = graph.invoke({"messages": [USER], "todos": items("a", "b")}, config)
    assert todos_in(final) == items("a", "b")
    assert [read_list(prompt) for prompt in model.prompts] == [
        [("a", "not_started"), ("b", "not_started")]
    ] * len(model.prompts)


one_call = st.one_of(
    st.builds(lambda args: ("write_todos", args), write_calls),
    st.builds(lambda args: ("edit_todos", args), edit_calls),
    st.builds(
        lambda action, indices: ("edit_todos", {"action": action, "indices": indices}),
        st.sampled_from(["start", "complete", "abandon"]),
        st.lists(st.integers(0, 3), min_size=1, max_size=2),
    ),
    st.builds(
        lambda mode, texts: (
            "write_todos",
            {"mode": mode, "index": 0, "todos": [{"text": text} for text in texts]},
        ),
        st.sampled_from(["replace", "append", "insert"]),
        st.lists(st.sampled_from(["a", "b\nc", "d"]), max_size=3),
    ),
    st.just(("list_todos", {})),
    st.builds(lambda size: ("work", {"size": size}), st.sampled_from([1, 3000])),
    st.just(("ask_first", {})),
)


def answer_of(calls: Sequence[tuple[tuple[str, dict[str, Any]], bool]]) -> AIMessage:
    made = [(call(name, **args), refused) for (name, args), refused in calls]
    return turn(
        "",
        *(
            cast("ToolCall", {**each, "id": f"{REFUSED}{each['id']}"}) if refused else each
            for each, refused in made
        ),
    )


answers = st.one_of(
    st.just(turn("I stop here.")),
    st.lists(
        st.tuples(one_call, st.sampled_from([False, False, True])), min_size=1, max_size=3
    ).map(answer_of),
)


Edit = list[TodoItem] | TodoStatus | None
"""A whole list, a status for all items of the list, or no edit."""


class Run(NamedTuple):
    """One run of a thread."""

    seed: Edit
    """What the application writes before it."""
    script: list[AIMessage]
    """The model's answers."""
    edit: Edit
    """What a person writes while the run is paused."""
    begins: str
    """At the `end` of the thread, or with a `message` at a checkpoint, or a `replay` from it."""
    checkpoint: int


edits: st.SearchStrategy[Edit] = st.none() | todo_lists | st.sampled_from(get_args(TodoStatus))
runs = st.lists(
    st.builds(
        Run,
        seed=edits,
        script=st.lists(answers, min_size=1, max_size=6),
        edit=edits,
        begins=st.sampled_from(["end", "end", "message", "replay"]),
        checkpoint=st.integers(0, 30),
    ),
    min_size=1,
    max_size=3,
)


class ModelCall(NamedTuple):
    """What a model was sent, and the list of the state at that call."""

    prompt: list[BaseMessage]
    todos: list[TodoItem]


@cache  # cached, because building a graph takes as long as running it
def built(build: Build) -> tuple[ScriptedChatModel, Any, list[Any]]:
    model = ScriptedChatModel(script=[])
    states: list[Any] = []
    return model, build(model, states.append), states


class Watched:
    """A thread whose model records what it was sent for each of its answers."""

    def __init__(self, build: Build) -> None:
        self.script: list[AIMessage] = []
        self.calls: dict[str, ModelCall] = {}
        self.model, self.graph, self.states = built(build)
        self.model.script = self._answer
        self.config = new_thread()

    def _answer(self, prompt: list[BaseMessage]) -> AIMessage:
        answer_id = str(uuid4())
        self.calls[answer_id] = ModelCall(prompt, todos_in(self.states[-1]))
        answer = self.script.pop(0) if self.script else turn("Over.")
        return answer.model_copy(update={"id": answer_id})

    def run(self, run: Run, *, pauses: bool, ends: bool) -> None:
        """Carry out a run; with `ends`, a message forks the thread only where a run had ended."""
        self.script = list(run.script)
        place = self._place(run, ends=ends)
        request = {"messages": [HumanMessage("Begin.")], "todos": self._edited(run.seed, place)}
        self.graph.invoke(None if run.begins == "replay" and self.calls else request, place)
        edit = run.edit if pauses else None
        while waiting := self.graph.get_state(self.config).interrupts:
            if edit is not None:
                self.graph.update_state(self.config, {"todos": self._edited(edit, self.config)})
                edit = None
            answers = {each.id: "Yes." for each in waiting}
            self.graph.invoke(Command(resume=answers), self.config)

    def _edited(self, edit: Edit, place: RunnableConfig) -> list[TodoItem] | None:
        if not isinstance(edit, str):
            return edit
        todos = todos_in(self.graph.get_state(place).values)
        return items(*(todo["text"] for todo in todos), status=edit)

    def _place(self, run: Run, *, ends: bool) -> RunnableConfig:
        if run.begins == "end" or not self.calls:
            return self.config
        places = [
            snapshot.config
            for snapshot in self.graph.get_state_history(self.config)
            if not (ends and run.begins == "message" and snapshot.next)
        ]
        return places[run.checkpoint % len(places)] if places else self.config

    def check_prefixes(self) -> None:
        """Each prompt begins with the whole prompt of the answer before it, and that answer."""
        for prompt, _ in self.calls.values():
            answers = [message for message in prompt if isinstance(message, AIMessage)]
            if answers:
                earlier = self.calls[str(answers[-1].id)].prompt
                assert prompt[: len(earlier)] == earlier
                assert prompt[len(earlier)] == answers[-1]

    def check_reader(self) -> None:
        """Each prompt tells every item of the list, its status and its index."""
        for prompt, todos in self.calls.values():
            if not is_over(prompt, todos):
                told = [(one_line(todo["text"]), todo["status"]) for todo in todos]
                assert read_list(prompt) == told


def is_over(prompt: Sequence[BaseMessage], todos: Sequence[TodoItem]) -> bool:
    """Whether the list was finished before the user's last message, so no prompt needs it.

    If the prompt shows a list, it has to show this one.
    """
    if read_list(prompt):
        return False
    asked = [at for at, message in enumerate(prompt) if is_from_user(message)]
    since = prompt[asked[-1] if asked else 0 :]
    changed = [
        message.name in ("write_todos", "edit_todos") and message.status == "success"
        for message in since
        if isinstance(message, ToolMessage)
    ]
    finished = all(todo["status"] in ("completed", "abandoned") for todo in todos)
    return bool(todos) and finished and not any(changed)


def watched(
    build: Build, script: Sequence[Run], *, pauses: bool = True, ends: bool = False
) -> Watched:
    thread = Watched(build)
    for run in script:
        thread.run(run, pauses=pauses, ends=ends)
    return thread


@given(st.sampled_from(list(HAND_BUILT)), runs)
def test_in_a_hand_built_graph_a_prompt_begins_with_all_earlier_ones(
    state: str, script: list[Run]
) -> None:
    """This holds whatever the model and the application write, and on every branch.

    Nothing records what was sent before the tools or the loop run. So it does not hold for an edit
    during a pause, or for a message that interrupts a run.
    """
    thread = watched(HAND_BUILT[state], script, pauses=False, ends=True)
    thread.check_prefixes()
    thread.check_reader()


@given(st.sampled_from(list(AGENTS)), runs)
def test_with_the_middleware_a_prompt_begins_with_all_earlier_ones(
    agent: str, script: list[Run]
) -> None:
    """This holds even if the list is edited during a pause, or a message interrupts a run."""
    thread = watched(AGENTS[agent], script)
    thread.check_prefixes()
    thread.check_reader()


@settings(max_examples=50)
@given(st.sampled_from(list(HAND_BUILT)), runs)
def test_an_edit_during_a_pause_of_a_hand_built_graph_is_shown(
    state: str, script: list[Run]
) -> None:
    """The prompt may change at the place of the list, because nothing records what was sent."""
    watched(HAND_BUILT[state], script).check_reader()


@settings(max_examples=50)
@given(runs)
def test_after_trimming_the_list_is_still_shown(script: list[Run]) -> None:
    """A block with the list replaces the removed results."""
    watched(with_trimming, script).check_reader()
