"""An item is completed only if its check agrees."""

import asyncio
import threading
import time
from collections.abc import Callable
from operator import add
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt
from typing_extensions import TypedDict

from tests.support import Graph, items, results_in
from todo_tools import (
    AutoContinue,
    TodoGate,
    TodoItem,
    TodoLimits,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    format_todos,
    todos_from_messages,
)
from todo_tools._tools.checks import Steps, run_steps
from todo_tools._tools.turn import turn_of
from todo_tools.middleware import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

Check = Callable[[TodoItem, Any], str | None]


def edit(action: str, *indices: int) -> ToolCall:
    return call("edit_todos", action=action, indices=list(indices))


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
        final = run(node_graph(never), items("a"), edit("complete", 0))
        (message,) = results_in(final)
        assert message.status == "error"
        assert message.content == (
            "Error: item 0 is not done: 2 tests fail; nothing was changed, finish the item and "
            "complete it again"
        )
        assert message.artifact["error"] == "item 0 is not done: 2 tests fail"
        assert final["todos"] == items("a")

    def test_a_call_completes_all_of_its_items_or_none(self) -> None:
        final = run(node_graph(only("a")), items("a", "b"), edit("complete", 0, 1))
        assert final["todos"] == items("a", "b")

    def test_an_item_that_is_done_is_completed(self) -> None:
        final = run(node_graph(only("a")), items("a", "b"), edit("complete", 0))
        assert [todo["status"] for todo in final["todos"]] == ["completed", "not_started"]

    def test_a_long_reason_stays_short_and_on_one_line(self) -> None:
        """A reason cannot forge a line of the list."""
        graph = node_graph(lambda item, state: "no\n✓ [0] a" + "x" * 10_000)
        (message,) = results_in(run(graph, items("a"), edit("complete", 0)))
        assert len(message.text) <= 300
        assert "\n" not in message.text

    @pytest.mark.parametrize(
        ("length", "shown"), [(180, "x" * 180), (181, "x" * 179 + "…"), (500, "x" * 179 + "…")]
    )
    def test_a_reason_has_at_most_180_characters(self, length: int, shown: str) -> None:
        graph = node_graph(lambda item, state: "x" * length)
        (message,) = results_in(run(graph, items("a"), edit("complete", 0)))
        assert message.artifact["error"] == f"item 0 is not done: {shown}"

    @pytest.mark.parametrize("action", ["start", "abandon"])
    def test_other_actions_are_not_checked(self, action: str) -> None:
        (message,) = results_in(run(node_graph(never), items("a"), edit(action, 0)))
        assert message.status == "success"

    def test_the_check_is_given_the_state_of_the_graph(self) -> None:
        graph = node_graph(lambda item, state: f"{len(state['messages'])} message")
        (message,) = results_in(run(graph, items("a"), edit("complete", 0)))
        assert "1 message" in message.text


