"""What a live view shows of a running graph, told from the chunks of its stream.

Pure: a chunk and what was shown before give what is shown after. Each change of the list arrives
as an event of the custom stream. Calls of one turn run at the same time, so their events may
arrive in any order; the updates of the step, which name the call they answer, then set it right.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolMessage

from todo_tools._formatting import one_line
from todo_tools._todos import TodoItem, is_list, is_mapping
from todo_tools.rendering._lines import Line, list_lines, note_lines, status_lines
from todo_tools.state import todos_in
from todo_tools.transcript import list_after


@dataclass(frozen=True, slots=True)
class Followed:
    """What is known of a run."""

    todos: list[TodoItem] | None = None
    """The list; `None` before the first one."""
    countdown: str = ""
    """The seconds until the agent is sent back to work, while they are counted."""
    notice: str = ""
    """Why the loop stopped, or what it asks."""
    turn: tuple[str | None, ...] = ()
    """The ids of the calls of the model's last turn, in order."""
    settled: tuple[int, list[TodoItem]] | None = None
    """The last of them that has changed the list, and the list after it."""

    @property
    def shown(self) -> tuple[list[TodoItem] | None, str]:
        """What there is to see of it."""
        return self.todos, self.countdown or self.notice


def advance(followed: Followed, chunk: object) -> Followed:
    """What is known after a chunk of any stream mode; other modes and subgraphs change nothing."""
    for mode, payload in _parts(chunk):
        if mode == "custom" and is_mapping(payload):
            followed = _after_event(followed, payload)
        elif mode == "values" and is_mapping(payload):
            followed = _with_list(followed, payload)
        elif mode == "updates" and is_mapping(payload):
            followed = _after_updates(followed, payload)
    return followed


def status_part(followed: Followed) -> tuple[Line, ...]:
    """What stands below the list."""
    todos, note = followed.shown
    return (*status_lines(todos or []), *note_lines(note))


def changes(before: Followed, after: Followed) -> tuple[Line, ...]:
    """What is new since, as lines to print one below the other.

    Where items only moved on or were added at the end, those; otherwise the whole list.
    """
    lines: list[Line] = []
    if after.todos is not None and after.todos != before.todos:
        lines += _changed_rows(before.todos or [], after.todos)
        lines += status_lines(after.todos)
    if after.shown[1] != before.shown[1]:
        lines += note_lines(after.shown[1])
    return tuple(lines)


def _changed_rows(before: list[TodoItem], after: list[TodoItem]) -> list[Line]:
    rows = list_lines(after)
    kept = [todo["text"] for todo in after[: len(before)]]
    if not after or kept != [todo["text"] for todo in before]:
        return list(rows)
    unchanged = [index < len(before) and before[index] == todo for index, todo in enumerate(after)]
    return [row for row, same in zip(rows, unchanged, strict=True) if not same]


def _parts(chunk: Any) -> Iterator[tuple[str, Any]]:
    """The mode and payload of a chunk, in each form that LangGraph gives it."""
    match chunk:
        case ((), payload):  # stream(..., subgraphs=True)
            yield from _parts(payload)
        case ((), mode, payload) | (str() as mode, payload):
            yield mode, payload
        case {"type": str() as mode, "ns": (), "data": payload}:  # stream(..., version="v2")
            yield mode, payload
        case tuple() | {"ns": _}:  # a subgraph, or a mode that tells nothing of the list
            return
        case {"type": str()}:
            yield "custom", chunk
        case {"messages": _}:
            yield "values", chunk
        case _:
            yield "updates", chunk


def _after_event(followed: Followed, event: Mapping[str, Any]) -> Followed:
    match event:
        case {"type": "todos"}:
            return replace(_with_list(followed, event), countdown="", notice="")
        case {"type": "todo_countdown", "text": str(text)}:
            return replace(followed, countdown=text, notice="")
        case {"type": "todo_loop", "text": str(text)}:
            return replace(followed, countdown="", notice=text)
        case _:
            return followed


def _with_list(followed: Followed, holder: Mapping[str, Any]) -> Followed:
    todos = _list_in(holder)
    return followed if todos is None else replace(followed, todos=todos)


def _list_in(holder: Mapping[str, Any]) -> list[TodoItem] | None:
    """The list in an event or update; `None` for what another library put there."""
    if not is_list(holder.get("todos")):
        return None
    try:
        return todos_in(holder)
    except ValueError:
        return None


def _after_updates(followed: Followed, updates: Mapping[str, Any]) -> Followed:
    if "__interrupt__" in updates:
        return _asked(followed, updates["__interrupt__"])
    for update in updates.values():
        for part in cast("list[object]", update) if is_list(update) else [update]:
            if is_mapping(part):
                followed = _with_list(followed, part)
                followed = _after_messages(followed, part.get("messages"))
    return followed


def _asked(followed: Followed, interrupts: Sequence[Any]) -> Followed:
    for asked in interrupts:
        value = getattr(asked, "value", None)
        if is_mapping(value) and value.get("type") == "todo_continue":
            return replace(followed, countdown="", notice=one_line(str(value.get("question"))))
    return followed


def _after_messages(followed: Followed, messages: object) -> Followed:
    for message in cast("list[object]", messages) if is_list(messages) else [messages]:
        if isinstance(message, AIMessage):
            calls = tuple(call["id"] for call in message.tool_calls)
            followed = replace(followed, turn=calls, settled=None)
        elif isinstance(message, ToolMessage):
            followed = _after_result(followed, message)
    return followed


def _after_result(followed: Followed, result: ToolMessage) -> Followed:
    todos = list_after(result)
    if todos is None:
        return followed
    position = followed.turn.index(result.tool_call_id) if _known(followed, result) else -1
    if followed.settled is None or position >= followed.settled[0]:
        return replace(followed, todos=todos, settled=(position, todos))
    return replace(followed, todos=followed.settled[1])


def _known(followed: Followed, result: ToolMessage) -> bool:
    return result.tool_call_id in followed.turn
