"""Random conversations with an agent, and the prompts of its model."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.tool import ToolCall, invalid_tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph

from graphs.until_done import build_graph
from tests.support import items
from todo_tools import AutoContinue, TodoItem, TodoMiddleware
from todo_tools._thread.notes import as_read
from todo_tools.testing import ScriptedChatModel, call

Agent = CompiledStateGraph[Any, Any, Any, Any]
PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="


class CutOffError(Exception):
    """Ends a run in the middle of a tool call, like a cancellation."""


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"the content of {path}"


@tool
def describe(path: str) -> list[dict[str, Any]]:
    """Describe a file, in blocks."""
    return [{"type": "text", "text": path}, {"type": "text", "text": "is a file"}]


@tool
def cut_off() -> str:
    """End the run."""
    raise CutOffError


TOOLS = [look, describe, cut_off]
POLICY = AutoContinue(max_in_a_row=2, max_idle=None)


def hand_built(model: ScriptedChatModel, policy: AutoContinue = POLICY) -> Agent:
    """A hand-built graph with the loop and `model_view`."""
    graph = build_graph(model, TOOLS, policy=policy)
    return graph.compile(checkpointer=InMemorySaver())


def with_middleware(model: ScriptedChatModel, policy: AutoContinue = POLICY) -> Agent:
    """A `create_agent` agent with the middleware."""
    return create_agent(
        model,
        TOOLS,
        middleware=[TodoMiddleware(policy=policy)],
        checkpointer=InMemorySaver(),
    )


@dataclass(frozen=True)
class Run:
    """The input of one run of the agent."""

    message: HumanMessage
    todos: list[TodoItem] | None = None
    """A list that the caller passes with the message."""


@dataclass(frozen=True)
class Conversation:
    """The user's messages, and the model's answers in all runs."""

    runs: list[Run]
    turns: list[AIMessage]


@dataclass(frozen=True)
class ModelCall:
    """One call of the model."""

    prompt: list[BaseMessage]
    """The prompt without the system prompt."""
    history: list[AnyMessage]
    """The history that was stored at that time, without the loop's notices for people."""


def model_calls(build: Callable[[ScriptedChatModel], Agent], of: Conversation) -> list[ModelCall]:
    """Hold a conversation, and return every call of the model."""
    turns = iter(of.turns)
    model = ScriptedChatModel(script=lambda _: next(turns, "That is all."))
    graph = build(model)
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    for run in of.runs:
        given = {"messages": [run.message]}
        with suppress(CutOffError):
            graph.invoke(given if run.todos is None else {**given, "todos": run.todos}, config)
    stored = [as_read(message) for message in graph.get_state(config).values["messages"]]
    answers = [at for at, message in enumerate(stored) if isinstance(message, AIMessage)]
    return [
        ModelCall([m for m in prompt if not isinstance(m, SystemMessage)], stored[:at])
        for prompt, at in zip(model.prompts, answers, strict=True)
    ]


_texts = st.sampled_from(["a", "b", "c", "d"])
_contents = st.one_of(
    st.just("Go on."),
    st.just([{"type": "text", "text": "Go on."}]),
    st.just(
        [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    ),
)
_runs = st.builds(
    Run,
    message=st.builds(HumanMessage, _contents),
    todos=st.none() | st.lists(_texts, max_size=3).map(lambda texts: items(*texts)),
)


def _calls_of(name: str, **args: st.SearchStrategy[Any]) -> st.SearchStrategy[ToolCall]:
    return st.builds(call, st.just(name), **args)


_todo_calls = st.one_of(
    _calls_of(
        "write_todos",
        mode=st.sampled_from(["replace", "append", "unknown"]),
        todos=st.lists(_texts, max_size=4),
    ),
    _calls_of(
        "edit_todos",
        action=st.sampled_from(["start", "complete", "abandon"]),
        indices=st.lists(st.integers(0, 4), max_size=3),
    ),
    _calls_of("list_todos"),
)
_other_calls = _calls_of("look", path=_texts) | _calls_of("describe", path=_texts)
_said = st.sampled_from(["Working.", "", [{"type": "text", "text": "Working."}]])


def _turns_with(calls: st.SearchStrategy[ToolCall]) -> st.SearchStrategy[AIMessage]:
    return st.builds(AIMessage, _said, tool_calls=st.lists(calls, min_size=1, max_size=3))


_answers = st.builds(
    AIMessage, st.sampled_from(["I stop here.", [{"type": "text", "text": "I stop here."}]])
)
_working = _turns_with(_todo_calls | _other_calls)
_cut_off = _turns_with(_todo_calls | _other_calls | _calls_of("cut_off"))


_broken_calls = st.builds(
    lambda path: invalid_tool_call(name="look", args=path, id=str(call("look")["id"])), _texts
)
_broken = st.builds(
    AIMessage, _said, invalid_tool_calls=st.lists(_broken_calls, min_size=1, max_size=2)
)


def _conversations(turns: st.SearchStrategy[AIMessage]) -> st.SearchStrategy[Conversation]:
    return st.builds(
        Conversation,
        runs=st.lists(_runs, min_size=1, max_size=3),
        turns=st.lists(turns, min_size=1, max_size=8),
    )


whole_conversations = _conversations(_working | _answers)
"""Every call has a result, and user messages come after answers."""

conversations = _conversations(_working | _answers | _cut_off | _broken)
"""Some runs end in the middle of a tool call, and some arguments are not JSON."""
