"""The border: which names users may import, and which modules import which."""

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import todo_tools
from todo_tools._calls.records import TOOLS, ToolName
from todo_tools._list.todos import STATUSES, TodoStatus

ROOT = Path(__file__).parent.parent
LIBRARY = Path(todo_tools.__file__).parent

PUBLIC = {
    "todo_tools": (
        "TODO_FOLD_PROMPT TODO_LIGHT_PROMPT TODO_SYSTEM_PROMPT AutoContinue DeltaItemsState "
        "DeltaTodoState ItemReport ItemsState TodoGate TodoItem TodoLimits TodoMiddleware "
        "TodoState add_auto_continue aitem_starts asks_user count_folded_tokens "
        "create_item_runner create_todo_tools format_status format_todos has_worked item_prompt "
        "item_starts model_view todos_from_messages"
    ),
    "todo_tools.clients": "ClientTodoState to_client_todos",
    "todo_tools.demo": "",
    "todo_tools.middleware": "TodoGateMiddleware",
    "todo_tools.operations": "Operation append_items set_status",
    "todo_tools.rendering": (
        "ToolView follow_in_notebook follow_in_terminal show_branches show_call show_messages "
        "show_reports show_result show_status show_todos"
    ),
    "todo_tools.rendering.lowlevel": "Followed Line LiveLines Span View one_line",
    "todo_tools.schemas": "lenient_schema",
    "todo_tools.state": "TodoList TodoLoop TodoOutcome messages_in todos_in validate_todos",
    "todo_tools.testing": "ScriptedChatModel call checklist_model read_checklist turn",
    "todo_tools.transcript": "is_from_user pending_calls",
}
"""Every name that a user may import. A change here affects every user."""

PURE = ("todo_tools._list.", "todo_tools._calls.", "todo_tools.operations")
"""The modules whose names begin like this do not import LangChain or LangGraph."""

FOLDERS = ["_list", "_calls", "_thread", "_view", "_loop", "_tools", "_runner", "_agent"]
"""The private folders; each imports only itself and those before it."""


