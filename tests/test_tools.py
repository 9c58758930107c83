"""The three tools in graphs: order of calls, artifacts, events, and misuse."""

from dataclasses import asdict
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command
from langgraph.warnings import LangGraphDeprecatedSinceV10

from tests.support import BEGIN, Graph, items, results_in, tool_graph
from todo_tools import (
    DeltaTodoState,
    TodoLimits,
    TodoState,
    create_todo_tools,
    todos_from_messages,
)
from todo_tools._list.prompts import PROMPT_GUIDELINES, PROMPT_SNIPPET
from todo_tools.testing import ScriptedChatModel, call, turn


def todo_graph(state: Any = TodoState, limits: TodoLimits = TodoLimits()) -> Graph:
    return tool_graph(create_todo_tools(limits), state)


def agent_graph(*calls: ToolCall, **options: Any) -> Graph:
    """A `create_agent` agent whose model makes calls in one turn; each call is one task."""
    model = ScriptedChatModel(script=[turn("", *calls), "Done."])
    state: Any = TodoState  # despite the annotation, it need not derive from AgentState
    return create_agent(model, create_todo_tools(), state_schema=state, **options)


NOT_WRITTEN = (
    "Error: an earlier write_todos call of this turn was not carried out as you made it, so this "
    "call changed nothing; read the list and call again if it still fits"
)
SIBLINGS = (
    call("write_todos", mode="replace", todos=["a", "b"]),
    call("edit_todos", action="start", indices=[0]),
    call("write_todos", mode="insert", index=0, todos=["first"]),
    call("edit_todos", action="complete", indices=[1]),
    call("edit_todos", action="complete", indices=[9]),
    call("list_todos"),
)
ANSWERS = [
    "Wrote 2 todo item(s)\n\n– [0] a\n– [1] b",  # noqa: RUF001  the specified icon
    "Started [0]\n\n● [0] a\n– [1] b",  # noqa: RUF001
    "Inserted 1 item(s) at index 0\n\n– [0] first\n● [1] a\n– [2] b",  # noqa: RUF001
    "Completed [1]\n\n– [0] first\n✓ [1] a\n– [2] b",  # noqa: RUF001
    "Error: indices [9] out of range (0 to 2)",
    "– [0] first\n✓ [1] a\n– [2] b",  # noqa: RUF001
]
AFTER = [*items("first"), *items("a", status="completed"), *items("b")]


class TestSeveralCallsInOneMessage:
    """Calls are applied in order, and each returns the list after itself."""

    def check(self, final: dict[str, Any]) -> None:
        assert [message.text for message in results_in(final)] == ANSWERS
        assert final["todos"] == AFTER == todos_from_messages(final["messages"])

    @pytest.mark.parametrize("state", [TodoState, DeltaTodoState])
    def test_in_a_tool_node(self, state: Any) -> None:
        """One task runs all of them in threads."""
        self.check(todo_graph(state).invoke({"messages": [turn("", *SIBLINGS)]}))

    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_in_create_agent(self, form: str) -> None:
        """Each call is its own task."""
        agent = agent_graph(*SIBLINGS)
        self.check(agent.invoke(BEGIN) if form == "sync" else await agent.ainvoke(BEGIN))

    def test_a_look_at_the_list_changes_nothing_for_later_calls(self) -> None:
        look, tick = call("list_todos"), call("edit_todos", action="complete", indices=[0])
        final = todo_graph(TodoState).invoke({"messages": [turn("", look, tick)], "todos": ["a"]})
        assert final["todos"] == items("a", status="completed")

    def test_a_rejected_sibling_does_not_count(self, config: RunnableConfig) -> None:
        """Later calls are made without it, but not those that name items by their indices."""
        agent = agent_graph(
            *SIBLINGS,
            middleware=[HumanInTheLoopMiddleware({"write_todos": True})],
            checkpointer=InMemorySaver(),
        )
        agent.invoke(BEGIN, config)
        decisions = [{"type": "approve"}, {"type": "reject", "message": "Not that one."}]
        final = agent.invoke(Command(resume={"decisions": decisions}), config)
        # The model meant "a", which would have been [1].
        assert final["todos"] == [*items("a", status="in_progress"), *items("b")]
        assert final["todos"] == todos_from_messages(final["messages"])
        completed = next(m for m in results_in(final) if m.tool_call_id == SIBLINGS[3]["id"])
        assert completed.text == NOT_WRITTEN
        assert completed.artifact["error"] == "the list was not written"

    def test_indices_do_not_count_on_a_list_that_was_refused(self) -> None:
        """A later call that adds items is made."""
        refused = call("write_todos", mode="insert", index=0, todos=["x" * 2_000])
        tick = call("edit_todos", action="complete", indices=[1])
        more = call("write_todos", mode="append", todos=["c"])
        state = {"messages": [turn("", refused, tick, more)], "todos": items("a", "b")}
        final = todo_graph().invoke(state)
        assert results_in(final)[1].text == NOT_WRITTEN
        assert final["todos"] == items("a", "b", "c") == todos_from_messages(final["messages"])


