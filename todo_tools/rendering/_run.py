"""Track the state of a running graph from the chunks of its stream.

The functions have no side effects: they compute the new state from the old one and a chunk. Each
change of the list arrives as an event of the custom stream. The calls of one turn run in parallel,
so their events and results arrive in any order. Each of them names its call, and the list of a
later call is never replaced by that of an earlier one.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage

from todo_tools._answers import format_call
from todo_tools._formatting import one_line
from todo_tools._records import TOOLS
from todo_tools._todos import TodoItem, is_list, is_mapping
from todo_tools.rendering._chunks import Path, parts_of
from todo_tools.rendering._lines import Line, Span, list_lines, note_lines, status_lines
from todo_tools.state import todos_in
from todo_tools.transcript import list_after

KEPT_CHARACTERS = 4_000
"""How much is kept of an answer or an output; the rest of it, from the beginning, is dropped."""


class Output(NamedTuple):
    """The output of a running tool."""

    call: str
    """The id of the call."""
    text: str
    """The end of the output."""
    length: int
    """The number of characters of the whole output."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The state of a run, as far as its stream shows it."""

    todos: list[TodoItem] | None = None
    """The list; `None` before the first one arrives."""
    countdown: str = ""
    """The text of the countdown; empty if none is running."""
    notice: str = ""
    """The reason why the loop stopped, or its question."""
    turn: tuple[str | None, ...] = ()
    """The ids of the tool calls in the model's last answer, in order."""
    answer: str | None = None
    """The id of that answer."""
    settled: int = -1
    """The position of the latest of these calls that has changed the list."""
    saying: tuple[str | None, str] = (None, "")
    """The answer that the model is writing: its id and its text so far."""
    open: tuple[tuple[str | None, str], ...] = ()
    """The running tool calls: the id and the display text of each."""
    commands: tuple[tuple[str | None, object], ...] = ()
    """The id and the `command` argument of each call, to match output that has no call id; the
    calls of the todo tools are left out."""
    outputs: tuple[Output, ...] = ()
    """The latest output of the running tools; the tool that wrote last is the last one."""
    below: tuple[tuple[Path, "Followed"], ...] = ()
    """The states of its subgraphs, parents before children."""
    name: str = ""
    """The name of its agent or, as long as that is not known, of its node."""
    number: int = 1
    """Its number among the subgraphs with that name."""

    @property
    def lists(self) -> tuple[tuple[Path, list[TodoItem]], ...]:
        """The lists of the subgraphs that differ from the list of the graph."""
        known = ((path, each.todos) for path, each in self.below)
        return tuple((path, todos) for path, todos in known if todos and todos != self.todos)

    @property
    def shown(self) -> tuple[list[TodoItem] | None, str, object]:
        """The parts of the state that stay visible after the run."""
        return self.todos, self.countdown or self.notice, self.lists

    @property
    def doing(self) -> tuple[object, ...]:
        """The parts of the state that are visible only during the run."""
        return self.saying[1], self.open, self.outputs


def advance(followed: Followed, chunk: object) -> Followed:
    """Return the state after a chunk; stream modes without the list change nothing."""
    for path, mode, payload in parts_of(chunk):
        if change := _change(mode, payload):
            followed = _at(followed, path, change)
    return followed


def _change(mode: str, payload: Any) -> Callable[[Followed], Followed] | None:
    """Return the function that applies a payload to the state of its graph, if there is one."""
    if mode == "messages":
        return lambda known: _after_piece(known, payload)
    after = _AFTER.get(mode)
    return (lambda known: after(known, payload)) if after and is_mapping(payload) else None


def list_part(followed: Followed) -> tuple[Line, ...]:
    """Draw the list, and below it the lists of subgraphs as a tree."""
    lines = list(() if followed.todos is None else list_lines(followed.todos))
    names = _names(followed)
    for path, todos in followed.lists:
        indent = Span("  " * (len(path) - 1))
        (status,) = status_lines(todos)
        head = (indent, Span("└ ", "dim", plain="` "), Span(f"{names[path]} ", bold=True))
        lines.append(Line(status.body, head))
        lines += (replace(row, lead=(indent, Span("  "), *row.lead)) for row in list_lines(todos))
    return tuple(lines)


def status_part(followed: Followed) -> tuple[Line, ...]:
    """Draw the lines below the list: the status and a notice."""
    note = followed.countdown or followed.notice
    return (*status_lines(followed.todos or []), *note_lines(note))


def changes(before: Followed, after: Followed) -> tuple[Line, ...]:
    """Draw the differences between two states, as lines to print.

    If items only changed their status or were added at the end, only these are drawn; otherwise the
    whole list. Lines of a subgraph begin with its name.
    """
    lines: list[Line] = []
    if after.todos is not None and after.todos != before.todos:
        lines += _changed_rows(before.todos or [], after.todos)
        lines += status_lines(after.todos)
    names, known = _names(after), dict(before.lists)
    for path, todos in after.lists:
        if todos != known.get(path):
            rows = (*_changed_rows(known.get(path, []), todos), *status_lines(todos))
            name = Span(f"{names[path]}: ", "dim")
            lines += (replace(row, lead=(name, *row.lead)) for row in rows)
    note = after.countdown or after.notice
    if note != (before.countdown or before.notice):
        lines += note_lines(note)
    return tuple(lines)


def _changed_rows(before: list[TodoItem], after: list[TodoItem]) -> list[Line]:
    rows = list_lines(after)
    kept = [todo["text"] for todo in after[: len(before)]]
    if not after or kept != [todo["text"] for todo in before]:
        return list(rows)
    unchanged = [index < len(before) and before[index] == todo for index, todo in enumerate(after)]
    return [row for row, same in zip(rows, unchanged, strict=True) if not same]


def _names(followed: Followed) -> dict[Path, str]:
    """Name each subgraph; add a number if several have the same name."""
    return {
        path: one_line(f"{each.name} {each.number}" if each.number > 1 else each.name)
        for path, each in followed.below
    }


def _at(followed: Followed, path: Path, change: Callable[[Followed], Followed]) -> Followed:
    """Apply a change to the state of the graph or subgraph at a path."""
    if not path:
        return change(followed)
    below = dict(followed.below)
    before = below.get(path) or Followed()
    after = change(before)
    # A graph without an agent's name inherits the metadata of the agent above it.
    above = {
        followed.name,
        *(each.name for at, each in below.items() if path[: len(at)] == at != path),
    }
    name = path[-1].partition(":")[0] if not after.name or after.name in above else after.name
    if name != before.name:
        others = [each.number for each in below.values() if each.name == name]
        after = replace(after, number=max(others, default=0) + 1)
    below[path] = replace(after, name=name)
    return replace(followed, below=tuple(_as_tree(below)))


def _as_tree(below: Mapping[Path, Followed], above: Path = ()) -> Iterator[tuple[Path, Followed]]:
    """Yield each subgraph before its own subgraphs, in the order of their first chunks."""
    depth = len(above)
    steps = dict.fromkeys(path[: depth + 1] for path in below if path[:depth] == above)
    for step in steps:
        if len(step) > depth:
            if step in below:
                yield step, below[step]
            yield from _as_tree(below, step)


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
                    (c["id"], format_call(c["name"], c["args"])) for c in message.tool_calls
                ),
                commands=tuple(
                    (c["id"], c["args"].get("command"))
                    for c in message.tool_calls
                    if c["name"] not in TOOLS
                ),
                outputs=(),
            )
        elif isinstance(message, ToolMessage):
            todos, call = list_after(message), message.tool_call_id
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