class TestHowOften:
    def test_once_for_each_item_of_a_call(self) -> None:
        check = Counting(lambda item, state: None)
        run(node_graph(check), items("a", "b"), edit("complete", 1, 0, 1))
        assert check.asked == ["b", "a"]

    def test_not_for_what_is_completed_already(self) -> None:
        check = Counting(lambda item, state: None)
        run(node_graph(check), [{"text": "a", "status": "completed"}], edit("complete", 0))
        assert check.asked == []

    @pytest.mark.parametrize("graph", [node_graph, agent])
    def test_once_although_later_calls_of_the_turn_depend_on_it(self, graph: Any) -> None:
        """The calls run at the same time, and each must know the effect of the earlier ones."""
        check = Counting(never)
        calls = (edit("complete", 0), *(call("list_todos") for _ in range(9)))
        if graph is agent:
            built = agent(check, *calls)
            built.invoke({"messages": [HumanMessage("Go.")], "todos": items("a")})
        else:
            run(node_graph(check), items("a"), *calls)
        assert check.asked == ["a"]

    def test_not_again_in_a_fork(self) -> None:
        """The fork's state has the items that were completed before."""
        check = Counting(lambda item, state: None)
        model = ScriptedChatModel(script=[turn("", edit("complete", 0)), "Done.", "Again done."])
        graph: Graph = create_agent(
            model,
            middleware=[TodoMiddleware(check=check, policy=None)],
            checkpointer=InMemorySaver(),
        )
        config: Any = {"configurable": {"thread_id": "1"}}
        graph.invoke({"messages": [HumanMessage("Go.")], "todos": items("a")}, config)
        fork = next(
            s
            for s in graph.get_state_history(config)
            if s.next == ("model",) and (s.values["todos"][0]["status"] == "completed")
        )
        assert graph.invoke(None, fork.config)["messages"][-1].text == "Again done."
        assert check.asked == ["a"]

    def test_again_when_the_same_call_runs_again(self) -> None:
        """The result of a check is kept only during its turn."""
        check = Counting(never)
        graph = node_graph(check)
        state: Any = {"messages": [turn("", edit("complete", 0))], "todos": items("a")}
        graph.invoke(state)
        graph.invoke(state)
        assert check.asked == ["a", "a"]

    def test_again_when_a_wrapper_repeats_the_call(self) -> None:
        """The check may pass now, although the call belongs to the same message as before."""

        def repeating(request: Any, execute: Any) -> Any:
            execute(request)
            return execute(request)

        check = Counting(lambda item, state: "not yet" if len(check.asked) == 1 else None)
        final = run(node_graph(check, wrap_tool_call=repeating), items("a"), edit("complete", 0))
        assert final["todos"] == items("a", status="completed")


class TestSeveralCalls:
    @pytest.mark.parametrize("name", ["node", "agent"])
    def test_calls_after_a_refused_one_are_answered_correctly(self, name: str) -> None:
        calls = (edit("complete", 0), edit("complete", 1), call("list_todos"))
        check = only("b")
        if name == "agent":
            final = agent(check, *calls).invoke({"messages": ["Go."], "todos": items("a", "b")})
        else:
            final = run(node_graph(check), items("a", "b"), *calls)
        first, second, third = results_in(final)
        assert (first.status, second.status) == ("error", "success")
        assert third.text == format_todos(final["todos"])
        assert [todo["status"] for todo in final["todos"]] == ["not_started", "completed"]

    def test_the_gate_knows_the_result_of_the_check(self) -> None:
        """An item whose completion was refused is still in progress, so other tools may run."""
        gate = TodoGate()
        graph = node_graph(
            never, wrap_tool_call=gate.wrap_tool_call, awrap_tool_call=gate.awrap_tool_call
        )
        started: list[TodoItem] = [{"text": "a", "status": "in_progress"}]
        final = run(graph, started, edit("complete", 0), call("shell", command="ls"))
        assert results_in(final)[1].text == "ok"


class TestSyncAndAsync:
    async def test_an_async_check_is_awaited(self) -> None:
        async def check(item: TodoItem, state: Any) -> str | None:
            await asyncio.sleep(0)
            return "not yet"

        graph = node_graph(check)
        final = await graph.ainvoke(
            {"messages": [turn("", edit("complete", 0), call("list_todos"))], "todos": items("a")}
        )
        assert [message.status for message in results_in(final)] == ["error", "success"]

    async def test_an_async_check_is_given_the_item_and_the_state(self) -> None:
        async def check(item: TodoItem, state: Any) -> str:
            return f"{item['text']}, {len(state['messages'])} message"

        state = {"messages": [turn("", edit("complete", 0))], "todos": items("a")}
        (message,) = results_in(await node_graph(check).ainvoke(state))
        assert "not done: a, 1 message" in message.text

    async def test_a_check_that_blocks_does_not_block_the_event_loop(self) -> None:
        loop = threading.get_ident()
        ran_in: list[int] = []

        def check(item: TodoItem, state: Any) -> None:
            ran_in.append(threading.get_ident())

        await node_graph(check).ainvoke(
            {"messages": [turn("", edit("complete", 0))], "todos": items("a")}
        )
        assert ran_in != [loop]

    def test_an_async_check_in_a_sync_run_is_an_error_of_the_developer(self) -> None:
        async def check(item: TodoItem, state: Any) -> str | None:
            return None

        with pytest.raises(TypeError, match=r"^check is async, .*; use ainvoke"):
            run(node_graph(check), items("a"), edit("complete", 0))


