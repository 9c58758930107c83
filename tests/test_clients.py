"""The list in the words of LangChain's clients, in a single channel."""

from typing import Any

import pytest
from hypothesis import given
from langchain.agents import create_agent
from langchain.agents.middleware.todo import Todo
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import TypeAdapter

from graphs.until_done import build_graph
from tests.strategies import operations, todo_lists
from tests.support import BEGIN, edit, items
from todo_tools import TodoItem, todos_from_messages
from todo_tools._operations import Operation, apply
from todo_tools.clients import ClientTodo, from_client_todos, to_client_todos
from todo_tools.gate import TodoGate
from todo_tools.middleware import TodoMiddleware
from todo_tools.state import ClientTodoState, fold_client_todos
from todo_tools.testing import ScriptedChatModel, call, turn

OURS = [
    *items("a"),
    *items("b", status="in_progress"),
    *items("c", status="completed"),
    *items("d", status="abandoned"),
]
THEIRS: list[ClientTodo] = [
    {"content": "a", "status": "pending"},
    {"content": "b", "status": "in_progress"},
    {"content": "c", "status": "completed"},
    {"content": "d (abandoned)", "status": "completed", "abandoned": True},
]


class TestWords:
    def test_each_status_has_one_of_theirs(self) -> None:
        """An abandoned item says so in its content."""
        assert list(map(dict, to_client_todos(OURS))) == THEIRS

    @given(todo_lists)
    def test_nothing_is_lost_on_the_way(self, todos: list[TodoItem]) -> None:
        """There and back."""
        assert from_client_todos(to_client_todos(todos)) == todos

    def test_a_list_in_our_words_is_read_as_well(self) -> None:
        """Item by item."""
        assert from_client_todos([*THEIRS[:1], *OURS[1:]]) == OURS

    def test_a_client_may_open_an_abandoned_item_again(self) -> None:
        """By its status alone."""
        opened = [{**THEIRS[3], "status": "pending"}]
        assert from_client_todos(opened) == items("d")

    @pytest.mark.parametrize(
        "wrong",
        ["a", [{"content": "a"}], [{"content": "", "status": "pending"}], [{"status": "x"}]],
    )
    def test_anything_else_is_refused(self, wrong: Any) -> None:
        """With the reason."""
        with pytest.raises(ValueError, match="todos"):
            from_client_todos(wrong)


class TestChannel:
    @given(todo_lists, operations)
    def test_it_folds_the_same_operations(
        self, todos: list[TodoItem], operation: Operation
    ) -> None:
        """Only the words differ."""
        folded = fold_client_todos(to_client_todos(todos), operation)
        assert folded == to_client_todos(apply(todos, operation))

    def test_whole_lists_are_taken_in_either_words(self) -> None:
        """From an application of ours, and from a client of theirs."""
        assert fold_client_todos([], OURS) == fold_client_todos([], THEIRS) == THEIRS
        assert fold_client_todos(to_client_todos(OURS), None) == to_client_todos(OURS)
        assert fold_client_todos(to_client_todos(OURS), []) == []


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
    """As deep-agents-ui shows `values.todos`: three groups by status, of contents."""
    todos = TypeAdapter(list[Todo]).validate_python(values["todos"], strict=True)
    return {
        status: [todo["content"] for todo in todos if todo["status"] == status]
        for status in ("pending", "in_progress", "completed")
    }


class TestThreads:
    """A real thread, seeded in our words, shown in theirs."""

    def check(self, final: dict[str, Any], model: ScriptedChatModel) -> None:
        assert what_a_client_reads(final) == {
            "pending": [],
            "in_progress": [],
            "completed": ["a (abandoned)", "b", "c", "d (abandoned)", "e"],
        }
        ours = from_client_todos(final["todos"])
        assert ours == todos_from_messages(final["messages"])
        assert "✗ [0] a\n● [1] b" in model.prompts[1][-1].text
        assert final["messages"][-1].text == "Done."

    def test_in_a_hand_built_graph(self, config: RunnableConfig) -> None:
        """With the loop and the view."""
        model = script()
        builder = build_graph(model, state_schema=ClientTodoState)
        graph = builder.compile(checkpointer=InMemorySaver())
        final = graph.invoke({**BEGIN, "todos": OURS}, config)
        self.check(final, model)

    async def test_in_create_agent(self, config: RunnableConfig) -> None:
        """As an option of the middleware; the gate reads the list as well."""
        model = script()
        middleware = TodoMiddleware(client_todos=True, gate=TodoGate())
        graph: Any = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
        begin = {**BEGIN, "todos": THEIRS}
        self.check(await graph.ainvoke(begin, config), model)

    def test_a_client_may_edit_the_list(self, config: RunnableConfig) -> None:
        """In its own words; ours stay one list with it."""
        model = ScriptedChatModel(script=["Nothing to do."])
        graph = build_graph(model, state_schema=ClientTodoState).compile(
            checkpointer=InMemorySaver()
        )
        graph.update_state(config, {"todos": [{"content": "x", "status": "completed"}]})
        assert graph.get_state(config).values["todos"] == [{"content": "x", "status": "completed"}]
        final = graph.invoke(BEGIN, config)
        assert final["todo_loop"]["outcome"] == "finished"
