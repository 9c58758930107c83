"""Show lists, calls, results and runs in a terminal (extra `rich`) and in notebooks."""

from todo_tools.rendering._branches import show_branches
from todo_tools.rendering._notebook import follow_in_notebook
from todo_tools.rendering._terminal import follow_in_terminal
from todo_tools.rendering._tool_view import ToolView
from todo_tools.rendering._views import (
    show_call,
    show_messages,
    show_reports,
    show_result,
    show_status,
    show_todos,
)

__all__ = [
    "ToolView",
    "follow_in_notebook",
    "follow_in_terminal",
    "show_branches",
    "show_call",
    "show_messages",
    "show_reports",
    "show_result",
    "show_status",
    "show_todos",
]
