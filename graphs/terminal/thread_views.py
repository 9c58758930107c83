"""Views of threads: their checkpoints, their branches, and a list of threads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langgraph.types import StateSnapshot

from graphs.terminal.commands import CommandError
from graphs.terminal.lines import said
from graphs.terminal.question import argument_rows
from graphs.terminal.spoken import spoken
from graphs.terminal.thread import redone_items, tips
from graphs.terminal.tool_views import call_view, result_view
from todo_tools import TodoItem
from todo_tools._thread.state import loop_in
from todo_tools.rendering import show_status, show_todos
from todo_tools.rendering.lowlevel import Followed, Line, Span, View, changes, one_line
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import details_of, is_from_user, is_injected, last_user_message

_BRIEF_CHARACTERS = 56
_MOST_OF_A_DIFF = 2_000


def history_view(way: Sequence[StateSnapshot]) -> View:
    """Show checkpoints, numbered from 1: what happened, and which items changed."""
    lines = list[Line]()
    before: StateSnapshot | None = None
    for number, snapshot in enumerate(way, start=1):
        todos = todos_in(snapshot.values)
        lines.append(_row(number, " ", (Span(_happened(before, snapshot)),)))
        known = todos_in(before.values) if before else []
        lines += _beneath(changes(Followed(known), Followed(todos)))
        before = snapshot
    return View(tuple(lines))


def branches_view(history: Sequence[StateSnapshot]) -> View:
    """Show the branches, each with its list; the current one and items done again are marked."""
    lines = list[Line]()
    redone = redone_items(history)
    for number, tip in tips(history).items():
        todos = todos_in(tip.values)
        messages = messages_in(tip.values)
        at = last_user_message(messages)
        said = f" {_brief(messages[at].text)}" if at is not None else ""
        mark = "▸" if tip is history[0] else " "
        lines.append(_row(number, mark, (*_status(todos), Span(said, "muted"))))
        lines += _beneath(_marked_items(todos, redone[number]))
    return View(tuple(lines))


def _marked_items(todos: list[TodoItem], redone: Mapping[str, list[int]]) -> Iterator[Line]:
    """The lines of a list; each item that was done again says in which branches."""
    lines = show_todos(todos).lines  # an empty list has a line, too
    for todo, line in zip(todos, lines, strict=False):
        again = " and ".join(map(str, redone.get(todo["text"], [])))
        mark = (Span(f"  ← done again on branch {again}", "accent"),) if again else ()
        yield replace(line, body=(*line.body, *mark))


def threads_view(newest: Sequence[StateSnapshot]) -> View:
    """Show threads, one a line: time of last use, id, status, the user's first message."""
    lines = list[Line]()
    for snapshot in newest:
        name = str(snapshot.config.get("configurable", {}).get("thread_id", ""))
        said = next((m.text for m in messages_in(snapshot.values) if is_from_user(m)), "")
        lead = (Span(f"  {_time(snapshot)}"), Span(f"  {one_line(name)}", "accent"), Span("  "))
        status = _status(todos_in(snapshot.values))
        lines.append(Line((*status, Span(f" {_brief(said)}", "muted")), lead))
    return View(tuple(lines))


def last_exchange(state: Mapping[str, Any]) -> Iterator[Line | View]:
    """The user's last message, and the agent's answer."""
    messages = messages_in(state)
    at = last_user_message(messages)
    if at is None:
        return
    for line in messages[at].text.splitlines():
        yield Line((Span(one_line(line), "muted"),), (Span("› ", "accent", plain="> "),))  # noqa: RUF001
    answers = [m.text for m in messages[at:] if isinstance(m, AIMessage) and m.text.strip()]
    if answers:
        yield spoken(answers[-1])


def whole_result(messages: Sequence[BaseMessage], number: int) -> Iterator[Line]:
    """A call and its result in full; 1 is the newest. Results that are lists do not count.

    Raises:
        CommandError: There is no such result.
    """
    asked = dict[str | None, ToolCall]()
    found = list[tuple[ToolCall, ToolMessage]]()
    for message in messages:
        if isinstance(message, AIMessage):
            asked = {call["id"]: call for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in asked:
            found += [(asked[message.tool_call_id], message)] * (details_of(message) is None)
    if not 1 <= number <= len(found):
        raise CommandError(f"no result {number}; there are {len(found)}")
    call, result = found[-number]
    yield Line((Span(one_line(call["name"]), "accent", bold=True),), (Span("→ ", plain="-> "),))
    yield from argument_rows(call)
    yield from result_view(result).lines


def diff_lines(diff: str) -> Iterator[Line]:
    """The first lines of git's output, with colours; a model may have written what is in it."""
    tokens: dict[str, Literal["success", "error", "accent"]]
    tokens = {"+": "success", "-": "error", "@": "accent"}
    lines = diff.removesuffix("\n").split("\n")
    for line in lines[:_MOST_OF_A_DIFF]:
        yield Line((Span(one_line(line), tokens.get(line[:1], "text")),))
    if more := len(lines[_MOST_OF_A_DIFF:]):
        yield from said(f"{more:,} more lines; !git diff shows all")


def _time(snapshot: StateSnapshot) -> str:
    """When a checkpoint was made, in local time."""
    if not snapshot.created_at:
        return " " * len("2026-01-01 00:00")
    return datetime.fromisoformat(snapshot.created_at).astimezone().strftime("%Y-%m-%d %H:%M")


def _row(number: int, mark: str, body: tuple[Span, ...]) -> Line:
    return Line(body, (Span(mark, "success", plain=mark.strip() and ">"), _number_span(number)))


def _number_span(number: int) -> Span:
    return Span(f"{number:>3}  ", "accent")


def _beneath(lines: Iterable[Line]) -> Iterator[Line]:
    return (replace(line, lead=(Span(" " * 6), *line.lead)) for line in lines)


def _status(todos: list[TodoItem]) -> tuple[Span, ...]:
    return (show_status(todos).lines or show_todos(todos).lines)[0].spans


def _happened(before: StateSnapshot | None, snapshot: StateSnapshot) -> str:
    """What led to a checkpoint, in a few words."""
    if (snapshot.metadata or {}).get("source") == "update":
        same = before is not None and todos_in(before.values) == todos_in(snapshot.values)
        return "copied here" if same else "list edited by hand"
    messages = messages_in(snapshot.values)
    if before is not None and len(messages) == len(messages_in(before.values)):
        outcome = loop_in(snapshot.values).get("outcome")
        return f"stopped: {outcome}" if outcome else "the list changed"
    return _said(messages[-1]) if messages else "the beginning"


def _said(message: BaseMessage) -> str:
    if is_injected(message):
        return "↻ sent back to work"
    if isinstance(message, ToolMessage):
        first, *rest = message.text.splitlines() or [""]
        return _brief(f"│ {message.name}: {first}{' …' if rest else ''}")
    if isinstance(message, AIMessage):
        calls = [f"{call_view(call['name'], call['args']).lines[0]}" for call in message.tool_calls]
        return _brief(" → ".join(["💬 " + message.text if message.text else "", *calls]).strip())
    return _brief(f"› {message.text}")  # noqa: RUF001  the mark of the prompt


def _brief(text: str) -> str:
    first, _, further = text.partition("\n")
    shown = one_line(first)
    cut = further or len(shown) > _BRIEF_CHARACTERS
    return f"{shown[:_BRIEF_CHARACTERS]}…" if cut else shown
