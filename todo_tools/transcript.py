"""What can be read off a message history: todo results, the user's messages, calls in waiting."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from todo_tools.calls import ACTIONS, answer_call
from todo_tools.models import (
    ANY_LENGTH,
    TodoDetails,
    TodoItem,
    TodoLimits,
    is_mapping,
    validate_todos,
)
from todo_tools.state import edited_calls, messages_in, todos_in

# LangChain's convention: who put a message into the history that is neither user nor model.
SOURCE_KEY = "lc_source"
SOURCE = "todo_tools"
_ID_PREFIX = "todo-tools-"


def injected(text: str) -> HumanMessage:
    """A message of ours, tagged so that nobody takes it for the user's."""
    return HumanMessage(text, additional_kwargs={SOURCE_KEY: SOURCE})


def continuation_message(text: str) -> HumanMessage:
    """A message of ours for the history; its id tells it even where somebody rewrites messages."""
    message = injected(text)
    message.id = f"{_ID_PREFIX}{uuid4()}"
    return message


def is_injected(message: BaseMessage) -> bool:
    """Whether this project put the message into the history."""
    return message.additional_kwargs.get(SOURCE_KEY) == SOURCE


def is_from_user(message: BaseMessage) -> TypeGuard[HumanMessage]:
    """Whether a person wrote the message, not a middleware and not the loop."""
    return (
        isinstance(message, HumanMessage)
        and SOURCE_KEY not in message.additional_kwargs
        and not (message.id or "").startswith(_ID_PREFIX)
    )


def details_of(message: BaseMessage) -> TodoDetails | None:
    """The details of a todo tool's result, `None` for any other message."""
    if not isinstance(message, ToolMessage) or message.name not in ACTIONS:
        return None
    artifact: object = message.artifact
    if not is_mapping(artifact) or "action" not in artifact or "todos" not in artifact:
        return None  # another library's tool of the same name
    return cast("TodoDetails", artifact)


def last_user_message(messages: Sequence[BaseMessage]) -> int | None:
    """Where the user spoke last.

    A human message right behind a tool's result counts as the tool's: tools hand images to the
    model in that way, and a model could re-arm the loop's limits by them.
    """
    spoken = None
    from_tool = False
    for at, message in enumerate(messages):
        from_tool = isinstance(message, ToolMessage) or (
            from_tool and isinstance(message, HumanMessage)
        )
        if is_from_user(message) and not from_tool:
            spoken = at
    return spoken


def call_position(messages: Sequence[BaseMessage], call_id: str | None) -> int:
    """The place of a call in its model turn, from 0; 0 for a call that no model made."""
    found = _find_call(messages, call_id)
    return found[2] if found else 0


def _find_call(
    messages: Sequence[BaseMessage], call_id: str | None
) -> tuple[int, AIMessage, int] | None:
    """Where the message with a call stands, the message, and the place of the call in it."""
    for at in reversed(range(len(messages))):
        message = messages[at]
        if isinstance(message, AIMessage):
            ids = [call["id"] for call in message.tool_calls]
            if call_id in ids:
                return at, message, ids.index(call_id)
    return None


def pending_calls(state: object, call_id: str | None) -> list[ToolCall]:
    """The calls that stand before a call in the same model turn and have no result yet.

    All calls of one model turn see the state from before it. A tool that wants to answer as if they
    ran one after the other applies these first. A call that a person rejected, or that ran in an
    earlier step, has its result behind the AI message and is not counted again.

    Args:
        state: The graph state that the tool was given.
        call_id: The id of the call that is being answered.

    Returns:
        The calls in their order, each as a person has edited it; empty for a call that no model
        made.
    """
    messages = messages_in(state)
    found = _find_call(messages, call_id)
    if found is None:
        return []
    at, turn, position = found
    answered = {m.tool_call_id for m in messages[at:] if isinstance(m, ToolMessage)}
    edits = edited_calls(state)
    return [
        cast("ToolCall", {**call, **edits.get(call["id"] or "", {})})
        for call in turn.tool_calls[:position]
        if call["id"] not in answered
    ]


def todos_at_call(state: object, call_id: str | None, limits: TodoLimits) -> list[TodoItem]:
    """The list of a state as it stands at a call.

    The todo calls that stand before it in the model's turn are applied first. The channel folds
    their operations in the same order.
    """
    todos = todos_in(state)
    for call in pending_calls(state, call_id):
        name = call["name"]
        if name in ACTIONS:
            todos = answer_call(name, call["args"], todos, limits).todos
    return todos


def todos_from_messages(messages: Sequence[AnyMessage]) -> list[TodoItem]:
    """Rebuild the list from tool results alone.

    For threads whose messages were imported, and to check the state against the history.

    Args:
        messages: A history, oldest first.

    Returns:
        The list after the newest `write_todos` or `edit_todos` result that is not an error; empty
        without one. `list_todos` results and errors never count.

    Raises:
        ValueError: That result holds something that is not a list of todos.
    """
    for message in reversed(messages):
        details = details_of(message)
        if details and details["action"] in ("write", "edit") and "error" not in details:
            return _snapshot(message, details)
    return []


def _snapshot(message: BaseMessage, details: Mapping[str, Any]) -> list[TodoItem]:
    try:
        return validate_todos(details["todos"], ANY_LENGTH)
    except ValueError as error:
        raise ValueError(f"the todo result in message {message.id!r} is damaged: {error}") from None
