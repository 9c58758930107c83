"""The notebooks: their saved outputs, the outputs of a fresh run, and their look in a browser."""

import ast
import json
import os
import re
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from nbconvert import HTMLExporter

import todo_tools
from tests.browser import MEASURE, browse, measure, read_png
from tests.support import ROOT
from todo_tools import rendering

NAMES = ["1_quick_start", "2_the_loop", "3_branches", "4_create_agent", "5_your_own_tool"]
OFFLINE = "import pytest_socket; pytest_socket.socket_allow_hosts(['127.0.0.1', '::1'], True)"


class Book:
    """A notebook and the text that each of its cells shows."""

    def __init__(self, notebook: Any) -> None:
        self.notebook = notebook
        self.code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        self.outputs = [output for cell in self.code for output in cell.outputs]
        self.sources = "\n".join(cell.source for cell in self.code)
        self.shown = {cell.id: "\n".join(map(_text, cell.outputs)) for cell in self.code}

    def html(self, cell_id: str) -> str:
        (output,) = next(cell.outputs for cell in self.code if cell.id == cell_id)
        drawn: str = output.data["text/html"]
        return drawn


def _text(output: Any) -> str:
    text: str = output.text if output.output_type == "stream" else output.data["text/plain"]
    return text.rstrip("\n")


@cache
def saved(name: str) -> Book:
    """A notebook of the repository."""
    read: Any = nbformat.read
    return Book(read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4))


