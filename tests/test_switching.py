"""Graphs with different states that use one thread one after the other."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import Overwrite

from graphs.until_done import build_graph
from tests.support import BEGIN, items
from todo_tools import DeltaTodoState, TodoItem, TodoMiddleware, TodoState
from todo_tools.clients import ClientTodoState, to_client_todos
from todo_tools.operations import append_items
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, turn

Build = Callable[[ScriptedChatModel, Any], Any]


class DeltaClientTodoState(ClientTodoState):
    """The line from the documentation of `ClientTodoState`."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


def hand_built(state: type[Any]) -> Build:
    return lambda model, saver: build_graph(model, state_schema=state).compile(checkpointer=saver)


def agent(middleware: Any) -> Build:
    return lambda model, saver: create_agent(model, middleware=[middleware], checkpointer=saver)


LANGCHAINS_OWN = "TodoListMiddleware"
VARIANTS: dict[str, Build] = {
    "TodoState": hand_built(TodoState),
    "ClientTodoState": hand_built(ClientTodoState),
    "DeltaTodoState": hand_built(DeltaTodoState),
    "DeltaClientTodoState": hand_built(DeltaClientTodoState),
    "TodoAgentState": agent(TodoMiddleware()),
    "ClientTodoAgentState": agent(TodoMiddleware(todos_format="langchain")),
    LANGCHAINS_OWN: agent(TodoListMiddleware()),
}
KEEP_CLIENT_FORMAT = {name for name in VARIANTS if "Client" in name} | {LANGCHAINS_OWN}


@contextmanager
def opened(path: Path, variant: str, *answers: AIMessage) -> Iterator[Any]:
    """The graph of a variant on a database, opened as by another process."""
    with SqliteSaver.from_conn_string(str(path / "threads.sqlite")) as saver:
        yield VARIANTS[variant](ScriptedChatModel(script=[*answers, "Done."]), saver)


def add_one(variant: str, todos: list[TodoItem], text: str) -> AIMessage:
    """A model's answers that add an item and complete it; LangChain's tool needs the whole list."""
    if variant == LANGCHAINS_OWN:
        done = [*todos, *items(text, status="completed")]
        return turn("", call("write_todos", todos=list(map(dict, to_client_todos(done)))))
    return turn(
        "",
        call("write_todos", mode="append", todos=[text]),
        call("edit_todos", action="complete", indices=[len(todos)]),
    )


@pytest.mark.parametrize(("first", "second"), list(combinations(VARIANTS, 2)))
def test_each_state_can_continue_the_thread_of_any_other(
    first: str, second: str, tmp_path: Path, config: RunnableConfig
) -> None:
    """The thread goes from the first state to the second, and back."""
    todos: list[TodoItem] = []
    messages = 0
    for number, variant in enumerate([first, second, first]):
        text = f"item {number}"
        with opened(tmp_path, variant, add_one(variant, todos, text)) as graph:
            final = graph.invoke(BEGIN, config)
        todos = [*todos, *items(text, status="completed")]
        assert todos_in(final) == todos
        shown = to_client_todos(todos) if variant in KEEP_CLIENT_FORMAT else todos
        assert final["todos"] == shown
        added = 4 if variant == LANGCHAINS_OWN else 5
        assert len(final["messages"]) == (messages := messages + added)


@pytest.mark.parametrize("second", [name for name in VARIANTS if name != LANGCHAINS_OWN])
@pytest.mark.parametrize("first", ["DeltaTodoState", "DeltaClientTodoState"])
def test_the_others_can_read_an_interrupted_run(
    first: str, second: str, tmp_path: Path, config: RunnableConfig
) -> None:
    """Its checkpoint does not have the whole list: LangGraph replays the changes."""
    with opened(tmp_path, first, add_one(first, [], "a")) as graph:
        graph.invoke(BEGIN, config, interrupt_after=["tools"])
    with opened(tmp_path, second) as graph:
        values = graph.get_state(config).values
    assert todos_in(values) == items("a", status="completed")
    assert len(values["messages"]) == 4


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != LANGCHAINS_OWN])
def test_an_overwrite_in_either_format_can_be_continued(
    variant: str, config: RunnableConfig
) -> None:
    """It bypasses the reducer; the next change converts the list."""
    for written in (items("a"), to_client_todos(items("a"))):
        graph = VARIANTS[variant](ScriptedChatModel(script=[]), InMemorySaver())
        for form in (Overwrite(written), {"__overwrite__": written}):
            graph.update_state(config, {"todos": form})
            values = graph.get_state(config).values
            assert values["todos"] == written
            assert todos_in(values) == items("a")
        graph.update_state(config, {"todos": append_items("b")})
        todos = items("a", "b")
        shown = to_client_todos(todos) if variant in KEEP_CLIENT_FORMAT else todos
        assert graph.get_state(config).values["todos"] == shown


def test_langchains_own_middleware_starts_without_the_list_of_a_delta_state(
    tmp_path: Path, config: RunnableConfig
) -> None:
    """Its channel has no reducer, so LangGraph replays nothing."""
    with opened(tmp_path, "DeltaTodoState", add_one("DeltaTodoState", [], "a")) as graph:
        graph.invoke(BEGIN, config)
    with opened(tmp_path, LANGCHAINS_OWN) as graph:
        assert todos_in(graph.get_state(config).values) == []
