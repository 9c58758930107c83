"""A person approves the plan before any other tool runs."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from graphs.coding_agent import build_coding_agent, proposed_plan
from tests.prompt_reader import read_list
from tests.strategies import edit_calls, write_calls
from tests.support import BEGIN, Graph, edit, items, plan, result_of
from todo_tools import AutoContinue, format_todos
from todo_tools.middleware import TodoGateMiddleware, TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

APPROVE: dict[str, Any] = {"type": "approve"}
REJECT: dict[str, Any] = {"type": "reject", "message": "Measure first."}


def edited(*texts: str) -> dict[str, Any]:
    args = {"mode": "replace", "todos": list(texts)}
    return {"type": "edit", "edited_action": {"name": "write_todos", "args": args}}


def decided(*decisions: dict[str, Any]) -> Any:
    return Command(resume={"decisions": list(decisions)})


class Watched:
    """An agent that records events: `ask`, the person's decisions, and `dig`."""

    def __init__(self, turns: list[AIMessage], decisions: list[dict[str, Any]]) -> None:
        self.happened: list[str] = []
        self.decisions = decisions
        script = iter(turns)
        model = ScriptedChatModel(script=lambda _: next(script, "I stop here."))

        @tool
        def dig() -> str:
            """Dig a hole."""
            self.happened.append("dig")
            return "A hole."

        self.graph = create_agent(
            model,
            [dig],
            middleware=[
                TodoGateMiddleware(),
                TodoMiddleware(policy=AutoContinue(max_in_turn=3)),
                HumanInTheLoopMiddleware({"write_todos": True}),
            ],
            checkpointer=InMemorySaver(),
        )

    async def run(self, invoke: Callable[..., Any]) -> None:
        given: Any = BEGIN
        while interrupts := (await invoke(self.graph, given)).get("__interrupt__"):
            asked = interrupts[0].value["action_requests"]
            chosen = [self.decide() for _ in asked]
            self.happened.extend(decision["type"] for decision in chosen)
            given = decided(*chosen)

    def decide(self) -> dict[str, Any]:
        return self.decisions.pop(0) if self.decisions else REJECT


CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}


async def synchronously(graph: Graph, given: Any) -> Any:
    return await asyncio.to_thread(graph.invoke, given, CONFIG)


async def asynchronously(graph: Graph, given: Any) -> Any:
    return await graph.ainvoke(given, CONFIG)


calls = st.one_of(
    st.builds(lambda args: call("write_todos", **args), write_calls),
    st.builds(lambda args: call("edit_todos", **args), edit_calls),
    st.builds(lambda: plan("a", "b").tool_calls[0]),
    st.builds(lambda: edit("start", 0).tool_calls[0]),
    st.builds(lambda: call("dig")),
)
turns = st.lists(calls, max_size=4).map(lambda made: turn("", *made))


@pytest.mark.parametrize("invoke", [synchronously, asynchronously])
@settings(max_examples=50)
@given(
    script=st.lists(turns, max_size=6),
    decisions=st.lists(st.sampled_from([APPROVE, REJECT, edited("c")]), max_size=6),
)
def test_no_other_tool_runs_before_an_approval(
    invoke: Callable[..., Any], script: list[AIMessage], decisions: list[dict[str, Any]]
) -> None:
    """An edit approves the person's version."""
    watched = Watched(script, decisions)
    asyncio.run(watched.run(invoke))
    if "dig" in watched.happened:
        before = watched.happened[: watched.happened.index("dig")]
        assert {"approve", "edit"} & set(before)


def test_the_tools_of_an_approved_plan_run() -> None:
    """This includes the tools called in the same message as the plan."""
    together = [*plan("a").tool_calls, *edit("start", 0).tool_calls, call("dig")]
    watched = Watched([turn("", *together)], [APPROVE])
    asyncio.run(watched.run(asynchronously))
    assert watched.happened == ["approve", "dig"]


