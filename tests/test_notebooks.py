"""The notebooks: their saved outputs, the outputs of a fresh run, and their look in a browser."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
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
from tests.waiting import LONG
from todo_tools import rendering

NAMES = [
    "1_quick_start",
    "2_the_loop",
    "3_branches",
    "4_item_runs",
    "5_deepagents",
    "6_your_own_tool",
]
OFFLINE = "import pytest_socket; pytest_socket.socket_allow_hosts(['127.0.0.1', '::1'], True)"


class Book:
    """A notebook and the text that each of its cells shows."""

    def __init__(self, notebook: Any) -> None:
        self.notebook = notebook
        self.code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        self.outputs = [output for cell in self.code for output in cell.outputs]
        self.sources = "\n".join(cell.source for cell in self.code)
        self.shown = {cell.id: "\n".join(map(_text, cell.outputs)) for cell in self.code}
        self.first = notebook.cells[0].source

    @property
    def absent(self) -> set[str]:
        """Packages that are not there after the `pip install` that it names."""
        (line,) = re.findall(r"`pip install (.+?)`", self.first.replace("\n", " "))
        installed = shlex.split(line)
        assert installed[0] in ("langgraph-todo-tools", "langgraph-todo-tools[langchain]")
        langchain = {"langchain"} if installed[0] == "langgraph-todo-tools" else set[str]()
        return {"graphs", "rich", "tests", "deepagents", *langchain} - {*installed[1:]}

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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with this package as it is installed from its wheel."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", "--target", str(target), str(ROOT)], check=True)
    return target


@pytest.fixture(scope="module")
def fresh(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Book]:
    """A copy of a notebook, run from top to bottom outside the checkout, without a network."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")

    @cache
    def run(name: str) -> Book:
        notebook = deepcopy(saved(name).notebook)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        blocked = f"import sys; sys.modules.update(dict.fromkeys({saved(name).absent}))"
        make: Any = nbformat.v4
        probe = make.new_code_cell(
            'import sys, todo_tools\nassert sys.modules["graphs"] is None\ntodo_tools.__file__'
        )
        notebook.cells.append(probe)
        client = nbclient.NotebookClient(
            notebook,
            timeout=LONG,
            startup_timeout=LONG,
            iopub_timeout=LONG,
            coalesce_streams=True,  # a slow cell sends what it prints in pieces
            extra_arguments=[f"--IPKernelApp.exec_lines={OFFLINE}; {blocked}"],
            resources={"metadata": {"path": str(elsewhere)}},
        )
        client.execute(env={**os.environ, "PYTHONPATH": str(site), "LANGSMITH_TRACING": "false"})
        assert str(site) in probe.outputs[0].data["text/plain"]
        notebook.cells.remove(probe)
        return Book(notebook)

    return run


def lines(*expected: str) -> str:
    return "\n".join(expected)


@pytest.mark.parametrize("name", NAMES)
class TestSaved:
    def test_it_was_run_once_from_top_to_bottom_without_errors(self, name: str) -> None:
        """Its execution counts are 1 to n, and there are no warnings."""
        counts = [cell.execution_count for cell in saved(name).code]
        assert counts == list(range(1, len(counts) + 1))
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

    def test_one_cell_has_all_that_a_real_model_needs(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its last five lines install a package, ask for a key, and name a model."""
        marked = [cell.source for cell in saved(name).code if "REAL MODEL" in cell.source]
        (source,) = marked
        assert source.startswith("# FOR A REAL MODEL: uncomment the last five lines;")
        install, *code = (line.removeprefix("# ") for line in source.splitlines()[-5:])
        assert install.startswith("%pip install ")
        monkeypatch.setenv("OPENAI_API_KEY", "")
        monkeypatch.setattr("getpass.getpass", lambda _: "a key")
        names: dict[str, Any] = {}
        exec("\n".join(code), names)
        assert os.environ["OPENAI_API_KEY"] == "a key"
        assert names["model"].model_name == "gpt-5"

    def test_its_requests_are_what_a_person_would_type(self, name: str) -> None:
        """They are no checklists, and an agent with a tool of the notebook's own does the first."""
        assert "[ ]" not in saved(name).sources
        code = [cell.source for cell in saved(name).code]
        start = next(source for source in code if '("user", ' in source)
        until = "\n".join(code[: code.index(start) + 1])
        assert re.search(r"^def \w+\([^)]*\b\w+: str[^)]*\) -> str:", until, re.MULTILINE)
        assert re.search(r"(?:agent|graph)\.(?:invoke|stream)\(", start)
        assert "show_todos(" in start or "format_todos(" in start or "follow_in_notebook(" in start

    def test_it_defines_nothing_of_the_library(self, name: str) -> None:
        """None of its functions and classes has a name of this package."""
        tree = ast.parse(saved(name).sources, mode="exec", type_comments=False)
        defined = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef))
        assert not {n.name for n in defined} & {*todo_tools.__all__, *rendering.__all__}

    def test_it_imports_nothing_that_is_not_installed(self, name: str) -> None:
        """It needs no checkout, only the packages that it names at its top."""
        imported = re.findall(r"^\s*(?:from|import) (\w+)", saved(name).sources, re.MULTILINE)
        assert not {*imported} & saved(name).absent

    def test_its_links_to_files_exist(self, name: str) -> None:
        cells = saved(name).notebook.cells
        prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (ROOT / "notebooks" / target).exists()