def appends(text: str, call_id: str | None, **more: Any) -> ToolCall:
    return {**call("write_todos", mode="append", todos=[text], **more), "id": call_id}


def run_in_a_tool_node(*calls: ToolCall) -> dict[str, Any]:
    return todo_graph().invoke({"messages": [turn("", *calls)]})


def run_in_create_agent(*calls: ToolCall) -> dict[str, Any]:
    return agent_graph(*calls).invoke(BEGIN)


class ReactState(TodoState):
    remaining_steps: RemainingSteps


def test_the_prebuilt_agent_takes_the_state_with_its_own_key() -> None:
    """The docstring of `TodoState` names this key."""
    model = ScriptedChatModel(script=[turn("", *SIBLINGS), "Done."])
    with pytest.warns(LangGraphDeprecatedSinceV10):
        agent = create_react_agent(model, create_todo_tools(), state_schema=ReactState)
    assert agent.invoke(BEGIN)["todos"] == AFTER


@pytest.mark.parametrize("run", [run_in_a_tool_node, run_in_create_agent])
class TestIds:
    """Model servers create the ids; some repeat ids, some omit them."""

    def test_all_calls_with_a_repeated_id_are_refused(self, run: Any) -> None:
        """None of them could be matched with its result; other calls of the message run."""
        final = run(appends("a", "x"), appends("b", "x"), appends("c", "y"))
        first, second, third = results_in(final)
        assert (first.status, second.status, third.status) == ("error", "error", "success")
        assert first.text == second.text
        assert first.text == (
            "Error: another call of this turn has the same id, so this one was not run; call again"
        )
        assert first.artifact["error"] == "repeated call id"
        assert final["todos"] == items("c") == todos_from_messages(final["messages"])

    @pytest.mark.parametrize("call_id", [None, ""])
    def test_a_call_without_an_id_is_refused(self, run: Any, call_id: str | None) -> None:
        """It could not be matched with its result."""
        final = run(appends("a", call_id), appends("b", "x"))
        refused, added = results_in(final)
        assert (refused.status, added.status) == ("error", "success")
        assert refused.text == "Error: this call has no id, so it was not run; call again"
        assert refused.artifact["error"] == "no call id"
        assert final["todos"] == items("b") == todos_from_messages(final["messages"])

    def test_ids_may_be_the_same_in_every_turn(self, run: Any) -> None:
        """A result belongs to the turn that it follows."""
        earlier = run(appends("a", "call_0"), appends("b", "call_1"))
        history = [*earlier["messages"], turn("", appends("c", "call_0"), appends("d", "call_1"))]
        final = todo_graph().invoke({"messages": history, "todos": earlier["todos"]})
        assert (
            final["todos"] == items("a", "b", "c", "d") == results_in(final)[-1].artifact["todos"]
        )


