"""Todo tools for LangGraph agents: a checkpointed list, and a loop that ends with it finished."""

from importlib.metadata import version

from todo_tools.continuation import AutoContinue
from todo_tools.loop import add_auto_continue
from todo_tools.models import TodoDetails, TodoItem, TodoLimits, TodoStatus
from todo_tools.prompts import TODO_SYSTEM_PROMPT
from todo_tools.state import TodoState
from todo_tools.text import format_status, format_todos
from todo_tools.tools import create_todo_tools
from todo_tools.transcript import todos_from_messages
from todo_tools.view import model_view

__all__ = [
    "TODO_SYSTEM_PROMPT",
    "AutoContinue",
    "TodoDetails",
    "TodoItem",
    "TodoLimits",
    "TodoState",
    "TodoStatus",
    "add_auto_continue",
    "create_todo_tools",
    "format_status",
    "format_todos",
    "model_view",
    "todos_from_messages",
]

__version__ = version("langgraph-todo-tools")
