"""Views of the calls and results of this repository's tools."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.messages import ToolMessage

from todo_tools.rendering import show_call, show_result
from todo_tools.rendering.lowlevel import Line, Span, View, one_line

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


def call_view(name: str, args: Mapping[str, Any]) -> View:
    """Show a call."""
    if name == "notes":
        return View((_note_call(args),))
    return show_call(name, args, label=LABELS.get(name, ""))


def result_view(message: ToolMessage) -> View:
    """Show the result of a tool."""
    details = message.artifact
    if message.name == "notes" and isinstance(details, dict):
        return View(tuple(_note_result(message.text, cast("dict[str, Any]", details))))
    return show_result(message)


def _note_call(args: Mapping[str, Any]) -> Line:
    spans = [
        Span("notes ", "toolTitle", bold=True),
        Span(one_line(str(args.get("action"))), "muted"),
    ]
    if args.get("text"):
        spans.append(Span(f' "{one_line(str(args["text"]))}"', "dim"))
    if args.get("id") is not None:
        spans.append(Span(f" #{one_line(str(args['id']))}", "accent"))
    return Line(tuple(spans))


def _note_result(text: str, details: Mapping[str, Any]) -> Iterator[Line]:
    match details:
        case {"error": error}:
            yield Line((Span(one_line(f"Error: {error}"), "error"),))
        case {"action": "add"}:
            yield Line((Span(one_line(text), "muted"),), (Span("+ ", "success"),))
        case {"action": "list"}:
            count = len(details.get("notes", ()))
            yield Line((Span(f"{count} note{'' if count == 1 else 's'}", "accent"),))
        case {"action": "remove"}:
            yield Line((Span(one_line(text), "dim"),), (Span("- ", "warning"),))
        case _:
            yield Line((Span(one_line(text), "muted"),))