def modules() -> dict[str, ast.Module]:
    """The modules of this package by name, parsed."""
    found = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        parts = path.relative_to(LIBRARY.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def is_public(module: str) -> bool:
    return not any(part.startswith("_") for part in module.split("."))


def exported(tree: ast.Module) -> list[str]:
    """The names in a module's `__all__`, which must be a literal."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def imports(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Each imported module, with the name that is imported from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


class TestPublicNames:
    def test_the_exported_names_are_these(self) -> None:
        """Each public module has a literal, sorted `__all__`."""
        found = {name: exported(tree) for name, tree in modules().items() if is_public(name)}
        assert {name: " ".join(names) for name, names in found.items()} == PUBLIC
        for names in found.values():
            constants_first = sorted(names, key=lambda name: (not name.isupper(), name))
            assert names == constants_first

    def test_they_exist(self) -> None:
        """Otherwise the first user would find a missing export."""
        for name, tree in modules().items():
            module = __import__(name, fromlist=["__all__"])
            assert [each for each in exported(tree) if not hasattr(module, each)] == []


def blocks_of(path: Path) -> Iterator[str]:
    """The Python code of a file: a module, a notebook's cells, or the blocks of a Markdown page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        code = ("".join(cell["source"]) for cell in cells)
        yield from (re.sub(r"^[%!].*$", "", each, flags=re.MULTILINE) for each in code)
    elif path.suffix == ".md":
        yield from re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    else:
        yield text


PATTERNS = (
    "README.md",
    "docs/**/*.md",
    "benchmarks/*.py",
    "graphs/**/*.py",
    "notebooks/*.ipynb",
    "skills/**/*.md",
    "template/*.py",
)
EXAMPLES = [path for pattern in PATTERNS for path in sorted(ROOT.glob(pattern))]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_import_exported_names_only(path: Path) -> None:
    """A copied example keeps working when private modules move."""
    names = {name: exported(tree) for name, tree in modules().items() if is_public(name)}
    for block in blocks_of(path):
        for module, name in imports(ast.parse(block)):
            if module.split(".")[0] == "todo_tools":
                assert module in names, f"{module} is private"
                assert name is None or name in names[module], f"{module}.{name} is not exported"


class TestDirection:
    def test_the_core_knows_nothing_of_langchain(self) -> None:
        """The rules are plain functions on plain data."""
        for name, tree in modules().items():
            if name.startswith(PURE):
                assert not [module for module, _ in imports(tree) if module.startswith("lang")]

    @pytest.mark.parametrize("folder", FOLDERS)
    def test_a_private_folder_imports_only_those_before_it(self, folder: str) -> None:
        """So no private module imports a public one either."""
        before = FOLDERS[: FOLDERS.index(folder) + 1]
        trees = modules()
        for name, tree in trees.items():
            if name.startswith(f"todo_tools.{folder}."):
                wanted = {module.split(".")[1] for module in _own_imports(tree, trees)}
                assert wanted <= set(before), name

    def test_there_is_no_import_cycle(self) -> None:
        """The modules have an order in which each comes after those that it imports."""
        trees = modules()
        needed = {name: set(_own_imports(tree, trees)) for name, tree in trees.items()}
        needed = {name: wanted - {name} for name, wanted in needed.items()}
        while ready := {name for name, wanted in needed.items() if not wanted & needed.keys()}:
            needed = {name: wanted for name, wanted in needed.items() if name not in ready}
        assert needed == {}


def _own_imports(tree: ast.Module, trees: dict[str, ast.Module]) -> Iterator[str]:
    for module, name in imports(tree):
        inner = f"{module}.{name}"
        if inner in trees:
            yield inner
        elif module in trees:
            yield module


MAP = "| modules of `todo_tools` |"
"""The beginning of the table in CONTRIBUTING.md that says where things are."""


def mapped() -> list[str]:
    """The names in the first column of the map, from top to bottom."""
    _, _, table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(MAP)
    rows = table.partition("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[1])]


def part_of(module: str) -> str:
    """The part of this package that a module is in; empty for `todo_tools` itself."""
    return module.partition(".")[2].partition(".")[0]


class TestMap:
    def test_it_names_each_wing_and_each_public_module_once(self) -> None:
        """A newcomer finds every part of this package in it."""
        wings = {part for part in map(part_of, modules()) if part.startswith("_")}
        public = {part_of(name) for name in modules() if is_public(name)} - {""}
        assert sorted(mapped()) == sorted(wings | public)

    def test_each_part_imports_only_from_those_named_before_it(self) -> None:
        """Who reads this package from the top of the map needs nothing that comes later."""
        trees, order = modules(), mapped()
        arrows = {
            (part_of(name), part_of(needed))
            for name, tree in trees.items()
            for needed in _own_imports(tree, trees)
        }
        inner = [(part, needed) for part, needed in sorted(arrows) if part and needed]
        assert [arrow for arrow in inner if order.index(arrow[0]) < order.index(arrow[1])] == []


NEW_STATUS = """    "blocked": Status(
        icon="⧗",
        plain_icon="[?]",
        color="error",
        finished=False,
        action="block",
        done_label="Blocked",
        precedence=2,
        client="pending",
        client_suffix=" (blocked)",
    ),
"""

NEW_TOOL = """    "clear_todos": TodoTool(
        label="Clear Todos",
        action="write",
        description="Empty the list.",
        guidelines=(),
        parameters=lambda _: {},
        check=lambda _args, _todos, _limits: ({"op": "replace", "texts": []}, "Cleared"),
        optional=(),
        shown=lambda _: [],
    ),
"""


TRY_STATUS = """
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from todo_tools import (
    AutoContinue, TodoState, add_auto_continue, create_todo_tools, format_todos, model_view
)
from todo_tools._list.formats import from_client_todos, to_client_todos
from todo_tools.rendering import show_todos
from todo_tools.testing import ScriptedChatModel, call, turn

tools = create_todo_tools()
assert "block" in tools[2].tool_call_schema.model_json_schema()["properties"]["action"]["enum"]
block = turn("", call("edit_todos", action="block", indices=[0]))
model = ScriptedChatModel(script=[block, "I stop.", "I stop again."])
answer = lambda state: {"messages": [model.invoke(model_view(state))]}
builder = StateGraph(TodoState).add_node("agent", answer).add_node("tools", ToolNode(tools))
builder.add_edge(START, "agent").add_edge("tools", "agent")
todos = [{"text": "Ask Bob", "status": "not_started"}, {"text": "Cut", "status": "not_started"}]
graph = add_auto_continue(builder, policy=AutoContinue(max_idle=0)).compile()
final = graph.invoke({"messages": [("user", "Begin.")], "todos": todos})
assert final["todos"][0] == {"text": "Ask Bob", "status": "blocked"}
assert final["messages"][2].text.startswith("Blocked [0]\\n\\n⧗ [0] Ask Bob")
assert from_client_todos(to_client_todos(final["todos"])) == final["todos"]
assert str(show_todos(final["todos"])) == format_todos(final["todos"])
assert "action 'start' on [1]" in model.prompts[2][-1].text, model.prompts[2][-1].text
"""

TRY_TOOL = """
from langchain_core.messages import HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from todo_tools import TodoState, create_todo_tools, todos_from_messages
from todo_tools.rendering import show_call
from todo_tools.testing import call, turn

tools = create_todo_tools()
assert [tool.name for tool in tools][-1] == "clear_todos"
graph = StateGraph(TodoState).add_node("tools", ToolNode(tools)).add_edge(START, "tools").compile()
todos = [{"text": "Cut", "status": "not_started"}]
final = graph.invoke({"messages": [turn("", call("clear_todos"))], "todos": todos})
assert final["todos"] == todos_from_messages(final["messages"]) == []
assert final["messages"][-1].text.startswith("Cleared")
assert str(show_call("clear_todos", {})) == "clear_todos"
"""


def test_each_status_and_each_tool_has_a_row() -> None:
    """A name of the type without a row would fail only where it is used."""
    assert set(STATUSES) == set(get_args(TodoStatus))
    assert set(TOOLS) == set(get_args(ToolName))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "changes", "program"),
    [
        (
            "_list/todos.py",
            {
                '"completed", "abandoned"]': '"completed", "abandoned", "blocked"]',
                "}\n\n\n@with_config": f"{NEW_STATUS}}}\n\n\n@with_config",
            },
            TRY_STATUS,
        ),
        (
            "_calls/records.py",
            {
                '"edit_todos"]\nChecked': '"edit_todos", "clear_todos"]\nChecked',
                "\n    ),\n}\n": f"\n    ),\n{NEW_TOOL}}}\n",
            },
            TRY_TOOL,
        ),
    ],
    ids=["status", "tool"],
)
def test_a_status_or_a_tool_is_added_in_one_place(
    module: str, changes: dict[str, str], program: str, tmp_path: Path
) -> None:
    """Tools, texts, loop, clients and rendering all read its row, or its record."""
    shutil.copytree(LIBRARY, tmp_path / "todo_tools")
    path = tmp_path / "todo_tools" / module
    text = path.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
