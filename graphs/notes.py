"""A notes tool besides the todo tools: how to write a checkpointed tool.

An operation says what changes, and a reducer applies it to the channel. A pure function answers a
call, and a thin tool gives both to LangGraph. So forks and time travel need no code. A view is for
people. The file needs only this package, so it can be copied alone. Its limit: each call reads the
clock, so the results of one turn may differ from the state by milliseconds.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NotRequired

from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from todo_tools import TodoState
from todo_tools.rendering import ToolView
from todo_tools.rendering.lowlevel import Line, Span
from todo_tools.schemas import lenient_schema
from todo_tools.transcript import pending_calls

Notes = dict[str, Any]
"""`{"notes": [...], "nextId": 3}`, at first `{}`; `nextId` only grows, so no id is used twice."""


def fold_notes(before: Notes, update: Any) -> Notes:
    """The notes after an operation, or after a whole value, which a subgraph returns."""
    if not update:
        return before
    notes, next_id = before.get("notes", []), before.get("nextId", 1)
    match update:
        case {"op": "add", "note": note}:
            return {"notes": [*notes, note], "nextId": note["id"] + 1}
        case {"op": "remove", "id": removed}:
            return {"notes": [each for each in notes if each["id"] != removed], "nextId": next_id}
        case {"notes": whole, "nextId": int(number)}:
            return {"notes": whole, "nextId": max(next_id, number)}
        case _:
            raise ValueError(f"notes takes an operation or a whole value, got {update}")


class NotesState(TodoState):
    """State of a graph with the notes tool and the todo tools."""

    notes: NotRequired[Annotated[Notes, fold_notes]]


def answer_note(args: Mapping[str, Any], notes: Notes) -> tuple[str, Any, str]:
    """The text for the model, the operation or `None`, and a short error or an empty text."""
    match args:
        case {"action": "add", "text": str(text)} if text:
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            note = {"id": notes.get("nextId", 1), "text": text, "createdAt": at}
            return f'Note #{note["id"]} saved: "{text}"', {"op": "add", "note": note}, ""
        case {"action": "list"}:
            lines = [f"#{n['id']} [{n['createdAt']}]: {n['text']}" for n in notes.get("notes", [])]
            return "\n".join(lines) or "No notes saved yet.", None, ""
        case {"action": "get" | "remove" as action, "id": wanted} if wanted is not None:
            found = {str(note["id"]): note["text"] for note in notes.get("notes", [])}
            shown = str(wanted)[:40]  # models also write numbers as texts
            if shown not in found:
                return f"Note #{shown} not found.", None, f"#{shown} not found"
            if action == "get":
                return f"#{shown}: {found[shown]}", None, ""
            removal = {"op": "remove", "id": int(shown)}
            return f'Removed note #{shown}: "{found[shown]}"', removal, ""
        case {"action": "add" | "get" | "remove" as action}:
            name = "text" if action == "add" else "id"
            return f"Error: '{name}' is required for action '{action}'", None, f"{name} required"
        case _:
            shown = str(args.get("action"))[:40]
            return f"Unknown action: {shown}", None, f"unknown action: {shown}"


def _call(runtime: ToolRuntime[Any, Any], **args: Any) -> Command[Any]:
    notes: Notes = runtime.state["notes"]
    # All calls of an AI message get the same state, so earlier calls are applied first.
    for earlier in pending_calls(runtime.state, runtime.tool_call_id):
        if earlier["name"] == "notes":
            notes = fold_notes(notes, answer_note(earlier["args"], notes)[1])
    content, operation, error = answer_note(args, notes)
    notes = fold_notes(notes, operation)
    details: Notes = {"action": args["action"], "notes": [], "nextId": 1, **notes}
    message = ToolMessage(content, tool_call_id=runtime.tool_call_id or "", artifact=details)
    if error:
        message.status, details["error"] = "error", error
    runtime.stream_writer({"type": "notes", "status": f"Notes: {len(details['notes'])} saved"})
    return Command(update={"notes": operation, "messages": [message]})


def notes_tool() -> StructuredTool:
    """Create the tool for a graph whose state is `NotesState` or has its `notes` channel."""
    names = ["add", "list", "get", "remove"]
    action = {"type": "string", "enum": names, "description": "Action"}
    text = {"type": "string", "description": "Text of the note, for 'add'"}
    which = {"type": "integer", "description": "Note id, for 'get' and 'remove'"}
    return StructuredTool(
        name="notes",
        description="Keep what the user wants remembered in this conversation: 'add' keeps a text "
        "and returns its id, 'list' shows all notes, 'get' shows one, 'remove' deletes one",
        args_schema=lenient_schema("notes", "text", "id", action=action, text=text, id=which),
        func=_call,
        metadata={"label": "Notes"},
    )


def _draw_call(args: Mapping[str, Any]) -> list[Line]:
    shown = [("action", " {}", "muted"), ("text", ' "{}"', "dim"), ("id", " #{}", "accent")]
    given: Any = [(form.format(args[n]), style) for n, form, style in shown if args.get(n)]
    spans = [Span("notes", "toolTitle", bold=True), *(Span(*each) for each in given)]
    return [Line(tuple(spans))]


def _draw_result(message: ToolMessage) -> list[Line] | None:
    match message.artifact:
        case {"error": error}:
            return [Line((Span(f"Error: {error}", "error"),))]
        case {"action": "list", "notes": notes}:
            return [Line((Span(f"{len(notes)} note{'' if len(notes) == 1 else 's'}", "accent"),))]
        case {"action": action}:
            lead = {"add": Span("+ ", "success"), "remove": Span("- ", "warning")}.get(action)
            body = Span(message.text, "dim" if action == "remove" else "muted")
            return [Line((body,), (lead,) if lead else ())]
        case _:
            return None


NOTES_VIEW = ToolView(call=_draw_call, result=_draw_result)
