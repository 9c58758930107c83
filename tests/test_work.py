"""An agent is sent back only after work, so the loop does not talk over a person.

Each scenario runs in a hand-built graph, in `create_agent` and in deepagents, sync and async.
"""

import asyncio
from collections.abc import Callable, Iterator
from itertools import chain, cycle, repeat
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from graphs.until_done import build_graph
from tests.support import Graph, edit, items, loop_of, plan
from tests.waiting import await_for
from todo_tools import AutoContinue, asks_user
from todo_tools.middleware import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_injected


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
APPROVAL = HumanInTheLoopMiddleware[Any, Any, Any]({"write_todos": True})


def hand_built(model: ScriptedChatModel, policy: AutoContinue, *, approval: bool) -> Graph:
    builder = build_graph(model, TOOLS, policy=policy)
    before = ["tools"] if approval else None
    return builder.compile(checkpointer=InMemorySaver(), interrupt_before=before)


def agent(model: ScriptedChatModel, policy: AutoContinue, *, approval: bool) -> Graph:
    middleware = [*([APPROVAL] if approval else []), TodoMiddleware(policy=policy)]
    return create_agent(model, TOOLS, middleware=middleware, checkpointer=InMemorySaver())


def deep_agent(model: ScriptedChatModel, policy: AutoContinue, *, approval: bool) -> Graph:
    middleware = [*([APPROVAL] if approval else []), TodoMiddleware(policy=policy)]
    return create_deep_agent(model, TOOLS, middleware=middleware, checkpointer=InMemorySaver())


Answers = Iterator[AIMessage | str]


class Thread:
    """A conversation with an agent whose model gives some answers and then only talks."""

    def __init__(self, graph: Graph, model: ScriptedChatModel, form: str) -> None:
        self.graph, self.model, self.form = graph, model, form
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
        await await_for(lambda: "tools" in self.next_nodes, "the tool")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    @property
    def next_nodes(self) -> tuple[str, ...]:
        return self.graph.get_state(self.config).next

    @property
    def messages(self) -> list[Any]:
        stored: list[Any] = self.graph.get_state(self.config).values["messages"]
        return stored

    @property
    def notes(self) -> int:
        """The number of continuations."""
        return sum(map(is_injected, self.messages))

    def check(self, *, calls: int, notes: int, outcome: str) -> None:
        """Check how often the model was called and sent back, and how the last run ended."""
        assert loop_of(self.graph, self.config)["outcome"] == outcome
        assert (len(self.model.prompts), self.notes) == (calls, notes)
        has_notice = "⚠ Stopped" in self.messages[-1].text
        assert has_notice == (outcome in {"stalled", "limit_in_a_row"})


Start = Callable[..., Thread]


def talks_after(answers: Answers) -> ScriptedChatModel:
    script = chain(answers, repeat("I stop here."))
    return ScriptedChatModel(script=lambda _: next(script))


@pytest.fixture(params=["sync", "async"])
def form(request: pytest.FixtureRequest) -> str:
    given: str = request.param
    return given


