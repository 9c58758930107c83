"""Lists, status and calls as text, and texts with harmful characters."""

import sys
from typing import Any
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.prompt_reader import read_lines
from tests.strategies import todo_lists
from tests.support import MIXED
from todo_tools import TodoItem, format_status, format_todos
from todo_tools._calls.answers import call_parts, format_call
from todo_tools._list.formatting import format_in_progress, format_items, one_line
from todo_tools._list.todos import incomplete


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

    def test_the_incomplete_items_keep_their_indices(self) -> None:
        """Finished items are left out."""
        assert format_items(incomplete(MIXED[1:])) == "● [0] Implement migration script"
        assert format_items(incomplete(MIXED[::-1])).endswith("– [3] Write database schema")  # noqa: RUF001

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


class TestStatus:
    def test_finished_items_are_counted(self) -> None:
        """Abandoned items count as finished."""
        assert format_status(MIXED) == "📋 2/4"

    def test_a_finished_list_is_done(self) -> None:
        """Its items may be completed or abandoned."""
        assert format_status([*MIXED[2:]]) == "✓ Done (2 items)"

    def test_without_todos_there_is_no_status(self) -> None:
        assert format_status([]) == ""


class TestOneLine:
    @pytest.mark.parametrize(
        ("hostile", "visible"),
        [
            ("a\n✓ [1] b", "a␊✓ [1] b"),
            ("a\r\nb", "a␍␊b"),
            ("\x1b[2Jgone", "␛[2Jgone"),
            ("tab\there", "tab␉here"),
            ("del\x7f", "del␡"),
            ("c1\x9b31m", "c1<U+009B>31m"),
            ("\u202egnp.exe", "<U+202E>gnp.exe"),
            ("a\u2028b\x85c", "a<U+2028>b<U+0085>c"),
            ("\ud83d", "<U+D83D>"),
            ("a\U000e0062\U000e007f", "a<U+E0062><U+E007F>"),
            ("a\u200bb\ufeff\u00ad", "a<U+200B>b<U+FEFF><U+00AD>"),
            ("\u2800\u3164\uffa0", "<U+2800><U+3164><U+FFA0>"),
            ("a\u00a0b\u3000c\u202f", "a<U+00A0>b<U+3000>c<U+202F>"),
            ("\U00016fe4\U0001d159", "<U+16FE4><U+1D159>"),
            ("\U00013440\U00013441\U00013442", "<U+13440><U+13441><U+13442>"),
            ("a\u200db\ufe0f", "a<U+200D>b<U+FE0F>"),
            ("🚀\ufe0f\ufe0f\u200d", "🚀\ufe0f<U+FE0F><U+200D>"),
            ("x\ufe0f\u200d🚀", "x<U+FE0F><U+200D>🚀"),
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

    def test_no_format_character_and_no_other_blank_looks_like_a_space_or_nothing(self) -> None:
        """Otherwise a model would read characters that a person does not see."""
        hidden = [
            character
            for character in map(chr, range(sys.maxunicode + 1))
            if category(character) in {"Cf", "Zl", "Zp", "Zs"}
            and one_line(f"a{character}b") == f"a{character}b"
        ]
        assert hidden == [" "]

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
        ("write_todos", {"mode": "append", "todos": ["a", "b"]}, "write_todos append (2 items)"),
        (
            "write_todos",
            {"mode": "insert", "index": 1, "todos": ["a"]},
            "write_todos insert (1 items @1)",
        ),
        (
            "write_todos",
            {"mode": "append", "index": 1, "todos": ["a"]},
            "write_todos append (1 items)",
        ),
        ("write_todos", {"todos": ["a"]}, "write_todos (1 items)"),
        (
            "write_todos",
            {"mode": "insert", "index": None, "todos": ["a"]},
            "write_todos insert (1 items)",
        ),
        ("write_todos", {"todos": "junk"}, "write_todos junk"),
        ("edit_todos", {"indices": [0]}, "edit_todos [0]"),
        ("list_todos", {}, "list_todos"),
        ("edit_todos", {"action": "start", "indices": [0, 1]}, "edit_todos start [0, 1]"),
        ("edit_todos", {}, "edit_todos"),
        ("shell", {"command": "ls\nrm"}, "shell ls␊rm"),
        ("shell", {"command": "ls", "seconds": 5}, "shell ls 5"),
        ("shell", {"command": "x" * 500}, "shell " + "x" * 193 + "…"),
        ("shell", {"command": "x" * 194}, "shell " + "x" * 194),
        ("shell", {"a": "x" * 193, "b": 1}, "shell " + "x" * 193 + "…"),
        ("shell", {"command": "x" * 192 + " y" * 9}, "shell " + "x" * 192 + "…"),
        ("s" * 200, {"a": 1}, "s" * 199 + "…"),
        ("s" * 198, {"a": 12}, "s" * 198 + "…"),
        ("s" * 197, {"a": 123}, "s" * 197 + " 1…"),
    ],
)
def test_a_call_is_one_short_line(name: str, args: dict[str, Any], shown: str) -> None:
    """Malformed arguments, and those of other tools, are shown unchanged."""
    assert format_call(name, args) == shown


@pytest.mark.parametrize(
    ("name", "args", "colours"),
    [
        ("write_todos", {"mode": "append", "todos": ["a"]}, ["toolTitle", "warning", "muted"]),
        ("edit_todos", {"action": "start", "indices": [0]}, ["toolTitle", "warning", "accent"]),
        ("list_todos", {}, ["toolTitle"]),
        ("shell", {"command": "ls"}, ["toolTitle", "muted"]),
    ],
)
def test_each_part_of_a_call_has_a_colour(
    name: str, args: dict[str, Any], colours: list[str]
) -> None:
    assert [token for _, token in call_parts(name, args)] == colours