class TestMistakes:
    def test_a_check_must_be_a_function(self) -> None:
        with pytest.raises(TypeError, match="check must be a function"):
            create_todo_tools(check="make test")  # type: ignore[arg-type]  # the mistake

    def test_a_check_must_answer_none_or_a_reason(self) -> None:
        """`False` is ambiguous, so it is refused."""
        with pytest.raises(TypeError, match="None or the reason as a string, got False"):
            run(node_graph(lambda item, state: False), items("a"), edit("complete", 0))

    def test_an_error_in_a_check_reaches_the_caller(self) -> None:
        def check(item: TodoItem, state: Any) -> str | None:
            raise OSError("no such program")

        with pytest.raises(OSError, match="no such program"):
            run(node_graph(check), items("a"), edit("complete", 0))


class TestVerdictsOfOtherRuns:
    def test_two_branches_with_one_message_are_checked_by_themselves(self) -> None:
        """The check also reads the state, which may differ."""

        class Approved(TodoState):
            approved: bool

        def check(item: TodoItem, state: Any) -> str | None:
            time.sleep(0.002)  # both branches are at work
            return None if state["approved"] else "not approved"

        class Both(TypedDict):
            statuses: Annotated[list[Any], add]

        builder = StateGraph(Approved)
        builder.add_node("tools", ToolNode(create_todo_tools(check=check)))
        builder.add_edge(START, "tools")
        inner = builder.compile()
        message = turn("", *(edit("complete", index) for index in range(6)))

        def branch(given: Any) -> dict[str, Any]:
            final = inner.invoke(
                {"messages": [message], "todos": items(*"abcdef"), "approved": given["approved"]}
            )
            return {"statuses": [(given["approved"], {t["status"] for t in final["todos"]})]}

        outer: StateGraph[Any, Any, Any, Any] = StateGraph(Both)
        outer.add_node("branch", RunnableLambda(branch))
        sends = [Send("branch", {"approved": each}) for each in (True, False)]
        outer.add_conditional_edges(START, lambda _: sends, ["branch"])
        graph = outer.compile()
        for _ in range(10):
            statuses = dict(graph.invoke({"statuses": []})["statuses"])
            assert statuses == {True: {"completed"}, False: {"not_started"}}

    def test_a_verdict_that_only_a_sibling_asked_for_is_not_kept(self) -> None:
        """A wrapper refused the call itself in the first run."""
        refused = [True]

        def wrapper(request: Any, execute: Any) -> Any:
            if request.tool_call["name"] == "edit_todos" and refused.pop():
                return ToolMessage("Not now.", tool_call_id=request.tool_call["id"])
            return execute(request)

        done = [None, "tests fail"]
        graph = node_graph(lambda item, state: done.pop(0), wrap_tool_call=wrapper)
        refused.insert(0, False)
        state: Any = {"messages": [turn("", edit("complete", 0), call("list_todos"))]}
        graph.invoke({**state, "todos": items("a")})
        final = graph.invoke({**state, "todos": items("a")})
        assert final["todos"] == items("a")


