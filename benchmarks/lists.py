"""The ways to keep a list that are compared."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import TodoListMiddleware

from benchmarks.scripts import TodoCalls, langchain_calls, no_calls, pack_calls
from todo_tools.middleware import TodoMiddleware

# Replace by `from todo_tools import TODO_LIGHT_PROMPT` as soon as the library has it.
TODO_LIGHT_PROMPT = (
    "For work of several steps you can keep a todo list with `write_todos` and `edit_todos`. "
    "Make todo calls in the same turn as the next calls of the work."
)


@dataclass(frozen=True)
class ListKind:
    """One way to keep a list, or none."""

    name: str
    calls: TodoCalls
    middleware: Callable[[], list[Any]]


NO_LIST = ListKind("no list", no_calls, list)
LANGCHAIN = ListKind("LangChain", langchain_calls, lambda: [TodoListMiddleware()])
PACK = ListKind("this pack", pack_calls, lambda: [TodoMiddleware()])
LIGHT = ListKind(
    "this pack, light", pack_calls, lambda: [TodoMiddleware(system_prompt=TODO_LIGHT_PROMPT)]
)

LISTS = (LANGCHAIN, PACK, LIGHT)
PACKS = (PACK, LIGHT)
