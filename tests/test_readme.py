"""README and documentation are true: their programs run, and their claims are checked."""

import json
import re
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.utils.function_calling import convert_to_openai_tool

from tests.support import ROOT
from todo_tools import TODO_SYSTEM_PROMPT, create_todo_tools

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
]


@pytest.mark.parametrize("block", BLOCKS)
def test_every_program_runs(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each runs by itself, and its prints show what the comments at and below them say."""
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
    prints = re.findall(r"^ *print\(.*\)(?:  # (.+))?$((?:\n# .+)*)", block, re.MULTILINE)
    said = " ".join(f"{beside} {below.replace(chr(10) + '#', '')}" for beside, below in prints)
    assert capsys.readouterr().out.split() == said.split()


def test_the_measured_tokens_are_those_it_names() -> None:
    """It names the tokens of the schemas and of the system prompt."""
    schemas = json.dumps([convert_to_openai_tool(tool) for tool in create_todo_tools()])
    for text in (schemas, TODO_SYSTEM_PROMPT):
        assert f" {count_tokens_approximately([HumanMessage(text)])}" in README


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists()


def test_its_cost_tables_are_those_of_the_benchmark() -> None:
    """The benchmark writes `RESULTS.md`; a figure in the README comes from there."""
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8").splitlines()
    rows = re.findall(r"^\| (?:5|10|20|50) \|.*$", README, re.MULTILINE)
    assert len(rows) == 4 * 3 + 4
    assert set(rows) <= set(results)
