"""An item is completed only if its check agrees."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from tests.prompt_reader import Read, read_list
from tests.support import Graph, items, results_in
from todo_tools import (
    AutoContinue,
    TodoGate,
    TodoItem,
    TodoLimits,
    TodoState,
    TodoStatus,
    add_auto_continue,
    create_todo_tools,
    has_worked,
    model_view,
    todos_from_messages,
)
from todo_tools import TodoMiddleware
from todo_tools.operations import start_items
from todo_tools.testing import ScriptedChatModel, call, turn

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}
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

    @pytest.mark.parametrize("name", ["node", "agent"])
    def test_not_for_other_calls_of_its_message(self, name: str) -> None:
        """Later calls are answered as if the item was completed."""
        check = Counting(lambda item, state: None)
        calls = (edit("complete", 0), *(call("list_todos") for _ in range(9)))
        run_as(name, check, items("a"), *calls)
        assert check.asked == ["a"]

    @pytest.mark.parametrize(
        ("earlier", "indices"),
        [
            (call("list_todos"), [0, 1]),
            (edit("start", 1), [0, 1]),
            (call("write_todos", mode="insert", index=0, todos=["c"]), [1, 2]),
        ],
    )
    def test_not_for_what_was_completed_before_the_message(
        self, earlier: ToolCall, indices: list[int]
    ) -> None:
        counting = Counting(lambda *_: None)
        todos = [*items("a", status="completed"), *items("b")]
        calls = earlier, edit("complete", *indices)
        node_graph(counting).invoke({"messages": [turn("", *calls)], "todos": todos})
        assert counting.asked == ["b"]

    def test_nor_is_it_completed_if_something_opens_it_again_meanwhile(self) -> None:
        """The check was not asked about it."""

        def opens_again(state: Any) -> dict[str, Any]:
            return {"todos": start_items(0)}

        builder = StateGraph(TodoState)
        builder.add_node("tools", ToolNode(create_todo_tools(check=lambda *_: "no")))
        builder.add_node("beside", opens_again)
        for node in ("tools", "beside"):
            builder.add_edge(START, node)
        messages = [turn("", edit("complete", 0))]
        graph: Graph = builder.compile()
        state = graph.invoke({"messages": messages, "todos": items("a", status="completed")})
        assert state["todos"] == items("a", status="in_progress")

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
        """The result of a check is not kept."""
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


def run_as(name: str, check: Any, todos: list[TodoItem], *calls: ToolCall) -> dict[str, Any]:
    """Run the calls of one message in a tool node or in LangChain's agent."""
    if name == "agent":
        return agent(check, *calls).invoke({"messages": ["Go."], "todos": todos})
    return run(node_graph(check), todos, *calls)


class TestSeveralCalls:
    @pytest.mark.parametrize("name", ["node", "agent"])
    def test_each_call_is_checked_for_itself(self, name: str) -> None:
        calls = (edit("complete", 0), edit("complete", 1))
        final = run_as(name, only("b"), items("a", "b"), *calls)
        assert [message.status for message in results_in(final)] == ["error", "success"]
        assert final["todos"] == [*items("a"), *items("b", status="completed")]

    @pytest.mark.parametrize("name", ["node", "agent"])
    def test_a_refused_item_cannot_be_completed_by_asking_twice(self, name: str) -> None:
        """The second call does not take the item for completed already."""
        calls = (edit("complete", 0), edit("complete", 0))
        final = run_as(name, never, items("a"), *calls)
        assert [message.status for message in results_in(final)] == ["error", "error"]
        assert final["todos"] == items("a")

    def test_nor_after_it_was_started_again(self) -> None:
        calls = (edit("start", 0), edit("complete", 0), edit("complete", 0))
        final = run(node_graph(never), items("a", status="completed"), *calls)
        assert final["todos"] == items("a", status="in_progress")

    @pytest.mark.parametrize("name", ["node", "agent"])
    def test_after_a_refusal_the_next_prompt_shows_the_list_of_the_state(self, name: str) -> None:
        """The call after it could not know of it, and its result shows a tick too many."""
        calls = (edit("complete", 0), edit("complete", 1))
        final = run_as(name, only("b"), items("a", "b"), *calls)
        assert results_in(final)[1].artifact["todos"] == items("a", "b", status="completed")
        assert read_list(model_view(final)) == as_read(final["todos"])

    def test_the_gate_does_not_know_the_result_of_the_check(self) -> None:
        """It takes the item as completed, so it refuses a tool that could run, and not the
        other way round."""
        gate = TodoGate()
        graph = node_graph(
            never, wrap_tool_call=gate.wrap_tool_call, awrap_tool_call=gate.awrap_tool_call
        )
        started = items("a", status="in_progress")
        final = run(graph, started, edit("complete", 0), call("shell", command="ls"))
        assert results_in(final)[1].text.startswith("Error: no todo is in progress")
        assert final["todos"] == started


