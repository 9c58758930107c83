"""Run a scripted agent, and collect its prompts and their cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from benchmarks.blocks import count, read_prompts
from benchmarks.lists import ListKind
from benchmarks.prices import PRICE_LISTS, Prompt, received, uncached
from benchmarks.scripts import ANSWERS, QUESTIONS, REQUEST, SYSTEM_PROMPT, script
from benchmarks.work import Case, Style, working_tool
from todo_tools.testing import ScriptedChatModel

Build = Callable[..., Any]
"""`create_agent`, or a function that takes the same arguments."""


@dataclass(frozen=True)
class Run:
    """The traffic between an agent and its model."""

    prompts: list[Prompt]
    received: int
    """Tokens of the answers."""
    messages: list[AnyMessage]
    """The history at the end."""


@dataclass(frozen=True)
class Figures:
    """The figures of a run."""

    calls: int
    """Model calls."""
    sent: int
    """Tokens of all prompts: tools, system prompt and messages."""
    largest: int
    """Tokens of the largest prompt."""
    received: int
    """Tokens of all answers."""
    costs: dict[str, float]
    """By price list, in units of one input token; the answers are included."""


def run_work(case: Case, style: Style, kind: ListKind, build: Build = create_agent) -> Run:
    """Do the work of a case, with or without a list."""
    answers = script(case, style, kind.calls, folds=kind.folds)
    return _run(answers, [REQUEST], case, kind, build)


def run_talk(kind: ListKind) -> Run:
    """Hold a conversation without work, in which the list is never used."""
    return _run(ANSWERS, QUESTIONS, Case(items=0), kind, create_agent)


def _run(
    answers: list[AIMessage], requests: Sequence[str], case: Case, kind: ListKind, build: Build
) -> Run:
    model = ScriptedChatModel(script=answers)
    agent = build(
        model,
        [working_tool(case.chars)],
        middleware=kind.middleware(),
        system_prompt=SYSTEM_PROMPT + " Ok." * case.prompt,  # four characters are a token
    )
    messages = list[AnyMessage]()
    for request in requests:
        messages = agent.invoke({"messages": [*messages, HumanMessage(request)]})["messages"]
    return Run(read_prompts(model.prompts, model.tools), count(answers), messages)


def figures(run: Run) -> Figures:
    """The figures of a run under each price list."""
    costs = {name: price(run.prompts) + received(run.received) for name, price in _PRICES}
    sizes = [round(uncached([prompt])) for prompt in run.prompts]
    return Figures(len(sizes), sum(sizes), max(sizes), run.received, costs)


_PRICES = tuple(PRICE_LISTS.items())