class TestCodingAgent:
    def agent(
        self, workdir: Path, saver: BaseCheckpointSaver[Any], *script: AIMessage | str
    ) -> tuple[Graph, ScriptedChatModel]:
        model = ScriptedChatModel(script=list(script))
        agent = build_coding_agent(
            model,
            workdir,
            ask=False,
            ask_plan=True,
            policy=AutoContinue(max_in_turn=0),
            checkpointer=saver,
        )
        return agent, model

    def test_a_killed_process_asks_again_and_the_model_sees_the_edited_list(
        self, tmp_path: Path, config: RunnableConfig
    ) -> None:
        """Another process resumes the thread from the file."""
        file = str(tmp_path / "threads.db")
        with SqliteSaver.from_conn_string(file) as saver:
            graph, _ = self.agent(tmp_path, saver, plan("a", "b"))
            (asked,) = graph.invoke(BEGIN, config)["__interrupt__"]
        with SqliteSaver.from_conn_string(file) as saver:
            graph, model = self.agent(tmp_path, saver, "Planned.")
            (again,) = graph.invoke(None, config)["__interrupt__"]
            assert again.value == asked.value
            final = graph.invoke(decided(edited("a", "c")), config)
        assert final["todos"] == items("a", "c")
        assert read_list(model.prompts[-1]) == [("a", "not_started"), ("c", "not_started")]

    def test_the_whole_list_is_shown(self, tmp_path: Path, config: RunnableConfig) -> None:
        """For a call that only adds items, they are shown in the whole list."""
        more = turn("", call("write_todos", mode="insert", index=1, todos=["b"]))
        graph, _ = self.agent(tmp_path, InMemorySaver(), more)
        seeded = {**BEGIN, "todos": items("a", "c")}
        (asked,) = graph.invoke(seeded, config)["__interrupt__"]
        (request,) = asked.value["action_requests"]
        assert request["description"] == "– [0] a\n– [1] b\n– [2] c"  # noqa: RUF001

    def test_no_tool_runs_before_the_plan(self, tmp_path: Path, config: RunnableConfig) -> None:
        write = turn("", call("write_file", file_path="a", content="x"))
        graph, _ = self.agent(tmp_path, InMemorySaver(), write, "I may not.")
        graph.invoke(BEGIN, config)
        assert not (tmp_path / "a").exists()


@given(args=write_calls)
@example(args={"mode": "replace", "index": "", "todos": ["b"]})
@example(args={"mode": "append", "index": True, "todos": ["b"]})
@example(args={"mode": "insert", "index": "0", "todos": ["b"]})
def test_a_plan_is_shown_as_the_tool_will_write_it(args: dict[str, Any]) -> None:
    """Also with arguments that models write and the tool does not read."""
    before = items("a")
    result = result_of("write_todos", args, before)
    shown = proposed_plan(call("write_todos", **args), {"todos": before}, None)
    assert result.status == "error" or shown == format_todos(result.artifact["todos"])


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"mode": "add"},
        {"mode": "insert"},
        {"mode": "insert", "index": 2},
        {"mode": "append", "todos": ["b", " "]},
    ],
    ids=str,
)
def test_a_plan_that_the_tool_refuses_is_shown_as_it_was_written(args: dict[str, Any]) -> None:
    """With the reason."""
    written = {"todos": ["b"], **args}
    assert result_of("write_todos", written, items("a")).status == "error"
    shown = proposed_plan(call("write_todos", **written), {"todos": items("a")}, None)
    assert shown.endswith(f"\n\n{written}")


def test_the_list_after_a_later_plan_of_a_message_has_the_earlier_ones() -> None:
    """One that the tool refuses changes nothing."""
    written = [
        {"mode": "replace", "todos": ["b"]},
        {"mode": "add", "todos": ["c"]},
        {"mode": "append", "todos": ["d"]},
    ]
    message = turn("", *(call("write_todos", **args) for args in written))
    state = {"todos": items("a"), "messages": [message]}
    assert proposed_plan(message.tool_calls[-1], state, None) == format_todos(items("b", "d"))