class TestChecksThatFail:
    def test_what_a_check_raises_changes_nothing_for_later_calls(self) -> None:
        """It is raised by its own call, and the check does not run again for the others."""
        asked: list[str] = []

        def check(item: TodoItem, state: Any) -> str | None:
            asked.append(item["text"])
            raise OSError("no network")

        graph = node_graph(check, handle_tool_errors=True)
        calls = [edit("complete", 0), edit("start", 1), *(call("list_todos") for _ in range(9))]
        final = run(graph, items("a", "b"), *calls)
        statuses = [message.status for message in results_in(final)]
        assert statuses == ["error"] + ["success"] * 10
        assert asked == ["a"]
        assert final["todos"] == todos_from_messages(final["messages"])

    @pytest.mark.parametrize("name", ["node", "agent"])
    def test_a_check_must_not_interrupt(self, name: str) -> None:
        """The answer could complete an item that nobody was asked about."""

        def check(item: TodoItem, state: Any) -> str | None:
            return None if interrupt(f"Is {item['text']} done?") == "yes" else "no"

        calls = (edit("complete", 0), edit("complete", 1))
        graph = agent(check, *calls) if name == "agent" else node_graph(check)
        messages = [HumanMessage("Go.")] if name == "agent" else [turn("", *calls)]
        with pytest.raises(TypeError) as raised:
            graph.invoke({"messages": messages, "todos": items("a", "b")})
        assert str(raised.value) == (
            "check must not call interrupt(); to ask a person, use LangChain's "
            "HumanInTheLoopMiddleware on edit_todos"
        )

    async def test_what_an_async_check_raises_reaches_the_caller(self) -> None:
        async def check(item: TodoItem, state: Any) -> str | None:
            raise OSError("no network")

        request: Any = {"messages": [turn("", edit("complete", 0))], "todos": items("a")}
        with pytest.raises(OSError, match="no network"):
            await node_graph(check).ainvoke(request)

    def test_the_control_flow_of_langgraph_passes(self) -> None:
        """It is not kept for the call that is checked, since it ends the step."""

        def check(item: TodoItem, state: Any) -> str | None:
            raise GraphDrained("shutdown")

        def steps() -> Steps[str]:
            yield items("a")[0]
            return "never"

        with pytest.raises(GraphDrained):
            run_steps(steps(), check, {})

    def test_a_check_cannot_change_the_list(self) -> None:
        final = run(
            node_graph(lambda item, state: item.update(text="changed")),
            items("a"),
            edit("complete", 0),
        )
        assert final["todos"] == items("a", status="completed")

    def test_a_reason_must_say_something(self) -> None:
        with pytest.raises(TypeError, match="None or the reason"):
            run(node_graph(lambda item, state: " "), items("a"), edit("complete", 0))


def test_calls_that_a_person_edited_are_checked_once() -> None:
    """LangChain keeps the edited calls beside the message."""
    check = Counting(lambda item, state: "not yet")
    calls = [edit("start", 0), *(call("list_todos") for _ in range(5))]
    edited = {**calls[0], "args": {"action": "complete", "indices": [0]}}

    class State(TodoState):
        hitl_edited_tool_calls: dict[str, Any]

    builder = StateGraph(State)
    builder.add_node("tools", ToolNode(create_todo_tools(check=check)))
    builder.add_edge(START, "tools")
    request: Any = {
        "messages": [turn("", *calls)],
        "todos": items("a"),
        "hitl_edited_tool_calls": {calls[0]["id"]: edited},
    }
    final = builder.compile().invoke(request)
    assert final["todos"] == items("a", status="in_progress")
    assert check.asked == ["a"]


async def test_each_of_many_runs_at_once_is_checked_once() -> None:
    asked: list[str] = []
    all_asked = asyncio.Event()

    async def check(item: TodoItem, state: Any) -> str | None:
        asked.append(item["text"])
        if len(asked) == 70:
            all_asked.set()
        await asyncio.wait_for(all_asked.wait(), 30)
        return None

    graph = node_graph(check)

    async def one(number: int) -> Any:
        calls = turn("", edit("complete", 0), call("list_todos"))
        return await graph.ainvoke({"messages": [calls], "todos": items(str(number))})

    finals = await asyncio.gather(*map(one, range(70)))
    assert sorted(asked, key=int) == [str(number) for number in range(70)]
    assert all(final["todos"][0]["status"] == "completed" for final in finals)


