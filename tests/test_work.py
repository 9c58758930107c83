"""An agent is sent back only after work, so the loop does not talk over a person.

Each conversation is held with a hand-built graph, `create_agent` and deepagents, sync and async.
`tests/test_stopping_table.py` has the single runs.
"""

import asyncio
from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphs.until_done import build_graph
from tests.support import Graph, items, outcome_of, plan
from tests.waiting import await_for
from todo_tools import TodoMiddleware
from todo_tools._thread.transcript import is_injected
from todo_tools.testing import ScriptedChatModel, call, turn


@tool
def shell(command: str) -> str:
    """Run a command."""
    return f"{command}: command not found"


def _stop() -> str:
    raise KeyboardInterrupt  # as Ctrl-C does


async def _wait() -> str:
    await asyncio.Event().wait()
    return ""


wait = StructuredTool.from_function(_stop, _wait, name="wait", description="Wait for ever.")
TOOLS: list[BaseTool] = [shell, wait]


def hand_built(model: ScriptedChatModel) -> Graph:
    return build_graph(model, TOOLS).compile(checkpointer=InMemorySaver())


def agent(model: ScriptedChatModel) -> Graph:
    """A person approves each plan."""
    middleware: list[Any] = [HumanInTheLoopMiddleware({"write_todos": True}), TodoMiddleware()]
    return create_agent(model, TOOLS, middleware=middleware, checkpointer=InMemorySaver())


def deep_agent(model: ScriptedChatModel) -> Graph:
    return create_deep_agent(
        model, TOOLS, middleware=[TodoMiddleware()], checkpointer=InMemorySaver()
    )


class Thread:
    """A conversation with an agent whose model gives some answers and then only talks."""

    def __init__(self, build: Any, form: str, *answers: AIMessage | str) -> None:
        script = chain(answers, repeat("I stop here."))
        self.model = ScriptedChatModel(script=lambda _: next(script))
        self.graph: Graph = build(self.model)
        self.form = form
        self.config: RunnableConfig = {"configurable": {"thread_id": "1"}}

    async def run(self, given: Any) -> None:
        if self.form == "sync":
            self.graph.invoke(given, self.config)
        else:
            await self.graph.ainvoke(given, self.config)

    async def say(self, words: str, *todos: str) -> None:
        """Send a message, with a list if items are given."""
        seeded = {"todos": items(*todos)} if todos else {}
        await self.run({"messages": [("user", words)], **seeded})

    async def say_and_cancel(self, words: str) -> None:
        """Send a message, and cancel the run while the tool `wait` runs."""
        if self.form == "sync":
            with pytest.raises(KeyboardInterrupt):
                await self.say(words)
            return
        task = asyncio.create_task(self.say(words))
        await await_for(lambda: "tools" in self.graph.get_state(self.config).next, "the tool")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    def check(self, *, calls: int, notes: int, outcome: str) -> None:
        """Check how often the model was called and sent back, and how the last run ended."""
        values = self.graph.get_state(self.config).values
        assert outcome_of(values) == outcome
        sent_back = sum(map(is_injected, values["messages"]))
        assert (len(self.model.prompts), sent_back) == (calls, notes)
        assert ("⚠ Stopped" in values["messages"][-1].text) == (outcome == "stalled")


Start = Callable[..., Thread]


@pytest.fixture(params=[hand_built, agent, deep_agent])
def build(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["sync", "async"])
def start(build: Any, request: pytest.FixtureRequest) -> Start:
    """A function that starts a conversation in one of the three kinds of agent."""
    return lambda *answers: Thread(build, request.param, *answers)


def run_command(command: str) -> AIMessage:
    """A model's answer that runs a command, which always fails in the same way."""
    return turn("", call("shell", command=command))


async def test_a_new_subject(start: Start) -> None:
    """After work the agent is sent back; after another request it is not."""
    thread = start(run_command("make"), "It fails.", "I stop.", "4.")
    await thread.say("Do a and b.", "a", "b")
    thread.check(calls=3, notes=1, outcome="stalled")
    await thread.say("Forget it. What is 2+2?")
    thread.check(calls=4, notes=1, outcome="answered")
    await thread.say("Thanks.")
    thread.check(calls=5, notes=1, outcome="answered")


async def test_a_message_after_a_cancelled_run(start: Start) -> None:
    """The call that was cancelled got no result, and is not repeated."""
    thread = start(turn("", call("wait")))
    await thread.say_and_cancel("Begin.")
    await thread.say("Wait, tell me first what you do.", "a")
    thread.check(calls=2, notes=0, outcome="answered")


@pytest.mark.parametrize("build", [agent])
class TestApproval:
    async def test_a_plan_that_was_only_approved(self, start: Start) -> None:
        """Making the plan was work, so the agent is sent back once."""
        thread = start(plan("a", "b"), "Here is my plan.")
        await thread.say("Make a plan.")
        await thread.run(Command(resume={"decisions": [{"type": "approve"}]}))
        thread.check(calls=3, notes=1, outcome="stalled")

    async def test_a_rejected_call(self, start: Start) -> None:
        """The rejection is the result of the call, but it is no work."""
        thread = start(plan("b"), "I stop.")
        await thread.say("Begin.", "a")
        no = {"type": "reject", "message": "Stop. Do nothing more."}
        await thread.run(Command(resume={"decisions": [no]}))
        thread.check(calls=2, notes=0, outcome="answered")
