"""The question about a call: what a person sees, whatever the call contains."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from graphs.terminal.approval import question_about
from graphs.terminal.question import Room, call_rows, is_cut, size_of
from tests.consoles import RecordingConsole
from tests.screens import Emulator
from tests.strategies import json_values
from tests.support import write_checklist
from todo_tools.rendering.lowlevel import View

WHOLE = Room()
MARKS = ("    │ ", "    ↪ ", "    + ", "    - ", "      ")


def command(text: str) -> dict[str, Any]:
    return {"name": "execute", "args": {"command": text}}


def edit(old: str, new: str) -> dict[str, Any]:
    return {"name": "edit_file", "args": {"file_path": "a", "old_string": old, "new_string": new}}


def shown(action: dict[str, Any], room: Room = WHOLE) -> list[str]:
    return [str(row) for row in call_rows(action, (), room)]


class TestRows:
    def test_a_short_call_is_shown_unchanged(self) -> None:
        action = {"name": "execute", "args": {"timeout": 5, "command": "ls"}}
        assert shown(action, Room(80, 10)) == [
            "",
            "? execute",
            "    command: ls",
            "    timeout: 5",
        ]

    def test_a_continued_row_has_a_mark(self) -> None:
        assert shown(command("abcdefghijklmnopqrst\nuv"), Room(25, 10))[2:] == [
            "    command: abcdefghijk",
            "    ↪ lmnopqrst",
            "    │ uv",
        ]

    def test_a_line_break_at_the_end_of_a_path_is_shown(self) -> None:
        """It names another file. At the end of a content it is only the end of a line."""
        write = {"name": "write_file", "args": {"file_path": "a.txt\n", "content": "b\n"}}
        assert shown(write)[2:] == ["    file_path: a.txt", "    │ ", "    content: b"]

    def test_a_long_call_is_cut_in_the_middle(self) -> None:
        """A row replaces the middle and says how much is missing; `show` prints everything."""
        room = Room(20, 4)
        action = command("a" * 100 + "z" * 20)
        assert is_cut(action, (), room)
        assert shown(action, room)[2:] == [
            "    command: aaaaaa",
            "    ↪ aaaaaaaaaaaa",
            "    (8 of 11 rows left out)",
            "    ↪ zzzzzz",
        ]
        assert sum(map(len, shown(action, room.whole))) > 120
        assert not is_cut(action, (), room.whole)

    def test_the_question_names_the_call_and_its_size(self) -> None:
        action = {"name": "execute", "args": {"command": "a\nb"}}
        assert size_of(action) == "3 characters in 2 lines"
        assert str(question_about(action, cut=True)) == (
            "execute, 3 characters in 2 lines. Do it? yes, no, always, show, or why not:"
        )
        plan = {"name": "write_todos", "args": {"mode": "replace", "todos": ["a"]}}
        assert size_of(plan) == "1 item"

    def test_no_part_of_the_question_is_dim(self) -> None:
        """It is what the person must read, so it is not in the colour of hints."""
        line = question_about(command("ls"))
        assert [span.token for span in line.spans] == ["text", "warning", "text"]
        assert line.spans[1].bold

    def test_a_size_counts_what_is_written_and_no_path(self) -> None:
        """A line break at the end of a text begins no further line, in the rows as well."""
        write = {"name": "write_file", "args": {"file_path": "a", "content": "a\nb\n"}}
        assert size_of(write) == "4 characters in 2 lines"
        assert shown(write)[-2:] == ["    content: a", "    │ b"]
        assert size_of({"name": "execute", "args": {"command": "ls", "timeout": 5}}) == (
            "2 characters in 1 line"
        )
        assert size_of(edit("a", "b\nc")) == "1 line becomes 2 lines"
        assert size_of(edit("a\nb\n", "")) == "2 lines become 0 lines"

    def test_an_edit_is_shown_with_its_place_in_the_file(self) -> None:
        """Three lines around it, and the numbers of the lines."""
        text = "".join(f"line {n}\n" for n in range(1, 101))
        rows = call_rows(edit("ne 9\nli", "ne IX\nli"), (), WHOLE, text)
        assert [str(row) for row in rows][3:] == [
            "       6   line 6",
            "       7   line 7",
            "       8   line 8",
            "       9 - line 9",
            "       9 + line IX",
            "      10   line 10",
            "      11   line 11",
            "      12   line 12",
        ]

    def test_an_edit_that_fills_the_screen_has_fewer_lines_around_it(self) -> None:
        text = "".join(f"line {n}\n" for n in range(1, 101))
        action = edit("line 9\n", "line IX\nline X\n")
        rows = [str(row) for row in call_rows(action, (), Room(80, 8), text)]
        assert rows[3:] == [
            "       7   line 7",
            "       8   line 8",
            "       9 - line 9",
            "       9 + line IX",
            "      10 + line X",
            "      11   line 10",
            "      12   line 11",
        ]
        assert is_cut(action, (), Room(80, 8), text)

    def test_an_edit_of_several_places_shows_each(self) -> None:
        text = "".join(f"{n}\n" for n in range(1, 20)) + "7\n"
        rows = [str(row) for row in call_rows(edit("7\n", "VII\n"), (), WHOLE, text)]
        assert rows[3:] == [
            "       4   4",
            "       5   5",
            "       6   6",
            "       7 - 7",
            "       7 + VII",
            "       8   8",
            "       9   9",
            "      10   10",
            "    ...",
            "      14   14",
            "      15   15",
            "      16   16",
            "      17 - 17",
            "      17 + 1VII",
            "      18   18",
            "      19   19",
            "      20 - 7",
            "      20 + VII",
        ]

    def test_a_long_edit_with_a_line_that_is_often_repeated_is_shown_at_once(self) -> None:
        """To compare all of its places with each other takes long, and the chat would hang."""
        old, new = ("\n".join(f"x\n{mark}{n}" for n in range(500)) for mark in "yz")
        began = time.monotonic()
        assert is_cut(edit(old, new), (), Room(100, 20), old)
        assert time.monotonic() - began < 5

    def test_rows_that_a_small_argument_does_not_need_are_left_for_a_large_one(self) -> None:
        content = "\n".join(map(str, range(30)))
        write = {"name": "write_file", "args": {"file_path": "a", "content": content}}
        assert len(shown(write, Room(80, 12))) == 2 + 12

    def test_many_arguments_do_not_hide_the_command(self) -> None:
        """A model may invent arguments."""
        args = {f"x{n}": "\n" * 50 for n in range(100)} | {"command": "rm -rf ~"}
        rows = shown({"name": "execute", "args": args}, Room(80, 16))
        assert rows[2] == "    command: rm -rf ~"
        assert rows[-1] == "    (95 more arguments)"
        assert len(rows) <= 16 + 3

    def test_a_write_of_one_line_is_shown_on_a_low_screen(self) -> None:
        """A chat of 22 rows has 7 for a call."""
        write = {"name": "write_file", "args": {"content": "hello", "file_path": "a"}}
        assert shown(write, Room(80, 7))[2:] == ["    file_path: a", "    content: hello"]
        assert not is_cut(write, (), Room(80, 7))

    @pytest.mark.parametrize(
        ("action", "rows"),
        [
            (
                {"name": "write_file", "args": {"content": "evil", "file_path": "b"}},
                ["    file_path: b", "    content: evil"],
            ),
            (edit("o", "n"), ["    file_path: a", "    - o", "    + n"]),
            ({"name": "run_in_background", "args": {"command": "evil"}}, ["    command: evil"]),
        ],
        ids=["write", "edit", "command"],
    )
    def test_invented_arguments_come_after_those_of_the_tool(
        self, action: dict[str, Any], rows: list[str]
    ) -> None:
        """A model may name them after the arguments of another tool."""
        invented = {"command": "ls", "old_string": "o", "new_string": "n", "content": "c"}
        args = invented | {"file_path": "f"} | action["args"]
        assert shown({**action, "args": args})[2 : 2 + len(rows)] == rows

    def test_a_call_of_which_an_argument_is_left_out_is_cut(self) -> None:
        """The note about it takes exactly its row."""
        write = {"name": "write_file", "args": dict.fromkeys("abcde", "x")}
        assert shown(write, Room(80, 4))[-1] == "    (1 more argument)"
        assert len(shown(write, Room(80, 4))) == len(shown(write))
        assert is_cut(write, (), Room(80, 4))

    @given(
        st.dictionaries(st.text(max_size=30), st.text(max_size=400) | json_values, max_size=4),
        st.integers(30, 90),
        st.sampled_from(["utf-8", "ascii", "cp1252"]),
    )
    def test_no_row_is_as_wide_as_the_screen(
        self, args: dict[str, Any], width: int, encoding: str
    ) -> None:
        """So the terminal breaks no row, and each begins with a mark or an argument's name."""
        room = Room(width, 12, encoding)
        console = RecordingConsole(width=width, encoding=encoding, color_system=None)
        rows = list(call_rows({"name": "execute", "args": args}, (), room))
        console.print(View(tuple(rows)))
        drawn = console.written.split("\n")
        assert all(cell_len(row) < max(width, 66) for row in drawn)
        for row in drawn[2:-1]:
            assert row.startswith("    ")


