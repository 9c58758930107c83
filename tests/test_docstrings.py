"""The examples in this package's docstrings all run."""

import ast
import importlib
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import langchain.agents
import langchain_core.messages
import langgraph.graph
import langgraph.prebuilt
import pydantic
import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import todo_tools
from graphs.until_done import build_graph
from tests.support import checklist
from todo_tools import TodoState, rendering
from todo_tools.testing import checklist_model

_BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Example(NamedTuple):
    """A block of Python in a docstring."""

    owner: str
    """The documented name, for example `todo_tools.gate.TodoGate`."""
    code: str


def examples() -> Iterator[Example]:
    """Every fenced block of this package, read from its source."""
    library = Path(todo_tools.__file__).parent  # may be that of a wheel
    for path in sorted(library.rglob("*.py")):
        module = ".".join(path.relative_to(library.parent).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in filter(lambda node: isinstance(node, _DOCUMENTED), ast.walk(tree)):
            docstring = ast.get_docstring(node) or ""  # type: ignore[arg-type]  # filtered above
            name = getattr(node, "name", "")
            for _, code in _BLOCK.findall(docstring):
                yield Example(f"{module}.{name}".rstrip("."), textwrap.dedent(code))


EXAMPLES = list(examples())


@tool
def search(query: str) -> str:
    """Search for something."""
    return f"Nothing about {query}."


def namespace(config: RunnableConfig) -> dict[str, Any]:
    """The names that an example may use without defining them: public names and sample objects."""
    model = checklist_model(rest_after=1)
    graph = build_graph(model).compile(InMemorySaver())
    request = {"messages": [("user", checklist("Measure", "Cut"))]}
    state = graph.invoke(request, config)
    things = {
        "agent": lambda state: {"messages": [model.invoke(state["messages"])]},
        "builder": langgraph.graph.StateGraph(TodoState),
        "config": config,
        "graph": graph,
        "messages": state["messages"],
        "model": model,
        "request": request,
        "search": search,
        "state": state,
        "todos": state["todos"],
    }
    return {"__name__": __name__, **public_names(), "InMemorySaver": InMemorySaver, **things}


def public_names() -> dict[str, Any]:
    """The names that applications import from this package, LangChain and LangGraph."""
    ours = [
        importlib.import_module(module.name)
        for module in pkgutil.iter_modules(todo_tools.__path__, "todo_tools.")
        if not module.name.startswith("todo_tools._")
    ]
    theirs = [langchain.agents, langchain_core.messages, langgraph.graph, langgraph.prebuilt]
    return {
        name: getattr(module, name)
        for module in [pydantic, *theirs, *ours, todo_tools]
        for name in module.__all__
    }


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.owner for example in EXAMPLES])
def test_every_example_runs(
    example: Example, config: RunnableConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    """It uses only names that it defines itself and those of `namespace`."""
    exec(compile(example.code, example.owner, "exec"), namespace(config))


def test_every_function_and_the_main_classes_have_an_example() -> None:
    exported = {name: getattr(todo_tools, name) for name in todo_tools.__all__}
    functions = {name for name, thing in exported.items() if type(thing).__name__ == "function"}
    drawing = {name for name in rendering.__all__ if name.startswith(("show_", "follow_"))}
    documented = {example.owner.rpartition(".")[2] for example in EXAMPLES}
    assert {"AutoContinue", "TodoGate", "TodoState"} | functions | drawing <= documented
