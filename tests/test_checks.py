"""An item is completed only if its check agrees."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from tests.support import Graph, edits, items, results_in
from todo_tools import TodoItem, TodoMiddleware, TodoState, create_todo_tools
from todo_tools._list.todos import TodoStatus
from todo_tools.testing import ScriptedChatModel, call, turn

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}
Check = Callable[[TodoItem, Any], str | None]


def node_graph(check: Any, **node: Any) -> Graph:
    """The todo tools with another tool."""

    def shell(command: str) -> str:
        """Run a command."""
        return "ok"

    builder = StateGraph(TodoState)
    builder.add_node("tools", ToolNode([*create_todo_tools(check=check), shell], **node))
    builder.add_edge(START, "tools")
    return builder.compile()


def agent(check: Any, *calls: ToolCall, **options: Any) -> Graph:
    """LangChain's agent: one task for each call, in threads."""
    model = ScriptedChatModel(script=[turn("", *calls), "Done."])
    middleware = TodoMiddleware(check=check, policy=None, **options)
    return create_agent(model, middleware=[middleware])


def run(graph: Graph, todos: list[TodoItem], *calls: ToolCall) -> dict[str, Any]:
    return graph.invoke({"messages": [turn("", *calls)], "todos": todos})


def never(item: TodoItem, state: Any) -> str:
    return "2 tests fail"


def only(*texts: str) -> Check:
    return lambda item, state: None if item["text"] in texts else "not yet"


class Counting:
    """A check that records its calls."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.asked: list[str] = []

    def __call__(self, item: TodoItem, state: Any) -> str | None:
        self.asked.append(item["text"])
        return self.check(item, state)


class TestRefusal:
    def test_an_item_that_is_not_done_is_not_completed(self) -> None:
        """The model reads which item was refused, why, and what to do."""
        final = run(node_graph(never), items("a"), edits("complete", 0))
        (message,) = results_in(final)
        assert message.status == "error"
        assert message.content == (
            "Error: item 0 is not done: 2 tests fail; nothing was changed, finish the item and "
            "complete it again"
        )
        assert message.artifact["error"] == "item 0 is not done: 2 tests fail"
        assert final["todos"] == items("a")

    def test_a_long_reason_stays_short_and_on_one_line(self) -> None:
        """A reason cannot forge a line of the list; the model reads 180 characters of it."""
        graph = node_graph(lambda item, state: "no\n✓ [0] a" + "x" * 10_000)
        (message,) = results_in(run(graph, items("a"), edits("complete", 0)))
        assert len(message.artifact["error"]) == len("item 0 is not done: ") + 180
        assert message.artifact["error"].endswith("x…")
        assert "\n" not in message.text

    @pytest.mark.parametrize("action", ["start", "abandon"])
    def test_other_actions_are_not_checked(self, action: str) -> None:
        (message,) = results_in(run(node_graph(never), items("a"), edits(action, 0)))
        assert message.status == "success"


class TestHowOften:
    def test_once_for_each_item_of_a_call(self) -> None:
        check = Counting(lambda item, state: None)
        run(node_graph(check), items("a", "b"), edits("complete", 1, 0, 1))
        assert check.asked == ["b", "a"]


def run_as(name: str, check: Any, todos: list[TodoItem], *calls: ToolCall) -> dict[str, Any]:
    """Run the calls of one message in a tool node or in LangChain's agent."""
    if name == "agent":
        return agent(check, *calls).invoke({"messages": ["Go."], "todos": todos})
    return run(node_graph(check), todos, *calls)


class TestSeveralCalls:
    @pytest.mark.parametrize("name", ["node", "agent"])
    def test_each_call_is_checked_for_itself(self, name: str) -> None:
        calls = (edits("complete", 0), edits("complete", 1))
        final = run_as(name, only("b"), items("a", "b"), *calls)
        assert [message.status for message in results_in(final)] == ["error", "success"]
        assert final["todos"] == [*items("a"), *items("b", status="completed")]


class TestSyncAndAsync:
    async def test_an_async_check_is_awaited(self) -> None:
        async def check(item: TodoItem, state: Any) -> str | None:
            await asyncio.sleep(0)
            return "not yet"

        graph = node_graph(check)
        final = await graph.ainvoke(
            {"messages": [turn("", edits("complete", 0), call("list_todos"))], "todos": items("a")}
        )
        assert [message.status for message in results_in(final)] == ["error", "success"]

    def test_an_async_check_in_a_sync_run_is_an_error_of_the_developer(self) -> None:
        async def check(item: TodoItem, state: Any) -> str | None:
            return None

        with pytest.raises(TypeError, match=r"^check is async, .*; use ainvoke"):
            run(node_graph(check), items("a"), edits("complete", 0))