@cache
def fresh(name: str) -> Book:
    """A copy of it, run from top to bottom in Jupyter's directory, without a network."""
    notebook = deepcopy(saved(name).notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = nbclient.NotebookClient(
        notebook,
        timeout=120,
        extra_arguments=[f"--IPKernelApp.exec_lines={OFFLINE}"],
        resources={"metadata": {"path": str(ROOT / "notebooks")}},
    )
    # Use the library of this checkout, even if another version is installed.
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"})
    return Book(notebook)


def lines(*expected: str) -> str:
    return "\n".join(expected)


@pytest.mark.parametrize("name", NAMES)
class TestSaved:
    def test_it_was_run_once_from_top_to_bottom(self, name: str) -> None:
        """Its execution counts are 1 to n."""
        counts = [cell.execution_count for cell in saved(name).code]
        assert counts == list(range(1, len(counts) + 1))

    def test_nothing_went_wrong(self, name: str) -> None:
        """Its outputs contain neither errors nor warnings."""
        for output in saved(name).outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr"

    def test_it_can_be_read_anywhere(self, name: str) -> None:
        """HTML outputs also have plain text, and there are no widgets, scripts or remote images."""
        for output in saved(name).outputs:
            assert set(output.get("data", {})) <= {"text/plain", "text/html"}
            assert "text/plain" in output.get("data", {"text/plain": ""})
            assert "<script" not in output.get("data", {}).get("text/html", "")

    def test_it_reveals_nothing_of_the_machine_it_was_run_on(self, name: str) -> None:
        """It holds no paths, times or versions."""
        notebook = saved(name).notebook
        assert notebook.metadata == {
            "kernelspec": {
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
                "name": "python3",
            },
            "language_info": {"name": "python"},
        }
        assert all(cell.metadata == {} for cell in notebook.cells)
        assert not re.search(r"/(home|tmp|root|work|Users|var)/", json.dumps(notebook))

    def test_one_cell_says_how_to_use_a_real_model(self, name: str) -> None:
        marked = [cell for cell in saved(name).code if "For a real model:" in cell.source]
        assert len(marked) == 1
        assert marked[0].source.startswith("# For a real model: ")

    def test_it_defines_nothing_of_the_library(self, name: str) -> None:
        """It has no classes, and no functions with a name of the library."""
        tree = ast.parse(saved(name).sources, mode="exec", type_comments=False)
        names = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        assert not [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
        assert not names & {*todo_tools.__all__, *rendering.__all__}

    def test_it_finds_the_graphs_of_the_checkout(self, name: str) -> None:
        """Jupyter starts in `notebooks/`, so the path is extended before the first import."""
        before, imported, _ = saved(name).sources.partition("from graphs.")
        assert ('sys.path.append("..")' in before) == bool(imported)

    def test_its_links_to_files_exist(self, name: str) -> None:
        cells = saved(name).notebook.cells
        prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (ROOT / "notebooks" / target).exists()


def test_there_is_no_other_notebook() -> None:
    assert sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb")) == NAMES


@pytest.fixture(params=[saved, pytest.param(fresh, marks=pytest.mark.slow)])
def book(request: pytest.FixtureRequest) -> Callable[[str], Book]:
    """The saved notebooks, and the notebooks after a fresh run."""
    chosen: Callable[[str], Book] = request.param
    return chosen


class TestQuickStart:
    def test_the_list_is_in_the_state(self, book: Callable[[str], Book]) -> None:
        """It is shown as text, and as HTML with a bar."""
        quick = book("1_quick_start")
        assert quick.shown["run"] == lines(
            "✓ [0] Measure the wall",
            "● [1] Cut the boards",
            "– [2] Put up the shelf",  # noqa: RUF001
        )
        assert "<s>Measure the wall</s>" in quick.html("run")
        assert 'aria-label="1 of 3 finished"' in quick.html("run")

    def test_the_conversation_shows_calls_lists_and_the_mistake(
        self, book: Callable[[str], Book]
    ) -> None:
        """They are shown in the order in which they happened."""
        shown = book("1_quick_start").shown["conversation"]
        marks = [
            "human: Make me a shelf.",
            "write_todos replace (3 items)",
            "edit_todos start [0]",
            "● [0] Measure the wall",
            "edit_todos complete [7]",
            "Error: indices [7] out of range (0 to 2)",
            "✓ [0] Measure the wall",
        ]
        places = [shown.index(mark) for mark in marks]
        assert places == sorted(places)

    def test_the_prompt_shows_the_list_once(self, book: Callable[[str], Book]) -> None:
        """Later results are shown as their first line with the progress."""
        shown = book("1_quick_start").shown["view"]
        assert shown.count("[2] Put up the shelf") == 1
        assert "tool: Started [0]\n0/3 done. Now: [0] Measure the wall\n" in shown
        assert "1/3 done. Now: [1] Cut the boards" in shown


class TestLoop:
    def test_the_live_view_keeps_its_last_state(self, book: Callable[[str], Book]) -> None:
        """The view is one output without the countdown, and the failed step is abandoned."""
        loop = book("2_the_loop")
        icons = [line[0] for line in loop.shown["run"].splitlines()]
        assert icons == ["✓", "✓", "✓", "✗", "✓", "✓"]
        assert loop.shown["run"].endswith("✓ 4 completed, ✗ 1 abandoned")
        assert 'aria-label="5 of 5 finished"' in loop.html("run")

    def test_the_agent_is_sent_back_once(self, book: Callable[[str], Book]) -> None:
        """The continuation lists the remaining items; then the run ends."""
        shown = book("2_the_loop").shown["decisions"]
        assert shown.startswith("sent back to work\nfinished\n")
        assert "● [3] Look for a greeting in French" in shown
        assert shown.endswith("Next: call edit_todos with action 'complete' on [3].")

    def test_each_limit_ends_a_run(self, book: Callable[[str], Book]) -> None:
        """The notice says which limit it was."""
        shown = book("2_the_loop").shown
        assert "⚠ Stopped after 3 continuations without progress; 2 todo(s) rem" in shown["idle"]
        assert "⚠ Stopped after 5 continuations for one message; 2 todo(s) rem" in shown["busy"]


FIRST = ("✓ [0] Rent a room", "✓ [1] Bake a cake", "✓ [2] Invite the guests")
SECOND = ("✓ [0] Rent a room", "✓ [1] Buy a cake", "✓ [2] Invite the guests", "✓ [3] Dance")
EARLIER = ("✓ [0] Rent a room", "● [1] Bake a cake", "– [2] Invite the guests")  # noqa: RUF001


class TestBranches:
    def test_an_earlier_checkpoint_has_its_own_list(self, book: Callable[[str], Book]) -> None:
        shown = book("3_branches").shown
        assert shown["moment"] == lines(*EARLIER)
        assert re.findall(r"📋 .*|✓.*", shown["history"]) == [
            "📋 0/3",
            "📋 1/3",
            "📋 2/3",
            "✓ Done (3 items)",
        ]

    def test_a_branch_does_not_change_the_first_run(self, book: Callable[[str], Book]) -> None:
        shown = book("3_branches").shown
        assert shown["run"] == shown["first"] == lines(*FIRST)
        assert shown["branch"] == lines(*SECOND)

    def test_the_picture_has_the_fork_and_both_lists(self, book: Callable[[str], Book]) -> None:
        """The older branch comes first, and the newest checkpoint is marked."""
        branches = book("3_branches")
        picture = branches.shown["picture"].splitlines()
        assert "2 branches" in picture[0]
        assert [line.removeprefix("│ ") for line in picture[1:4]] == list(EARLIER)
        assert "✓ Done (3 items)" in picture[4]
        assert [line.removeprefix("│   ") for line in picture[5:8]] == list(FIRST)
        assert "✓ Done (4 items), newest" in picture[8]
        assert [line.strip() for line in picture[9:]] == list(SECOND)
        assert branches.html("picture").count("<li>") == 3


class TestAgents:
    def test_create_agent_finishes_its_list(self, book: Callable[[str], Book]) -> None:
        """First the gate refuses a call, and later the loop sends the agent back to work."""
        shown = book("4_create_agent").shown
        assert shown["agent"] == "✓ [0] Count the words\n✓ [1] Tell the number"
        refused, counted = (
            shown["results"].index(text) for text in ("Error: no todo is in progress", "\n9\n")
        )
        assert refused < counted < shown["results"].index("human: [Automatic note]")
        assert shown["results"].endswith("ai: Your line has nine words.")

    def test_deepagents_writes_its_file(self, book: Callable[[str], Book]) -> None:
        """The agent also finishes its list."""
        shown = book("4_create_agent").shown
        assert shown["deep"] == "✓ [0] Write it\n✓ [1] Read it again\n✓ Done (2 items)"
        assert shown["deep-state"].startswith("The quick brown fox")
        assert shown["deep-state"].endswith("outcome: finished")


class TestOwnTool:
    def test_its_functions_can_be_called_by_hand(self, book: Callable[[str], Book]) -> None:
        """A refused call has no operation."""
        shown = book("5_your_own_tool").shown
        assert ast.literal_eval(shown["fold"])["nextId"] == 2
        assert shown["answer"].endswith("{'op': 'remove', 'id': 1}\nNote #7 not found. -> None")
        assert "Annotated[Notes, fold_notes]" in shown["state"]

    def test_its_notes_follow_the_branches(self, book: Callable[[str], Book]) -> None:
        """Both branches have the notes from before the fork."""
        assert book("5_your_own_tool").shown["branch"] == lines(
            "first branch:",
            "#1: The key is under the mat",
            "#2: The cat is called Tom",
            "second branch:",
            "#1: The key is under the mat",
            "#2: The cat is called Mia",
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_saved_outputs_equal_those_of_a_run(name: str) -> None:
    """Every output is the same, except for the ids of checkpoints."""

    def without_ids(book: Book) -> dict[str, str]:
        shown = {cell.id: json.dumps(cell.outputs, sort_keys=True) for cell in book.code}
        return {cell: re.sub(r" [0-9a-f]{8}\b", "", outputs) for cell, outputs in shown.items()}

    assert without_ids(fresh(name)) == without_ids(saved(name))


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
class TestInABrowser:
    @pytest.fixture
    def page(self, theme: str, tmp_path: Path) -> Path:
        """The notebook about branches as a page in a Jupyter theme."""
        make_exporter: Any = HTMLExporter
        exporter = make_exporter(template_name="lab", theme=theme)
        made, _ = exporter.from_notebook_node(saved("3_branches").notebook)
        path = tmp_path / "page.html"
        path.write_text(made.replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
        return path

    def test_the_picture_can_be_read(self, page: Path) -> None:
        """It shows both lists without the page's bullets, and every text has enough contrast."""
        measured = measure(page)
        shown = " ".join(measured["tree"].split())
        assert " ".join(FIRST) in shown
        assert " ".join(SECOND) in shown
        assert set(measured["bullets"]) == {"none"}
        assert [entry for entry in measured["contrasts"] if entry[1] < 4.5] == []
        assert len(measured["contrasts"]) > 30

    def test_it_is_drawn_in_the_theme(self, page: Path, theme: str, tmp_path: Path) -> None:
        """The background is light or dark like the theme, and something is drawn on it."""
        picture = tmp_path / "page.png"
        browse(page, f"--screenshot={picture}", "--window-size=1000,1800")
        corner, rows = read_png(picture.read_bytes())
        assert (sum(corner) > 3 * 200) if theme == "light" else (sum(corner) < 3 * 60)
        assert len(set(rows)) > 200