def as_read(todos: list[TodoItem]) -> Read:
    return [(todo["text"], todo["status"]) for todo in todos]


class Refusing(AgentMiddleware):
    """Refuses the calls at some positions of each message, as any other middleware may."""

    def __init__(self, *positions: int) -> None:
        self.positions = positions

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        made = request.tool_call
        calls = next(m for m in reversed(request.state["messages"]) if isinstance(m, AIMessage))
        if [each["id"] for each in calls.tool_calls].index(made["id"]) in self.positions:
            return ToolMessage("Not now.", tool_call_id=made["id"], name=made["name"])
        return handler(request)


class TestRefusedSiblings:
    """Another middleware refuses a call, and the calls after it of the same message run."""

    CALLS = (
        call("write_todos", mode="insert", index=0, todos=["new"]),
        edit("complete", 0),
    )

    def run(self, name: str, check: Any) -> tuple[dict[str, Any], Sequence[BaseMessage]]:
        """Refuse the insertion; returns the state afterwards, and the next prompt."""
        todos, refusing = items("a", "b"), Refusing(0)
        if name == "node":
            graph = node_graph(check, wrap_tool_call=refusing.wrap_tool_call)
            final = run(graph, todos, *self.CALLS)
            return final, model_view(final)
        model = ScriptedChatModel(script=[turn("", *self.CALLS), "Done."])
        middleware = [refusing, TodoMiddleware(check=check, policy=None)]
        built: Graph = create_agent(model, middleware=middleware)
        return built.invoke({"messages": ["Go."], "todos": todos}), model.prompts[-1]

    @pytest.mark.parametrize("name", ["node", "agent"])
    def test_no_item_is_completed_whose_check_was_not_asked(self, name: str) -> None:
        """The second call meant the item that the first one would have inserted."""
        check = Counting(lambda item, state: None)
        final, _ = self.run(name, check)
        assert check.asked == ["new"]
        assert final["todos"] == items("a", "b")

    @pytest.mark.parametrize("name", ["node", "agent"])
    def test_the_next_prompt_shows_the_list_of_the_state(self, name: str) -> None:
        """The text of a result may be wrong, so the prompt repeats the whole list after it."""
        final, prompt = self.run(name, None)
        assert results_in(final)[1].text.startswith("Completed [0]")
        assert read_list(prompt) == as_read(final["todos"])

    @pytest.mark.parametrize("name", ["node", "agent"])
    def test_with_the_next_change_the_history_is_right_again(self, name: str) -> None:
        final, _ = self.run(name, None)
        messages = [*final["messages"], turn("", edit("complete", 0))]
        later = node_graph(None).invoke({**final, "messages": messages})
        assert later["todos"] == [*items("a", status="completed"), *items("b")]
        assert todos_from_messages(later["messages"]) == later["todos"]

    def test_an_item_that_stays_open_is_not_dropped(self) -> None:
        """With `keep_open`; the list was written after a tick that the check refused."""
        calls = edit("complete", 0), call("write_todos", mode="replace", todos=["b"])
        for check, after in ((never, items("a", "b")), (only("a"), items("b"))):
            graph = agent(check, *calls, limits=TodoLimits(keep_open=True))
            final = graph.invoke({"messages": ["Go."], "todos": items("a", "b")})
            assert final["todos"] == after
            assert read_list(model_view(final)) == as_read(after)


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


class TestChecksThatFail:
    def test_what_a_check_raises_changes_nothing_for_later_calls(self) -> None:
        def check(item: TodoItem, state: Any) -> str | None:
            raise OSError("no network")

        graph = node_graph(check, handle_tool_errors=True)
        final = run(graph, items("a", "b"), edit("complete", 0), edit("start", 1))
        assert [message.status for message in results_in(final)] == ["error", "success"]
        assert final["todos"] == [*items("a"), *items("b", status="in_progress")]

    async def test_what_an_async_check_raises_reaches_the_caller(self) -> None:
        async def check(item: TodoItem, state: Any) -> str | None:
            raise OSError("no network")

        request: Any = {"messages": [turn("", edit("complete", 0))], "todos": items("a")}
        with pytest.raises(OSError, match="no network"):
            await node_graph(check).ainvoke(request)

    def test_the_control_flow_of_langgraph_passes(self) -> None:
        def check(item: TodoItem, state: Any) -> str | None:
            raise GraphDrained("shutdown")

        with pytest.raises(GraphDrained):
            run(node_graph(check), items("a"), edit("complete", 0))

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
    def test_the_reply_decides(self, reply: str, status: TodoStatus) -> None:
        graph = self.saved(edit("complete", 0))
        asked = graph.invoke({"messages": ["Go."], "todos": items("a")}, CONFIG)
        assert [each.value for each in asked["__interrupt__"]] == ["Is a done?"]
        final = graph.invoke(Command(resume=reply), CONFIG)
        assert final["todos"] == items("a", status=status)

    async def test_the_reply_decides_in_an_async_run(self) -> None:
        graph = self.saved(edit("complete", 0))
        await graph.ainvoke({"messages": ["Go."], "todos": items("a")}, CONFIG)
        final = await graph.ainvoke(Command(resume="yes"), CONFIG)
        assert final["todos"] == items("a", status="completed")

    def test_two_calls_of_an_agent_ask_two_questions(self) -> None:
        """Each call is its own task, so each reply reaches its own item."""
        graph = self.saved(edit("complete", 0), edit("complete", 1))
        asked = graph.invoke({"messages": ["Go."], "todos": items("a", "b")}, CONFIG)
        replies = {"Is a done?": "no", "Is b done?": "yes"}
        resume = {each.id: replies[each.value] for each in asked["__interrupt__"]}
        final = graph.invoke(Command(resume=resume), CONFIG)
        assert final["todos"] == [*items("a"), *items("b", status="completed")]


