"""The arms: the ways to give a model the same task, with a list and without."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain import agents
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    TodoListMiddleware,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from evals.tasks import Task
from todo_tools import (
    TODO_LIGHT_PROMPT,
    TodoLimits,
    TodoMiddleware,
    create_item_runner,
    has_worked,
)

# A weak model that is told to report at the end reports at once, and without the second sentence it
# makes texts up instead of reading them.
SYSTEM_PROMPT = (
    "Use the tools to do what the user asks. Never guess what a file or a record contains: read it "
    "or look it up first."
)
GO_ON = "Go on until everything is done. Do not stop before."

_Middleware = Callable[[], list[AgentMiddleware[Any, Any, Any]]]


def _none() -> list[AgentMiddleware[Any, Any, Any]]:
    return []


@dataclass(frozen=True)
class Arm:
    """One way to give a model a task."""

    name: str
    title: str
    middleware: _Middleware = field(default=_none)
    system_prompt: str = SYSTEM_PROMPT
    seeded: bool = False
    """Whether the list has the steps of the task from the beginning."""
    continues: bool = False
    """Whether a plain "Continue." follows each stop, until the calls of `PACK` are used."""
    runner: Mapping[str, Any] | None = None
    """The arguments of the item runner, if each step gets a conversation of its own."""

    def build(self, model: BaseChatModel, tools: Sequence[BaseTool]) -> Any:
        """Build the agent."""
        saver = InMemorySaver()
        agent: Any = agents.create_agent(
            model,
            list(tools),
            system_prompt=self.system_prompt,
            middleware=self.middleware(),
            checkpointer=saver if self.runner is None else None,
        )
        if self.runner is None:
            return agent
        runner = create_item_runner(agent, answer=_all_reports, **self.runner)
        return runner.compile(checkpointer=saver)

    def first_input(self, task: Task) -> dict[str, Any]:
        """Return the input of the first run."""
        todos = [{"text": step.text, "status": "not_started"} for step in task.steps]
        seeded = {"todos": todos} if self.seeded else {}
        return {"messages": [{"role": "user", "content": task.request}], **seeded}


def _all_reports(state: Mapping[str, Any]) -> dict[str, Any]:
    """Answer with the reports of all items."""
    reports = state.get("reports", {}).values()
    told = (f"{each['text']} ({each['status']}): {each['report']}" for each in reports)
    return {"messages": [AIMessage("\n".join(told))]}


def _text_alone(state: Mapping[str, Any], index: int) -> str:
    """Hand out an item without the request, the list and the reports."""
    return str(state["todos"][index]["text"])


_ONLY_ASKED = TodoLimits(keep_open=True)
PACK = "pack"
"""The arm whose number of calls the control gets."""
CONTROL = "control"

_ALONE = {"prompt": _text_alone}
_CLEARING = ClearToolUsesEdit(trigger=10_000)

_ALL = (
    Arm("none", "no list"),
    Arm(
        "cleared",
        "no list, old results cleared",
        lambda: [ContextEditingMiddleware(edits=[_CLEARING])],
    ),
    Arm("go-on", "no list, told to go on", system_prompt=f"{SYSTEM_PROMPT} {GO_ON}"),
    Arm(CONTROL, 'no list, "Continue." with the calls of this package', continues=True),
    Arm("langchain", "LangChain's list", lambda: [TodoListMiddleware()]),
    Arm("no-loop", "this package without the loop", lambda: [TodoMiddleware(policy=None)]),
    Arm(PACK, "this package", lambda: [TodoMiddleware()]),
    Arm("light", "light prompt", lambda: [TodoMiddleware(system_prompt=TODO_LIGHT_PROMPT)]),
    Arm("bare", "this package without its prompt", lambda: [TodoMiddleware(system_prompt="")]),
    Arm("seeded", "seeded list", lambda: [TodoMiddleware()], seeded=True),
    Arm("worked", "has_worked", lambda: [TodoMiddleware(check=has_worked)]),
    Arm(
        "careful",
        "seeded, has_worked, keep_open",
        lambda: [TodoMiddleware(check=has_worked, limits=_ONLY_ASKED)],
        seeded=True,
    ),
    Arm("folded", "folded", lambda: [TodoMiddleware(fold_finished=True)]),
    Arm(
        "light-folded",
        "light prompt, folded",
        lambda: [TodoMiddleware(system_prompt=TODO_LIGHT_PROMPT, fold_finished=True)],
    ),
    Arm("runner", "item runner", seeded=True, runner={}),
    Arm("runner-alone", "item runner, without the request", seeded=True, runner=_ALONE),
)
ARMS: dict[str, Arm] = {arm.name: arm for arm in _ALL}
_WORDED = {"pack": (0, 2), "light": (0, 1, 2), "light-folded": (1, 2, 3)}
EARLIER = {
    "pack-before": "this package, version 0.2.0",
    "led": "led by the graph",
    **{f"{arm}-w{n}": f"{ARMS[arm].title} (w{n})" for arm, some in _WORDED.items() for n in some},
    "light-folded-w2-new": "light prompt, folded, by instances that remember nothing (w2)",
    "runner-before": "item runner, a first version",
}
"""Titles of arms that this version can no longer run; their files are still reported.

The words or rules of `pack-before` were others, and the words of the arms with `-w` and a number.
In `led` the graph kept a seeded list and gave the model one item at a time and no todo tools; the
middleware that did so is gone.
"""
