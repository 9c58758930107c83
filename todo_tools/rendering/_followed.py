"""Follow the state of a running graph and its subgraphs, as far as its stream shows it.

Nothing here has side effects: a new state is computed from the old one and a chunk. The calls of
one turn run in parallel, so their events and results arrive in any order. Each of them names its
call, and the list of a later call is never replaced by that of an earlier one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list.formatting import one_line
from todo_tools._list.todos import TodoItem, incomplete, is_list, is_mapping
from todo_tools._thread.state import todos_in
from todo_tools._thread.transcript import list_after
from todo_tools.rendering._chunks import Path, parts_of
from todo_tools.rendering._tool_view import ToolView, ToolViews, short_call

KEPT_CHARACTERS = 4_000
"""How many characters of an answer or an output are kept; only its end is."""

_NOTICES = {
    None: "↻ Sent back to work",
    "aborted": "Ended: the answer was cut off",
    "answered": "Ended: the agent answered",
    "declined": "Ended: the answer was no",
    "ended_elsewhere": "Ended by other middleware",
    "stop_condition": "Ended by stop_when",
}
"""What is said where the loop sends no text; of a finished list, the status says enough."""


class Output(NamedTuple):
    """The output of a running tool: the id of its call, the end of the text, the whole length."""

    call: str
    text: str
    length: int


@dataclass(frozen=True, slots=True)
class Followed:
    """The state of a run, as far as its stream shows it."""

    todos: list[TodoItem] | None = None
    """The list; `None` before the first one arrives."""
    countdown: str = ""
    """The text of the countdown; empty if none is running."""
    notice: str = ""
    """What the loop did last: why it stopped, its question, or that it sent the agent back."""
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
    """The states of its subgraphs, in the order of their first chunks."""
    name: str = ""
    """The name of its agent, as `create_agent` writes it into each answer."""
    item: str = ""
    """The item, such as `[1] Cut`, if an item runner began this conversation for one."""
    unticked: list[TodoItem] | None = None
    """The list as the graph has it, while `todos` has ticks of runs that have just ended."""
    views: ToolViews = field(default_factory=dict[str, ToolView], compare=False)
    """The forms of the application's own tools, by tool name."""

    def after(self, chunk: object) -> "Followed":
        """Return the state after a chunk; stream modes without the list change nothing."""
        followed = self
        for path, mode, payload in parts_of(chunk):
            if mode == "custom":
                followed = _after_run(followed, path, payload)
            if change := _change(mode, payload):
                followed = _changed_at(followed, path, change)
        return followed

    @property
    def lists(self) -> tuple[tuple[str, list[TodoItem]], ...]:
        """The names and lists of the subgraphs that have open items, and not those of the graph."""
        return tuple(
            (one_line(_item(self, path)[1] or each.name or path[-1].partition(":")[0]), each.todos)
            for path, each in self.below
            if each.todos and incomplete(each.todos) and each.todos != self.todos
        )

    @property
    def conversations(self) -> tuple[tuple[str, "Followed"], ...]:
        """The graph itself, without a name, and the conversations of items, named by the item."""
        return ("", self), *((each.item, each) for _, each in self.below if each.item)

    @property
    def shown(self) -> tuple[list[TodoItem] | None, str, object]:
        """The parts of the state that stay visible after the run."""
        return self.todos, self.countdown or self.notice, self.lists

    @property
    def doing(self) -> tuple[object, ...]:
        """The parts of the state that are visible only during the run."""
        return self.saying[1], *((each.open, each.outputs) for _, each in self.conversations)


_Change = Callable[[Followed], Followed]


def _changed_at(followed: Followed, path: Path, change: _Change) -> Followed:
    """Apply a change to the state of the graph or subgraph at a path."""
    below = dict(followed.below)
    place, _ = _item(followed, path)
    if place and path[:-1] == place and path[-1].isdigit():  # a further attempt at the item
        path = place
    before = (below.get(path) or Followed(views=followed.views)) if path else followed
    after = change(before)
    if after.todos is not before.todos:
        # The list that a graph takes from a subgraph would stay below it as a copy.
        taken = [at for at, each in below.items() if each.todos == after.todos]
        for at in taken:
            if at[: len(path)] == path != at:
                del below[at]
    if not path:
        return replace(after, below=tuple(below.items()))
    return replace(followed, below=tuple((below | {path: after}).items()))


def _item(followed: Followed, path: Path) -> tuple[Path, str]:
    """Return the item in whose run a subgraph works, after the path of its conversation."""
    items = ((at, each.item) for at, each in followed.below if each.item)
    return next(((at, item) for at, item in items if path[: len(at)] == at), ((), ""))