def test_there_is_no_other_notebook() -> None:
    assert sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb")) == NAMES


class TestAgents:
    """What each notebook promises in its prose; a fresh run has the same outputs."""

    def test_the_quick_start_begins_with_an_agent_that_finishes(self) -> None:
        """The second cell has one; how it ended and what it did follow, and then a graph."""
        quick = saved("1_quick_start")
        names = [cell.id for cell in quick.code]
        assert names == ["model", "agent", "outcome", "conversation", "graph", "run"]
        assert [line[0] for line in quick.shown["agent"].splitlines()] == ["✓", "✓", "✓"]
        assert quick.shown["outcome"] == lines("Tea is the cheapest.", "outcome: finished")
        assert quick.shown["conversation"].count("↻  not finished: sent back to work") == 1
        assert 'aria-label="1 of 3 finished"' in quick.html("run")

    def test_the_loop_sends_the_agent_back_and_each_limit_ends_a_run(self) -> None:
        """The answer that came too early is before it."""
        shown = saved("2_the_loop").shown
        assert shown["sent-back"].splitlines()[:2] == [
            "💬 3 of 5 steps are finished so far.",
            "↻  not finished: sent back to work",
        ]
        assert shown["note"].count("[Automatic note]") == 1
        assert shown["note"].endswith("outcome: finished")
        assert shown["run"].endswith("✓ 4 completed, ✗ 1 abandoned")
        assert "⚠ Stopped after 3 continuations without progress; 2 todos rem" in shown["idle"]
        assert "⚠ Stopped after 5 continuations for one message; 8 todos rem" in shown["busy"]

    def test_the_main_agent_of_deepagents_knows_the_answers_alone(self) -> None:
        """Its history has the tasks and what the crew answered, not how it worked."""
        shown = saved("5_deepagents").shown
        assert shown["run"] == lines(
            "✓ [0] Price tea and coffee", "✓ [1] Price honey and sugar", "✓ Done (2 items)"
        )
        assert shown["state"].count("→  task buyer") == 2
        assert shown["state"].count("write_todos") == 1

    def test_the_whole_tool_of_ones_own_is_in_the_notebook(self) -> None:
        """State, reducer and tool are at most 60 lines; both branches have their notes."""
        book = saved("6_your_own_tool")
        sources = {cell.id: cell.source for cell in book.code}
        pieces = [sources[name].splitlines() for name in ("fold", "answer", "tool")]
        assert sum(bool(line) for piece in pieces for line in piece) <= 60
        notes = re.findall(r"#3: .*", book.shown["branch"])
        assert notes == ["#3: the cat is called Tom", "#3: the cat is called Mia"]


FIRST = ("✓ [0] Order a room", "✓ [1] Order a chocolate cake", "✓ [2] Order balloons")
SECOND = (FIRST[0], "✓ [1] Order a fruit cake", FIRST[2], "✓ [3] Order music")
EARLIER = (FIRST[0], *(line.replace("✓", "–") for line in FIRST[1:]))  # noqa: RUF001


