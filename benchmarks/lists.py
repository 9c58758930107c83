"""The lists that are compared."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain.agents.middleware import TodoListMiddleware

from benchmarks.scripts import TodoCalls, langchain_calls, light_calls, no_calls, pack_calls
from todo_tools import TODO_LIGHT_PROMPT
from todo_tools.middleware import TodoMiddleware


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
    "this pack, light", light_calls, lambda: [TodoMiddleware(system_prompt=TODO_LIGHT_PROMPT)]
)
FOLDED = ListKind("this pack, folded", pack_calls, lambda: [TodoMiddleware(fold_finished=True)])
LIGHT_FOLDED = ListKind(
    "this pack, light, folded",
    light_calls,
    lambda: [TodoMiddleware(system_prompt=TODO_LIGHT_PROMPT, fold_finished=True)],
)

LISTS = (LANGCHAIN, PACK, LIGHT, FOLDED, LIGHT_FOLDED)
PACKS = (PACK, LIGHT, FOLDED, LIGHT_FOLDED)
