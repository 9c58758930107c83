"""The demonstration, and its recording as an animated picture."""

import re
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from langchain_core.messages import HumanMessage
from picture.__main__ import BRANCHES, DEMO, ITEMS, record_demo, record_items
from picture.animation import animate
from picture.recording import Frame, Row, record

from todo_tools import demo
from todo_tools._thread.transcript import is_injected
from todo_tools.demo import build_demo

PLAIN = ("default", False, False)


def row(text: str) -> Row:
    return ((PLAIN, text),) if text else ()


def frame(at: float, *texts: str) -> Frame:
    return Frame(at, tuple(map(row, texts)))


def still(svg: str) -> list[str]:
    """The rows of the picture without animation, from the top."""
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    texts = {each.get("id"): "".join(each.itertext()) for each in root.iter(f"{space}text")}
    uses = [
        each
        for each in root.iter(f"{space}use")
        if not each.get("class") and each.get("href") != "#m"  # a mark is not a text
    ]
    uses.sort(key=lambda use: int(use.get("y", "0")))
    return [texts[use.get("href", "").removeprefix("#")] for use in uses]


class TestAnimation:
    def test_without_animation_it_shows_the_last_frame(self) -> None:
        svg = animate([frame(0, "first", "same"), frame(1, "last", "same")], title="A run")
        assert still(svg) == ["last", "same"]

    def test_a_row_is_visible_while_the_screen_showed_it(self) -> None:
        """The last frame comes first, for two seconds, and stays for four."""
        svg = animate([frame(5, "a"), frame(7, "b")], title="A run")
        assert "animation:8.0s step-end infinite" in svg
        assert "0%{visibility:hidden}25.00%{visibility:visible}50.00%{visibility:hidden}" in svg

    def test_a_turning_point_is_marked_and_held(self) -> None:
        """A pause in which the machine was busy is shortened."""
        frames = [frame(0, "begin"), frame(1, "All done!"), frame(2, "sent back"), frame(60, "end")]
        svg = animate(frames, title="A run", turns=["All done!", "sent back"])
        assert "animation:15.5s step-end" in svg  # 2 before, 1 + 1 + 2.5, 2.5 + 2.5, 4 after
        marks = re.findall(r'<use href="#m" y="0" class="h" style="animation-name:(k\d)"/>', svg)
        assert len(marks) == 2
        assert svg.count('href="#m"') == 2

    def test_texts_and_title_cannot_act(self) -> None:
        svg = animate([frame(0, "<script>&")], title="<b>")
        assert still(svg) == ["<script>&"]
        assert "<script" not in svg
        assert "<b>" not in svg


@pytest.mark.slow
class TestRecording:
    def test_it_records_the_screen(self) -> None:
        """It records colours, faint and struck text, and text that is overwritten later."""
        script = r"import time; print('one', flush=True); time.sleep(0.4); print('\033[Atwo')"
        frames = record([sys.executable, "-c", script], columns=20, rows=3)
        assert [str(each).split() for each in frames if str(each).strip()] == [["one"], ["two"]]
        styled = record(["printf", r"\033[2;9mgone\033[0m"], columns=20, rows=2)
        assert styled[-1].rows[0] == ((("brightblack", False, True), "gone"),)

    def test_what_a_person_types_is_typed(self) -> None:
        """Each text a moment after what the person waits for."""
        command = [sys.executable, "-c", "print(input() + input())"]
        typed = [("", 0.2, "one\n"), ("one", 0.2, "two\n")]
        frames = record(command, columns=20, rows=5, typed=typed)
        assert "onetwo" in str(frames[-1])


def run_tests(command: list[str], *, cwd: Path, **_: Any) -> subprocess.CompletedProcess[str]:
    """What the demonstration's command would do, without a process: the test wants lower case."""
    passes = "lower" in (cwd / "slugify.py").read_text(encoding="utf-8")
    error = "" if passes else "Traceback ...\nAssertionError: 'Hello-World' != 'hello-world'\n"
    return subprocess.CompletedProcess(command, 0 if passes else 1, "", error)


