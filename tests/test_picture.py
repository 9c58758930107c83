"""The demonstration, and its recording as an animated picture."""

import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from langchain_core.messages import HumanMessage

from graphs.programs.animation import animate
from graphs.programs.picture import DEMO, draw_demo
from graphs.programs.recording import Frame, Row, record
from todo_tools.demo import build_demo
from todo_tools.transcript import is_injected

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
    uses = [each for each in root.iter(f"{space}use") if not each.get("class")]
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

    def test_a_row_that_comes_back_is_drawn_once(self) -> None:
        svg = animate([frame(0, "a", ""), frame(1, "b", ""), frame(2, "a", "a")], title="A run")
        assert svg.count(">a<") == 1

    def test_texts_and_title_cannot_act(self) -> None:
        svg = animate([frame(0, "<script>&")], title="<b>")
        assert still(svg) == ["<script>&"]
        assert "<script" not in svg
        assert "<b>" not in svg

    def test_wide_characters_take_two_columns(self) -> None:
        (wide,) = re.findall(r'textLength="(\d+)"', animate([frame(0, "📋")], title=""))
        (two,) = re.findall(r'textLength="(\d+)"', animate([frame(0, "ab")], title=""))
        assert wide == two


@pytest.mark.slow
class TestRecording:
    def test_it_records_the_screen(self) -> None:
        """It records colours, faint and struck text, and text that is overwritten later."""
        script = r"import time; print('one', flush=True); time.sleep(0.4); print('\033[Atwo')"
        frames = record([sys.executable, "-c", script], columns=20, rows=3)
        assert [str(each).split() for each in frames if str(each).strip()] == [["one"], ["two"]]
        styled = record(["printf", r"\033[2;9mgone\033[0m"], columns=20, rows=2)
        assert styled[-1].rows[0] == ((("brightblack", False, True), "gone"),)

    def test_a_program_that_fails_is_an_error(self) -> None:
        with pytest.raises(Exception, match="returned non-zero exit status 3"):
            record(["sh", "-c", "exit 3"], columns=20, rows=2)


@pytest.mark.slow
class TestDemo:
    def test_it_stops_early_is_sent_back_and_finishes(self, tmp_path: Path) -> None:
        """The commands are real: the first test run fails, the second passes."""
        request: Any = {"messages": [HumanMessage("Write a function slugify and test it.")]}
        final = build_demo(tmp_path).invoke(request)
        (sent_back,) = [m for m in final["messages"] if is_injected(m)]
        assert "Mend what fails" in sent_back.text
        results = [m.text for m in final["messages"] if m.type == "tool" and m.name == "run"]
        assert [text.splitlines()[-1] for text in results] == ["exit code 1", "exit code 0"]
        assert final["todo_loop"]["outcome"] == "finished"

    def test_the_picture_of_the_readme_shows_it(self) -> None:
        """The stored picture ends as a run does today; it is small and fetches nothing."""
        kept = DEMO.read_text(encoding="utf-8")
        assert still(kept) == still(draw_demo())
        assert len(kept) < 60_000
        assert "url(" not in kept
