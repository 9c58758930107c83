"""A run near LangGraph's recursion limit ends with an outcome, not an error."""

from collections.abc import Sequence
from itertools import count
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel
from todo_tools._loop.steps import measured

from graphs.until_done import build_graph
from tests.prompt_reader import read_list
from tests.support import BEGIN, Graph, edit, items, loop_of
from todo_tools import AutoContinue, TodoItem, TodoState, add_auto_continue, create_todo_tools
from todo_tools._thread.channels import fold_todos, merge_loop
from todo_tools.middleware import TodoMiddleware
from todo_tools.state import ClientTodoState, DeltaTodoState, LoopState
from todo_tools.testing import ScriptedChatModel, call, turn

SEEDED: dict[str, Any] = {**BEGIN, "todos": items(*"abcdefghijklmnopqrstuvwxyz")}
PLAIN: tuple[Any, ...] = ()
CALLS = ModelCallLimitMiddleware[Any, Any](thread_limit=1_000)
APPROVAL = HumanInTheLoopMiddleware[Any, Any, Any]({"execute": True})


def limited(config: RunnableConfig, limit: int) -> RunnableConfig:
    return {**config, "recursion_limit": limit}


def worker(rest_after: int) -> ScriptedChatModel:
    """A model that completes an item with each call, and stops after every `rest_after` calls."""
    asked = count(1)

    def answer(prompt: list[BaseMessage]) -> AIMessage | str:
        if next(asked) % (rest_after + 1) == 0:
            return "So far, so good."
        statuses = [status for _, status in read_list(prompt)]
        if "not_started" not in statuses:
            return "Done."
        return edit("complete", statuses.index("not_started"))

    return ScriptedChatModel(script=answer)


def restless() -> ScriptedChatModel:
    """A model that calls a tool in every answer, and does not work on its list."""
    return ScriptedChatModel(script=lambda _: turn("Looking.", call("list_todos")))


def agent(model: ScriptedChatModel, others: Sequence[Any] = PLAIN, **options: Any) -> Graph:
    middleware = [*others, TodoMiddleware()]
    return create_agent(model, middleware=middleware, checkpointer=InMemorySaver(), **options)


class Thing(BaseModel):
    """A state that is not a `TypedDict`."""

    messages: Annotated[list[AnyMessage], add_messages] = []
    todos: Annotated[list[TodoItem], fold_todos] = []
    todo_loop: Annotated[LoopState, merge_loop] = {}


class Measured(Thing):
    """The same with the field `remaining_steps`."""

    remaining_steps: RemainingSteps = 0


class TestHandBuilt:
    @pytest.mark.parametrize("state", [TodoState, ClientTodoState, DeltaTodoState])
    @pytest.mark.parametrize("limit", [8, 25, 60])
    def test_a_run_near_the_limit_ends_with_an_outcome(
        self, config: RunnableConfig, state: type[Any], limit: int
    ) -> None:
        """The next message continues with the unchanged list."""
        builder = build_graph(worker(2), state_schema=state)
        graph = builder.compile(checkpointer=InMemorySaver())
        *_, last = graph.stream(SEEDED, limited(config, limit), stream_mode="custom")
        remaining = 26 - sum("complete" in str(t) for t in graph.get_state(config).values["todos"])
        assert last["outcome"] == "out_of_steps"
        assert last["text"] == (
            f"⚠ Stopped before the recursion limit of this run; {remaining} todo(s) remain. "
            "Send a message to go on."
        )
        graph.invoke(BEGIN, limited(config, 200))
        assert loop_of(graph, config)["outcome"] == "finished"

    def test_a_state_that_is_not_a_typed_dict_can_declare_the_field(
        self, config: RunnableConfig
    ) -> None:
        for state, outcome in ((Thing, "stalled"), (Measured, "out_of_steps")):
            graph = build_graph(ScriptedChatModel(script=lambda _: "No."), state_schema=state)
            compiled = graph.compile()
            final = compiled.invoke(SEEDED, limited(config, 10))
            assert final["todo_loop"]["outcome"] == outcome


