"""The lines that the terminal and the notebook draw, and their tokens."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage

from tests.strategies import edit_calls, json_values, todo_lists, write_calls
from tests.support import items, recorded_scenarios, result_of
from todo_tools import TodoItem
from todo_tools._calls.answers import format_call
from todo_tools._calls.records import TOOLS
from todo_tools._list.formatting import format_todos
from todo_tools.rendering import show_call, show_messages, show_result, show_status, show_todos
from todo_tools.rendering._calls import call_lines
from todo_tools.rendering._lines import (
    Line,
    Span,
    in_view,
    list_lines,
    result_lines,
)
from todo_tools.testing import call, turn


def recorded_calls() -> list[dict[str, Any]]:
    steps = [step for scenario in recorded_scenarios() for step in scenario["steps"]]
    return [step for step in steps if step["op"] == "call"]


def marked(lines: Iterable[Line]) -> str:
    """Lines in the notation of the traces."""
    return "\n".join("".join(map(marked_span, line.spans)) for line in lines)


def marked_span(span: Span) -> str:
    text = f"<strike>{span.text}</strike>" if span.strike else span.text
    text = f"<bold>{text}</bold>" if span.bold else text
    return f"<{span.token}>{text}</{span.token}>" if span.token else text


def recorded_result(step: dict[str, Any]) -> ToolMessage:
    return ToolMessage(step["text"], name=step["name"], tool_call_id="1", artifact=step["details"])


class TestRecordedRenderings:
    def test_every_call_is_themed_token_by_token(self) -> None:
        """The title, the mode or action, and the count or indices have their tokens."""
        for step in recorded_calls():
            assert marked(call_lines(step["name"], step["args"])) == step["render_call"]

    def test_every_change_and_error_is_themed_token_by_token(self) -> None:
        """Icons, indices and struck-through texts have their tokens; errors are shortened."""
        for step in recorded_calls():
            if step["name"] != "list_todos":
                shown = marked(result_lines(recorded_result(step)))
                assert shown == step["render_result"]

    def test_a_listing_shows_the_result_of_the_tool(self) -> None:
        """The reference shows `No todos` for every listing, because its details have no list."""
        for step in recorded_calls():
            if step["name"] == "list_todos":
                result = result_of("list_todos", step["args"], step["todos"])
                shown = result_lines(result)
                assert shown == list_lines(step["todos"])
                assert "\n".join(map(str, shown)) == result.text == step["text"]
                assert step["todos"] or marked(shown) == step["render_result"]


class TestCalls:
    @given(st.one_of(write_calls, edit_calls, st.dictionaries(st.text(max_size=5), json_values)))
    def test_a_call_of_a_todo_tool_is_one_line(self, args: dict[str, Any]) -> None:
        """Its plain text is that of `format_call`."""
        for name in TOOLS:
            view = show_call(name, args)
            assert str(view) == format_call(name, args)
            assert len(str(view).splitlines()) == 1

    @given(st.dictionaries(st.text(max_size=5), json_values | st.text(max_size=300)))
    def test_another_call_can_have_any_shape(self, args: dict[str, Any]) -> None:
        for line in show_call("shell", args).lines:
            assert len(str(line).splitlines()) <= 1

    def test_a_call_is_its_label_its_main_argument_and_options(self) -> None:
        """An action follows a colon."""
        args = {"glob": "*.py", "pattern": "x = 1", "max_count": 5}
        assert str(show_call("grep", args, label="Search")) == "Search x = 1 glob=*.py max_count=5"
        assert str(show_call("job", {"action": "stop", "id": 3})) == "job: stop 3"

    def test_a_long_text_is_on_further_lines(self) -> None:
        """A very long text is cut, and a mark says how much is missing."""
        command = "\n".join(["make " + "x" * 100, "make test"])
        shown = str(show_call("shell", {"command": command, "timeout": 5}, label="Shell"))
        assert shown.split("\n") == ["Shell timeout=5", f"    make {'x' * 100}", "    make test"]
        text = show_call("write_file", {"file_path": "a", "content": "y" * 3_000})
        assert [str(line) for line in text.lines] == [
            "write_file a",
            "    content:",
            "    " + "y" * 1_000,
            "    … 2,000 more characters",
        ]


class TestResults:
    def test_another_tool_s_text_is_shown_line_by_line(self) -> None:
        """Control characters in each line are made visible."""
        result = ToolMessage("ok\r\n\x1b[2J[red]b", name="shell", tool_call_id="1")
        assert str(show_result(result)) == "ok\n␛[2J[red]b"

    @pytest.mark.parametrize("show", [show_result, lambda text: show_messages([text])])
    def test_a_text_is_no_message(self, show: Any) -> None:
        with pytest.raises(TypeError, match="got str"):
            show("text")

    def test_a_conversation_shows_the_list_once_a_turn(self) -> None:
        """After the last call that changed it."""
        answer = turn("", call("edit_todos", action="start"), call("edit_todos", action="start"))
        results = [
            result_of(
                "edit_todos", {"action": "start", "indices": [0]}, todos, tool_call_id=each["id"]
            )
            for each, todos in zip(answer.tool_calls, (items("a"), items("b")), strict=True)
        ]
        assert str(show_messages([answer, *results])).endswith("start\n   │ ● [0] b")


class TestTexts:
    @given(todo_lists)
    def test_the_plain_text_of_a_list_is_that_of_the_tools(self, todos: list[TodoItem]) -> None:
        """No text can add a line to it."""
        view = show_todos(todos)
        assert str(view) == repr(view) == format_todos(todos)

    def test_a_value_that_is_not_a_list_of_todos_is_refused(self) -> None:
        """The error names the item that is wrong."""
        with pytest.raises(ValueError, match=r"todos\[0\]"):
            show_todos([{"content": "a"}])  # type: ignore[typeddict-item,typeddict-unknown-key]

    @pytest.mark.parametrize("show", [show_todos, show_status])
    def test_a_whole_state_is_refused(self, show: Any) -> None:
        with pytest.raises(TypeError, match=r"got a state; pass result\['todos'\]"):
            show({"messages": [], "todos": items("a")})


def test_the_end_of_a_list_fills_the_rows_that_there_are() -> None:
    """Where the item in progress is the last one, all of them show what is above it."""
    todos = [*items(*"abcdef", status="completed"), *items("g", status="in_progress")]
    shown = in_view(list_lines(todos), 4)
    assert list(map(str, shown)) == ["✓ [4] e", "✓ [5] f", "● [6] g", "(4 above)"]
