"""Recorded traces of the reference, replayed through a compiled graph with its loop."""

import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs.until_done import build_graph
from tests.prompt_reader import ICONS, read_list
from tests.support import outcome_of, recorded_scenarios
from todo_tools import AutoContinue, format_status, model_view, todos_from_messages
from todo_tools._calls.answers import format_call
from todo_tools._list.formatting import format_in_progress
from todo_tools.testing import ScriptedChatModel, call, turn

SCENARIOS = [
    pytest.param(scenario["steps"], id=f"seed-{scenario['seed']}")
    for scenario in recorded_scenarios()
]


class Replay:
    """A graph that stops before each turn of its agent, whose answers come from the trace."""

    def __init__(self) -> None:
        self.answer = AIMessage("")
        model = ScriptedChatModel(script=lambda _: self.answer)
        builder = build_graph(model, policy=AutoContinue(max_idle=None))
        self.graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["agent"])
        self.config: RunnableConfig = {"configurable": {"thread_id": "replay"}}
        self.graph.invoke({"messages": [("user", "Begin.")]}, self.config)

    @property
    def state(self) -> dict[str, Any]:
        return self.graph.get_state(self.config).values

    def play(self, answer: AIMessage) -> tuple[str, ...]:
        """Run the agent for one answer; returns the next node of the graph."""
        if not self.graph.get_state(self.config).next:
            self.graph.update_state(self.config, None, as_node="tools")
        self.answer = answer
        self.graph.invoke(None, self.config)
        return self.graph.get_state(self.config).next

    def check_call(self, step: dict[str, Any]) -> None:
        self.play(turn("", call(step["name"], **step["args"])))
        result = self.state["messages"][-1]
        assert isinstance(result, ToolMessage)
        assert result.text == step["text"]
        assert result.artifact == step["details"]
        assert result.status == ("error" if "error" in step["details"] else "success")
        assert self.state["todos"] == step["todos"]
        assert format_status(step["todos"]) == (step["status"] or "")
        assert "\n".join(format_in_progress(step["todos"])) == (step["active"] or "")
        assert format_call(step["name"], step["args"]) == re.sub(
            r"</?(toolTitle|bold|warning|muted|accent)>", "", step["render_call"]
        )

    def check_agent_end(self, step: dict[str, Any]) -> None:
        aborted = step["stop"] == "aborted"
        metadata = {"stop_reason": "aborted" if aborted else "end_turn"}
        following = self.play(AIMessage("That is all.", response_metadata=metadata))
        assert bool(following) == step["continues"]
        if not step["continues"]:
            outcome = outcome_of(self.state)
            at_limit = step["limit"] and outcome != "finished"
            assert (outcome == "limit_in_a_row") == at_limit
            return
        icons = {status: icon for icon, status in ICONS.items()}
        told = [
            f"{icons[status]} [{index}] {text}"
            for index, (text, status) in enumerate(read_list(model_view(self.state)))
            if status in ("not_started", "in_progress")
        ]
        assert told == step["remaining"]
        last = self.state["messages"][-1].text.rpartition("\n\n")[2]
        assert "edit_todos" in last
        assert f"'{step['next_action']}'" in last
        assert f"[{step['next_index']}]" in last

    def check_before_agent_start(self, step: dict[str, Any]) -> None:
        if step["injects"]:  # the reference repeats the list, which the view has already shown
            told = read_list(model_view(self.state))
            assert told == read_list(
                [ToolMessage(step["list"], name="list_todos", tool_call_id="")]
            )

    def check_reconstruct(self, step: dict[str, Any]) -> None:
        rebuilt = todos_from_messages(self.state["messages"])
        assert rebuilt == self.state["todos"]
        if rebuilt:  # the reference restores an older list after the list was emptied
            assert rebuilt == step["todos"]


def differs_on_purpose(step: dict[str, Any]) -> bool:
    return step["op"] == "call" and not step["schema_ok"] and "error" not in step["details"]


@pytest.mark.parametrize("steps", SCENARIOS)
def test_a_recorded_scenario_is_reproduced(steps: list[dict[str, Any]]) -> None:
    """Texts, details, lists, status, continuations and reconstruction match the record."""
    replay = Replay()
    for step in steps:
        if differs_on_purpose(step):
            break
        getattr(replay, f"check_{step['op']}")(step)
