"""Todo tools for LangGraph agents: a checkpointed list, and a loop that works through it."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from todo_tools._list.formatting import format_status, format_todos
from todo_tools._list.prompts import TODO_FOLD_PROMPT, TODO_LIGHT_PROMPT, TODO_SYSTEM_PROMPT
from todo_tools._list.todos import TodoItem, TodoLimits
from todo_tools._loop.node import add_auto_continue
from todo_tools._loop.policy import AutoContinue
from todo_tools._loop.said import asks_user
from todo_tools._runner.jobs import DeltaItemsState, ItemReport, ItemsState, item_prompt
from todo_tools._runner.runner import create_item_runner
from todo_tools._thread.places import aitem_starts, item_starts
from todo_tools._thread.state import DeltaTodoState, TodoState
from todo_tools._thread.transcript import todos_from_messages
from todo_tools._tools.build import create_todo_tools
from todo_tools._tools.gate import TodoGate
from todo_tools._tools.work import has_worked
from todo_tools._view.view import count_folded_tokens, model_view

if TYPE_CHECKING:
    from todo_tools.middleware import TodoMiddleware

__all__ = [
    "TODO_FOLD_PROMPT",
    "TODO_LIGHT_PROMPT",
    "TODO_SYSTEM_PROMPT",
    "AutoContinue",
    "DeltaItemsState",
    "DeltaTodoState",
    "ItemReport",
    "ItemsState",
    "TodoGate",
    "TodoItem",
    "TodoLimits",
    "TodoMiddleware",
    "TodoState",
    "add_auto_continue",
    "aitem_starts",
    "asks_user",
    "count_folded_tokens",
    "create_item_runner",
    "create_todo_tools",
    "format_status",
    "format_todos",
    "has_worked",
    "item_prompt",
    "item_starts",
    "model_view",
    "todos_from_messages",
]


def __getattr__(name: str) -> Any:
    """Load the middleware only when it is asked for, because it needs langchain."""
    if name == "TodoMiddleware":
        return import_module("todo_tools.middleware").TodoMiddleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__version__ = version("langgraph-todo-tools")
