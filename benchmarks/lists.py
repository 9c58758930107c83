"""The lists that are compared."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    TodoListMiddleware,
)

from benchmarks.scripts import TodoCalls, langchain_calls, light_calls, no_calls, pack_calls
from todo_tools import TODO_FOLD_PROMPT, TODO_LIGHT_PROMPT, TODO_SYSTEM_PROMPT, TodoMiddleware


@dataclass(frozen=True)
class ListKind:
    """One way to keep a list, or none."""

    name: str
    calls: TodoCalls
    middleware: Callable[[], list[Any]]
    folds: bool = False
    """Whether the model is told that finished items leave the prompt, and acts on it."""


def _pack(prompt: str = TODO_SYSTEM_PROMPT, *, folds: bool = False) -> list[Any]:
    return [TodoMiddleware(system_prompt=prompt, fold_finished=folds)]


def _clearing(trigger: int) -> list[Any]:
    return [ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=trigger)])]


NO_LIST = ListKind("no list", no_calls, list)
LANGCHAIN = ListKind("LangChain", langchain_calls, lambda: [TodoListMiddleware()])
PACK = ListKind("this package", pack_calls, _pack)
LIGHT = ListKind("this package, light", light_calls, partial(_pack, TODO_LIGHT_PROMPT))
FOLDED = ListKind("this package, folded", pack_calls, partial(_pack, folds=True), folds=True)
LIGHT_FOLDED = ListKind(
    "this package, light, folded",
    light_calls,
    partial(_pack, TODO_LIGHT_PROMPT, folds=True),
    folds=True,
)
LISTS = (LANGCHAIN, PACK, LIGHT, FOLDED, LIGHT_FOLDED)
PACKS = (PACK, LIGHT, FOLDED, LIGHT_FOLDED)
UNFOLDED = {FOLDED: PACK, LIGHT_FOLDED: LIGHT}
"""The list that each folded one is compared with."""

CLEARED = tuple(
    ListKind(f"no list, results cleared at {trigger:,}", no_calls, partial(_clearing, trigger))
    for trigger in (10_000, 30_000)
)
"""LangChain's middleware that clears old results from a number of tokens on; it keeps three."""
KINDS = (*LISTS, *CLEARED)


def _unfolded(prompt: str, calls: TodoCalls) -> ListKind:
    prompt = f"{prompt}\n\n{TODO_FOLD_PROMPT}"
    return ListKind("as folded", calls, partial(_pack, prompt), folds=True)


SAME_ANSWERS = {
    FOLDED.name: _unfolded(TODO_SYSTEM_PROMPT, pack_calls),
    LIGHT_FOLDED.name: _unfolded(TODO_LIGHT_PROMPT, light_calls),
}
"""For each folded list, one with the same prompt and the same answers, but nothing is left out."""
