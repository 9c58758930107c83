"""The lines that the programs print above the list."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graphs.terminal.run_lines import RunLines
from tests.support import result_of
from todo_tools.testing import call, turn


def printed(*messages: BaseMessage, lines: RunLines | None = None) -> list[str]:
    lines = lines or RunLines()
    return [
        str(line)
        for message in messages
        for line in lines.after("updates", {"node": {"messages": [message]}})
    ]


def result(text: str, call_id: str | None = "1") -> ToolMessage:
    return ToolMessage(text, name="execute", tool_call_id=str(call_id))


def test_a_call_is_shown_with_its_result_in_any_order() -> None:
    """The calls of one answer run at the same time."""
    answer = turn("I look.", call("execute", command="ls"), call("execute", command="pwd"))
    first, second = (each["id"] for each in answer.tool_calls)
    assert printed(answer, result("/tmp", second), result("a\nb", first)) == [
        "💬 I look.",
        "→ execute pwd",
        "  │ /tmp",
        "→ execute ls",
        "  │ a",
        "  │ b",
    ]


def test_an_answer_that_middleware_repeats_is_shown_once() -> None:
    """This also holds for an answer from before the run."""
    answer = AIMessage("I look.", id="1")
    assert printed(answer, answer) == ["💬 I look."]
    assert printed(answer, lines=RunLines([answer])) == []


def test_of_a_long_result_the_end_is_shown() -> None:
    """The exit code is there."""
    shown = printed(result("\n".join(map(str, range(100)))))
    assert shown[:2] == ["  │ (88 more lines above)", "  │ 88"]
    assert shown[-1] == "  │ 99"


def test_of_the_todo_tools_only_errors_are_shown() -> None:
    """The list is shown below."""
    assert printed(result_of("write_todos", {"mode": "replace", "todos": ["a"]})) == []
    (error,) = printed(result_of("edit_todos", {"action": "start", "indices": [7]}))
    assert "Error" in error


@pytest.mark.parametrize("update", [None, [], [None], {}, {"todos": []}, ({"value": 1},)])
def test_updates_without_messages_show_nothing(update: Any) -> None:
    assert list(RunLines().after("updates", {"node": update})) == []


def test_a_continuation_is_shown() -> None:
    event = {"type": "todo_loop", "outcome": None, "in_turn": 1, "text": ""}
    assert [str(line) for line in RunLines().after("custom", event)] == [
        "↻ not finished: sent back to work"
    ]


@given(text=st.text())
def test_no_text_can_act_in_the_terminal(text: str) -> None:
    """Neither an answer, nor a call, nor a result."""
    answer = turn(text, call("execute", command=text))
    shown = "".join(printed(answer, result(text, answer.tool_calls[0]["id"])))
    assert not {unicodedata.category(each) for each in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
