"""Showing lists, calls, results and runs: in a terminal (extra `rich`) and in notebooks."""

from todo_tools.rendering.branches import show_branches
from todo_tools.rendering.notebook import follow_in_notebook
from todo_tools.rendering.terminal import follow_in_terminal
from todo_tools.rendering.views import View, show_call, show_result, show_status, show_todos

__all__ = [
    "View",
    "follow_in_notebook",
    "follow_in_terminal",
    "show_branches",
    "show_call",
    "show_result",
    "show_status",
    "show_todos",
]