class TestBranches:
    def test_an_earlier_checkpoint_has_its_own_list(self) -> None:
        shown = saved("3_branches").shown
        assert shown["moment"] == lines(*EARLIER)
        assert re.findall(r"📋 .*|✓.*", shown["history"]) == [
            "📋 0/3",
            "📋 1/3",
            "📋 2/3",
            "✓ Done (3 items)",
        ]

    def test_a_branch_does_not_change_the_first_run(self) -> None:
        shown = saved("3_branches").shown
        assert shown["run"] == shown["first"] == lines(*FIRST)
        assert shown["branch"] == lines(*SECOND)

    def test_the_picture_has_the_fork_and_both_lists(self) -> None:
        """The older branch comes first, and the newest checkpoint is marked."""
        branches = saved("3_branches")
        picture = branches.shown["picture"].splitlines()
        assert "2 branches" in picture[0]
        assert [line.removeprefix("│ ") for line in picture[1:4]] == list(EARLIER)
        assert "✓ Done (3 items)" in picture[4]
        assert [line.removeprefix("│   ") for line in picture[5:8]] == list(FIRST)
        assert "✓ Done (4 items), newest" in picture[8]
        assert [line.strip() for line in picture[9:]] == list(SECOND)

    def test_an_item_is_done_again_beside_its_first_result(self) -> None:
        """Both lists and both results are side by side."""
        rows = saved("3_branches").shown["both"].splitlines()
        assert [re.split(" {2,}", row) for row in rows] == [
            *map(list, zip(FIRST, SECOND[:3], strict=True)),
            ["Ordered: a room"] * 2,
            ["Ordered: a chocolate cake", "Ordered: a fruit cake"],
            ["Ordered: balloons"] * 2,
        ]


class TestItemRuns:
    def test_an_error_stops_the_run_and_loses_nothing(self) -> None:
        """It goes on with the item that was cut off; no other call is made again."""
        shown = saved("4_item_runs").shown
        products = ("tea", "coffee", "cocoa", "honey")
        icons = zip("✓✓●●", products, strict=True)
        stopped = [f"{i} [{n}] Find the price of {p}" for n, (i, p) in enumerate(icons)]
        assert shown["run"] == lines("stopped: the shop does not answer", *stopped)
        calls, *finished = shown["resume"].splitlines()
        assert ast.literal_eval(calls) == {"tea": 1, "coffee": 1, "cocoa": 1, "honey": 2}
        assert finished == [line.replace("●", "✓") for line in stopped]

    def test_the_item_that_is_done_again_has_two_reports(self) -> None:
        """No other item runs again."""
        shown = saved("4_item_runs").shown
        assert ast.literal_eval(shown["again"].splitlines()[0])["honey"] == 3
        assert ast.literal_eval(shown["again"].splitlines()[0])["tea"] == 1
        costs = ["Tea costs 3.20.", "Coffee costs 4.50.", "Cocoa costs 5.10.", "Honey costs 6.90."]
        assert re.findall(r"\w+ costs .*", shown["reports"]) == costs
        assert re.findall(r"\w+ costs .*", shown["again"]) == [*costs, "Honey costs 5.80."]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_saved_outputs_equal_those_of_a_run(name: str, fresh: Callable[[str], Book]) -> None:
    """Every output is the same, except for the ids of checkpoints and the time that runs took.

    The run has the installed package alone: no checkout, and no other package that the notebook
    does not name.
    """

    def same(book: Book) -> dict[str, str]:
        shown = {cell.id: json.dumps(cell.outputs, sort_keys=True) for cell in book.code}
        varies = r" [0-9a-f]{8}\b|\d+ seconds?"
        return {cell: re.sub(varies, "", outputs) for cell, outputs in shown.items()}

    assert same(fresh(name)) == same(saved(name))


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
        """It shows both lists, and every text has enough contrast."""
        measured = measure(page)
        views = [" ".join(re.sub("[│├└─]", "", text).split()) for text in measured["views"]]
        assert any(" ".join(FIRST) in view and " ".join(SECOND) in view for view in views)
        assert [entry for entry in measured["contrasts"] if entry[1] < 4.5] == []
        assert len(measured["contrasts"]) > 30

    def test_all_outputs_have_one_font(self, page: Path) -> None:
        """What is printed and what shows itself have the same font and size."""
        assert len(set(measure(page)["fonts"])) == 1

    def test_it_is_drawn_in_the_theme(self, page: Path, theme: str, tmp_path: Path) -> None:
        """The background is light or dark like the theme, and something is drawn on it."""
        picture = tmp_path / "page.png"
        browse(page, f"--screenshot={picture}", "--window-size=1000,1800")
        corner, rows = read_png(picture.read_bytes())
        assert (sum(corner) > 3 * 200) if theme == "light" else (sum(corner) < 3 * 60)
        assert len(set(rows)) > 200
