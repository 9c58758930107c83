"""Note with a message what is known when it is written, so that nothing is inferred later.

A note is in the `response_metadata` of its message: every type of message has it, copies keep it,
and no provider receives it. Nothing else in this package stores facts about a message.

| Written by | With which message | Note | Read by |
| --- | --- | --- | --- |
| a tool, as it answers | its result | `operation`: the change, without added texts | the reading, \
`has_worked`, `item_starts` |
| | | `before`: the mark of the list that the call found | the reading: does the prompt show it? |
| | | `changed`: whether the call changed the list | the loop: that is work |
| | | `summary`: the first line of the answer | the view, in place of the text |
| | | the checksum of its `text` | the reading: is it as it was written? |
| `list_todos` | its result | `todos`: the list; the details have none | the reading |
| `TodoMiddleware`, before a model call | the newest message | `list`: the list that is shown with \
it in every prompt | the reading |
| the tools or the loop, without it | the message where `model_view` showed a list | `list` | the \
reading |
| `TodoMiddleware`, after a model call | the answer | `shown`: the mark of the list that the model \
read | the tools: a call for another list is refused |
| | | `client`: the calls of tools that the agent does not have | the loop: one without a result \
waits for the client |
| | | `has_tools`, `ends`: whether it had the todo tools, and ended the run | the loop |
| the loop, if it sends the agent back | the continuation | `mark` of the list | the loop: has the \
application changed the list? |
| | the last message (`store=False`) | `then`: the continuation that follows it in prompts | the \
reading |
| the loop, if it ends with a notice | the answer | `said`: what the model said before | the view |
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast
from uuid import uuid4
from zlib import crc32

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from todo_tools._calls.answers import Answer
from todo_tools._list import prompts
from todo_tools._list.todos import TodoItem, are_todos, is_list, mark_of

Message = TypeVar("Message", bound=BaseMessage)

# LangChain's keys for a message that neither the user nor the model wrote: its source, and data for
# programs. `langchain_core.messages.add_notification_metadata` (since 1.7.2) sets the same keys.
SOURCE_KEY, _DATA_KEY = "lc_source", "lc_data"
SOURCE = "todo_tools"
# agent-chat-ui hides the messages whose ids begin with this.
_HIDDEN = "do-not-render-"
ID_PREFIX = f"{_HIDDEN}todo-tools-"

_KEY = "todo_tools"
"""The key of this package's notes in the `response_metadata` of a message."""
_LATER = {"list", "then", "said"}
"""The notes that are made after the message was sent or read."""


def note_of(message: BaseMessage) -> Mapping[str, Any]:
    """Return what this package noted with a message; empty for most messages."""
    note = message.response_metadata.get(_KEY)
    return cast("dict[str, Any]", note) if isinstance(note, dict) else {}


def noted(message: Message, **note: Any) -> Message:
    """Return a copy of a message with more notes."""
    metadata = {**message.response_metadata, _KEY: {**note_of(message), **note}}
    return message.model_copy(update={"response_metadata": metadata})


def result_metadata(answer: Answer) -> dict[str, Any]:
    """Return the `response_metadata` of a tool's result."""
    if "error" in answer.details:
        return {}
    note: dict[str, Any] = {"text": crc32(answer.content.encode(errors="replace"))}
    if answer.operation is None:
        return {_KEY: {**note, "todos": answer.todos}}
    change: dict[str, Any] = {**answer.operation}
    if change["op"] != "set_status":
        change["added"] = len(change.pop("texts"))
    summary = answer.content.partition("\n")[0]
    before = mark_of(answer.before)
    changed = answer.todos != answer.before
    note |= {"summary": summary, "before": before, "changed": changed, "operation": change}
    return {_KEY: note}


def listed_in(message: BaseMessage) -> list[TodoItem] | None:
    """Return the list in a `list_todos` result; `None` for other messages."""
    todos = note_of(message).get("todos")
    return todos if are_todos(todos) else None


def continuation_message(text: str, mark: str, *, key: str = "") -> HumanMessage:
    """Create a continuation; its id identifies it too, in case middleware drops the tag."""
    kwargs = {SOURCE_KEY: SOURCE, _DATA_KEY: {"type": "continuation"}}
    message = HumanMessage(text, additional_kwargs=kwargs, id=f"{ID_PREFIX}{key or uuid4()}")
    return noted(message, mark=mark)


def with_continuation(message: Message, text: str, mark: str) -> Message:
    """Note a continuation that follows a message in prompts and not in the history."""
    return noted(message, then={"text": text, "mark": mark})


def read_notes(
    messages: Sequence[AnyMessage],
) -> list[tuple[AnyMessage, AnyMessage, Mapping[str, Any]]]:
    """Return each message as the model reads it, as it is stored, and its note.

    A continuation that is only noted follows the results after its message: LangChain adds results
    to a request for calls with broken JSON, and nothing may precede them.
    """
    found: list[tuple[AnyMessage, AnyMessage, Mapping[str, Any]]] = []
    later: list[tuple[AnyMessage, AnyMessage, Mapping[str, Any]]] = []
    for message in messages:
        if later and not isinstance(message, ToolMessage):
            found += later
            later = []
        note = note_of(message)
        found.append((as_read(message), message, note))
        if then := note.get("then"):
            said = continuation_message(then["text"], then["mark"], key=message.id or "")
            later.append((said, message, then))
    return found + later


def with_list(message: Message, stored: Message, todos: Sequence[TodoItem]) -> Message:
    """Return what to store so that later prompts repeat the block of a message or continuation."""
    if message.id == stored.id:
        return noted(stored, list=todos)
    return noted(stored, then={**note_of(stored)["then"], "list": todos})


def with_notice(answer: AIMessage, text: str) -> AIMessage:
    """Append the loop's notice to an answer; some providers refuse two answers in a row."""
    said: Any = note_of(answer).get("said", answer.content)
    gap = "\n\n" if said else ""
    added: Any = [{"type": "text", "text": gap + text}] if is_list(said) else gap + text
    return noted(answer, said=said).model_copy(update={"content": said + added})


def without_notice(answer: AIMessage) -> AIMessage:
    """Return an answer as it was before the loop appended its notice, because the run goes on."""
    note = {**note_of(answer)}
    update = {
        "content": note.pop("said"),
        "response_metadata": {**answer.response_metadata, _KEY: note},
    }
    return answer.model_copy(update=update)


def as_read(message: Message) -> Message:
    """Return a message as the model reads it: what the model said, without later notes."""
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
