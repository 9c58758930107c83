"""Helpers for test modules: short ways to write lists, answers, graphs and checklists."""

import gzip
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode

from todo_tools import TodoItem, TodoState
from todo_tools._calls.answers import answer_call
from todo_tools._list.todos import DEFAULT_LIMITS, TodoStatus
from todo_tools._thread.notes import result_metadata
from todo_tools.testing import call, turn

Graph = CompiledStateGraph[Any, Any, Any, Any]


BEGIN: dict[str, Any] = {"messages": [("user", "Begin.")]}
"""The input of most runs."""

ROOT = Path(__file__).parent.parent
"""The checkout."""


def items(*texts: str, status: TodoStatus = "not_started") -> list[TodoItem]:
    """A list of todos that all have one status."""
    return [{"text": text, "status": status} for text in texts]


MIXED = [
    *items("Write database schema"),
    *items("Implement migration script", status="in_progress"),
    *items("Add API endpoints", status="completed"),
    *items("Ask Bob", status="abandoned"),
]
"""One item of each status."""


def writes(*texts: str, mode: str = "replace", **args: Any) -> ToolCall:
    """A call that writes items."""
    return call("write_todos", mode=mode, todos=list(texts), **args)


def edits(action: str, *indices: int) -> ToolCall:
    """A call that starts, completes or abandons items."""
    return call("edit_todos", action=action, indices=list(indices))


def plan(*texts: str) -> AIMessage:
    """A model's answer that writes a new list."""
    return turn("", writes(*texts))


def edit(action: str, *indices: int) -> AIMessage:
    """A model's answer that starts, completes or abandons items."""
    return turn("", edits(action, *indices))


def result_of(
    name: str, args: Mapping[str, Any], todos: Sequence[TodoItem] = (), **fields: Any
) -> ToolMessage:
    """The result of a todo tool's call on a list, with the other fields of the message."""
    answer = answer_call(name, args, list(todos), DEFAULT_LIMITS)
    return ToolMessage(
        answer.content,
        name=name,
        status="error" if ("error" in answer.details) else "success",
        artifact=answer.details,
        **{"tool_call_id": "1", "response_metadata": result_metadata(answer), **fields},
    )


def calls_in_the_library(function: Callable[[], object]) -> int:
    """How often a function makes Python enter a function of this package; a measure of its work."""
    library, calls = str(ROOT / "todo_tools"), 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(library)

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def checklist(*steps: str) -> str:
    """A user message with open steps in Markdown."""
    return "\n".join(f"- [ ] {step}" for step in steps)


def write_checklist(*steps: str) -> str:
    """Write a checklist to the current directory, and return its path."""
    path = Path("PLAN.md")
    path.write_text(checklist(*steps), encoding="utf-8")
    return str(path)


def time_is_up_after(event: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit of a command is reached as soon as an event has happened, and never before."""
    clock = SimpleNamespace(monotonic=lambda: math.inf if event() else 0.0)
    monkeypatch.setattr("graphs.terminal.tools.shell.time", clock)


def tool_graph(tools: Sequence[BaseTool], state: Any = TodoState) -> Graph:
    """A graph that only runs the tool calls of the last message."""
    builder = StateGraph(state)
    builder.add_node("tools", ToolNode(list(tools)))
    builder.add_edge(START, "tools")
    return builder.compile()


def results_in(values: Mapping[str, Any]) -> list[ToolMessage]:
    """The results of tools in a state."""
    return [message for message in values["messages"] if isinstance(message, ToolMessage)]


def loop_of(graph: Graph, config: RunnableConfig) -> dict[str, Any]:
    """The counters and the outcome that the loop stored in a thread."""
    loop: dict[str, Any] = graph.get_state(config).values["todo_loop"]
    return loop


def recorded_scenarios() -> list[dict[str, Any]]:
    """The recorded traces of the reference; see `tests/traces/README.md` for their format."""
    path = ROOT / "tests" / "traces" / "til_done_traces.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def outcome_of(values: Mapping[str, Any]) -> str | None:
    """Why the loop last ended, by the state of a thread or the result of a run."""
    outcome: str | None = values.get("todo_outcome")
    return outcome