class TestRoom:
    @pytest.mark.parametrize(
        ("console", "width"),
        [
            (RecordingConsole(width=80, height=24), 80),
            (RecordingConsole(width=300, height=200), 80),
            (RecordingConsole(width=40, height=24), 40),
            (RecordingConsole(width=1_000_000, terminal=False), 80),
        ],
        ids=["the same", "too large", "too narrow", "a pipe"],
    )
    def test_a_call_never_has_more_room_than_the_terminal_of_the_answer(
        self, console: RecordingConsole, width: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`COLUMNS` may be wrong, and output may go through a pipe (`| tee log`)."""
        monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((80, 24)))
        with Path(os.devnull).open() as answers:
            monkeypatch.setattr("sys.stdin", answers)
            room = Room.of(console)
        assert (room.width, room.height) == (width, 16)


PROGRAM = """
import json, sys
from todo_tools.testing import ScriptedChatModel, call, turn
from graphs.terminal import agents, chat, checklist
text = json.loads(sys.argv[1])
plan = turn("", call("write_todos", mode="replace", todos=["One"]))
script = [plan, turn("", call("execute", command=text)), "Done."]
agents.chat_model = lambda *_, **__: ScriptedChatModel(script=script)
sys.exit({"chat": chat, "checklist": checklist}[sys.argv[2]].main(sys.argv[3:]))
"""
OPTIONS = ("--agent", "coding", "--workdir", "work", "--create", "--thread", "t", "--grace", "0")
HARMLESS = ["", "? execute", "    command: ls -la", "  Do it? yes, no, always, or why not:"]


ASKED = "Do it? yes, no, always, show, or why not:"


def joined(rows: list[str]) -> str:
    return " ".join(" ".join(rows).split())


def padded(rows: int, columns: int, blank: str) -> str:
    """A command that tries to scroll the screen and draw another question, row by row."""
    return "echo gone >> log; #" + "".join(
        row + blank * (columns - len(row)) for row in [""] * rows + HARMLESS
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
class TestPainting:
    @pytest.fixture(autouse=True)
    def somewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    @pytest.fixture
    def started(self) -> Iterator[Any]:
        opened = list[Emulator]()

        def started(text: str, program: str, *argv: str, **size: int) -> Emulator:
            given = (json.dumps(text), program, *argv, *OPTIONS)
            opened.append(Emulator("-c", PROGRAM, *given, **size))  # type: ignore[arg-type]
            return opened[-1]

        yield started
        for each in opened:
            each.close()

    @pytest.mark.parametrize(("how", "rows", "columns"), [("blanks", 24, 80), ("lines", 20, 40)])
    def test_the_program_shows_what_is_approved(
        self, how: str, rows: int, columns: int, started: Any
    ) -> None:
        terminal = started(
            self.hostile(how, rows, columns),
            "checklist",
            write_checklist("One"),
            rows=rows,
            columns=columns,
        )
        terminal.wait(lambda: ASKED in joined(terminal.rows))
        self.check(terminal)

    @pytest.mark.parametrize(("how", "rows", "columns"), [("braille", 24, 80), ("blanks", 20, 40)])
    def test_the_chat_shows_what_is_approved(
        self, how: str, rows: int, columns: int, started: Any
    ) -> None:
        terminal = started(self.hostile(how, rows, columns), "chat", rows=rows, columns=columns)
        terminal.see("your turn")
        terminal.press("Begin.\r")
        terminal.wait(lambda: ASKED in joined(terminal.rows))
        self.check(terminal)
        terminal.press("show\r")
        terminal.wait(lambda: terminal.everything.count("? execute") > 1)

    def hostile(self, how: str, rows: int, columns: int) -> str:
        if how == "lines":
            return "echo gone >> log\n" + "\n" * rows + "\n".join(HARMLESS)
        return padded(rows, columns, " " if how == "blanks" else "\u2800")

    def check(self, terminal: Emulator) -> None:
        """The beginning of the command is on the screen, and only the real question asks."""
        rows = terminal.rows
        assert sum(row.startswith("? execute") for row in rows) == 1
        begin = next(at for at, row in enumerate(rows) if row.startswith("? execute"))
        assert rows[begin + 1].startswith("    command: echo gone >> log")
        assert "rows left out" in joined(rows[begin:])
        assert "execute, " in joined(rows[begin:])
        for row in rows[begin + 2 :]:
            if "ls -la" in row:
                assert row.startswith(MARKS[:2])
