"""An agent is sent back only after work, so the loop does not talk over a person.

Each scenario runs in a hand-built graph, in `create_agent` and in deepagents, sync and async.
"""

import asyncio
from collections.abc import Callable, Iterator
from itertools import chain, cycle, repeat
from typing import Any, NamedTuple

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphs.until_done import build_graph
from tests.support import Graph, edit, items, outcome_of, plan
from tests.waiting import await_for
from todo_tools import AutoContinue, TodoItem, TodoMiddleware, asks_user, has_worked
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
Check = Callable[[TodoItem, Any], str | None]
APPROVAL = HumanInTheLoopMiddleware[Any, Any, Any]({"write_todos": True})


class Settings(NamedTuple):
    """How an agent is built."""

    policy: AutoContinue
    check: Check | None
    approval: bool
    """Whether a person approves each plan."""

    @property
    def middleware(self) -> list[Any]:
        todos = TodoMiddleware(policy=self.policy, check=self.check)
        return [*([APPROVAL] if self.approval else []), todos]


def hand_built(model: ScriptedChatModel, settings: Settings) -> Graph:
    builder = build_graph(model, TOOLS, policy=settings.policy, check=settings.check)
    before = ["tools"] if settings.approval else None
    return builder.compile(checkpointer=InMemorySaver(), interrupt_before=before)


def agent(model: ScriptedChatModel, settings: Settings) -> Graph:
    saver = InMemorySaver()
    return create_agent(model, TOOLS, middleware=settings.middleware, checkpointer=saver)


def deep_agent(model: ScriptedChatModel, settings: Settings) -> Graph:
    saver = InMemorySaver()
    return create_deep_agent(model, TOOLS, middleware=settings.middleware, checkpointer=saver)


Answers = Iterator[AIMessage | str]


class Thread:
    """A conversation with an agent whose model gives some answers and then only talks."""

    def __init__(self, graph: Graph, model: ScriptedChatModel, form: str) -> None:
        self.graph, self.model, self.form = graph, model, form
        self.config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        self.events: list[Any] = []

    async def run(self, given: Any) -> None:
        if self.form == "sync":
            for event in self.graph.stream(given, self.config, stream_mode="custom"):
                self.events.append(event)
        else:
            async for event in self.graph.astream(given, self.config, stream_mode="custom"):
                self.events.append(event)

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

    @property
    def messages(self) -> list[Any]:
        stored: list[Any] = self.graph.get_state(self.config).values.get("messages", [])
        return stored

    @property
    def todos(self) -> list[TodoItem]:
        stored: list[TodoItem] = self.graph.get_state(self.config).values["todos"]
        return stored

    @property
    def answers_sent(self) -> list[AIMessage]:
        """The model's own answers in its last prompt."""
        return [each for each in self.model.prompts[-1] if isinstance(each, AIMessage)]

    @property
    def notes(self) -> int:
        """The number of continuations."""
        return sum(map(is_injected, self.messages))

    def check(self, *, calls: int, notes: int, outcome: str) -> None:
        """Check how often the model was called and sent back, and how the last run ended."""
        has_notice = "⚠ Stopped" in self.messages[-1].text
        assert outcome_of(self.graph.get_state(self.config).values) == outcome
        assert (len(self.model.prompts), self.notes) == (calls, notes)
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
        *answers: AIMessage | str,
        again: Any = (),
        approval: bool = False,
        check: Check | None = None,
        **policy: Any,
    ) -> Thread:
        model = talks_after(chain(answers, again))
        graph = build(model, Settings(AutoContinue(**policy), check, approval))
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

    async def test_a_tool_call_before_the_answer_to_stop(self, start: Start) -> None:
        """A look at the list is no work."""
        thread = start(turn("", call("list_todos")), "I stop.")
        await thread.say("Stop.", "a")
        thread.check(calls=2, notes=0, outcome="answered")

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

    @pytest.mark.parametrize("build", [agent, deep_agent])
    async def test_a_rejected_call(self, start: Start) -> None:
        """The rejection is the result of the call, but it is no work."""
        thread = start(plan("b"), "I stop.", approval=True)
        await thread.say("Begin.", "a")
        no = {"type": "reject", "message": "Stop. Do nothing more."}
        await thread.run(Command(resume={"decisions": [no]}))
        thread.check(calls=2, notes=0, outcome="answered")

    async def test_a_no_to_the_question_whether_to_go_on(self, start: Start) -> None:
        """It is no message, so the model is not called again."""
        thread = start(plan("a"), "I rest.", ask=True)
        await thread.say("Begin.")
        await thread.run(Command(resume="no"))
        thread.check(calls=2, notes=0, outcome="declined")


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


async def test_no_empty_answer_is_sent_back_to_the_model(start: Start) -> None:
    """It ends a turn as any other does; some providers refuse it in a prompt."""
    thread = start(run_command("make"), "", "It fails.", "", "Hello.")
    await thread.say("Make it.", "a")
    thread.check(calls=3, notes=1, outcome="stalled")
    await thread.say("Hm?")
    thread.check(calls=4, notes=1, outcome="answered")
    await thread.say("Well?")
    assert all(each.text or each.tool_calls for each in thread.answers_sent)
    assert thread.answers_sent[-1].text == "(This answer was empty.)"


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
        first, again = (m.text for m in thread.model.prompts[-1] if isinstance(m, ToolMessage))
        assert "Nothing changed" in again
        assert "Nothing changed" not in first


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

    async def test_without_a_limit_twenty_continuations_happen(self, start: Start) -> None:
        """The 21st is refused by the limit in a row."""
        thread = start(max_idle=None)
        await thread.say("Begin.", "a")
        thread.check(calls=21, notes=20, outcome="limit_in_a_row")


class TestTicksWithoutWork:
    """With `has_worked`, a model that plays with the list completes nothing."""

    async def test_an_item_for_each_answer(self, start: Start) -> None:
        """A refused tick is no work, also of another item each time; the list never changes."""
        rounds = ([edit("complete", index), "Done."] for index in range(3))
        thread = start(again=chain.from_iterable(rounds), check=has_worked)
        await thread.say("Do it.", "a", "b", "c")
        thread.check(calls=2, notes=0, outcome="answered")
        await thread.say("Go on.")
        thread.check(calls=4, notes=0, outcome="answered")
        assert thread.todos == items("a", "b", "c")


@pytest.mark.parametrize(
    "conversation",
    [
        lambda: ["Hello.", "Hello again."],
        lambda: [run_command("make"), "It fails.", run_command("make"), "It fails again."],
        lambda: [run_command("make"), broken_call(), "I see."],
    ],
    ids=["talk", "tools", "a broken call after work"],
)
async def test_an_agent_without_a_list_is_never_sent_back(
    start: Start, conversation: Callable[[], list[AIMessage | str]]
) -> None:
    """Also if its last answer has only broken calls."""
    thread = start(*conversation())
    await thread.say("Begin.")
    await thread.say("And now?")
    thread.check(calls=len(conversation()), notes=0, outcome="no_todos")