def test_a_call_without_an_id_gets_its_result_also_with_a_seeded_list() -> None:
    """It is a plain message, since a command needs an id; so the run goes on."""
    messages = [HumanMessage("Begin.", id="1"), turn("", appends("b", None))]
    final = todo_graph().invoke({"messages": messages, "todos": items("a")})
    assert [message.status for message in results_in(final)] == ["error"]
    assert final["todos"] == items("a")


class TestResults:
    def run(self, *calls: ToolCall, **state: Any) -> dict[str, Any]:
        return todo_graph().invoke({"messages": [turn("", *calls)], **state})

    def test_details_are_the_artifact(self) -> None:
        """The content of the message is the result's text."""
        (message,) = results_in(self.run(call("write_todos", mode="append", todos=["a"])))
        assert message.artifact == {"action": "write", "todos": items("a")}
        assert (message.status, message.name) == ("success", "write_todos")

    @pytest.mark.parametrize(("text", "in_a_row"), [("a", 3), ("b", 0)])
    def test_only_a_change_of_the_list_resets_the_count_in_a_row(
        self, text: str, in_a_row: int
    ) -> None:
        """A list that is written again unchanged is no progress."""
        write = call("write_todos", mode="replace", todos=[text])
        final = self.run(write, todos=items("a"), todo_loop={"in_a_row": 3})
        assert final["todo_loop"]["in_a_row"] == in_a_row


class TestEvents:
    async def test_every_change_is_written_to_the_custom_stream(self) -> None:
        """Reading calls and refused calls write nothing."""
        state: dict[str, Any] = {"messages": [turn("", *SIBLINGS)]}
        events = [event async for event in todo_graph().astream(state, stream_mode="custom")]
        assert len(events) == 4
        (turn_id,) = {event["turn"] for event in events}
        assert events[1] == {
            "type": "todos",
            "todos": [*items("a", status="in_progress"), *items("b")],
            "status": "📋 0/2",
            "in_progress": ["[0] a"],
            "position": 1,
            "turn": turn_id,
        }


class TestMisuse:
    @pytest.mark.parametrize("tool", create_todo_tools(), ids=lambda tool: tool.name)
    async def test_outside_a_graph_a_tool_answers_with_an_error(self, tool: BaseTool) -> None:
        """This holds for a tool call as well as for bare arguments."""
        tool_call = {"type": "tool_call", "name": tool.name, "args": {}, "id": "1"}
        for message in (tool.invoke(tool_call), await tool.ainvoke(tool_call)):
            assert message.status == "error"
            assert "only inside a LangGraph graph" in message.text
            assert "Give create_agent the TodoMiddleware" in message.text
        assert "nothing was changed" in tool.invoke({})

    def test_a_state_without_the_channel_is_an_error(self) -> None:
        """The tool does not report a success that is not stored."""
        (message,) = results_in(
            todo_graph(MessagesState).invoke({"messages": [turn("", SIBLINGS[0])]})
        )
        assert message.status == "error"
        assert "todo_tools.TodoState" in message.text

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"limits": 100}, "limits must be a TodoLimits, got 100"),
            ({"descriptions": {"read": "Read."}}, "unknown tool 'read'; the tools are write_todos"),
            ({"descriptions": {"list_todos": 5}}, r"description\s+Input should be a valid string"),
        ],
    )
    def test_wrong_settings_are_refused_at_build_time(self, settings: Any, message: str) -> None:
        with pytest.raises((TypeError, ValueError), match=message):
            create_todo_tools(**settings)


class TestMetadata:
    def test_label_snippet_and_guidelines_match_the_specification(self) -> None:
        """Interfaces show the label, and prompts quote the other two."""
        write, listing, edit = create_todo_tools()
        assert [tool.name for tool in (write, listing, edit)] == [
            "write_todos",
            "list_todos",
            "edit_todos",
        ]
        assert write.metadata == {
            "label": "Write Todos",
            "prompt_snippet": PROMPT_SNIPPET,
            "prompt_guidelines": list(PROMPT_GUIDELINES),
            "limits": asdict(TodoLimits()),
        }
        assert len(PROMPT_GUIDELINES) == 8
