"""The views of this repository's tools, and their descriptions."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from graphs.coding_agent import build_coding_agent
from graphs.notes import notes_tool
from graphs.terminal.tool_views import LABELS, call_view, result_view
from graphs.terminal.tools.background import BackgroundTasks
from graphs.terminal.tools.shell import LocalShell, shell_tool
from tests.support import items
from todo_tools import create_todo_tools
from todo_tools.rendering import show_messages
from todo_tools.testing import ScriptedChatModel, call, turn


def tokens(view: Any) -> list[tuple[str, str | None]]:
    return [(span.text, span.token) for line in view.lines for span in line.spans]


class TestNotes:
    @pytest.mark.parametrize(
        ("args", "shown"),
        [
            ({"action": "add", "text": "wood"}, [(" add", "muted"), (' "wood"', "dim")]),
            ({"action": "get", "id": 3}, [(" get", "muted"), (" #3", "accent")]),
            ({"action": "list"}, [(" list", "muted")]),
            ({}, []),
        ],
    )
    def test_a_call_has_the_colours_of_its_parts(self, args: Any, shown: Any) -> None:
        """What the model left out is not shown."""
        assert tokens(call_view("notes", args)) == [("notes", "toolTitle"), *shown]

    @pytest.mark.parametrize(
        ("details", "shown"),
        [
            ({"action": "get", "error": "#3 not found"}, [("Error: #3 not found", "error")]),
            ({"action": "add"}, [("+ ", "success"), ("text", "muted")]),
            ({"action": "list", "notes": [1]}, [("1 note", "accent")]),
            ({"action": "list", "notes": []}, [("0 notes", "accent")]),
            ({"action": "get"}, [("text", "muted")]),
            ({"action": "remove"}, [("- ", "warning"), ("text", "dim")]),
        ],
    )
    def test_a_result_is_shown_by_its_details(self, details: Any, shown: Any) -> None:
        result = ToolMessage("text", name="notes", tool_call_id="1", artifact=details)
        assert tokens(result_view(result)) == shown

    def test_a_result_without_details_is_its_text(self) -> None:
        result = ToolMessage("text", name="notes", tool_call_id="1")
        assert f"{result_view(result)}" == "text"


def test_every_tool_has_its_label_and_describes_its_parameters(tmp_path: Path) -> None:
    """deepagents describes its own tools."""
    with BackgroundTasks(LocalShell(tmp_path)) as tasks:
        for tool in [*create_todo_tools(), notes_tool(), shell_tool(tmp_path), *tasks.tools]:
            assert tool.metadata
            assert LABELS.get(tool.name, tool.metadata["label"]) == tool.metadata["label"]
            schema: Any = tool.tool_call_schema
            for parameter in schema.model_json_schema().get("properties", {}).values():
                assert parameter["description"], tool.name


def test_every_tool_of_the_coding_agent_has_a_label(tmp_path: Path) -> None:
    model = ScriptedChatModel(script=["Hello."])
    build_coding_agent(model, tmp_path, ask=False).invoke({"messages": [("user", "Hello.")]})
    names = {tool["function"]["name"] for tool in model.tools}
    assert names - LABELS.keys() == {"write_todos", "list_todos", "edit_todos"}


def test_a_conversation_is_shown_message_by_message() -> None:
    """Texts are escaped, and other values are refused."""
    calls = turn("I look.\nNow.", call("shell", command="ls \x1b[2J"))
    result = ToolMessage("a\nb", name="shell", tool_call_id="1")
    view = show_messages([HumanMessage("Go."), calls, result], labels={"shell": "Shell"})
    assert f"{view}".split("\n") == [
        "›  Go.",  # noqa: RUF001
        "💬 I look.",
        "   Now.",
        "→  Shell ls ␛[2J",
        "   │ a",
        "   │ b",
    ]
    with pytest.raises(TypeError, match="got str"):
        show_messages(["Go."])  # type: ignore[list-item]


def test_a_list_that_several_calls_of_a_turn_change_is_shown_once() -> None:
    """It follows the last of them; errors and the next turn are shown too."""
    messages = list[BaseMessage]()
    for statuses in [("in_progress", None, "completed"), ("abandoned",)]:
        calls = [call("edit_todos", action="start", indices=[0]) for _ in statuses]
        messages += [turn("", *calls), *map(edited, calls, statuses)]
    assert f"{show_messages(messages)}".split("\n") == [
        *["→  edit_todos start [0]"] * 3,
        "   │ Error: no todos exist",
        "   │ ✓ [0] a",
        "→  edit_todos start [0]",
        "   │ ✗ [0] a",
    ]
    results = [message for message in messages if message.type == "tool"]
    assert len(show_messages(results).lines) == len(results)  # the turns are not known


def edited(made: ToolCall, status: Any) -> ToolMessage:
    """The result of a call: a list with one item, or an error."""
    details = {"todos": items("a", status=status)} if status else {"error": "no todos exist"}
    artifact = {"action": "edit", "todos": [], **details}
    return ToolMessage("...", name="edit_todos", tool_call_id=made["id"], artifact=artifact)
