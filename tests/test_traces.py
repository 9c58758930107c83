"""The traces of a run for LangSmith, from LangChain's tracer and a client that records them."""

import subprocess
from typing import Any
from unittest.mock import MagicMock

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tracers import LangChainTracer

from graphs.until_done import build_graph
from tests.support import Graph, items
from todo_tools import AutoContinue, TodoMiddleware
from todo_tools.testing import ScriptedChatModel

POLICY = AutoContinue(max_idle=3)


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangSmith's client asks git, docker and uname about the machine; here there are none."""
    monkeypatch.setattr(subprocess, "check_output", MagicMock(side_effect=FileNotFoundError))


def idle() -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda _: "I am done.")


def hand_built() -> Graph:
    return build_graph(idle(), policy=POLICY).compile(name="until_done")


def agent() -> Graph:
    return create_agent(idle(), middleware=[TodoMiddleware(policy=POLICY)])


def traced(graph: Graph) -> list[dict[str, Any]]:
    """The spans of a run that never works on its one open item."""
    client = MagicMock()
    request: Any = {"messages": [HumanMessage("Go.")], "todos": items("a")}
    graph.invoke(request, {"callbacks": [LangChainTracer(client=client)]})
    return [made.kwargs for made in client.update_run.call_args_list]


@pytest.mark.parametrize("build", [hand_built, agent])
def test_spans_of_the_loop_can_be_searched_for(build: Any) -> None:
    """Each decision has the number of items, the number of finished items, and its outcome."""
    spans = [span["extra"]["metadata"] for span in traced(build())]
    decisions = [
        (metadata["todo_items"], metadata["todo_finished"], metadata["todo_outcome"])
        for metadata in spans
        if "todo_outcome" in metadata
    ]
    assert decisions == [(1, 0, "sent_back")] * 3 + [(1, 0, "stalled")]


def test_the_hooks_of_the_middleware_do_not_repeat_the_history() -> None:
    """Its spans have only the number of messages; the model's span has the messages."""
    spans = [span for span in traced(agent()) if span["name"].endswith("after_agent")]
    assert [span["inputs"]["messages"] for span in spans] == [2, 4, 6, 8]


def test_a_hand_built_graph_has_one_span_for_each_model_call_and_decision() -> None:
    """Helpers are hidden, edges have no spans, and a decision is the span of its node."""
    spans = [span for span in traced(hand_built()) if "langsmith:hidden" not in span["tags"]]
    assert [span["name"] for span in spans] == [
        *["ScriptedChatModel", "agent", "auto_continue"] * 4,
        "until_done",
    ]
