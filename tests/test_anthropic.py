"""Real `ChatAnthropic` agents with an API that refuses changed histories and bills its cache.

A refused request raises `anthropic.BadRequestError` from the run. So each test that passes shows
that every prompt began with the whole prompt before it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphs.until_done import build_graph
from tests.messages_api import MessagesAPI, chat_anthropic
from tests.support import edits, writes
from todo_tools import AutoContinue, TodoMiddleware
from todo_tools.testing import call, turn

Script = Sequence[AIMessage | str]

CACHE = {"cache_control": {"type": "ephemeral"}}
WAITS = AutoContinue(max_in_a_row=0)
"""Without a loop, so that the user can speak while items remain."""


def says(text: str, **values: Any) -> dict[str, Any]:
    """An input: the user's message, and values for other channels."""
    return {"messages": [("user", text)], **values}


BEGIN = says("Do a and b.")


@tool
def work() -> str:
    """Do a piece of work."""
    return "The result of the work. " * 20


def works() -> ToolCall:
    return call("work")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A way to build an agent with this package."""

    build: Callable[..., Any]
    """A function from the model, a policy and the tools that need approval to a compiled graph."""
    model_options: Any = None
    is_cached: bool = False


def plain_agent(
    model: BaseChatModel,
    policy: AutoContinue,
    approved: dict[str, bool],
    before: Sequence[Any] = (),
) -> Any:
    middleware = [*before, HumanInTheLoopMiddleware({**approved}), TodoMiddleware(policy=policy)]
    return create_agent(
        model,
        [work],
        system_prompt="Do what you are asked.",
        middleware=middleware,
        checkpointer=InMemorySaver(),
    )


def cached_agent(model: BaseChatModel, policy: AutoContinue, approved: dict[str, bool]) -> Any:
    return plain_agent(model, policy, approved, [AnthropicPromptCachingMiddleware()])


def deep_agent(model: BaseChatModel, policy: AutoContinue, approved: dict[str, bool]) -> Any:
    """The default stack of deepagents, which caches prompts by itself."""
    return create_deep_agent(
        model,
        [work],
        middleware=[TodoMiddleware(policy=policy)],
        interrupt_on={**approved},
        checkpointer=InMemorySaver(),
    )


def hand_built(model: BaseChatModel, policy: AutoContinue, approved: dict[str, bool]) -> Any:
    assert not approved, "the hand-built graph has no approvals"
    return build_graph(model, [work], policy=policy).compile(checkpointer=InMemorySaver())


WITH_MIDDLEWARE = {
    "create_agent": Kind(build=plain_agent),
    "create_agent, cached": Kind(build=cached_agent, is_cached=True),
    "deepagents": Kind(build=deep_agent, is_cached=True),
}
KINDS = {
    **WITH_MIDDLEWARE,
    "hand-built": Kind(build=hand_built),
    "hand-built, cached": Kind(
        build=hand_built, model_options={"model_kwargs": CACHE}, is_cached=True
    ),
}


class Talk:
    """A thread of an agent, and the API that its model talks to."""

    def __init__(
        self,
        kind: Kind,
        form: str,
        script: Script,
        policy: AutoContinue,
        approved: dict[str, bool],
    ) -> None:
        self._script = script
        self._is_cached = kind.is_cached
        self._form = form
        self._config: RunnableConfig = {"configurable": {"thread_id": "thread"}}
        self.api = MessagesAPI(script)
        model = chat_anthropic(self.api, **(kind.model_options or {}))
        self._graph = kind.build(model, policy, approved)

    async def send(self, step: Any, **options: Any) -> Any:
        """Run the agent: with an input, a `Command`, or `None` to resume."""
        if self._form == "sync":
            return self._graph.invoke(step, self._config, **options)
        return await self._graph.ainvoke(step, self._config, **options)

    def check(self) -> None:
        """The whole script was used, and if there is a cache, the history was read from it."""
        assert len(self.api.bill.charges) == len(self.api.requests) == len(self._script)
        if self._is_cached:
            assert self.api.bill.history_is_read


Start = Callable[..., Talk]


@pytest.fixture(params=["sync", "async"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=KINDS)
def start(request: pytest.FixtureRequest, form: str) -> Start:
    """Begin a thread of each kind of agent."""

    def begin(
        *script: AIMessage | str,
        policy: AutoContinue = AutoContinue(),
        approved: dict[str, bool] | None = None,
    ) -> Talk:
        return Talk(KINDS[request.param], form, script, policy, approved or {})

    return begin


with_middleware = pytest.mark.parametrize("start", WITH_MIDDLEWARE, indirect=True)


class TestRuns:
    async def test_a_list_is_written_and_worked_through(self, start: Start) -> None:
        """Todo calls are made together with working calls, several in a turn."""
        talk = start(
            turn("", writes("a", "b"), edits("start", 0), works()),
            turn("", works(), works()),
            turn("", edits("complete", 0), edits("start", 1), works()),
            turn("", edits("complete", 1), call("list_todos")),
            "Both are done.",
        )
        await talk.send(BEGIN)
        talk.check()

    async def test_an_agent_that_stops_early_is_continued(self, start: Start) -> None:
        """It is continued once without progress, and once after some progress."""
        talk = start(
            turn("", writes("a", "b")),
            "This is my plan.",
            turn("", edits("complete", 0)),
            "The first is done.",
            turn("", edits("complete", 1)),
            "Both are done.",
        )
        await talk.send(BEGIN)
        talk.check()


class TestSeveralRuns:
    async def test_the_user_speaks_while_items_remain(self, start: Start) -> None:
        """The user also speaks after the list is finished."""
        talk = start(
            turn("", writes("a", "b")),
            "Shall I?",
            turn("", edits("complete", 0), works()),
            "Half of it is done.",
            turn("", edits("complete", 1)),
            "Both are done.",
            "You are welcome.",
            turn("", writes("c")),
            "Shall I do c, too?",
            policy=WAITS,
        )
        for text in ("Do a and b.", "Yes.", "And b?", "Thanks.", "Do c."):
            await talk.send(says(text))
        talk.check()


APPROVED = {"write_todos": True, "edit_todos": True}
DECISIONS: dict[str, dict[str, Any]] = {
    "approve": {"type": "approve"},
    "reject": {"type": "reject", "message": "Not that."},
    "edit": {
        "type": "edit",
        "edited_action": {
            "name": "write_todos",
            "args": {"mode": "replace", "todos": ["c", "d", "e"]},
        },
    },
}


@with_middleware
class TestPauses:
    """Cases that need a middleware, or an edit in the middle of a tool loop."""

    @pytest.mark.parametrize("decision", DECISIONS)
    async def test_a_call_waits_for_a_person(self, start: Start, decision: str) -> None:
        """It is between a call that needs no approval and one that is approved."""
        talk = start(
            turn("", writes("a", "b")),
            turn("", works(), writes("x", mode="append"), edits("start", 0)),
            turn("", works()),
            turn("", works()),
            "That is all for now.",
            policy=WAITS,
            approved=APPROVED,
        )
        await talk.send(BEGIN)
        await talk.send(Command(resume={"decisions": [{"type": "approve"}]}))
        decisions = [DECISIONS[decision], {"type": "approve"}]
        await talk.send(Command(resume={"decisions": decisions}))
        talk.check()