def _after_run(followed: Followed, path: Path, event: Any) -> Followed:
    """Name an item's conversation when its run begins; when it ends, forget that, and tick it."""
    match event:
        case {"type": "todo_item", "index": int(at), "text": text, "status": status, "ns": str(ns)}:
            place, begun = tuple(ns.split("|")), {"text": text, "status": "in_progress"}
        case _:
            return followed
    todos = (dict(followed.below).get(path, Followed()) if path else followed).todos
    is_stale = todos is not None and (at not in range(len(todos)) or todos[at] != begun)
    if is_stale or status not in ("in_progress", "completed", "abandoned"):
        return followed
    below = {near: each for near, each in followed.below if near[: len(place)] != place}
    if status == "in_progress":
        below[place] = Followed(views=followed.views, item=one_line(f"[{at}] {text}"))
    followed = replace(followed, below=tuple(below.items()))
    if status == "in_progress" or todos is None:
        return followed
    after = [*todos[:at], TodoItem(text=text, status=status), *todos[at + 1 :]]
    # The graph itself ticks it when all runs that began together have ended.
    return _changed_at(
        followed, path, lambda each: replace(each, todos=after, unticked=each.unticked or todos)
    )


def _change(mode: str, payload: Any) -> _Change | None:
    """Return the function that applies a payload to the state of its graph, if there is one."""
    if mode == "messages":
        return lambda known: _after_piece(known, payload)
    after = _AFTER.get(mode)
    return (lambda known: after(known, payload)) if after and is_mapping(payload) else None


def _after_piece(followed: Followed, payload: Any) -> Followed:
    """Add a piece of the answer that the model is writing."""
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
        case {"type": "todo_loop", "text": str(text), "outcome": None | str() as outcome}:
            return replace(followed, countdown="", notice=text or _NOTICES.get(outcome, ""))
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
    return replace(followed, todos=todos, settled=position, unticked=None)


def _after_values(followed: Followed, values: Mapping[str, Any]) -> Followed:
    """Take the list from a state; ignore an empty list at the beginning."""
    todos = _list_in(values)
    if todos is None or todos == followed.unticked or (not todos and followed.todos is None):
        return followed
    return replace(followed, todos=todos, unticked=None)


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
        case {"messages": [AIMessage(name=str(name)), *_]}:
            followed = replace(followed, name=name)
        case _:
            pass
    for update in updates.values():
        for part in cast("list[object]", update) if is_list(update) else [update]:
            if is_mapping(part):
                followed = _after_messages(_after_values(followed, part), part)
    return followed


def _asked(followed: Followed, interrupts: Sequence[Any]) -> Followed:
    for asked in interrupts:
        match getattr(asked, "value", None):
            case {"type": "todo_question", "item": {"index": at, "text": text}, "question": asks}:
                notice = f"[{at}] {text}: {asks}"
            case {"type": "todo_continue", "question": asks}:
                notice = f"{asks}"
            case _:
                continue
        return replace(followed, countdown="", notice=one_line(notice))
    return followed


def _after_messages(followed: Followed, update: Mapping[str, Any]) -> Followed:
    has_lists = _has_lists(update)
    for message in _messages_in(update):
        if isinstance(message, AIMessage):
            followed = _after_answer(followed, message)
        elif isinstance(message, ToolMessage):
            call = message.tool_call_id
            followed = replace(
                followed,
                open=tuple(each for each in followed.open if each[0] != call),
                outputs=tuple(each for each in followed.outputs if each.call != call),
            )
            if has_lists and (todos := list_after(message)) is not None:
                position = followed.turn.index(call) if call in followed.turn else -1
                followed = _settle(followed, position, todos)
    return followed


def _messages_in(update: Mapping[str, Any]) -> list[object]:
    messages = update.get("messages")
    return cast("list[object]", messages) if is_list(messages) else [messages]


def _has_lists(update: Mapping[str, Any]) -> bool:
    """Whether its results hold this graph's list; a history has old lists, or those of a worker."""
    if "todos" in update:
        return _list_in(update) is None  # an operation, whose list is in the result
    return not any(isinstance(message, AIMessage) for message in _messages_in(update))


def _after_answer(followed: Followed, answer: AIMessage) -> Followed:
    # Middleware may send the same answer again, for example after a person approved it.
    again = answer.id is not None and answer.id == followed.answer
    calls = answer.tool_calls
    return replace(
        followed,
        turn=tuple(call["id"] for call in calls),
        answer=answer.id,
        settled=followed.settled if again else -1,
        saying=(None, ""),
        open=tuple((c["id"], short_call(c["name"], c["args"], followed.views)) for c in calls),
        commands=tuple(
            (c["id"], c["args"].get("command")) for c in calls if c["name"] not in TOOLS
        ),
        outputs=(),
    )


_AFTER = {"custom": _after_event, "values": _after_values, "updates": _after_updates}
