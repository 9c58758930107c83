"""The live view of a run in the program and in the chat, frame by frame."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphs.terminal.commands import HELP
from graphs.terminal.foot import Foot
from graphs.terminal.lines import open_console, show
from graphs.terminal.spoken import spoken
from tests.consoles import RecordingConsole
from tests.screens import Emulator
from tests.support import ROOT, checklist, write_checklist
from todo_tools.rendering.lowlevel import Followed

_ROW = re.compile(r"^([–●✓✗]) \[(\d+)\]", re.MULTILINE)  # noqa: RUF001
_RANK = "–●✓✗"  # noqa: RUF001
HELD = "One: `echo early; until test -e seen; do sleep 0.05; done; echo late`"
LONG_WORD = ",".join(f"{number:04}" for number in range(30))
STEPS = (HELD, *(f"Step {n}: `echo {n}`" for n in range(4)))
OPTIONS = ("--workdir", "work", "--create", "--thread", "t", "--grace", "1")


class TestFoot:
    def test_many_kept_messages_leave_room_for_the_input_line(self) -> None:
        """Only the first ones are shown, and how many there are besides."""
        kept = [f"Message {number}" for number in range(30)]
        foot = Foot().lines(Followed(), "working", kept, 10, working=False, rows_of=lambda _: 1)
        assert [str(line) for line in foot][-4:] == [
            "kept: Message 0",
            "kept: Message 1",
            "kept: Message 2",
            "kept: 27 more",
        ]


class TestAnswers:
    def printed(self, text: str, **settings: Any) -> list[str]:
        console = RecordingConsole(**{"width": 30, "color_system": None, **settings})
        show(console, spoken(text))
        return [row.rstrip() for row in console.text.splitlines()]

    def test_an_answer_is_markdown_in_a_terminal(self) -> None:
        """Its lines are one block, and its line breaks are kept."""
        text = "I **did** it:\nall of it.\n\n- one\n- `two`"
        assert self.printed(text) == [
            "💬 I did it:",
            "   all of it.",
            "",
            "    • one",
            "    • two",
        ]

    def test_the_numbers_of_a_list_are_those_that_the_model_wrote(self) -> None:
        """They may be those of steps, or of items."""
        text = "0. none\n3. three\n7. seven\n120. many"
        written = [row.split() for row in self.printed(text)[1:]]
        assert written == [["0", "none"], ["3", "three"], ["7", "seven"], ["120", "many"]]

    def test_its_colours_can_be_read_on_light_and_dark_backgrounds(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """None of them is bright or blue, and the background is that of the terminal."""
        monkeypatch.setenv("FORCE_COLOR", "1")
        console = open_console()
        shown = console.render(
            spoken(
                "# One `two`\n\n[a](http://e.org)\n\n```python\ndef f(): return 'x' + 1  # y\n```"
            )
        )
        styles = [segment.style for segment in shown if segment.style]
        colours = {style.color.name for style in styles if style.color}
        assert colours - {"default"} == {"cyan", "green", "magenta"}
        assert not [style for style in styles if style.bgcolor and style.bgcolor.name != "default"]

    def test_a_heading_is_at_the_left(self) -> None:
        assert self.printed("# One") == ["💬 One"]

    @pytest.mark.parametrize("settings", [{"terminal": False}, {"encoding": "cp1252"}])
    def test_elsewhere_it_is_shown_unchanged(self, settings: Any) -> None:
        rows = self.printed("**One**\n\n- two", **settings)
        assert [row.removeprefix("💬 ").strip() for row in rows] == ["**One**", "", "- two"]

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("a <b>bold</b> <!-- gone -->", "<b>bold</b> <!-- gone -->"),
            ("<script>\nx()\n</script>", "<script>"),
            ("[a](http://example.org)", "http://example.org"),
            ("![a](http://e.org)", "http://e.org"),
            ("[a]: http://e.org", "http://e.org"),
            ("a \x1b[2J\x1b]8;;http://e.org\x07b", "␛[2J␛]8;;http://e.org␇b"),
            ("a &#x202e; b", "&#x202e;"),
            ("[red]a[/red] :smile:", "[red]a[/red] :smile:"),
        ],
    )
    def test_no_text_acts_and_no_part_is_lost(self, text: str, shown: str) -> None:
        console = RecordingConsole(width=200, color_system=None)
        show(console, spoken(text))
        assert shown in console.written
        assert "\x1b" not in console.written.replace("\x1b[0m", "")

    @pytest.mark.parametrize("width", [24, 40, 80, 120])
    @pytest.mark.parametrize(
        "text",
        [
            f"prose {LONG_WORD} end",
            f"**bold {LONG_WORD}** end",
            f"`code {LONG_WORD}` end",
            f"[a](http://e.org/{LONG_WORD}) end",
            f"# heading {LONG_WORD} end",
            f"> quote {LONG_WORD} end",
            f"- item {LONG_WORD} end",
            f"1. item {LONG_WORD} end",
            f"- one\n  - two\n    - three\n      > four {LONG_WORD} end",
            f"{'> ' * 30}quote {LONG_WORD} end",
            f"```sh\ncurl {LONG_WORD} end\n```",
            f"    indented {LONG_WORD} end",
            f"| a | b |\n|---|---|\n| end | {LONG_WORD} |",
            f"| {LONG_WORD} |\n|---|\n| end |",
            f"- in an item\n\n  | a | b |\n  |---|---|\n  | end | {LONG_WORD} |",
        ],
    )
    def test_a_word_longer_than_a_row_is_broken_and_not_cut(self, text: str, width: int) -> None:
        """A word that ends in a mark would be a wrong command, path or address."""
        rows = self.printed(text, width=width)
        shown = re.sub(r"[^0-9a-z,]", "", "".join(rows))
        assert LONG_WORD in shown
        assert "end" in shown
        assert "…" not in shown
        assert max(map(len, rows)) <= width

    @pytest.mark.parametrize(
        "text",
        [
            "| a | b |\n|---|---|\n| `x | y` | z |",
            "| a | b |\n|---|---|\n|  | y | z |",
            "\n".join(["| abc " * 30 + "|", "|---" * 30 + "|", "| x, y, z " * 30 + "|"]),
        ],
    )
    def test_a_table_that_would_lose_cells_is_shown_as_it_is_written(self, text: str) -> None:
        """A row has more cells than the heading, or there are more columns than fit."""
        shown = "".join(self.printed(text, width=80))
        assert re.sub(r"\s", "", shown.removeprefix("💬")) == re.sub(r"\s", "", text)

    def test_a_table_is_drawn_if_nothing_of_it_is_lost(self) -> None:
        text = "| a | b |\n|---|---|\n| x \\| y | z |"
        assert self.printed(text)[2:5] == ["    a      b", "    ────────", "    x | y  z"]


def check_that_nothing_goes_back(frames: list[str], steps: int) -> None:
    """Items of this run only progress; a frame may show only a part of the list."""
    rank = [0] * steps
    for frame in frames:
        for icon, index in dict.fromkeys(_ROW.findall(frame)):
            assert _RANK.index(icon) >= rank[int(index)], frame
            rank[int(index)] = _RANK.index(icon)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
class TestScreens:
    @pytest.fixture
    def started(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
        monkeypatch.chdir(tmp_path)
        opened = list[Emulator]()

        def started(*argv: str, rows: int = 24, columns: int = 80, **env: str) -> Emulator:
            opened.append(
                Emulator("-m", "graphs", *argv, *OPTIONS, rows=rows, columns=columns, **env)
            )
            return opened[-1]

        yield started
        for each in opened:
            each.close()

    def test_the_program_keeps_the_list_below_what_it_prints(
        self, started: Any, tmp_path: Path
    ) -> None:
        """A command's output is shown while it runs, and the list once at the end."""
        terminal = started(write_checklist(*STEPS), rows=20, columns=40)
        running = re.compile(r"│ early$.*^. \d+s shell echo early", re.MULTILINE | re.DOTALL)
        terminal.wait(lambda: running.search(terminal.text))
        (tmp_path / "work" / "seen").touch()
        assert terminal.end() == 0
        check_that_nothing_goes_back(terminal.frames, len(STEPS))
        assert any("Auto-continuing in 1s... (Ctrl-C" in f for f in terminal.frames)
        assert "✓ Done (5 items)" in terminal.text
        assert terminal.everything.count("✓ [4] Step 3") == 1

    @pytest.mark.parametrize("program", [[], ["chat"]])
    def test_the_list_below_wraps_long_items(
        self, program: list[str], started: Any, tmp_path: Path
    ) -> None:
        """Below a list that is not whole, the program says how many items are hidden."""
        words = f"Read {LONG_WORD} whole"
        plan = write_checklist(f"{words}: `until test -e seen; do sleep 0.05; done`", "Two")
        terminal = started(*(program or [plan]), rows=24, columns=40)
        if program:
            terminal.see("your turn")
            terminal.press(f"\x1b[200~{Path(plan).read_text()}\x1b[201~\r")
        terminal.wait(lambda: LONG_WORD in re.sub(r"\s", "", terminal.text.rpartition("● [0]")[2]))
        terminal.see("0/2")
        (tmp_path / "work" / "seen").touch()

    def test_the_chat_keeps_its_foot_while_it_prints(self, started: Any, tmp_path: Path) -> None:
        """Each frame of a run shows the list and the input line."""
        terminal = started("chat")
        terminal.see("your turn")
        terminal.press(f"\x1b[200~{checklist(*STEPS)}\x1b[201~\r")
        terminal.see("📋", "Ctrl-C stops it")
        begin = len(terminal.frames)
        terminal.see("  │ early")
        (tmp_path / "work" / "seen").touch()
        terminal.see("✓ Done (5 items) · your turn")
        frames = terminal.frames[begin:]
        check_that_nothing_goes_back(frames, len(STEPS))
        assert [f for f in frames if "[4] Step 3" not in f or "\n>" not in f] == []
        terminal.press("/quit\r")
        assert terminal.end() == 0

    def test_the_help_of_the_chat_fits_a_small_screen(self, started: Any) -> None:
        """Its first line does not scroll away above a short list."""
        terminal = started("chat")
        terminal.see("your turn")
        for key in ("/edit add One\r", "/edit add Two\r", "/edit add Three\r"):
            terminal.press(key)
        terminal.see("[2] Three")
        terminal.press("/help\r")
        terminal.see("Ctrl-D.", "your turn")
        assert HELP in terminal.text
        terminal.press("/quit\r")
        assert terminal.end() == 0

    def test_a_full_disk_is_one_line_and_loses_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The printed command resumes the thread."""
        monkeypatch.chdir(tmp_path)
        command = [sys.executable, "-m", "graphs", write_checklist("One: `true`"), *OPTIONS]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        with Path("/dev/full").open("w") as full:
            run = subprocess.run(
                command, env=env, stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert run.returncode == 1
        assert run.stderr.splitlines()[-1] == (
            "error: the output cannot be written: No space left on device"
        )
        assert "Traceback" not in run.stderr

    def test_a_pipe_gets_the_output_of_a_command_that_runs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The command waits until its first line is printed; each line is printed once."""
        monkeypatch.chdir(tmp_path)
        plan = write_checklist("One: `echo early; until [ -e go ]; do sleep 0.1; done; echo late`")
        command = [sys.executable, "-m", "graphs", plan, *OPTIONS]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout
            rows = list[str]()
            for row in run.stdout:
                rows.append(row.rstrip())
                if rows[-1] == "  │ early":
                    (tmp_path / "work" / "go").touch()
        assert run.returncode == 0
        begin = rows.index("  │ early")
        assert rows[begin : begin + 3] == ["  │ early", "  │ late", "  │ exit code 0"]
        assert [row for row in rows if row.startswith("  │")] == rows[begin : begin + 3]

    @pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
    def test_a_pipe_of_any_encoding_is_readable(
        self, encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If the encoding lacks an icon, all icons are replaced."""
        monkeypatch.chdir(tmp_path)
        command = [sys.executable, "-m", "graphs", write_checklist("One: `true`"), *OPTIONS]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding}
        run = subprocess.run(command, env=env, capture_output=True, check=True)
        shown = run.stdout.decode(encoding)
        assert "-> Shell true" in shown
        assert "  [x] [0] One" in shown
        assert "\\u" not in shown
