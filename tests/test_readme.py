"""The programs in README and documentation run, and their claims are checked."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.utils.function_calling import convert_to_openai_tool

from tests.support import ROOT
from todo_tools import (
    TODO_LIGHT_PROMPT,
    TODO_SYSTEM_PROMPT,
    create_todo_tools,
    format_status,
)
from todo_tools._thread.transcript import is_injected
from todo_tools.demo import build_demo
from todo_tools.testing import checklist_model


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


README = read("README.md")
COST = read("docs/models-and-cost.md")
RESULTS = read("benchmarks/RESULTS.md")
PROJECT = tomllib.loads(read("pyproject.toml"))
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "skills").rglob("*.md")),
    ROOT / "template" / "README.md",
]
BLOCKS = [
    pytest.param(
        block,
        id=f"{page.relative_to(ROOT)}-{number}",
        marks=[pytest.mark.slow] if "import subprocess" in block else [],
    )
    for page in PAGES
    if page.name != "reference.md"  # its examples run in test_docstrings.py
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
]


@pytest.mark.parametrize("block", BLOCKS)
def test_every_program_runs(
    block: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Each runs by itself, and prints the text of the comments after its `print` calls.

    The stand-in replaces a real model in a block.
    """
    monkeypatch.setattr("langchain.agents.factory.init_chat_model", lambda _: checklist_model())
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "block", "exec"), {"__name__": "block"})
    prints = re.findall(r"^ *print\(.*\)(?:  # (.+))?$((?:\n# .+)*)", block, re.MULTILINE)
    said = " ".join(f"{beside} {below.replace(chr(10) + '#', '')}" for beside, below in prints)
    assert capsys.readouterr().out.split() == said.split()


