"""A notes tool besides the todo tools: how to write a checkpointed tool.

It has six parts. An operation says what changes. A reducer folds operations into the channel. A
pure function computes the result of a call from the channel's value. A thin tool returns the result
and the operation to LangGraph as a `Command`. A state declares the channel. A view draws calls and
results for people. Forks and time travel then need no code.

This file needs only the library, so it can be copied alone.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException
from langgraph.checkpoint.base.id import UUID
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import TypeAdapter, create_model
from typing_extensions import TypedDict

from todo_tools import (
    TODO_SYSTEM_PROMPT,
    AutoContinue,
    TodoLimits,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    model_view,
)
from todo_tools.rendering import ToolView
from todo_tools.rendering.lowlevel import Line, Span
from todo_tools.schemas import (
    CallError,
    LenientArgs,
    argument,
    brief,
    read_index,
)
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_from_user, is_injected, pending_calls

NOTES_PROMPT = (
    "Keep what the user wants remembered with the notes tool, one note for each thing, and look "
    "it up there when it is asked for."
)


class Note(TypedDict):
    """One note."""

    id: int
    text: str
    createdAt: str
    """ISO 8601 in UTC, to the millisecond."""


class Notes(TypedDict):
    """The value of the `notes` channel; `{}` before the first note."""

    notes: list[Note]
    nextId: int
    """The id of the next note. It only grows, so no id is used twice."""


class NotesDetails(Notes):
    """The details of a result, in `ToolMessage.artifact`."""

    action: Literal["add", "list", "get", "remove"]
    error: NotRequired[str]


Operation = dict[str, Any]
"""`{"op": "add", "id": ..., "text": ..., "createdAt": ...}` or `{"op": "remove", "id": ...}`."""

_NONE_YET: Notes = {"notes": [], "nextId": 1}
_CHECKED = TypeAdapter(Notes)
_HIDDEN: RunnableConfig = {"tags": ["langsmith:hidden"]}
"""For helpers that a reader of a trace need not see."""


def fold_notes(notes: Notes, update: Mapping[str, Any] | None) -> Notes:
    """Reducer of the `notes` channel.

    Args:
        notes: The value before; it is not changed.
        update: An operation, or a whole value from the application or a subgraph. `None` and `{}`
            change nothing. A whole value does not make old ids available again. The last value
            of parallel subgraphs wins, so let only one subgraph save notes.

    Returns:
        The value after.

    Raises:
        ValueError: `update` is something else.
    """
    if not update:
        return notes
    notes = notes or _NONE_YET
    match update:
        case {"op": "add", "text": str(text), "createdAt": str(at)} if (
            type(told := update.get("id", 0)) is int
        ):
            # The id that the model was told; an earlier call of its message may have been refused.
            number = max(notes["nextId"], told)
            note: Note = {"id": number, "text": text, "createdAt": at}
            return {"notes": [*notes["notes"], note], "nextId": note["id"] + 1}
        case {"op": "remove", "id": int(removed)}:
            return {**notes, "notes": [note for note in notes["notes"] if note["id"] != removed]}
        case {"notes": _}:
            whole = _CHECKED.validate_python(update)
            used = [note["id"] + 1 for note in whole["notes"]]
            return {**whole, "nextId": max(whole["nextId"], notes["nextId"], *used)}
        case _:
            raise ValueError(
                "notes takes an operation of the notes tool or a dict with 'notes' and 'nextId', "
                f"got {str(update)[:80]}"
            )


class NotesState(TodoState):
    """State of a graph with the notes tool and the todo tools."""

    notes: NotRequired[Annotated[Notes, fold_notes]]


def answer_note(
    args: Mapping[str, Any], notes: Notes, at: str
) -> tuple[str, NotesDetails, Operation | None]:
    """Answer one call against the notes.

    Args:
        args: The model's arguments, of any shape.
        notes: The value of the channel before the call.
        at: The time of the call, used for an added note.

    Returns:
        The text for the model, the details with the notes after the call, and the operation.
    """
    notes = notes or _NONE_YET
    operation, error = None, None
    try:
        content, operation = _answer(args, notes, at)
    except CallError as refusal:
        content, error = refusal.message, refusal.short
    after = fold_notes(notes, operation)
    action = args.get("action")
    details: NotesDetails = {
        "action": action if action in ("add", "get", "remove") else "list",
        "notes": [note.copy() for note in after["notes"]],
        "nextId": after["nextId"],
    }
    if error:
        details["error"] = error
    return content, details, operation


def _answer(args: Mapping[str, Any], notes: Notes, at: str) -> tuple[str, Operation | None]:
    match args.get("action"):
        case "add":
            text = _read_text(args.get("text"))
            content = f'Note #{notes["nextId"]} saved: "{text}"'
            added = {"op": "add", "id": notes["nextId"], "text": text, "createdAt": at}
            return content, added
        case "list":
            lines = [f"#{n['id']} [{n['createdAt']}]: {n['text']}" for n in notes["notes"]]
            return "\n".join(lines) or "No notes saved yet.", None
        case "get":
            note = _find(args, notes)
            return f"#{note['id']}: {note['text']}", None
        case "remove":
            note = _find(args, notes)
            content = f'Removed note #{note["id"]}: "{note["text"]}"'
            return content, {"op": "remove", "id": note["id"]}
        case action:
            shown = action[:40] if isinstance(action, str) else brief(action)
            raise CallError(f"Unknown action: {shown}", f"unknown action: {shown}")


def _read_text(text: object) -> str:
    if text is None or text == "":
        raise CallError("Error: 'text' is required for action 'add'", "text required")
    if not isinstance(text, str):
        raise CallError(f"Error: 'text' must be a string, got {brief(text)}", "text not a string")
    return text


def _find(args: Mapping[str, Any], notes: Notes) -> Note:
    wanted = args.get("id")
    if wanted is None:
        raise CallError(f"Error: 'id' is required for action '{args['action']}'", "id required")
    try:
        number: int | str = read_index("id", wanted)
    except CallError:
        number = brief(wanted)  # any other value: no note has this id
    for note in notes["notes"]:
        if note["id"] == number:
            return note
    raise CallError(f"Note #{number} not found.", f"#{number} not found")


def _call(
    runtime: Annotated[ToolRuntime[Any, Any] | None, InjectedToolArg] = None, **args: Any
) -> Command[Any] | ToolMessage:
    step = runtime.execution_info if isinstance(runtime, ToolRuntime) else None
    if not runtime or not step or "notes" not in (runtime.state or ()):
        raise ToolException("Error: the notes tool works only in a graph whose state is NotesState")
    notes, at = runtime.state["notes"], _time_of(step.checkpoint_id)
    # All calls of an AI message get the same state, so earlier calls are applied first.
    for sibling in pending_calls(runtime.state, runtime.tool_call_id):
        if sibling["name"] == "notes":
            notes = fold_notes(notes, answer_note(sibling["args"], notes, at)[2])
    content, details, operation = answer_note(args, notes, at)
    message = ToolMessage(
        content,
        name="notes",
        tool_call_id=runtime.tool_call_id or "",
        status="error" if "error" in details else "success",
        artifact=details,
    )
    if operation is None:
        return message
    runtime.stream_writer({"type": "notes", "status": f"Notes: {len(details['notes'])} saved"})
    return Command(update={"notes": operation, "messages": [message]})


def _time_of(checkpoint_id: str) -> str:
    """When a step of the graph began, read from the checkpoint's id (a UUID of version 6).

    Each call of an AI message replays the earlier calls, and runs again after a crash. The clock
    would differ between calls. The checkpoint's time is the same for all, so every result matches
    the state.
    """
    ticks = UUID(hex=checkpoint_id).time  # ten units per microsecond
    at = datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=ticks // 10)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def notes_tool() -> StructuredTool:
    """Create the tool `notes` for a graph whose state is `NotesState` or has its `notes` channel.

    Several calls in one AI message are applied in order. A refused call returns a
    `ToolMessage(status="error")` and changes nothing.

    Returns:
        A tool that takes `action`, and `text` or `id`.

    Example:
        ```python
        agent = create_agent(model, [notes_tool()], state_schema=NotesState)
        ```
    """
    return StructuredTool(
        name="notes",
        description="Notes that last as long as this conversation: 'add' keeps a text and returns "
        "its id, 'list' shows all with id and time, 'get' shows one, 'remove' deletes one for good",
        args_schema=create_model(
            "notes",
            __base__=LenientArgs,
            action=argument(
                type="string",
                enum=["add", "list", "get", "remove"],
                description="What to do: add, list, get or remove",
            ),
            text=argument(optional=True, type="string", description="Text of the note, for 'add'"),
            id=argument(
                optional=True, type="integer", description="Note id, for 'get' and 'remove'"
            ),
        ),
        func=_call,
        handle_tool_error=True,
        metadata={"label": "Notes"},
    )


def _call_line(args: Mapping[str, Any]) -> list[Line]:
    spans = [Span("notes", "toolTitle", bold=True)]
    if args.get("action") is not None:
        spans.append(Span(f" {args['action']}", "muted"))
    if args.get("text"):
        spans.append(Span(f' "{args["text"]}"', "dim"))
    if args.get("id") is not None:
        spans.append(Span(f" #{args['id']}", "accent"))
    return [Line(tuple(spans))]


def _result_line(message: ToolMessage) -> list[Line] | None:
    match message.artifact:
        case {"error": error}:
            return [Line((Span(f"Error: {error}", "error"),))]
        case {"action": "add"}:
            return [Line((Span(message.text, "muted"),), (Span("+ ", "success"),))]
        case {"action": "list", "notes": notes}:
            return [Line((Span(f"{len(notes)} note{'' if len(notes) == 1 else 's'}", "accent"),))]
        case {"action": "get"}:
            return [Line((Span(message.text, "muted"),))]
        case {"action": "remove"}:
            return [Line((Span(message.text, "dim"),), (Span("- ", "warning"),))]
        case _:
            return None


NOTES_VIEW = ToolView(call=_call_line, result=_result_line)
"""How people see the calls and results, as in `show_messages(..., views={"notes": NOTES_VIEW})`."""


def build_graph(
    model: BaseChatModel,
    *,
    policy: AutoContinue | Callable[[Runtime[Any]], AutoContinue] = AutoContinue(),
    limits: TodoLimits = TodoLimits(),
    state_schema: type[Any] = NotesState,
    context_schema: type[Any] | None = None,
) -> StateGraph[Any, Any, Any, Any]:
    """Build an agent with notes and todos, uncompiled.

    Args:
        model: Any chat model that can call tools.
        policy: When and how the agent is sent back to work, or a function that chooses it per run.
        limits: How much the model may write into the list.
        state_schema: `NotesState`, or a state with the same channels.
        context_schema: What can be set for each run, for a `policy` that is a function.

    Returns:
        The builder; call `.compile(checkpointer=...)` on it.
    """
    tools = [*create_todo_tools(limits), notes_tool()]
    system = SystemMessage(f"{NOTES_PROMPT}\n\n{TODO_SYSTEM_PROMPT}")

    def prompt(state: NotesState) -> list[AnyMessage]:
        return [system, *model_view(state)]

    def update(answer: BaseMessage) -> dict[str, list[BaseMessage]]:
        return {"messages": [answer]}

    builder = StateGraph(state_schema, context_schema)
    before = RunnableLambda(prompt).with_config(_HIDDEN)
    after = RunnableLambda(update).with_config(_HIDDEN)
    builder.add_node("agent", before | model.bind_tools(tools) | after)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    return add_auto_continue(builder, policy=policy)


def notes_model() -> ScriptedChatModel:
    """A stand-in for a language model: `note: ...` adds a note, any other text lists the notes."""

    def rule(prompt: list[BaseMessage]) -> AIMessage:
        last = next(message for message in reversed(prompt) if not is_injected(message))
        if not is_from_user(last):
            return turn(last.text)
        if last.text.startswith("note: "):
            return turn("", call("notes", action="add", text=last.text.removeprefix("note: ")))
        return turn("", call("notes", action="list"))

    return ScriptedChatModel(script=rule)
