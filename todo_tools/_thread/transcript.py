"""Read single messages of a history: who wrote them, and what a todo result holds."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from todo_tools._calls.records import TOOLS
from todo_tools._list.formats import read_todos
from todo_tools._list.todos import TodoDetails, TodoItem, is_valid_text, mark_of
from todo_tools._thread.notes import ID_PREFIX, SOURCE, SOURCE_KEY, note_of
from todo_tools._thread.state import as_messages, messages_in, todos_in, value_in


def is_injected(message: BaseMessage) -> bool:
    """Whether the loop put the message into the history."""
    return message.additional_kwargs.get(SOURCE_KEY) == SOURCE or (
        isinstance(message, HumanMessage) and (message.id or "").startswith(ID_PREFIX)
    )


def is_from_user(message: BaseMessage) -> TypeGuard[HumanMessage]:
    """Whether a person wrote the message, and not middleware or the loop."""
    return (
        isinstance(message, HumanMessage)
        and SOURCE_KEY not in message.additional_kwargs
        and not (message.id or "").startswith(ID_PREFIX)
    )


def is_rejection(message: BaseMessage) -> bool:
    """Whether a person rejected the call, and so spoke to the agent in the result."""
    if not isinstance(message, ToolMessage) or message.status != "error":
        return False
    tool = f"{message.name}`" if message.name else ""
    return message.text.startswith(f"User rejected the tool call for `{tool}")


def is_spoken(message: BaseMessage) -> bool:
    """Whether a person spoke to the agent, in a message or by the rejection of a call."""
    return is_from_user(message) or is_rejection(message)


def details_of(message: BaseMessage) -> TodoDetails | None:
    """Return the stored details of a todo tool's result; `None` for any other message."""
    if not isinstance(message, ToolMessage) or message.name not in TOOLS:
        return None
    artifact: Any = message.artifact
    if not isinstance(artifact, dict) or "action" not in artifact or "todos" not in artifact:
        return None  # a tool of another library with the same name
    return cast("TodoDetails", artifact)


def list_after(message: BaseMessage) -> list[TodoItem] | None:
    """Return the list from a result that changed it, in either format; `None` for others."""
    details = details_of(message)
    if details is None or "error" in details or details["action"] == TOOLS["list_todos"].action:
        return None
    return read_todos(details["todos"])


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
    is_answered: bool
    """Whether the call has a result already, for example from a person who rejected it."""
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
        if call["id"] and ids.count(call["id"]) == 1
    ]
    pending = [call for call in earlier if call["id"] not in results]
    failed = {call_id for call_id, result in results.items() if result.status == "error"}
    refused = [*message.invalid_tool_calls, *(call for call in earlier if call["id"] in failed)]
    is_refused = any(call["name"] == "write_todos" for call in refused)
    is_read = note_of(message).get("shown") in (None, mark_of(todos_in(state)))
    is_answered, is_repeated = ids[position] in results, ids.count(ids[position]) > 1
    return CallPlace(message.id, is_read, position, pending, is_refused, is_answered, is_repeated)


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
    """Return the calls that a person edited in LangChain's `HumanInTheLoopMiddleware`, by id."""
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