class TestProgram:
    @pytest.fixture
    def shown(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
        """What `python -m todo_tools.demo` prints where no time passes."""
        monkeypatch.setattr(subprocess, "run", run_tests)
        monkeypatch.setattr(time, "sleep", lambda _: None)
        monkeypatch.setattr(sys, "argv", ["demo"])
        with pytest.raises(SystemExit, match="0"):
            runpy.run_path(demo.__file__, run_name="__main__")
        return capsys.readouterr().out

    def test_it_shows_what_the_agent_says_and_does(self, shown: str) -> None:
        """It says too early that it is done, is sent back, and finishes."""
        story = [
            "The model is a script.",
            "Write a function slugify and test it.",
            "write_file slugify.py",
            "AssertionError: ",
            "exit code 1",
            "All done! ",
            "sent back to work",
            "Two items are open: a test failed.",
            "exit code 0",
            "The function is written, and its test passes.",
            "middleware=[TodoMiddleware()]",
        ]
        places = [shown.index(line) for line in story]
        assert places == sorted(places)

    def test_it_shows_neither_the_todo_tools_nor_the_text_of_files(self, shown: str) -> None:
        """The list says the first; the second is long."""
        assert "edit_todos" not in shown
        assert "write_file" in shown
        assert "def slugify" not in shown

    def test_help_is_shown_without_a_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Any other argument is an error."""
        with pytest.raises(SystemExit, match="0"):
            demo.main(["--help"])
        with pytest.raises(SystemExit, match="2"):
            demo.main(["twice"])
        assert capsys.readouterr().out.startswith("usage: python -m todo_tools.demo")


@pytest.mark.slow
class TestDemo:
    def test_it_stops_early_is_sent_back_and_finishes(self, tmp_path: Path) -> None:
        """The commands are real: the first test run fails, the second passes."""
        request: Any = {"messages": [HumanMessage("Write a function slugify and test it.")]}
        final = build_demo(tmp_path).invoke(request)
        (sent_back,) = [m for m in final["messages"] if is_injected(m)]
        assert "do the work of [3]" in sent_back.text
        results = [m.text for m in final["messages"] if m.type == "tool" and m.name == "run"]
        assert [text.splitlines()[-1] for text in results] == ["exit code 1", "exit code 0"]
        assert final["todo_outcome"] == "finished"

    def test_the_picture_of_the_readme_is_such_a_run(self) -> None:
        """The stored picture ends as a run does today; no frame shows a status going back.

        It is small and fetches nothing.
        """
        frames = record_demo()
        kept = DEMO.read_text(encoding="utf-8")
        assert still(kept) == still(animate(frames, title=""))
        assert len(kept) < 60_000
        assert "url(" not in kept

        ranks = {"–": 0, "●": 1, "✓": 2}  # noqa: RUF001  the sign of an open item
        seen: dict[str, list[int]] = {}
        for each in frames:
            for icon, index in re.findall(r"^(\S) \[(\d)\]", str(each), re.MULTILINE):
                seen.setdefault(index, []).append(ranks[icon])
        assert sorted(seen) == list("01234")
        for statuses in seen.values():
            assert statuses == sorted(statuses)
            assert statuses[-1] == 2


def test_the_picture_of_the_chat_shows_both_branches_with_their_lists() -> None:
    kept = BRANCHES.read_text(encoding="utf-8")
    shown = [re.sub(r"\s+", "", row) for row in still(kept)]  # blanks are places, not texts
    at = shown.index(">/branches")
    items = [row.partition("←")[0] for row in shown[at:] if "[1]" in row]
    assert items[:2] == ["✓[1]InviteAnn", "✓[1]InviteBob"]
    others = [row for row in shown[at:] if row.startswith(("✓[0]", "✓[2]"))]
    assert others[:2] == others[2:4] == ["✓[0]Writetheinvitation", "✓[2]Bakeacake"]
    assert len(kept) < 60_000
    assert "url(" not in kept


@pytest.mark.slow
def test_the_picture_of_the_item_runner_is_such_a_run() -> None:
    """It ends as a run does today, but for the seconds, and shows three items at work."""
    kept, frames = ITEMS.read_text(encoding="utf-8"), record_items()
    fresh = animate(frames, title="")
    ends = [re.sub(r"\d+ seconds?", "", "\n".join(still(each))) for each in (kept, fresh)]
    assert ends[0] == ends[1]
    assert all(f"[{index}] Move" in kept for index in range(6))
    assert max(str(each).count("run_tests") for each in frames) == 3
    assert len(kept) < 60_000