@pytest.fixture(params=[hand_built, agent, deep_agent])
def build(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def start(build: Any, form: str) -> Start:
    """A function that starts a conversation in one of the three kinds of agent."""

    def started(
        *answers: AIMessage | str, again: Any = (), approval: bool = False, **policy: Any
    ) -> Thread:
        model = talks_after(chain(answers, again))
        graph = build(model, AutoContinue(**policy), approval=approval)
        return Thread(graph, model, form)

    return started


def run_command(command: str) -> AIMessage:
    """A model's answer that runs a command, which always fails in the same way."""
    return turn("", call("shell", command=command))


def broken_call() -> AIMessage:
    """A model's answer whose only call has arguments that are not JSON."""
    made = invalid_tool_call(name="shell", args="{", id="broken", error="no JSON")
    return AIMessage("", invalid_tool_calls=[made])


class TestThePersonHasTheLastWord:
    """After a message, an agent that only answers is not sent back; its answer needs no notice."""

    async def test_stop_said_three_times(self, start: Start) -> None:
        thread = start()
        await thread.say("Stop.", "a", "b")
        for calls in (2, 3):
            await thread.say("Stop!")
            thread.check(calls=calls, notes=0, outcome="answered")

    async def test_a_new_subject(self, start: Start) -> None:
        """The open items stay in the list."""
        thread = start(plan("a", "b"), run_command("make"), "It fails.", "I stop.", "4.")
        await thread.say("Do a and b.")
        thread.check(calls=4, notes=1, outcome="stalled")
        await thread.say("Forget it. What is 2+2?")
        thread.check(calls=5, notes=1, outcome="answered")

    async def test_a_message_after_a_cancelled_run(self, start: Start) -> None:
        """The call that was cancelled got no result, and is not repeated."""
        thread = start(turn("", call("wait")))
        await thread.say_and_cancel("Begin.")
        await thread.say("Wait, tell me first what you do.", "a")
        thread.check(calls=2, notes=0, outcome="answered")

    async def test_a_question_without_work(self, start: Start) -> None:
        thread = start("Which colour?")
        await thread.say("Paint it.", "a")
        thread.check(calls=1, notes=0, outcome="answered")

    async def test_a_plan_that_was_only_approved(self, start: Start, build: Any) -> None:
        """Making the plan was work, so the agent is sent back once."""
        thread = start(plan("a", "b"), "Here is my plan.", approval=True)
        await thread.say("Make a plan.")
        approve: Any = Command(resume={"decisions": [{"type": "approve"}]})
        await thread.run(None if build is hand_built else approve)
        thread.check(calls=3, notes=1, outcome="stalled")


class TestWorkThatEnds:
    """After work, an agent that stops is sent back once; if it then only talks, the run ends."""

    async def test_a_question_after_work(self, start: Start) -> None:
        thread = start(plan("a"), "Which colour?", "I need the colour.")
        await thread.say("Paint it.")
        thread.check(calls=3, notes=1, outcome="stalled")

    async def test_a_question_after_work_can_end_the_run_at_once(self, start: Start) -> None:
        thread = start(plan("a"), "Which colour?", stop_when=asks_user)
        await thread.say("Paint it.")
        thread.check(calls=2, notes=0, outcome="stop_condition")

    async def test_a_blocked_agent(self, start: Start) -> None:
        thread = start(run_command("deploy"), "The key is missing.", "I cannot go on.")
        await thread.say("Deploy it.", "a")
        thread.check(calls=3, notes=1, outcome="stalled")

    async def test_a_call_with_broken_arguments(self, start: Start) -> None:
        """The model reads the error with the continuation; an answer before it ends the run."""
        thread = start(plan("a"), broken_call(), broken_call(), "I give up.")
        await thread.say("Begin.")
        thread.check(calls=3, notes=1, outcome="stalled")
        error, note = thread.model.prompts[2][-2:]
        assert isinstance(error, ToolMessage)
        assert error.status == "error"
        assert is_injected(note)


class TestRepetition:
    """A result that the agent got before is no work, so repetition ends."""

    async def test_the_same_failing_command(self, start: Start) -> None:
        rounds = ([run_command("make"), "It fails."] for _ in repeat(None))
        thread = start(again=chain.from_iterable(rounds))
        await thread.say("Make it.", "a")
        thread.check(calls=4, notes=1, outcome="stalled")

    async def test_two_commands_in_turns(self, start: Start) -> None:
        names = cycle(["make", "test"])
        rounds = ([run_command(name), "It fails."] for name in names)
        thread = start(again=chain.from_iterable(rounds))
        await thread.say("Make it.", "a")
        thread.check(calls=6, notes=2, outcome="stalled")

    async def test_the_same_list(self, start: Start) -> None:
        rounds = ([plan("a", "b"), "Here is my plan."] for _ in repeat(None))
        thread = start(again=chain.from_iterable(rounds))
        await thread.say("Begin.")
        thread.check(calls=4, notes=1, outcome="stalled")

    async def test_a_status_back_and_forth(self, start: Start) -> None:
        """Each change succeeds, but both results soon have been there before."""
        actions = cycle(["complete", "start"])
        rounds = ([edit(action, 0), "Hm."] for action in actions)
        thread = start(again=chain.from_iterable(rounds))
        await thread.say("Begin.", "a", "b")
        thread.check(calls=6, notes=2, outcome="stalled")

    async def test_a_new_message_allows_the_same_command_again(self, start: Start) -> None:
        rounds = ([run_command("make"), "It fails."] for _ in repeat(None))
        thread = start(again=chain.from_iterable(rounds))
        await thread.say("Make it.", "a")
        await thread.say("I installed make.")
        thread.check(calls=8, notes=2, outcome="stalled")


class TestLongWork:
    async def test_forty_items_with_a_word_after_each(self, start: Start) -> None:
        """No limit is in the way of an agent that works and stops after each item."""
        texts = [f"item {number}" for number in range(40)]
        rounds = ([edit("complete", index), "Next."] for index in range(40))
        thread = start(plan(*texts), "Planned.", again=chain.from_iterable(rounds))
        await thread.say("Begin.")
        thread.check(calls=82, notes=40, outcome="finished")


class TestMaxIdle:
    """How often in a row an agent that only talks is sent back again."""

    async def test_zero_is_never(self, start: Start) -> None:
        thread = start(max_idle=0)
        await thread.say("Begin.", "a")
        thread.check(calls=1, notes=0, outcome="answered")

    async def test_one_is_once(self, start: Start) -> None:
        thread = start(max_idle=1)
        await thread.say("Begin.", "a")
        thread.check(calls=2, notes=1, outcome="stalled")

    async def test_it_comes_after_a_continuation_for_work(self, start: Start) -> None:
        """Work starts the count again."""
        thread = start("Hm.", run_command("make"), "Hm.", "Hm.", max_idle=1)
        await thread.say("Begin.", "a")
        thread.check(calls=5, notes=3, outcome="stalled")

    async def test_without_a_limit_twenty_continuations_happen(self, start: Start) -> None:
        """The 21st is refused by the limit in a row."""
        thread = start(max_idle=None)
        await thread.say("Begin.", "a")
        thread.check(calls=21, notes=20, outcome="limit_in_a_row")


def without_pack(build: Any, model: ScriptedChatModel) -> Graph:
    """The same kind of agent, without the todo tools and the loop."""
    if build is deep_agent:
        return create_deep_agent(model, TOOLS, checkpointer=InMemorySaver())
    if build is agent:
        return create_agent(model, TOOLS, checkpointer=InMemorySaver())

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", answer)
    builder.add_node("tools", ToolNode(TOOLS))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize(
    "conversation",
    [
        lambda: ["Hello."],
        lambda: [run_command("make"), "It fails.", run_command("make"), "It fails again."],
        lambda: [broken_call(), broken_call()],
        lambda: [run_command("make"), broken_call()],
    ],
    ids=["talk", "tools", "broken calls", "a broken call after work"],
)
async def test_an_agent_without_a_list_behaves_as_without_this_pack(
    start: Start, build: Any, form: str, conversation: Callable[[], list[AIMessage | str]]
) -> None:
    """Its model is called as often, and the history is the same."""
    thread = start(*conversation())
    model = talks_after(iter(conversation()))
    other = Thread(without_pack(build, model), model, form)
    for each in (thread, other):
        await each.say("Begin.")
        await each.say("And now?")
    assert _history(thread) == _history(other)
    thread.check(calls=len(model.prompts), notes=0, outcome="no_todos")


def _history(thread: Thread) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in thread.messages]
