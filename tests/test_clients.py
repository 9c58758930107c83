"""The list in the format of LangChain's clients, in a single channel."""

from typing import Any

import pytest
from deepagents import create_deep_agent
from hypothesis import given
from langchain.agents import create_agent
from langchain.agents.middleware.todo import Todo
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import TypeAdapter

from graphs.until_done import build_graph
from tests.prompt_reader import read_list
from tests.strategies import operations, todo_lists
from tests.support import BEGIN, edit, items, plan, results_in
from todo_tools import (
    AutoContinue,
    TodoItem,
    TodoState,
    todos_from_messages,
)
from todo_tools._list.formats import from_client_todos
from todo_tools._thread.channels import fold_client_todos, fold_todos
from todo_tools.clients import ClientTodoState, to_client_todos
from todo_tools.middleware import TodoGateMiddleware, TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

OURS = [
    *items("a"),
    *items("b", status="in_progress"),
    *items("c", status="completed"),
    *items("d", status="abandoned"),
]
THEIRS: list[Any] = [
    {"content": "a", "status": "pending"},
    {"content": "b", "status": "in_progress"},
    {"content": "c", "status": "completed"},
    {"content": "d (abandoned)", "status": "completed", "abandoned": True},
]


class TestConversion:
    def test_each_status_becomes_a_client_status(self) -> None:
        """The content of an abandoned item says that it was abandoned."""
        assert list(map(dict, to_client_todos(OURS))) == THEIRS

    @given(todo_lists)
    def test_converting_there_and_back_gives_the_same_list(self, todos: list[TodoItem]) -> None:
        assert from_client_todos(to_client_todos(todos)) == todos

    def test_a_client_may_open_an_abandoned_item_again(self) -> None:
        """Only its new status counts."""
        opened = [{**THEIRS[3], "status": "pending"}]
        assert from_client_todos(opened) == items("d")

    def test_an_item_without_a_text_gets_one(self) -> None:
        """LangChain's own middleware stores what its model wrote; so no index moves."""
        assert from_client_todos([{"content": " ", "status": "pending"}]) == items("(no text)")
        emptied = {**THEIRS[3], "content": " (abandoned)"}
        assert from_client_todos([emptied]) == items("(no text)", status="abandoned")

    @pytest.mark.parametrize(
        "wrong",
        ["a", 5, [{"content": "a"}], [{"text": "", "status": "completed"}], [{"status": "x"}]],
    )
    def test_anything_else_is_refused(self, wrong: Any) -> None:
        with pytest.raises(ValueError, match="todos"):
            from_client_todos(wrong)


@pytest.mark.parametrize("wrong", ["json", True])
def test_a_format_that_does_not_exist_is_refused(wrong: Any) -> None:
    allowed = "todos_format must be 'todo_tools' or 'langchain'"
    with pytest.raises(ValueError, match=f"{allowed}, got {wrong!r}"):
        TodoMiddleware(todos_format=wrong)


class TestChannel:
    @given(todo_lists, operations)
    def test_it_folds_the_same_operations(self, todos: list[TodoItem], operation: Any) -> None:
        """Only the format of the stored list differs."""
        folded = fold_client_todos(to_client_todos(todos), operation)
        assert folded == to_client_todos(fold_todos(todos, operation))


def script() -> ScriptedChatModel:
    return ScriptedChatModel(
        script=[
            turn(
                "",
                call("write_todos", mode="append", todos=["e"]),
                call("edit_todos", action="abandon", indices=[0]),
            ),
            "Too early.",
            edit("complete", 1, 4),
            "Done.",
        ]
    )


def what_a_client_reads(values: dict[str, Any]) -> dict[str, list[str]]:
    """The view of deep-agents-ui on `values.todos`: the contents in three groups by status."""
    todos = TypeAdapter(list[Todo]).validate_python(values["todos"], strict=True)
    return {
        status: [todo["content"] for todo in todos if todo["status"] == status]
        for status in ("pending", "in_progress", "completed")
    }


LANGCHAIN: Any = "langchain"
FORMATS: list[Any] = ["todo_tools", LANGCHAIN]


def hand_built(model: ScriptedChatModel, policy: AutoContinue, todos_format: Any) -> Any:
    state = ClientTodoState if todos_format == LANGCHAIN else TodoState
    builder = build_graph(model, policy=policy, state_schema=state)
    return builder.compile(checkpointer=InMemorySaver())


def agent(model: ScriptedChatModel, policy: AutoContinue, todos_format: Any) -> Any:
    middleware = TodoMiddleware(policy=policy, todos_format=todos_format)
    return create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())


def deep_agent(model: ScriptedChatModel, policy: AutoContinue, todos_format: Any) -> Any:
    middleware = TodoMiddleware(policy=policy, todos_format=todos_format)
    return create_deep_agent(model, middleware=[middleware], checkpointer=InMemorySaver())


class TestOneFormat:
    """Only the list in the state has the client's format."""

    @pytest.mark.parametrize("build", [hand_built, agent, deep_agent])
    @pytest.mark.parametrize("todos_format", FORMATS)
    def test_events_artifacts_and_questions_have_this_librarys_format(
        self, build: Any, todos_format: Any, config: RunnableConfig
    ) -> None:
        model = ScriptedChatModel(script=[plan("a"), "Too early."])
        graph = build(model, AutoContinue(ask=True), todos_format)
        events = list(graph.stream(BEGIN, config, stream_mode="custom"))
        lists = [event for event in events if event["type"] == "todos"]
        state = graph.get_state(config)
        assert lists[-1]["todos"] == items("a")
        assert results_in(state.values)[0].artifact["todos"] == items("a")
        assert state.interrupts[0].value["todos"] == items("a")
        stored = to_client_todos(items("a")) if todos_format == LANGCHAIN else items("a")
        assert state.values["todos"] == stored


class TestThreads:
    """A thread that is seeded in this package's format and read by a client."""

    async def test_in_create_agent(self, config: RunnableConfig) -> None:
        """It is an option of the middleware, and the gate can read the list."""
        model = script()
        middleware = [TodoGateMiddleware(), TodoMiddleware(todos_format=LANGCHAIN)]
        graph: Any = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
        final = await graph.ainvoke({**BEGIN, "todos": THEIRS}, config)
        assert what_a_client_reads(final) == {
            "pending": [],
            "in_progress": [],
            "completed": ["a (abandoned)", "b", "c", "d (abandoned)", "e"],
        }
        ours = from_client_todos(final["todos"])
        assert ours == todos_from_messages(final["messages"])
        told = read_list(model.prompts[1])
        assert told[:2] == [("a", "abandoned"), ("b", "in_progress")]
        assert final["messages"][-1].text == "Done."
