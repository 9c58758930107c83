"""Read single messages of a history: who wrote them, and what a todo result holds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard, TypeVar, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from todo_tools._calls.answers import Answer
from todo_tools._calls.records import TOOLS
from todo_tools._list import prompts
from todo_tools._list.formats import read_todos
from todo_tools._list.todos import (
    TodoDetails,
    TodoItem,
    are_todos,
    is_list,
    is_valid_text,
    mark_of,
)
from todo_tools._thread.channels import as_messages
from todo_tools._thread.state import messages_in, todos_in, value_in

Message = TypeVar("Message", bound=BaseMessage)

# LangChain's keys for a message that neither the user nor the model wrote: its source, and data for
# programs. `langchain_core.messages.add_notification_metadata` (since 1.7.2) sets the same keys.
_SOURCE_KEY, _DATA_KEY = "lc_source", "lc_data"
_SOURCE = "todo_tools"
# agent-chat-ui hides the messages whose ids begin with this.
_HIDDEN = "do-not-render-"
_ID_PREFIX = f"{_HIDDEN}todo-tools-"

_KEY = "todo_tools"
"""The key of this library's notes in the `response_metadata` of a message."""


def continuation_message(text: str, lines: str = "", *, key: str = "") -> HumanMessage:
    """Create a continuation message for the history.

    The message is tagged. Its id also identifies it, in case middleware drops the tag.

    Args:
        text: The text for the model.
        lines: The part of `text` that lists the incomplete items.
        key: The end of the id; random by default.
    """
    kwargs = {_SOURCE_KEY: _SOURCE, _DATA_KEY: {"type": "continuation", "lines": lines}}
    return HumanMessage(text, additional_kwargs=kwargs, id=f"{_ID_PREFIX}{key or uuid4()}")


def continuation_lines(message: BaseMessage) -> str:
    """Return the part of a continuation that lists the items; empty for other messages."""
    data = message.additional_kwargs.get(_DATA_KEY) if is_injected(message) else None
    lines = cast("dict[str, Any]", data).get("lines") if isinstance(data, dict) else None
    return lines if isinstance(lines, str) else ""


def is_injected(message: BaseMessage) -> bool:
    """Whether the loop put the message into the history."""
    return message.additional_kwargs.get(_SOURCE_KEY) == _SOURCE or (
        isinstance(message, HumanMessage) and (message.id or "").startswith(_ID_PREFIX)
    )


def is_from_user(message: BaseMessage) -> TypeGuard[HumanMessage]:
    """Whether a person wrote the message, and not middleware or the loop."""
    return (
        isinstance(message, HumanMessage)
        and _SOURCE_KEY not in message.additional_kwargs
        and not (message.id or "").startswith(_ID_PREFIX)
    )


def is_summary(message: BaseMessage) -> bool:
    """Whether LangChain's `SummarizationMiddleware` wrote it in place of earlier messages."""
    return message.additional_kwargs.get(_SOURCE_KEY) == "summarization"


def is_rejection(message: BaseMessage) -> bool:
    """Whether a person rejected the call, and so spoke to the agent in the result.

    The `HumanInTheLoopMiddleware` of LangChain 1.4 marks it only by its first words. A result by
    other code may have no name.
    """
    if not isinstance(message, ToolMessage) or message.status != "error":
        return False
    tool = f"{message.name}`" if message.name else ""
    return message.text.startswith(f"User rejected the tool call for `{tool}")


def last_user_message(messages: Sequence[BaseMessage]) -> int | None:
    """Return the index of the user's last message; `None` if there is none."""
    places = reversed(range(len(messages)))
    return next((at for at in places if is_from_user(messages[at])), None)


def details_of(message: BaseMessage) -> TodoDetails | None:
    """Return the stored details of a todo tool's result; `None` for any other message."""
    if not isinstance(message, ToolMessage) or message.name not in TOOLS:
        return None
    artifact: Any = message.artifact
    if not isinstance(artifact, dict) or "action" not in artifact or "todos" not in artifact:
        return None  # a tool of another library with the same name
    return cast("TodoDetails", artifact)


def list_after(message: BaseMessage) -> list[TodoItem] | None:
    """Return the list from a result that changed it, not a copy; `None` for any other message.

    The artifact of the result may be in either format. Errors and `list_todos` results change
    nothing. Invalid items are left out.
    """
    details = details_of(message)
    if details is None or "error" in details or details["action"] == TOOLS["list_todos"].action:
        return None
    return read_todos(details["todos"])


def note_of(message: BaseMessage) -> Mapping[str, Any]:
    """Return what this library noted with a message; empty for most messages.

    What is known when a message is written is noted then, so nothing has to be inferred later:

    - of a result: the `length` of its text, since middleware may replace it; the mark of the list
      `before` its call; its `operation` without added texts, which the details have; the list of a
      listing (`todos`), which the details do not have.
    - of any message: a `list` that every prompt shows after it; a continuation that follows it in
      prompts (`then`).
    - of an answer: what the model `said` before the loop added its notice, and, with
      `TodoMiddleware`, what it was asked with (`shown`, `has_tools`, `ends`).
    """
    note = message.response_metadata.get(_KEY)
    return cast("dict[str, Any]", note) if isinstance(note, dict) else {}


def noted(message: Message, **note: Any) -> Message:
    """Return a copy of a message with more notes."""
    metadata = {**message.response_metadata, _KEY: {**note_of(message), **note}}
    return message.model_copy(update={"response_metadata": metadata})