@pytest.mark.parametrize(
    "others", [PLAIN, (CALLS,), (CALLS, APPROVAL)], ids=["alone", "calls", "approval"]
)
class TestMiddleware:
    @pytest.mark.parametrize("limit", [20, 23, 40])
    @pytest.mark.parametrize("rest_after", [2, 100])
    def test_a_run_near_the_limit_ends_with_an_outcome(
        self, config: RunnableConfig, others: Any, rest_after: int, limit: int
    ) -> None:
        """Each node of other middleware takes a step too."""
        graph = agent(worker(rest_after), others)
        graph.invoke(SEEDED, limited(config, limit))
        assert loop_of(graph, config)["outcome"] == "out_of_steps"
        graph.invoke(BEGIN, limited(config, 500))
        assert loop_of(graph, config)["outcome"] == "finished"

    async def test_calls_that_the_limit_would_cut_off_are_dropped(
        self, config: RunnableConfig, others: Any
    ) -> None:
        """The answer keeps its text and says why; every call has a result."""
        graph = agent(restless(), others)
        final = await graph.ainvoke(SEEDED, limited(config, 40))
        last = final["messages"][-1]
        assert last.text == (
            "Looking.\n\n[Automatic note] No more tools were called: this run is near its "
            "recursion limit.\n\n⚠ Stopped before the recursion limit of this run; 26 todo(s) "
            "remain. Send a message to go on."
        )
        assert last.tool_calls == []
        assert loop_of(graph, config)["outcome"] == "out_of_steps"


class TestAnswersThatStay:
    def test_a_structured_response(self, config: RunnableConfig) -> None:
        class Report(BaseModel):
            """A report."""

            summary: str

        model = ScriptedChatModel(script=[turn("", call("Report", summary="All of it."))])
        graph = agent(model, response_format=ToolStrategy(Report))
        final = graph.invoke(SEEDED, limited(config, 4))
        assert final["structured_response"] == Report(summary="All of it.")
        assert loop_of(graph, config)["outcome"] == "out_of_steps"

    @pytest.mark.parametrize(
        ("middleware", "given"),
        [(TodoMiddleware(), BEGIN), (TodoMiddleware(policy=None), SEEDED)],
        ids=["no list", "no loop"],
    )
    def test_an_agent_without_a_list_or_a_loop_reaches_the_limit(
        self, config: RunnableConfig, middleware: AgentMiddleware[Any, Any, Any], given: Any
    ) -> None:
        """LangGraph then raises its own error."""
        graph: Graph = create_agent(restless(), middleware=[middleware])
        with pytest.raises(GraphRecursionError):
            graph.invoke(given, limited(config, 10))


def test_without_the_steps_that_are_left_nothing_is_noted() -> None:
    """Middleware may hand on a state without them."""
    assert measured({"messages": []}) == {}


def test_a_state_of_the_library_may_be_an_output_schema() -> None:
    """LangGraph does not allow managed values there."""

    class State(TodoState):
        extra: str

    builder = StateGraph(State, input_schema=TodoState, output_schema=TodoState)
    builder.add_node("agent", lambda _: {"messages": [AIMessage("Hi.")]})
    builder.add_node("tools", ToolNode(create_todo_tools()))
    builder.add_edge(START, "agent")
    graph = add_auto_continue(builder, policy=AutoContinue()).compile()
    assert graph.invoke(BEGIN)["todo_loop"]["outcome"] == "no_todos"


def test_the_steps_of_an_earlier_run_do_not_count(config: RunnableConfig) -> None:
    """A run with a higher limit is no reason to end the next one early."""
    graph = agent(ScriptedChatModel(script=lambda _: "I stop."))
    graph.invoke(BEGIN, limited(config, 100))
    graph.invoke({"messages": [("user", "Go.")], "todos": items("a")}, limited(config, 25))
    assert loop_of(graph, config)["outcome"] == "stalled"
