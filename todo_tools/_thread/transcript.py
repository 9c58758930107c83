"""Read single messages of a history: who wrote them, and what a todo result holds."""

from collections.abc import Container, Mapping, Sequence
from itertools import takewhile
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
    is_mapping,
    is_valid_text,
)
from todo_tools._thread.channels import as_messages, last_id
from todo_tools._thread.events import LoopEvent
from todo_tools._thread.state import messages_in, value_in, was_changed

Message = TypeVar("Message", bound=BaseMessage)

# LangChain's keys for a message that neither the user nor the model wrote: its source, and data for
# programs. `langchain_core.messages.add_notification_metadata` (since 1.7.2) sets the same keys.
_SOURCE_KEY, _DATA_KEY = "lc_source", "lc_data"
_SOURCE = "todo_tools"
# agent-chat-ui hides the messages whose ids begin with this.
_HIDDEN = "do-not-render-"
_ID_PREFIX = f"{_HIDDEN}todo-tools-"

_RESULT_KEY = "todo_tools"
_NOTICE_KEY = "todo_loop"
_GAP = "\n\n"


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


def result_metadata(answer: Answer) -> dict[str, Any]:
    """Return the `response_metadata` of a result: what the view needs to know of it.

    That is the length of the text, since middleware may replace it; what the call changed,
    with the number of added items but without their texts, which the details have; and the list of
    a listing, which the details do not have.
    """
    if "error" in answer.details:
        return {}
    note: dict[str, Any] = {"length": len(answer.content)}
    if answer.operation is None:
        note["todos"] = answer.todos
    else:
        change: dict[str, Any] = {**answer.operation}
        texts = change.pop("texts", ())
        added = {"added": len(texts)} if change["op"] in ("append", "insert") else {}
        note["operation"] = {**change, **added}
    return {_RESULT_KEY: note}


def result_note(message: BaseMessage) -> Mapping[str, Any]:
    """Return what the tool noted with its result; empty for other messages."""
    note = message.response_metadata.get(_RESULT_KEY)
    return cast("dict[str, Any]", note) if isinstance(note, dict) else {}


def listed_in(message: BaseMessage) -> list[TodoItem] | None:
    """Return the list in a `list_todos` result; `None` for other messages."""
    todos = result_note(message).get("todos")
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
    begin: int
    """The position of the first call of the message without a result."""
    earlier: list[ToolCall]
    """The calls from there to this one: those without a result, and other tools that succeeded."""
    repeated: set[str | None]
    """The ids that several calls of the message have."""
    displaced: set[str | None]
    """The ids of the calls after a list that was not written as the model made it."""


def place_of_call(state: object, call_id: str | None) -> CallPlace | None:
    """Find a call by its id; `None` if no AI message has it."""
    messages = messages_in(state)
    for at in reversed(range(len(messages))):
        message = messages[at]
        if isinstance(message, AIMessage) and call_id in _ids(message):
            return _place(state, call_id, message, messages[:at], messages[at + 1 :])
    return None


def _ids(message: AIMessage) -> list[str | None]:
    return [call["id"] for call in message.tool_calls]


def _place(
    state: object,
    call_id: str | None,
    message: AIMessage,
    before: Sequence[AnyMessage],
    following: Sequence[AnyMessage],
) -> CallPlace:
    is_read = not was_changed(state, message.id, last_id(before))
    # Some servers use the same ids in every turn: a result belongs to its own turn.
    after = takewhile(lambda each: not isinstance(each, AIMessage), following)
    results = {each.tool_call_id: each for each in after if isinstance(each, ToolMessage)}
    edits, ids = _edited_calls(state), _ids(message)
    position = ids.index(call_id)
    made = [
        cast("ToolCall", {**call, **edits.get(call["id"], {})})
        for call in message.tool_calls[:position]
    ]
    todo_ids = {call["id"] for call in made if call["name"] in TOOLS}
    pending = [call for call in made if call["id"] not in results]
    begin = made.index(pending[0]) if pending else position
    # A call of a todo tool that has a result did not run, or the list has its change.
    worked = {each for each, result in results.items() if result.status != "error"} - todo_ids
    earlier = [call for call in made[begin:] if call["id"] not in results or call["id"] in worked]
    repeated = {each for each in ids if ids.count(each) > 1}
    unmade = {each for each, result in results.items() if list_after(result) is None}
    displaced = _displaced(message, edits, unmade | repeated)
    return CallPlace(message.id, is_read, position, pending, begin, earlier, repeated, displaced)


def _displaced(
    message: AIMessage,
    edits: Mapping[str | None, Mapping[str, Any]],
    unmade: Container[str | None],
) -> set[str | None]:
    """Return the ids of the calls after a `write_todos` that does not run as made.

    Such calls fit only the model's own list. Those that a person edited are not among them.
    """
    found = set[str | None]()
    # A call with broken JSON may have come first.
    is_other = any(call["name"] == "write_todos" for call in message.invalid_tool_calls)
    for call in message.tool_calls:
        if is_other:
            found.add(call["id"])
        edit = edits.get(call["id"], {})
        if "write_todos" in (call["name"], edit.get("name")):
            is_other |= bool(edit) or not call["id"] or call["id"] in unmade
    return found - edits.keys()


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


def with_notice(answer: AIMessage, event: LoopEvent) -> AIMessage:
    """Append the notice about the end of the loop to an answer of the model.

    A separate message would look like the agent's answer, and some providers reject two answers in
    a row.
    """
    said = without_notice(answer)
    text = f"{_GAP if said.content else ''}{event['text']}"
    content: Any = (
        f"{said.content}{text}"
        if isinstance(said.content, str)
        else [*said.content, {"type": "text", "text": text}]
    )
    metadata = {**said.response_metadata, _NOTICE_KEY: event}
    return said.model_copy(update={"content": content, "response_metadata": metadata})


def as_read(message: AnyMessage) -> AnyMessage:
    """Return a message as the model reads it.

    If a person writes a message while a call waits, or after a run was cancelled, agent-chat-ui
    gives each call without a result a hidden result that reports success. But the call did not run.
    """
    is_hidden = isinstance(message, ToolMessage) and (message.id or "").startswith(_HIDDEN)
    if is_hidden and message.content == "Successfully handled tool call.":
        return message.model_copy(update={"content": prompts.CUT_OFF, "status": "error"})
    return without_notice(message)


def without_notice(message: Message) -> Message:
    """Remove the notice, so that the model reads its exact answer; keep other messages."""
    event = message.response_metadata.get(_NOTICE_KEY)
    if event is None:
        return message
    text = event.get("text") if is_mapping(event) else None
    if not isinstance(text, str) or not text:
        return message
    content = message.content
    metadata = {
        key: value for key, value in message.response_metadata.items() if key != _NOTICE_KEY
    }
    if isinstance(content, str):
        said: Any = content.removesuffix(text).removesuffix(_GAP)
    else:
        notices = ({"type": "text", "text": text}, {"type": "text", "text": f"{_GAP}{text}"})
        said = [block for block in content if block not in notices]
    return message.model_copy(update={"content": said, "response_metadata": metadata})