def result_metadata(answer: Answer) -> dict[str, Any]:
    """Return the `response_metadata` of a result; see `note_of`."""
    if "error" in answer.details:
        return {}
    note: dict[str, Any] = {"length": len(answer.content)}
    if answer.operation is None:
        return {_KEY: {**note, "todos": answer.todos}}
    change: dict[str, Any] = {**answer.operation}
    if change["op"] != "set_status":
        change["added"] = len(change.pop("texts"))
    return {_KEY: {**note, "before": mark_of(answer.before), "operation": change}}


def listed_in(message: BaseMessage) -> list[TodoItem] | None:
    """Return the list in a `list_todos` result; `None` for other messages."""
    todos = note_of(message).get("todos")
    return todos if are_todos(todos) else None


class CallPlace(NamedTuple):
    """Where a call is: in which AI message, and after which calls."""

    turn: str | None
    """The id of the AI message."""
    is_read: bool
    """Whether the list is as the model read it before the message; true without the middleware."""
    position: int
    """The position of the call in its message, from 0."""
    pending: list[ToolCall]
    """The earlier calls of the message without a result, with the changes that a person made."""
    is_refused: bool
    """Whether an earlier call that writes a list has already been refused."""
    is_repeated: bool
    """Whether another call of the message has the same id, so that no result can name this one."""


def place_of_call(state: object, call_id: str | None) -> CallPlace | None:
    """Find a call by its id; `None` if no AI message has it."""
    results: dict[str | None, ToolMessage] = {}
    for message in reversed(messages_in(state)):
        if isinstance(message, ToolMessage):
            results[message.tool_call_id] = message
        elif isinstance(message, AIMessage):
            ids = [call["id"] for call in message.tool_calls]
            if call_id in ids:
                return _place(state, message, ids.index(call_id), results)
            results = {}  # some servers use the same ids in every turn
    return None


def _place(
    state: object, message: AIMessage, position: int, results: Mapping[str | None, ToolMessage]
) -> CallPlace:
    edits, ids = _edited_calls(state), [call["id"] for call in message.tool_calls]
    earlier = [
        cast("ToolCall", {**call, **edits.get(call["id"], {})})
        for call in message.tool_calls[:position]
        if ids.count(call["id"]) == 1
    ]
    pending = [call for call in earlier if call["id"] not in results]
    failed = {call_id for call_id, result in results.items() if result.status == "error"}
    refused = [*message.invalid_tool_calls, *(call for call in earlier if call["id"] in failed)]
    is_refused = any(call["name"] == "write_todos" for call in refused)
    is_read = note_of(message).get("shown") in (None, mark_of(todos_in(state)))
    is_repeated = ids.count(ids[position]) > 1
    return CallPlace(message.id, is_read, position, pending, is_refused, is_repeated)


def pending_calls(state: object, call_id: str | None) -> list[ToolCall]:
    """Return the earlier calls of the same AI message that have no result yet.

    All calls of an AI message receive the state from before it. To answer as if they ran one after
    the other, a tool must first apply these calls. A call that a person rejected, or that ran in an
    earlier step, already has a result and is left out.

    Args:
        state: The graph state that the tool received.
        call_id: The id of the tool's own call.

    Returns:
        The calls in order, with the changes that a person made to them; empty if no AI message has
        the call. The todo tools may refuse some of theirs.
    """
    place = place_of_call(state, call_id)
    return place.pending if place else []


def _edited_calls(state: object) -> Mapping[str | None, Mapping[str, Any]]:
    """Return the calls that a person edited, by call id.

    LangChain's `HumanInTheLoopMiddleware` does not change the AI message and stores them
    separately.
    """
    edited = value_in(state, "hitl_edited_tool_calls")
    return cast("dict[str | None, Any]", edited) if isinstance(edited, dict) else {}


def todos_from_messages(messages: Sequence[AnyMessage]) -> list[TodoItem]:
    """Rebuild the list from tool results alone.

    Use it for threads whose messages were imported, or to compare the state with the history.

    Args:
        messages: A history, oldest first; a remote graph returns its messages as dicts.

    Returns:
        A copy of the list from the newest `write_todos` or `edit_todos` result that is not an
        error, without items that the state would refuse. Empty if there is no such result.

    Example:
        ```python
        state = graph.get_state(config).values
        assert todos_from_messages(state["messages"]) == state["todos"]
        ```
    """
    for message in reversed(as_messages(messages)):
        todos = list_after(message)
        if todos is not None:
            return [todo.copy() for todo in todos if is_valid_text(todo["text"])]
    return []


def with_notice(answer: AIMessage, text: str) -> AIMessage:
    """Append the notice about the end of the loop to an answer of the model.

    A separate message would look like the agent's answer, and some providers reject two answers in
    a row.
    """
    said: Any = note_of(answer).get("said", answer.content)
    gap = "\n\n" if said else ""
    added: Any = [{"type": "text", "text": gap + text}] if is_list(said) else gap + text
    return noted(answer, said=said).model_copy(update={"content": said + added})


def as_read(message: Message) -> Message:
    """Return a message as the model reads it: what the model said, without later notes.

    If a person writes a message while a call waits, or after a run was cancelled, agent-chat-ui
    gives each call without a result a hidden result that reports success. But the call did not run.
    """
    is_hidden = isinstance(message, ToolMessage) and (message.id or "").startswith(_HIDDEN)
    if is_hidden and message.content == "Successfully handled tool call.":
        return message.model_copy(update={"content": prompts.CUT_OFF, "status": "error"})
    note = note_of(message)
    if note.keys().isdisjoint(_LATER):
        return message
    metadata = {key: value for key, value in message.response_metadata.items() if key != _KEY}
    if kept := {key: value for key, value in note.items() if key not in _LATER}:
        metadata[_KEY] = kept
    content = note.get("said", message.content)
    return message.model_copy(update={"content": content, "response_metadata": metadata})


_LATER = {"list", "then", "said"}
"""The notes that are made after the message was sent or read."""
