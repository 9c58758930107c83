"""Views of the calls and results of this repository's tools."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage

from graphs.notes import NOTES_VIEW
from todo_tools.rendering import show_call, show_result
from todo_tools.rendering.lowlevel import View

LABELS = {
    "edit_file": "Edit",
    "execute": "Execute",
    "get_background_task": "Background task",
    "glob": "Find",
    "grep": "Search",
    "list_background_tasks": "Background tasks",
    "ls": "List",
    "notes": "Notes",
    "read_file": "Read",
    "run_in_background": "Run in background",
    "shell": "Shell",
    "write_file": "Write",
}
"""The labels of tools; the tools made here also have it in `metadata["label"]`."""

VIEWS = {"notes": NOTES_VIEW}
"""The views of tools that have a form of their own."""


def call_view(name: str, args: Mapping[str, Any]) -> View:
    """Show a call."""
    return show_call(name, args, label=LABELS.get(name, ""), views=VIEWS)


def result_view(message: ToolMessage) -> View:
    """Show the result of a tool."""
    return show_result(message, views=VIEWS)
