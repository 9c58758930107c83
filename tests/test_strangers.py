"""Agents of strangers get the list by following the documentation."""

import difflib
import inspect
import itertools
import re
from types import ModuleType
from typing import Any

import pytest
from langgraph.errors import GraphRecursionError

from tests.strangers import react_template, research_assistant
from tests.support import BEGIN, edit, items, plan
from todo_tools.testing import ScriptedChatModel, call, turn

AGENTS = pytest.mark.parametrize("agent", [react_template, research_assistant])


def search(page: int) -> str:
    """Search a page."""
    return f"Page {page}."


def looks() -> Any:
    return turn("", call("search", page=1))


def before(agent: ModuleType) -> str:
    """The agent without this package: without the new lines, and with the old ones."""
    return re.sub(r"# old: |.*# new\n", "", inspect.getsource(agent))


async def run(agent: Any, model: ScriptedChatModel, limit: int = 99) -> dict[str, Any]:
    graph, context = agent.build(model, [search]), getattr(agent, "Context", dict[str, Any])()
    return dict(await graph.ainvoke(BEGIN, {"recursion_limit": limit}, context=context))


@AGENTS
def test_at_most_fifteen_lines_change(agent: ModuleType) -> None:
    """A line in place of another counts once."""
    old, new = before(agent).splitlines(), inspect.getsource(agent).splitlines()
    steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = sum(max(b - a, d - c) for kind, a, b, c, d in steps if kind != "equal")
    assert 0 < changed <= 15
    assert "todo" not in "\n".join(old)


@AGENTS
async def test_an_agent_that_stops_early_is_sent_back_and_finishes(agent: ModuleType) -> None:
    ticks: list[Any] = [edit("complete", 0), "I stop.", edit("complete", 1), "Done."]
    model = ScriptedChatModel([plan("a", "b"), looks(), *ticks])
    result = await run(agent, model)
    assert result["todos"] == items("a", "b", status="completed")
    assert (result["messages"][-1].text, result["todo_outcome"]) == ("Done.", "finished")
    assert "do the work of [1]" in model.prompts[4][-1].text


@AGENTS
async def test_its_guard_ends_the_run_as_before(agent: ModuleType) -> None:
    """At each small limit, an agent that never stops ends as it does without this package."""
    old: Any = ModuleType("before")
    exec(before(agent), vars(old))
    ends: dict[Any, list[str]] = {old: [], agent: []}
    for version, limit in itertools.product(ends, range(4, 16)):
        first = looks() if version is old else plan("a")
        model = ScriptedChatModel([first, *(looks() for _ in range(9))])
        try:
            ends[version].append((await run(version, model, limit))["messages"][-1].text)
        except GraphRecursionError:
            ends[version].append("error")
    assert ends[old] == ends[agent]
    assert ends[agent].count(old.SORRY) == 6


async def test_a_chat_of_custom_events_shows_only_its_own() -> None:
    graph = research_assistant.build(ScriptedChatModel([plan("a"), *["Hm."] * 2]), [search])
    assert [text async for text in research_assistant.chat(graph, BEGIN)] == ["I check this."]