def test_a_call_that_a_person_edited_is_checked() -> None:
    """LangChain keeps the edited calls beside the message."""
    made = edit("start", 0)
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


def test_no_work_of_an_earlier_run_completes_an_item_of_a_new_list() -> None:
    """The middleware records where a prompt showed the list first."""
    tick = [turn("", edit("complete", 0)), turn("Done.")]
    model = ScriptedChatModel(script=[turn("", call("look")), turn("I see."), *tick])
    policy = AutoContinue(max_in_turn=0)
    graph: Graph = create_agent(
        model,
        [StructuredTool.from_function(lambda: "A shelf.", name="look", description="Look.")],
        middleware=[TodoMiddleware(check=has_worked, policy=policy)],
        checkpointer=InMemorySaver(),
    )
    graph.invoke({"messages": ["Look."]}, CONFIG)
    final = graph.invoke({"messages": ["Paint it."], "todos": items("a")}, CONFIG)
    assert final["todos"] == items("a")


async def test_checks_of_many_runs_run_at_the_same_time() -> None:
    """No run waits for the check of another."""
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


def test_the_loop_ends_for_a_check_that_never_passes() -> None:
    """The same refusal each time is no work. The state and the notice for people name the item."""

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
    graph = add_auto_continue(builder, policy=AutoContinue(max_idle=0)).compile()
    final = graph.invoke({"messages": [HumanMessage("Go.")], "todos": items("a")})
    assert final["todo_loop"]["outcome"] == "stalled"
    assert final["todo_loop"]["refused"] == "item 0 is not done: 2 tests fail"
    assert final["messages"][-1].text.endswith(
        "⚠ Stopped because the agent got no new tool result after it was sent back to work; "
        "1 todo(s) remain (item 0 is not done: 2 tests fail). Send a message to go on."
    )


def test_a_change_of_the_list_forgets_which_item_was_refused() -> None:
    final = run(node_graph(never), items("a"), edit("complete", 0), edit("start", 0))
    assert final["todo_loop"]["refused"] is None


def test_a_run_with_a_new_list_forgets_which_item_was_refused() -> None:
    """The notice must not give a reason that belongs to another list."""
    calls = [edit("complete", 0), call("list_todos")]
    answers = [[turn("", made), turn("Done."), turn("Done.")] for made in calls]
    model = ScriptedChatModel(script=[*answers[0], *answers[1]])
    middleware = TodoMiddleware(check=never)
    graph: Graph = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    notices = []
    for text in "ab":
        final = graph.invoke({"messages": ["Go."], "todos": items(text)}, CONFIG)
        notices.append(final["messages"][-1].text)
    assert ["2 tests fail" in notice for notice in notices] == [True, False]


CALLS = st.one_of(
    st.builds(edit, st.sampled_from(["start", "complete", "abandon"]), st.integers(0, 3)),
    st.builds(
        lambda mode, texts: call("write_todos", mode=mode, index=0, todos=texts),
        st.sampled_from(["replace", "append", "insert"]),
        st.lists(st.sampled_from("ab"), max_size=2),
    ),
)


@settings(max_examples=100)
@given(
    turns=st.lists(st.lists(CALLS, min_size=1, max_size=4), max_size=4),
    refused=st.sets(st.integers(0, 3), max_size=2),
)
def test_no_item_is_completed_against_its_check(
    turns: list[list[ToolCall]], refused: set[int]
) -> None:
    """This holds whatever the model does and other middleware refuses; the check refuses "a"."""
    graph = node_graph(only("b"), wrap_tool_call=Refusing(*refused).wrap_tool_call)
    state: Any = {"messages": [HumanMessage("Go.")], "todos": items("a", "b")}
    for calls in turns:
        made: list[ToolCall] = [{**each, "id": str(uuid4())} for each in calls]
        state = graph.invoke({**state, "messages": [*state["messages"], turn("", *made)]})
        assert {"text": "a", "status": "completed"} not in state["todos"]
        assert read_list(model_view(state)) == as_read(state["todos"])
