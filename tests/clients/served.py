"""Agents for the interfaces: every way in which a run stops, in `create_agent` and deepagents.

No command really runs, so that a test can approve one; but for those of the coding agent.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import tool
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import override

from graphs.coding_agent import build_coding_agent
from graphs.shown import ShowList
from todo_tools import AutoContinue, TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, checklist_model, turn

Graph = CompiledStateGraph[Any, Any, Any, Any]

PACE = 0.4
"""How many seconds the model takes to answer, so that a reader sees each list."""

TALK = "I am still thinking about it."


class PacedModel(ScriptedChatModel):
    """A scripted model that takes as long as a fast real one."""

    pace: float = PACE

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        await asyncio.sleep(self.pace)
        return await super()._agenerate(messages, stop, run_manager, **kwargs)


@tool
def shell(command: str) -> str:
    """Run a command."""
    return f"$ {command}\nexit code 0"


def _works(shell: str = "shell") -> PacedModel:
    """It works through the user's checklist and stops early after each item."""
    return PacedModel(script=checklist_model(rest_after=1, shell=shell).script)


def _talks() -> PacedModel:
    """It writes a plan and then only talks."""
    todos = [{"text": "Measure"}, {"text": "Decide"}]

    def rule(prompt: list[BaseMessage]) -> AIMessage:
        planned = any(isinstance(message, AIMessage) for message in prompt)
        return turn(TALK) if planned else turn("", call("write_todos", mode="replace", todos=todos))

    return PacedModel(script=rule)


def _talks_in_blocks() -> PacedModel:
    """Its answer has two blocks of text, as those of some providers."""
    parts = ["It is ", "done."]
    answer = AIMessage([{"type": "text", "text": part} for part in parts])
    return PacedModel(script=lambda _: answer)


def _agent(model: PacedModel, policy: AutoContinue) -> Graph:
    asks = HumanInTheLoopMiddleware[Any, Any, Any]({"shell": True})
    todos = TodoMiddleware(policy=policy, todos_format="langchain")
    return create_agent(model, [shell], middleware=[asks, todos])


def _deep_agent(model: PacedModel, policy: AutoContinue) -> Graph:
    todos = TodoMiddleware(policy=policy, todos_format="langchain")
    return create_deep_agent(model, [shell], middleware=[todos], interrupt_on={"shell": True})


def _half_done(*middleware: AgentMiddleware[Any, Any, Any], pace: float = PACE) -> Graph:
    """It gives items all statuses, stops, and finishes the rest after the next message."""
    todos = [{"text": text} for text in ("Measure", "Ask the owner", "Saw", "Report")]

    def rule(prompt: list[BaseMessage]) -> AIMessage:
        script = [
            turn("", call("write_todos", mode="replace", todos=todos)),
            turn(
                "",
                call("edit_todos", action="complete", indices=[0]),
                call("edit_todos", action="abandon", indices=[1]),
                call("edit_todos", action="start", indices=[2]),
            ),
            turn("The owner is away."),
            turn("", call("edit_todos", action="complete", indices=[2, 3])),
            turn("It is done."),
        ]
        return script[sum(isinstance(message, AIMessage) for message in prompt)]

    plans = TodoMiddleware(policy=None, todos_format="langchain")
    return create_agent(PacedModel(script=rule, pace=pace), middleware=[plans, *middleware])


def _coding_agent(policy: AutoContinue) -> Graph:
    workdir = Path(tempfile.mkdtemp())
    (workdir / "README.md").touch()
    return build_coding_agent(_works("execute"), workdir, policy=policy, todos_format="langchain")


UNSTORED = AutoContinue(store=False)  # for interfaces that show every message
ASK = AutoContinue(ask=True, store=False)
LIMITED = AutoContinue(max_idle=1, store=False)

agent = _agent(_works(), AutoContinue())
agent_unstored = _agent(_works(), UNSTORED)
agent_asking = _agent(_works(), ASK)
agent_limited = _agent(_talks(), LIMITED)
agent_in_blocks = _agent(_talks_in_blocks(), UNSTORED)
coding = _coding_agent(AutoContinue())
coding_unstored = _coding_agent(UNSTORED)
half_done = _half_done()
half_done_shown = _half_done(ShowList(), pace=2)  # a page loads the component first
deepagents = _deep_agent(_works(), AutoContinue())
deepagents_unstored = _deep_agent(_works(), UNSTORED)
deepagents_asking = _deep_agent(_works(), ASK)
deepagents_limited = _deep_agent(_talks(), LIMITED)

GRAPHS = tuple(name for name, value in globals().items() if isinstance(value, CompiledStateGraph))
"""The names of all of them."""
