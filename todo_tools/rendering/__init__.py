"""Show lists, calls, results and runs in a terminal (extra `rich`) and in notebooks."""

from todo_tools._list.formatting import one_line
from todo_tools.rendering._advance import advance
from todo_tools.rendering._branches import show_branches
from todo_tools.rendering._follow import Screen
from todo_tools.rendering._followed import Followed
from todo_tools.rendering._followed_lines import changes
from todo_tools.rendering._ledger import show_ledger
from todo_tools.rendering._lines import Line, Span, list_lines, note_lines, status_lines
from todo_tools.rendering._live import LiveLines
from todo_tools.rendering._notebook import follow_in_notebook
from todo_tools.rendering._output import OutputLines
from todo_tools.rendering._terminal import follow_in_terminal
from todo_tools.rendering._views import (
    View,
    show_call,
    show_messages,
    show_result,
    show_status,
    show_todos,
)

__all__ = [
    "Followed",
    "Line",
    "LiveLines",
    "OutputLines",
    "Screen",
    "Span",
    "View",
    "advance",
    "changes",
    "follow_in_notebook",
    "follow_in_terminal",
    "list_lines",
    "note_lines",
    "one_line",
    "show_branches",
    "show_call",
    "show_ledger",
    "show_messages",
    "show_result",
    "show_status",
    "show_todos",
    "status_lines",
]
