"""Build the history that the model reads, which differs from the one that people see.

A continuation that is not stored in the history is recorded under the id of the message before it.
So the model always reads it in the same place, and the view stays append-only.
"""

from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage

from todo_tools._list.todos import is_mapping
from todo_tools._thread.call_ids import with_call_ids
from todo_tools._thread.ids import stable_ids
from todo_tools.events import LoopEvent
from todo_tools.state import LoopState, loop_in, messages_in
from todo_tools.transcript import continuation_message

Message = TypeVar("Message", bound=BaseMessage)

_EVENT_KEY = "todo_loop"
_GAP = "\n\n"


def shown_history(state: object) -> list[AnyMessage]:
    """Return the messages of a state, with the continuations that are not in the history."""
    messages = list(with_call_ids(messages_in(state)))
    kept = loop_in(state).get("continuations", {})
    shown: list[AnyMessage] = []
    for message, place in zip(messages, stable_ids(messages), strict=True):
        shown.append(without_notice(message))
        if place in kept:
            told = kept[place]
            shown.append(continuation_message(told["text"], told["lines"], key=place))
    return shown


def with_continuation(loop: LoopState, state: object, text: str, lines: str) -> LoopState:
    """Record a continuation after the newest message; drop those whose message was removed."""
    places = list(stable_ids(messages_in(state)))
    if not places:
        return loop
    kept = loop.get("continuations", {}).copy()
    kept[places[-1]] = {"text": text, "lines": lines}
    return {**loop, "continuations": {place: kept[place] for place in places if place in kept}}


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
    metadata = {**said.response_metadata, _EVENT_KEY: event}
    return said.model_copy(update={"content": content, "response_metadata": metadata})


def without_notice(message: Message) -> Message:
    """Remove the notice, so that the model reads its exact answer; keep other messages."""
    event = message.response_metadata.get(_EVENT_KEY)
    text = event.get("text") if is_mapping(event) else None
    if not isinstance(text, str) or not text:
        return message
    content = message.content
    metadata = {key: value for key, value in message.response_metadata.items() if key != _EVENT_KEY}
    if isinstance(content, str):
        said: Any = content.removesuffix(text).removesuffix(_GAP)
    else:
        notices = ({"type": "text", "text": text}, {"type": "text", "text": f"{_GAP}{text}"})
        said = [block for block in content if block not in notices]
    return message.model_copy(update={"content": said, "response_metadata": metadata})
