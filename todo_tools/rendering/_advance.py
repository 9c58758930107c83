"""Track the state of a running graph from the chunks of its stream.

The functions have no side effects: they compute the new state from the old one and a chunk. Each
change of the list arrives as an event of the custom stream. The calls of one turn run in parallel,
so their events and results arrive in any order. Each of them names its call, and the list of a
later call is never replaced by that of an earlier one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list.formatting import one_line
from todo_tools._list.todos import TodoItem, is_list, is_mapping
from todo_tools._thread.state import todos_in
from todo_tools._thread.transcript import list_after
from todo_tools.rendering._chunks import parts_of
from todo_tools.rendering._followed import KEPT_CHARACTERS, Followed, Output, changed_at
from todo_tools.rendering._tool_view import short_call


def advance(followed: Followed, chunk: object) -> Followed:
    """Return the state after a chunk; stream modes without the list change nothing."""
    for path, mode, payload in parts_of(chunk):
        if change := _change(mode, payload):
            followed = changed_at(followed, path, change)
    return followed


def _change(mode: str, payload: Any) -> Callable[[Followed], Followed] | None:
    """Return the function that applies a payload to the state of its graph, if there is one."""
    if mode == "messages":
        return lambda known: _after_piece(known, payload)
    after = _AFTER.get(mode)
    return (lambda known: after(known, payload)) if after and is_mapping(payload) else None


def _after_piece(followed: Followed, payload: Any) -> Followed:
    """Add a piece of the answer that the model is writing."""
    match payload:
        case (BaseMessage(), {"lc_agent_name": str(name)}):
            followed = replace(followed, name=name)
        case _:
            pass
    match payload:
        case (AIMessageChunk() as piece, _):
            known, text = followed.saying
            text = text + piece.text if piece.id == known else piece.text
            return replace(followed, saying=(piece.id, text[-KEPT_CHARACTERS:]))
        case _:
            return followed


def _after_event(followed: Followed, event: Mapping[str, Any]) -> Followed:
    match event:
        case {"type": "todos"}:
            return _after_change(followed, event)
        case {"type": "tool_output", "text": str(text)}:
            return _after_output(followed, event, text)
        case {"type": "todo_countdown", "text": str(text)}:
            return replace(followed, countdown=text, notice="")
        case {"type": "todo_loop", "text": str(text)}:
            return replace(followed, countdown="", notice=text)
        case _:
            return followed


def _after_output(followed: Followed, event: Mapping[str, Any], text: str) -> Followed:
    """Add output of a running tool; the event names the call by its id or its command."""
    call, running = event.get("tool_call_id"), [each for each, _ in followed.open]
    if not isinstance(call, str):
        named = (each for each, command in followed.commands if command == event.get("command"))
        call = next((each for each in named if each in running), None)
    if not call or call not in running:
        return followed
    others = tuple(output for output in followed.outputs if output.call != call)
    before = next((each for each in followed.outputs if each.call == call), Output(call, "", 0))
    after = (before.text + text)[-KEPT_CHARACTERS:]
    return replace(followed, outputs=(*others, Output(call, after, before.length + len(text))))


def _after_change(followed: Followed, event: Mapping[str, Any]) -> Followed:
    todos, turn, position = _list_in(event), event.get("turn"), event.get("position")
    if todos is None or not isinstance(position, int):
        return followed
    if turn != followed.answer or not (turn or followed.turn):  # the first event of a new turn
        answer = turn if isinstance(turn, str) else None
        followed = replace(followed, answer=answer, settled=-1)
    return replace(_settle(followed, position, todos), countdown="", notice="")


def _settle(followed: Followed, position: int, todos: list[TodoItem]) -> Followed:
    if position < followed.settled:
        return followed
    return replace(followed, todos=todos, settled=position)


def _after_values(followed: Followed, values: Mapping[str, Any]) -> Followed:
    """Take the list from a state; ignore an empty list at the beginning."""
    todos = _list_in(values)
    if todos is None or (not todos and followed.todos is None):
        return followed
    return replace(followed, todos=todos)


def _list_in(holder: Mapping[str, Any]) -> list[TodoItem] | None:
    """Return the list in an event or update; `None` if it is missing or invalid."""
    if not is_list(holder.get("todos")):
        return None
    try:
        return todos_in(holder)
    except ValueError:
        return None


def _after_updates(followed: Followed, updates: Mapping[str, Any]) -> Followed:
    if "__interrupt__" in updates:
        return _asked(followed, updates["__interrupt__"])
    match updates.get("model"):
        case {"messages": [AIMessage(name=str(name)), *_]}:  # `create_agent` signs its answers
            followed = replace(followed, name=name)
        case _:
            pass
    for update in updates.values():
        for part in cast("list[object]", update) if is_list(update) else [update]:
            if is_mapping(part):
                followed = _after_values(followed, part)
                followed = _after_messages(followed, _messages_in(part), has_lists=_has_lists(part))
    return followed


def _messages_in(update: Mapping[str, Any]) -> list[object]:
    messages = update.get("messages")
    return cast("list[object]", messages) if is_list(messages) else [messages]


def _has_lists(update: Mapping[str, Any]) -> bool:
    """Whether the results in an update hold this graph's list.

    An agent or a summarizer returns a history: its results hold old lists, or those of a worker.
    """
    if "todos" in update:
        return _list_in(update) is None  # an operation, whose list is in the result
    return not any(isinstance(message, AIMessage) for message in _messages_in(update))


def _asked(followed: Followed, interrupts: Sequence[Any]) -> Followed:
    for asked in interrupts:
        value = getattr(asked, "value", None)
        if is_mapping(value) and value.get("type") == "todo_continue":
            return replace(followed, countdown="", notice=one_line(str(value.get("question"))))
    return followed


def _after_messages(followed: Followed, messages: list[object], *, has_lists: bool) -> Followed:
    for message in messages:
        if isinstance(message, AIMessage):
            # Middleware may send the same answer again, for example after a person approved it.
            again = message.id is not None and message.id == followed.answer
            calls = tuple(call["id"] for call in message.tool_calls)
            followed = replace(
                followed,
                turn=calls,
                answer=message.id,
                settled=followed.settled if again else -1,
                saying=(None, ""),
                open=tuple(
                    (c["id"], short_call(c["name"], c["args"], followed.views))
                    for c in message.tool_calls
                ),
                commands=tuple(
                    (c["id"], c["args"].get("command"))
                    for c in message.tool_calls
                    if c["name"] not in TOOLS
                ),
                outputs=(),
            )
        elif isinstance(message, ToolMessage):
            todos, call = list_after(message) if has_lists else None, message.tool_call_id
            followed = replace(
                followed,
                open=tuple(each for each in followed.open if each[0] != call),
                outputs=tuple(each for each in followed.outputs if each.call != call),
            )
            if todos is not None:
                position = followed.turn.index(call) if call in followed.turn else -1
                followed = _settle(followed, position, todos)
    return followed


_AFTER = {"custom": _after_event, "values": _after_values, "updates": _after_updates}
