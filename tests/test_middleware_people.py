"""What people decide and change while an agent with `TodoMiddleware` waits."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from tests.prompt_reader import read_list
from tests.support import BEGIN, Graph, items, plan, results_in
from todo_tools import TodoItem, TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

OPEN_AND_CLOSED = [*items("a", status="abandoned"), *items("b")]


def agent(model: ScriptedChatModel, *middleware: Any, **options: Any) -> Graph:
    tools = options.pop("tools", [])
    saver = InMemorySaver()
    return create_agent(model, tools, middleware=middleware, checkpointer=saver, **options)


def scripted(*script: AIMessage | str) -> ScriptedChatModel:
    return ScriptedChatModel(script=list(script))


class TestCancelledStep:
    """LangGraph keeps the finished results of a step that was cancelled, for a resume only."""

    @pytest.mark.parametrize("form", ["resumed", "sent along", "only a message"])
    def test_its_changes_of_the_list_are_kept_if_it_is_resumed_or_if_they_are_sent_along(
        self, form: str, config: RunnableConfig
    ) -> None:
        cancelled = iter([True])

        @tool
        def saw() -> str:
            """Saw the board."""
            if next(cancelled, False):
                raise KeyboardInterrupt
            return "Sawn."

        model = ScriptedChatModel(
            script=[turn("", *plan("Saw").tool_calls, call("saw")), "I wait.", "Yes."]
        )
        graph = agent(model, TodoMiddleware(), tools=[saw])
        with pytest.raises(KeyboardInterrupt):
            graph.invoke(BEGIN, config)
        todos = graph.get_state(config).values["todos"]
        assert todos == items("Saw")
        message: Any = {"messages": [("user", "Wait.")]}
        requests = {"resumed": None, "sent along": {**message, "todos": todos}}
        final = graph.invoke(requests.get(form, message), config)
        assert final["todos"] == ([] if form == "only a message" else todos)


class TestApproval:
    """A person decides about the todo calls of a message before they run."""

    @pytest.mark.parametrize("order", [1, -1])
    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_a_person_may_approve_edit_and_reject_todo_calls(
        self, config: RunnableConfig, form: str, order: int
    ) -> None:
        """Later calls add to the list after those decisions; indices do not count on it."""
        calls = [
            call("write_todos", mode="append", todos=["first"]),
            call("write_todos", mode="append", todos=["second"]),
            call("write_todos", mode="append", todos=["third"]),
            call("edit_todos", action="complete", indices=[0]),
            call("write_todos", mode="append", todos=["fourth"]),
        ]
        model = scripted(turn("", *calls), *["Done."] * 3)
        approval = HumanInTheLoopMiddleware[Any, Any, Any]({"write_todos": True})
        middleware = [approval, TodoMiddleware()]
        graph = agent(model, *middleware[::order])
        decisions = [
            {"type": "approve"},
            {"type": "reject", "message": "Not that."},
            {
                "type": "edit",
                "edited_action": {
                    "name": "write_todos",
                    "args": {"mode": "insert", "index": 0, "todos": ["edited"]},
                },
            },
            {"type": "approve"},
        ]
        resume: Any = Command(resume={"decisions": decisions})
        if form == "sync":
            graph.invoke(BEGIN, config)
            final = graph.invoke(resume, config)
        else:
            await graph.ainvoke(BEGIN, config)
            final = await graph.ainvoke(resume, config)
        assert final["todos"] == items("edited", "first", "fourth")
        assert read_list(model.prompts[-1]) == [
            (todo["text"], "not_started") for todo in final["todos"]
        ]
        tick = next(
            m for m in final["messages"] if getattr(m, "tool_call_id", "") == calls[3]["id"]
        )
        assert tick.text.startswith("Error: an earlier write_todos call of this turn")

    def test_a_tick_does_not_depend_on_a_rejected_start(self, config: RunnableConfig) -> None:
        """Its index names the same item, whatever the status is."""
        start = call("edit_todos", action="start", indices=[0])
        tick = call("edit_todos", action="complete", indices=[0])
        approval = HumanInTheLoopMiddleware({"edit_todos": True})
        graph = agent(scripted(turn("", start, tick), "Done."), TodoMiddleware(), approval)
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        decisions = [{"type": "reject"}, {"type": "approve"}]
        final = graph.invoke(Command(resume={"decisions": decisions}), config)
        assert final["todos"] == items("a", status="completed")


class TestListsThatPeopleChange:
    """At an interrupt, a person changes the list; then the waiting calls of the answer run."""

    TICK = call("edit_todos", action="complete", indices=[0])

    def run(
        self, config: RunnableConfig, *calls: ToolCall, change: Any, **options: Any
    ) -> list[ToolMessage]:
        model = ScriptedChatModel(script=[turn("", *calls), "Done."])
        graph = agent(model, TodoMiddleware(policy=None), interrupt_before=["tools"], **options)
        graph.invoke({**BEGIN, "todos": items("a", "b")}, config)
        graph.update_state(config, {"todos": change})
        self.todos = graph.invoke(None, config)["todos"]
        return results_in(graph.get_state(config).values)

    @pytest.mark.parametrize(
        "change", [items("x", "a", "b"), items("b"), items("a", "b", "x"), OPEN_AND_CLOSED, []]
    )
    @pytest.mark.parametrize(
        "waiting",
        [
            TICK,
            call("write_todos", mode="replace", todos=["y"]),
            call("write_todos", mode="append", todos=["y"]),
        ],
    )
    def test_a_call_that_would_change_the_new_list_is_refused(
        self, config: RunnableConfig, waiting: ToolCall, change: Any
    ) -> None:
        """The model has not read it: an index may be another item, and a plan may lack one."""
        (result,) = self.run(config, waiting, change=change)
        assert result.status == "error"
        assert self.todos == change

    def test_the_model_is_told_what_to_do(self, config: RunnableConfig) -> None:
        (result,) = self.run(config, self.TICK, change=items("x", "a", "b"))
        assert result.text == (
            "Error: the list was changed after you read it, so this call changed nothing; read the "
            "new list and call again if it still fits"
        )

    @pytest.mark.parametrize("change", [None, items("a", "b")])
    def test_the_same_list_refuses_nothing(self, config: RunnableConfig, change: Any) -> None:
        (result,) = self.run(config, self.TICK, change=change)
        assert result.text.startswith("Completed [0]")

    def test_the_answer_to_one_question_completes_no_other_item(
        self, config: RunnableConfig
    ) -> None:
        """A check asks about the first item; the person completes it and starts the second one."""

        def check(item: TodoItem, _: object) -> str | None:
            return None if interrupt(item["text"]) == "yes" else "no"

        tick = turn("", call("edit_todos", action="complete", indices=[0, 1]))
        graph = agent(scripted(tick, "Done."), TodoMiddleware(policy=None, check=check))
        graph.invoke({**BEGIN, "todos": items("a", "b")}, config)
        edited = [*items("a", status="completed"), *items("b", status="in_progress")]
        done = graph.invoke(Command(resume="yes", update={"todos": edited}), config)
        assert done["todos"] == edited
