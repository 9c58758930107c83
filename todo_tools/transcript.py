"""Read a message history: todo results, the user's messages, calls without a result."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeGuard, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from todo_tools._calls.records import TOOLS
from todo_tools._list.formats import read_todo
from todo_tools._list.todos import TodoDetails, TodoItem, is_list, is_mapping
from todo_tools.state import messages_in

__all__ = [
    "continuation_lines",
    "continuation_message",
    "details_of",
    "find_call",
    "is_from_user",
    "is_injected",
    "last_user_message",
    "list_after",
    "pending_calls",
    "todos_from_messages",
    "turn_calls",
]

# LangChain's keys for a message that neither the user nor the model wrote: its source, and data for
# programs. `langchain_core.messages.add_notification_metadata` (since 1.7.2) sets the same keys.
_SOURCE_KEY, _DATA_KEY = "lc_source", "lc_data"
_SOURCE = "todo_tools"
# agent-chat-ui hides the messages whose ids begin with `do-not-render-`.
_ID_PREFIX = "do-not-render-todo-tools-"
# The names that version 0.1.0 used.
_OLD_ID_PREFIX, _OLD_LINES_KEY = "todo-tools-", "todo_lines"


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
    if not is_injected(message):
        return ""
    data = message.additional_kwargs.get(_DATA_KEY)
    old = message.additional_kwargs.get(_OLD_LINES_KEY)
    lines = data.get("lines") if is_mapping(data) else old
    return lines if isinstance(lines, str) else ""


def is_injected(message: BaseMessage) -> bool:
    """Whether the loop put the message into the history."""
    return message.additional_kwargs.get(_SOURCE_KEY) == _SOURCE


def is_from_user(message: BaseMessage) -> TypeGuard[HumanMessage]:
    """Whether a person wrote the message, and not middleware or the loop."""
    return (
        isinstance(message, HumanMessage)
        and _SOURCE_KEY not in message.additional_kwargs
        and not (message.id or "").startswith((_ID_PREFIX, _OLD_ID_PREFIX))
    )


def details_of(message: BaseMessage) -> TodoDetails | None:
    """Return the stored details of a todo tool's result; `None` for any other message."""
    if not isinstance(message, ToolMessage) or message.name not in TOOLS:
        return None
    artifact: object = message.artifact
    if not is_mapping(artifact) or "action" not in artifact or "todos" not in artifact:
        return None  # a tool of another library with the same name
    return cast("TodoDetails", artifact)


def list_after(message: BaseMessage) -> list[TodoItem] | None:
    """Return the list from a result that changed it; `None` for any other message.

    The artifact of the result may be in either format. Errors and `list_todos` results change
    nothing. Invalid items are left out.
    """
    details = details_of(message)
    if details is None or "error" in details or details["action"] == TOOLS["list_todos"].action:
        return None
    stored: object = details["todos"]
    items = [todo for item in stored if (todo := read_todo(item))] if is_list(stored) else []
    return items if items or stored == [] else None


def last_user_message(messages: Sequence[BaseMessage]) -> int | None:
    """Return the index of the user's last message; `None` if there is none.

    A human message directly after a tool result does not count if it has a picture or a file,
    because tools return these in this way. A text message there does count: the run before it was
    cut off, or ended with that result.
    """
    spoken = None
    from_tool = False
    for at, message in enumerate(messages):
        after_tool = from_tool
        from_tool = isinstance(message, ToolMessage) or (
            after_tool and isinstance(message, HumanMessage) and _holds_media(message)
        )
        if is_from_user(message) and not from_tool:
            spoken = at
    return spoken


def _holds_media(message: HumanMessage) -> bool:
    """Whether a message has a part that is not text, such as a picture."""
    if isinstance(message.content, str):
        return False
    return any(is_mapping(part) and part.get("type") != "text" for part in message.content)


def find_call(messages: Sequence[BaseMessage], call_id: str | None) -> tuple[int, int] | None:
    """Find a call: the index of its AI message, and its position in that message, from 0.

    Returns:
        The two numbers; `None` if no AI message has the call.
    """
    for at in reversed(range(len(messages))):
        message = messages[at]
        if isinstance(message, AIMessage):
            ids = [call["id"] for call in message.tool_calls]
            if call_id in ids:
                return at, ids.index(call_id)
    return None


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
        the call.
    """
    calls = turn_calls(state, call_id)
    return list(takewhile(lambda call: call["id"] != call_id, calls))


def turn_calls(state: object, call_id: str | None) -> list[ToolCall]:
    """Return a call and all calls of the same AI message without a result, in order."""
    messages = messages_in(state)
    found = find_call(messages, call_id)
    if found is None:
        return []
    turn = cast("AIMessage", messages[found[0]])
    # Some model servers use the same ids in every turn: a result belongs to the turn it follows.
    following = takewhile(lambda m: not isinstance(m, AIMessage), messages[found[0] + 1 :])
    answered = {m.tool_call_id for m in following if isinstance(m, ToolMessage)} - {call_id}
    edits = _edited_calls(state)
    calls = [call for call in turn.tool_calls if call["id"] not in answered]
    return [_edited(call, edits) if edits else call for call in calls]


def _edited(call: ToolCall, edits: Mapping[str, Mapping[str, Any]]) -> ToolCall:
    return cast("ToolCall", {**call, **edits.get(call["id"] or "", {})})


def _edited_calls(state: object) -> Mapping[str, Mapping[str, Any]]:
    """Return the calls that a person edited, by call id.

    LangChain's `HumanInTheLoopMiddleware` does not change the AI message and stores them
    separately.
    """
    edited = state.get("hitl_edited_tool_calls") if is_mapping(state) else None
    return edited if is_mapping(edited) else {}


def todos_from_messages(messages: Sequence[AnyMessage]) -> list[TodoItem]:
    """Rebuild the list from tool results alone.

    Use it for threads whose messages were imported, or to compare the state with the history.

    Args:
        messages: A history, oldest first.

    Returns:
        The list from the newest `write_todos` or `edit_todos` result that is not an error, without
        invalid items. Empty if there is no such result.

    Example:
        ```python
        state = graph.get_state(config).values
        assert todos_from_messages(state["messages"]) == state["todos"]
        ```
    """
    for message in reversed(messages):
        todos = list_after(message)
        if todos is not None:
            return todos
    return []