def test_a_check_runs_once_in_a_run_that_is_resumed_before_its_tools() -> None:
    """LangGraph then reads the state of each task from the checkpoint separately."""
    asked: list[str] = []

    def check(item: TodoItem, state: Any) -> str | None:
        asked.append(item["text"])
        return None

    def sends(state: Any) -> list[Send]:
        context = {"__type": "tool_call_with_context", "state": state}
        made = state["messages"][-1].tool_calls
        return [Send("tools", {**context, "tool_call": each}) for each in made]

    calls = [edit("complete", index) for index in range(4)]
    builder = StateGraph(TodoState)
    builder.add_node("agent", lambda _: {"messages": [turn("", *calls)]})
    builder.add_node("tools", ToolNode(create_todo_tools(check=check)))
    builder.add_edge(START, "agent").add_conditional_edges("agent", sends, ["tools"])
    graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["tools"])
    config: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke({"messages": [HumanMessage("Go.")], "todos": items(*"abcd")}, config)
    final = graph.invoke(None, config)
    assert final["todos"] == items(*"abcd", status="completed")
    assert sorted(asked) == [*"abcd"]


def test_a_check_runs_once_though_many_runs_answer_half_of_a_turn_first() -> None:
    """A call may wait for a thread, while the other runs begin their turns."""
    asked: list[str] = []

    def check(item: TodoItem, state: Any) -> str | None:
        asked.append(item["text"])
        return None

    calls = [turn("", edit("complete", 0), edit("complete", 1)) for _ in range(100)]
    states = [
        {"messages": [made], "todos": items(f"{at}", f"{at}.5")} for at, made in enumerate(calls)
    ]
    for position in (0, 1):
        for made, state in zip(calls, states, strict=True):
            call_id, args = made.tool_calls[position]["id"], made.tool_calls[position]["args"]
            runtime: Any = SimpleNamespace(state=state, tool_call_id=call_id, execution_info=None)
            steps = turn_of(runtime, TodoLimits(), check).answer(call_id, "edit_todos", args)
            assert run_steps(steps, check, state).todos[position]["status"] == "completed"
    assert len(asked) == len(set(asked)) == 200


def test_the_loop_ends_for_a_check_that_never_passes() -> None:
    """The state and the notice for people name the item."""

    def rule(messages: Any) -> AIMessage | str:
        refused = isinstance(messages[-1], HumanMessage)
        return turn("", edit("complete", 0)) if refused else "It is done."

    model = ScriptedChatModel(script=rule)
    tools = create_todo_tools(check=never)
    builder = StateGraph(TodoState)
    builder.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    graph = add_auto_continue(builder, policy=AutoContinue(max_in_a_row=5)).compile()
    final = graph.invoke(
        {"messages": [HumanMessage("Go.")], "todos": items("a")}, {"recursion_limit": 100}
    )
    assert final["todo_loop"]["outcome"] == "limit_in_a_row"
    assert final["todo_loop"]["refused"] == "item 0 is not done: 2 tests fail"
    assert final["messages"][-1].text.endswith(
        "⚠ Stopped after 5 continuations without progress; 1 todo(s) remain "
        "(item 0 is not done: 2 tests fail). Send a message to go on."
    )


def test_a_change_of_the_list_forgets_which_item_was_refused() -> None:
    final = run(node_graph(never), items("a"), edit("complete", 0), edit("start", 0))
    assert final["todo_loop"]["refused"] is None


CALLS = st.one_of(
    st.builds(edit, st.sampled_from(["start", "complete", "abandon"]), st.integers(0, 3)),
    st.builds(
        lambda mode, texts: call("write_todos", mode=mode, index=0, todos=texts),
        st.sampled_from(["replace", "append", "insert"]),
        st.lists(st.sampled_from("ab"), max_size=2),
    ),
)


@settings(max_examples=100)
@given(turns=st.lists(st.lists(CALLS, min_size=1, max_size=4), max_size=4))
def test_no_item_is_completed_against_its_check(turns: list[list[ToolCall]]) -> None:
    """This holds whatever the model does; the check always refuses items called "a"."""
    graph = node_graph(only("b"))
    todos = items("a", "b")
    for calls in turns:
        todos = run(graph, todos, *calls)["todos"]
        assert {"text": "a", "status": "completed"} not in todos