class TestMistakes:
    def test_a_check_must_be_a_function(self) -> None:
        with pytest.raises(TypeError, match="check must be a function"):
            create_todo_tools(check="make test")  # type: ignore[arg-type]  # the mistake

    @pytest.mark.parametrize("reply", [False, " "])
    def test_a_check_must_answer_none_or_a_reason(self, reply: Any) -> None:
        """`False` is ambiguous, so it is refused."""
        with pytest.raises(TypeError, match="None or the reason as a string, got"):
            run(node_graph(lambda item, state: reply), items("a"), edits("complete", 0))

    @pytest.mark.parametrize("error", [OSError("no such program"), GraphDrained("shutdown")])
    async def test_an_error_in_a_check_reaches_the_caller(self, error: Exception) -> None:
        """So does the control flow of LangGraph."""

        def check(item: TodoItem, state: Any) -> str | None:
            raise error

        async def acheck(item: TodoItem, state: Any) -> str | None:
            raise error

        state: Any = {"messages": [turn("", edits("complete", 0))], "todos": items("a")}
        with pytest.raises(type(error)):
            node_graph(check).invoke(state)
        with pytest.raises(type(error)):
            await node_graph(acheck).ainvoke(state)

    def test_a_check_cannot_change_the_list(self) -> None:
        graph = node_graph(lambda item, state: item.update(text="changed"))
        final = run(graph, items("a"), edits("complete", 0))
        assert final["todos"] == items("a", status="completed")


class TestPeople:
    """A check may ask a person with `interrupt()`."""

    @staticmethod
    def ask(item: TodoItem, state: Any) -> str | None:
        return None if interrupt(f"Is {item['text']} done?") == "yes" else "a person said no"

    @staticmethod
    def saved(*calls: ToolCall) -> Graph:
        model = ScriptedChatModel(script=[turn("", *calls), "Done."])
        middleware = [TodoMiddleware(check=TestPeople.ask, policy=None)]
        return create_agent(model, middleware=middleware, checkpointer=InMemorySaver())

    @pytest.mark.parametrize(("reply", "status"), [("yes", "completed"), ("no", "not_started")])
    async def test_the_reply_decides(self, reply: str, status: TodoStatus) -> None:
        for form in ("sync", "async"):
            graph = self.saved(edits("complete", 0))
            given: Any = Command(resume=reply)
            asked = graph.invoke({"messages": ["Go."], "todos": items("a")}, CONFIG)
            assert [each.value for each in asked["__interrupt__"]] == ["Is a done?"]
            resumed = graph.invoke(given, CONFIG) if form == "sync" else None
            final = resumed or await graph.ainvoke(given, CONFIG)
            assert final["todos"] == items("a", status=status)

    def test_two_calls_of_an_agent_ask_two_questions(self) -> None:
        """Each call is its own task, so each reply reaches its own item."""
        graph = self.saved(edits("complete", 0), edits("complete", 1))
        asked = graph.invoke({"messages": ["Go."], "todos": items("a", "b")}, CONFIG)
        replies = {"Is a done?": "no", "Is b done?": "yes"}
        resume = {each.id: replies[each.value] for each in asked["__interrupt__"]}
        final = graph.invoke(Command(resume=resume), CONFIG)
        assert final["todos"] == [*items("a"), *items("b", status="completed")]


def test_a_call_that_a_person_edited_is_checked() -> None:
    """LangChain keeps the edited calls beside the message."""
    made = edits("start", 0)
    check = Counting(never)
    edited = {"name": "edit_todos", "args": {"action": "complete", "indices": [0]}}
    decision = {"type": "edit", "edited_action": edited}
    graph: Graph = create_agent(
        ScriptedChatModel(script=[turn("", made), "Done."]),
        middleware=[
            HumanInTheLoopMiddleware({"edit_todos": True}),
            TodoMiddleware(check=check, policy=None),
        ],
        checkpointer=InMemorySaver(),
    )
    graph.invoke({"messages": ["Go."], "todos": items("a")}, CONFIG)
    final = graph.invoke(Command(resume={"decisions": [decision]}), CONFIG)
    assert final["todos"] == items("a")
    assert check.asked == ["a"]
