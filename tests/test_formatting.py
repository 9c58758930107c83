"""Lists, status and calls as text, and texts with harmful characters."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.prompt_reader import read_lines
from tests.strategies import todo_lists
from tests.support import MIXED
from todo_tools import TodoItem, format_status, format_todos
from todo_tools._calls.answers import call_parts, format_call
from todo_tools._list.formatting import format_in_progress, one_line


class TestLists:
    def test_each_item_is_icon_index_and_text(self) -> None:
        """The four icons are those of the specification."""
        assert format_todos(MIXED) == (
            "– [0] Write database schema\n"  # noqa: RUF001  the specified icon
            "● [1] Implement migration script\n"
            "✓ [2] Add API endpoints\n"
            "✗ [3] Ask Bob"
        )

    def test_an_empty_list_says_so(self) -> None:
        assert format_todos([]) == "No todos"

    def test_items_in_progress_have_an_index_and_no_icon(self) -> None:
        assert format_in_progress(MIXED) == ["[1] Implement migration script"]

    @given(todo_lists)
    def test_an_item_is_one_line_whatever_its_text(self, todos: list[TodoItem]) -> None:
        """No text can add a line to the list."""
        assert len(format_todos(todos).splitlines()) == max(len(todos), 1)

    @given(todo_lists)
    def test_the_lines_of_a_list_are_read_back(self, todos: list[TodoItem]) -> None:
        """Each text as it was shown; any other line is no item."""
        lines = f"My list:\n{format_todos(todos)}\n? [0] a"
        assert read_lines(lines) == [(one_line(todo["text"]), todo["status"]) for todo in todos]


@pytest.mark.parametrize(
    ("todos", "status"), [(MIXED, "📋 2/4"), (MIXED[2:], "✓ Done (2 items)"), ([], "")]
)
def test_the_status_counts_finished_items(todos: list[TodoItem], status: str) -> None:
    """Abandoned items count as finished."""
    assert format_status(todos) == status


class TestOneLine:
    @pytest.mark.parametrize(
        ("hostile", "visible"),
        [
            ("a\n✓ [1] b", "a␊✓ [1] b"),
            ("\x1b[2Jgone\x7f", "␛[2Jgone␡"),
            ("\u202egnp.exe", "<U+202E>gnp.exe"),
            ("a\u2028b\x85c", "a<U+2028>b<U+0085>c"),
            ("\ud83d", "<U+D83D>"),
            ("a\U000e0062", "a<U+E0062>"),
            ("a\u200bb\ufeff", "a<U+200B>b<U+FEFF>"),
            ("a\u00a0b", "a<U+00A0>b"),
            ("a\u200db\ufe0f", "a<U+200D>b<U+FE0F>"),
        ],
    )
    def test_harmful_characters_are_made_visible(self, hostile: str, visible: str) -> None:
        """These are line breaks, control characters, overrides, invisible characters and blanks."""
        assert one_line(hostile) == visible

    def test_ordinary_text_of_any_script_is_left_alone(self) -> None:
        """Joined emoji, joined words and right-to-left letters are ordinary text."""
        text = "Überprüfen 部署 שלום 👩‍💻 🚀 <tag> & “more”"
        text += " می\u200cخواهم क्\u200dष"  # noqa: RUF001  Persian
        text += " 1\ufe0f\u20e3 ❤\ufe0f 🏳\ufe0f\u200d🌈 👩🏽\u200d💻"
        assert one_line(text) == text

    @given(st.text() | st.text("a🚀می\u200c\u200d\ufe0e\ufe0f\u20e31\u2800\U000e0062"))
    def test_the_result_is_always_one_encodable_line(self, text: str) -> None:
        """Applying the function twice changes nothing more."""
        shown = one_line(text)
        assert one_line(shown) == shown
        assert len(shown.splitlines()) <= 1
        shown.encode()


@pytest.mark.parametrize(
    ("name", "args", "shown"),
    [
        ("write_todos", {"mode": "append", "index": 1, "todos": ["a"]}, "append (1 items)"),
        ("write_todos", {"todos": "junk"}, "junk"),
        ("edit_todos", {"action": "start", "indices": [0, 1]}, "start [0, 1]"),
        ("shell", {"command": "ls\nrm", "seconds": 5}, "ls␊rm 5"),
        ("shell", {"command": "x" * 500}, "x" * 193 + "…"),
        ("shell", {"command": "x" * 192 + " y" * 9}, "x" * 192 + "…"),
    ],
)
def test_a_call_is_one_short_line(name: str, args: dict[str, Any], shown: str) -> None:
    """Malformed arguments, and those of other tools, are shown unchanged."""
    assert format_call(name, args) == f"{name} {shown}"


def test_each_part_of_a_call_has_a_colour() -> None:
    parts = call_parts("edit_todos", {"action": "start", "indices": [0]})
    assert [token for _, token in parts] == ["toolTitle", "warning", "accent"]
    assert [token for _, token in call_parts("shell", {"a": 1})] == ["toolTitle", "muted"]


def test_a_call_with_a_name_longer_than_a_line_is_its_beginning() -> None:
    assert format_call("x" * 250, {"path": "a"}) == "x" * 199 + "…"
