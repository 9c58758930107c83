"""The gate, which refuses other tools until an item is in progress."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from tests.support import BEGIN, Graph, items, results_in
from todo_tools import TodoGate, TodoState, create_todo_tools
from todo_tools.middleware import TodoGateMiddleware, TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn


@tool
def dig(place: str) -> str:
    """Dig a hole."""
    return f"A hole in {place}."


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place} looks fine."


def gated(gate: TodoGate) -> Graph:
    node = ToolNode(
        [*create_todo_tools(), dig, look],
        wrap_tool_call=gate.wrap_tool_call,
        awrap_tool_call=gate.awrap_tool_call,
    )
    builder = StateGraph(TodoState)
    builder.add_node("tools", node)
    builder.add_edge(START, "tools")
    return builder.compile()


def answers(state: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message.status, message.text) for message in results_in(state)]


DIG = call("dig", place="the garden")


class TestGate:
    @pytest.mark.parametrize(
        ("todos", "status", "said"),
        [
            ([], "error", "write your plan with write_todos"),
            (items("Dig"), "error", "edit_todos with action 'start'"),
            (items("Dig", status="in_progress"), "success", "A hole in the garden."),
        ],
    )
    def test_a_tool_runs_only_while_an_item_is_in_progress(
        self, todos: Any, status: str, said: str
    ) -> None:
        """The error tells the model to plan first, or to start an item."""
        state: dict[str, Any] = {"messages": [turn("", DIG)], "todos": todos}
        ((found, text),) = answers(gated(TodoGate()).invoke(state))
        refusal = "Error: no todo is in progress, so this tool was not run"
        assert (found, text.startswith(refusal)) == (status, status == "error")
        assert said in text

    async def test_an_item_may_be_started_in_the_same_message(self) -> None:
        """The call that starts the item must come before the tool's call."""
        start = call("edit_todos", action="start", indices=[0])
        for calls, expected in (((start, DIG), "success"), ((DIG, start), "error")):
            state: dict[str, Any] = {"messages": [turn("", *calls)], "todos": items("Dig")}
            for final in (gated(TodoGate()).invoke(state), await gated(TodoGate()).ainvoke(state)):
                assert answers(final)[calls.index(DIG)][0] == expected

    def test_the_todo_tools_are_never_refused(self) -> None:
        """Otherwise no item could ever be started."""
        state: dict[str, Any] = {"messages": [turn("", call("list_todos"))]}
        assert answers(gated(TodoGate()).invoke(state)) == [("success", "No todos")]

    def test_a_call_with_a_repeated_id_is_refused(self) -> None:
        """It is not known which calls come before it, so no item is taken as in progress."""
        start = {**call("edit_todos", action="start", indices=[0]), "id": DIG["id"]}
        state: dict[str, Any] = {"messages": [turn("", start, DIG)], "todos": items("Dig")}  # type: ignore[arg-type]
        ((_, started), (_, dug)) = answers(gated(TodoGate()).invoke(state))
        assert "another call of this turn has the same id" in started
        assert dug.startswith("Error: no todo is in progress")

    def test_a_single_name_is_refused_at_build_time(self) -> None:
        """Python would treat it as a collection of letters."""
        for gate in (TodoGate, TodoGateMiddleware):
            with pytest.raises(TypeError, match="exempt must be a collection of tool names"):
                gate(exempt="look")


class TestMiddleware:
    """The gate beside `TodoMiddleware`, in either order."""

    PLAN = call("write_todos", mode="replace", todos=["Dig"])
    START = call("edit_todos", action="start", indices=[0])

    def agent(self, *middleware: Any) -> Graph:
        """An agent that digs, plans and digs again, and then digs after it has started the item."""
        digs = [call("dig", place=f"place {number}") for number in range(3)]
        script: list[AIMessage | str] = [
            turn("", digs[0], self.PLAN, digs[1]),
            turn("", self.START, digs[2]),
            "Done.",
        ]
        model = ScriptedChatModel(script=script)
        return create_agent(model, [dig], middleware=middleware)

    @pytest.mark.parametrize("gate_first", [True, False])
    async def test_other_tools_wait_until_an_item_is_in_progress(self, gate_first: bool) -> None:
        gate, todos = TodoGateMiddleware(), TodoMiddleware(policy=None)
        middleware = [gate, todos] if gate_first else [todos, gate]
        sync = self.agent(*middleware).invoke(BEGIN)
        for final in (sync, await self.agent(*middleware).ainvoke(BEGIN)):
            statuses = [status for status, _ in answers(final)]
            assert statuses == ["error", "success", "error", "success", "success"]

    @pytest.mark.parametrize("mode", ["replace", "append"])
    @pytest.mark.parametrize(
        ("decision", "runs"), [({"type": "approve"}, True), ({"type": "reject"}, False)]
    )
    def test_a_call_for_a_plan_that_a_person_rejected_is_refused(
        self, decision: dict[str, Any], runs: bool, mode: str, config: RunnableConfig
    ) -> None:
        """Although an item of the old list is in progress; a tool that is exempt runs."""
        plan = call("write_todos", mode=mode, todos=["Dig everywhere"])
        start = call("edit_todos", action="start", indices=[0])
        work = call("dig", place="here"), call("look", place="there")
        script = turn("", self.PLAN), turn("", start), turn("", plan, start, *work), "I see."
        approval = HumanInTheLoopMiddleware({"write_todos": True})
        graph: Graph = create_agent(
            ScriptedChatModel(script=script),
            [dig, look],
            middleware=[approval, TodoGateMiddleware(exempt={"look"}), TodoMiddleware(policy=None)],
            checkpointer=InMemorySaver(),
        )
        graph.invoke(BEGIN, config)
        graph.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
        final = graph.invoke(Command(resume={"decisions": [decision]}), config)
        said = {message.name: message for message in results_in(final)[-3:]}
        assert said["look"].status == "success"
        assert (said["dig"].text == "A hole in here.") == runs
        assert (said["dig"].status == "error") != runs
