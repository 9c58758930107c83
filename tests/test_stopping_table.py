"""The first table of `docs/stopping.md`, row by row, in both kinds of graph."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from tests.support import edit, items, plan
from todo_tools import (
    AutoContinue,
    TodoGate,
    TodoMiddleware,
    TodoState,
    add_auto_continue,
    asks_user,
    create_todo_tools,
    has_worked,
    model_view,
)
from todo_tools.testing import ScriptedChatModel, call, turn

Rule = Callable[[int], AIMessage | str]  # from the number of a model call, from 1, to its answer


class Row(NamedTuple):
    """What the model does, and how the last run ends; then what differs from the defaults."""

    rule: Rule
    calls: int
    outcome: str
    todos: Sequence[str] = ()
    policy: AutoContinue = AutoContinue()
    wrap: Any = None
    check: Any = None
    replies: Sequence[Any] = ()


def search(page: int) -> str:
    """Search a page; the server of those after 100 is dead."""
    if page > 100:
        raise ToolException("no connection")
    return f"page {page}"


TOOLS = [StructuredTool.from_function(search, handle_tool_error=True)]


def refusing(words: str, *, first: bool = False) -> Any:
    """Refuse the calls of `search`, and with `first` the first one."""

    def wrap(request: Any, execute: Any) -> Any:
        called, messages = request.tool_call, request.state["messages"]
        if called["name"] == "search" and (first or any(m.name == "search" for m in messages)):
            return ToolMessage(words, name="search", tool_call_id=called["id"], status="error")
        return execute(request)

    return wrap


def hand_built(model: ScriptedChatModel, row: Row) -> Any:
    def agent(state: TodoState) -> dict[str, Any]:
        return {"messages": [model.invoke(model_view(state))]}

    tools = [*create_todo_tools(check=row.check), *TOOLS]
    builder = StateGraph(TodoState).add_node("agent", agent).add_edge(START, "agent")
    builder.add_node("tools", ToolNode(tools, wrap_tool_call=row.wrap)).add_edge("tools", "agent")
    return add_auto_continue(builder, policy=row.policy).compile(checkpointer=InMemorySaver())


def with_middleware(model: ScriptedChatModel, row: Row) -> Any:
    middleware: list[Any] = [wrap_tool_call(row.wrap)] if row.wrap else []
    middleware.append(TodoMiddleware(policy=row.policy, check=row.check))
    return create_agent(model, TOOLS, middleware=middleware, checkpointer=InMemorySaver())


def says(*answers: AIMessage | str) -> Rule:
    return lambda number: answers[number - 1] if number <= len(answers) else "I stop here."


def tries(name: str, args: Callable[[int], Any] = lambda number: {"page": number}) -> Rule:
    """Plan; then make one call and answer, again and again."""

    def rule(number: int) -> AIMessage | str:
        if number == 1:
            return plan("a", "b")
        return "It was refused." if number % 2 else turn("", call(name, **args(number)))

    return rule


def stops_after_each(number: int) -> AIMessage | str:
    if number == 1:
        return plan(*(f"item {each}" for each in range(40)))
    return edit("complete", (number - 3) // 2) if number % 2 else "One more is done."


LIST = ("Measure",)
LOOK, FIND = turn("", call("list_todos")), turn("", call("search", page=1))
TICK = turn("", call("search", page=1), call("edit_todos", action="complete", indices=[0]))
REJECTION = refusing("User rejected the tool call for `search`", first=True)
TICKS = tries("edit_todos", lambda _: {"action": "complete", "indices": [0]})
MISSES = tries("edit_todos", lambda number: {"action": "start", "indices": [number]})
NO_LISTS = tries("write_todos", lambda number: {"mode": "replace", "todos": number})
NO: Command[Any] = Command(resume="no")
ANSWER = {"messages": [("user", "This one.")]}
ASKS = AutoContinue(stop_when=asks_user)
ROWS = {
    "stop": Row(says(), 1, "answered", LIST),
    "stop, after a look": Row(says(LOOK), 2, "answered", LIST),
    "stop, after a call": Row(says(FIND), 3, "stalled", LIST),
    "a rejected call": Row(says(FIND), 2, "answered", LIST, wrap=REJECTION),
    "a question first": Row(says("Which one?"), 1, "no_todos"),
    "its answer": Row(says("Which one?", plan("a"), TICK), 4, "finished", replies=[ANSWER]),
    "works": Row(says(plan("a"), TICK), 3, "finished"),
    "stops after each item": Row(stops_after_each, 82, "finished"),
    "a plan and a question": Row(says(plan("a"), "Which one?", "Which one?"), 3, "stalled"),
    "a call limit": Row(tries("search"), 5, "stalled", wrap=refusing("limit reached")),
    "a hook": Row(tries("search"), 5, "stalled", wrap=refusing("denied", first=True)),
    "the gate": Row(tries("search"), 5, "stalled", wrap=TodoGate().wrap_tool_call),
    "an unknown tool": Row(tries("find"), 5, "stalled"),
    "a dead server": Row(tries("search", lambda number: {"page": number + 100}), 5, "stalled"),
    "a wrong index": Row(MISSES, 5, "stalled"),
    "no list": Row(NO_LISTS, 5, "stalled"),
    "the same result": Row(tries("search", lambda _: {"page": 1}), 5, "stalled"),
    "the same list": Row(lambda number: plan("a") if number % 2 else "Done.", 4, "stalled"),
    "no tick": Row(tries("search"), 43, "limit_in_a_row"),
    "asks_user": Row(says(plan("a"), "Which one?"), 2, "stop_condition", policy=ASKS),
    "has_worked": Row(TICKS, 5, "stalled", check=has_worked),
    "ask": Row(says(plan("a")), 2, "declined", policy=AutoContinue(ask=True), replies=[NO]),
    "max_idle of 1": Row(says(), 2, "stalled", LIST, AutoContinue(max_idle=1)),
    "no max_idle": Row(says(), 21, "limit_in_a_row", LIST, AutoContinue(max_idle=None)),
}


@pytest.mark.parametrize("build", [hand_built, with_middleware])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_row(row: Row, build: Callable[[ScriptedChatModel, Row], Any]) -> None:
    """The model is called as often as the page says, and the last run ends with its outcome."""
    model = ScriptedChatModel(script=lambda _: row.rule(len(model.prompts)))
    graph, config = build(model, row), {"configurable": {"thread_id": "1"}}
    request = {"messages": [("user", "Go.")], "todos": items(*row.todos)}
    *_, final = [graph.invoke(each, config) for each in (request, *row.replies)]
    assert (len(model.prompts), final["todo_outcome"]) == (row.calls, row.outcome)