@pytest.mark.slow
def test_a_type_checker_accepts_every_program(tmp_path: Path) -> None:
    """It refuses only inputs with a list of texts; `docs/questions.md` says why."""
    for each in BLOCKS:
        name = re.sub(r"\W", "_", str(each.id))
        (tmp_path / f"{name}.py").write_text(str(each.values[0]), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == len(BLOCKS)
    refused = re.compile(
        r'Argument of type "dict\[str, (Unknown|(list\[HumanMessage\] \| )?list\[str\])\]" '
        r'cannot be assigned to parameter "input" of type "(InputAgentState|TodoState) '
    )
    found = [
        f"{Path(each['file']).stem}: {each['message']}"
        for each in report["generalDiagnostics"]
        if each.get("rule") != "reportArgumentType" or not refused.match(each["message"])
    ]
    assert found == []


def prose(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    found = re.findall(r"^#+ (.+)$", prose(page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_and_headings_exist(page: Path) -> None:
    text = prose(page.read_text("utf-8"))
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or anchor in headings(file), f"{target}#{anchor}"


def test_every_page_is_in_the_navigation_and_linked_from_another() -> None:
    """The site also shows `SECURITY.md`, and begins with a page that nothing links to."""
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}
    navigation = re.findall(r" (\S+\.md)$", read("mkdocs.yml"), re.MULTILINE)
    assert sorted(navigation) == sorted({*pages, "security.md"})
    linked = {
        (page.parent / link).resolve()
        for page in PAGES
        for link in re.findall(r"\]\(([\w./-]+\.md)", page.read_text("utf-8"))
        if link != page.name
    }
    assert [page for page in pages - {"index.md"} if (docs / page).resolve() not in linked] == []


class TestReadme:
    def test_it_is_short(self) -> None:
        """It has at most 700 words, with its code."""
        assert len(README.split()) <= 700

    def test_it_names_the_lowest_versions(self) -> None:
        """They are the lowest versions in `pyproject.toml`."""
        project = PROJECT["project"]
        graphs = project["optional-dependencies"]["graphs"]
        lowest = {
            name: re.search(r">=([\d.]+)", requirement)
            for requirement in [*project["dependencies"], *graphs]
            for name in re.findall(r"^[a-z-]+", requirement)
        }
        for shown, name in [
            ("LangGraph", "langgraph"),
            ("LangChain", "langchain"),
            ("deepagents", "deepagents"),
        ]:
            bound = lowest[name]
            assert bound
            assert f"{shown} {bound[1]}" in README
        assert f"Python {project['requires-python'].removeprefix('>=')}," in README

    @pytest.mark.slow
    def test_the_demo_does_what_it_says(self, tmp_path: Path) -> None:
        """The agent stops at three of five items, is sent back once, and completes all five."""
        request: Any = {"messages": [HumanMessage("Begin.")]}
        states = list(build_demo(tmp_path).stream(request, stream_mode="values"))
        (sent_back,) = [each for each in states if is_injected(each["messages"][-1])]
        assert format_status(sent_back["todos"]) == "📋 3/5"
        assert [item["status"] for item in states[-1]["todos"]] == ["completed"] * 5
        assert "done at 3 of 5 items, is sent back, and completes all 5 (`make demo`)" in README

    def test_the_cases_are_those_of_the_campaigns(self) -> None:
        """It has the sums of the page's table."""
        page = read("docs/maintainers/reliability.md")
        trials = r"^\| [a-z]+ \| [a-z ]+ \| ([\d,]+) \| ([\d,]+) \| [\d,]+ \|$"
        rows = re.findall(trials, page, re.MULTILINE)
        tried, violated = (
            sum(int(count.replace(",", "")) for count in counts)
            for counts in zip(*rows, strict=True)
        )
        (date,) = re.findall(r"^(\d{4}-\d\d-\d\d), `", page, re.MULTILINE)
        assert f"On {date}: {tried:,} cases, {violated} violations." in README


class TestFigures:
    """Every cost figure comes from `RESULTS.md`, which the benchmark writes."""

    def test_the_tables_of_costs_are_the_benchmarks(self) -> None:
        rows = re.findall(r"^\| (?:5|10|20|50) \|.*$", COST, re.MULTILINE)
        assert len(rows) == 4 * 4 + 3 + 4
        cases = re.findall(r"^\| \d+ x \d+, .*$", COST, re.MULTILINE)
        assert len(cases) > 10
        assert {*rows, *cases} <= set(RESULTS.splitlines())

    @pytest.mark.parametrize("page", ["README.md", "docs/migrating.md"])
    def test_the_added_cost_at_20_items_is_the_benchmarks(self, page: str) -> None:
        """The README gives it for an automatic cache, for LangChain's list and for this one."""
        for name in ("LangChain", "this package"):
            row = re.search(
                rf"^\| 20 \| {name} \| .* \| \+(\d+) to \+(\d+ %) \| .* \|$", RESULTS, re.MULTILINE
            )
            assert row
            assert f" {row[1]} to {row[2]}" in read(page)

    def test_the_saving_at_20_items_is_the_benchmarks(self) -> None:
        """With the light prompt and folding, in a run with an automatic cache."""
        name = "this package, light, folded"
        cell = r"-(\d+) to -(\d+) %"
        row = re.search(rf"^\| 20 \| {name} \| .* \| {cell} \| .* \|$", RESULTS, re.MULTILINE)
        assert row
        assert f" costs {row[2]} to {row[1]} % less than" in README

    def test_the_stored_bytes_at_20_items_are_the_benchmarks(self) -> None:
        (row,) = re.findall(r"^\| 20 \| .* MB .*$", RESULTS, re.MULTILINE)
        assert row in COST

    def test_the_cost_of_a_list_that_is_never_used_is_the_benchmarks(self) -> None:
        """The README gives it in percent of LangChain's added cost, for both prompts."""
        for name in ("this package", "this package, light"):
            goal = re.search(rf"LangChain's adds: {name}, automatic \| .*? \| ([\d.]+)%", RESULTS)
            assert goal
            assert f" {float(goal[1]):.0f} %" in COST

    def test_the_tokens_of_prompts_and_schemas_are_as_said(self) -> None:
        schemas = json.dumps([convert_to_openai_tool(tool) for tool in create_todo_tools()])
        for text in (schemas, TODO_SYSTEM_PROMPT, TODO_LIGHT_PROMPT):
            assert f" {count_tokens_approximately([HumanMessage(text)])}" in COST
