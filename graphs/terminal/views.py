"""Views of a thread: its checkpoints, its branches, and its last exchange."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.types import StateSnapshot

from graphs.terminal.lines import said
from graphs.terminal.run_lines import text_lines
from graphs.terminal.thread import moments, tips
from todo_tools import TodoItem
from todo_tools.rendering import show_call, show_status, show_todos
from todo_tools.rendering.lowlevel import Line, Span, one_line
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import is_from_user

_BRIEF_CHARACTERS = 56


def history_lines(history: Sequence[StateSnapshot]) -> Iterator[Line]:
    """The checkpoints of this branch, numbered from 1: what happened, and which items changed."""
    before: StateSnapshot | None = None
    yield from () if history else said("No checkpoints yet.")
    for number, snapshot in enumerate(moments(history), start=1):
        yield _row(number, " ", (Span(_happened(before, snapshot)),))
        known = todos_in(before.values) if before else []
        yield from _beneath(_changed(known, todos_in(snapshot.values)))
        before = snapshot


def _changed(before: list[TodoItem], after: list[TodoItem]) -> Iterator[Line]:
    """The items that are new or have another status, and the status of the list."""
    if before != after:
        old = show_todos(before).lines
        yield from (line for line in show_todos(after).lines if line not in old)
        yield from show_status(after).lines


def branch_lines(history: Sequence[StateSnapshot]) -> Iterator[Line]:
    """The branches, each with its last message and its list; the current one is marked."""
    yield from () if history else said("No branches yet.")
    for number, tip in tips(history).items():
        todos, messages = todos_in(tip.values), messages_in(tip.values)
        last = next((each for each in reversed(messages) if is_from_user(each)), None)
        message = f"  {_brief(last.text)}" if last else ""
        mark = "▸" if tip is history[0] else " "
        yield _row(number, mark, (*_status(todos), Span(message, "muted")))
        yield from _beneath(show_todos(todos).lines if todos else ())


def last_exchange(state: Mapping[str, Any]) -> Iterator[Line]:
    """The user's last message, and the agent's answer."""
    messages = messages_in(state)
    asked = [at for at, message in enumerate(messages) if is_from_user(message)]
    if asked:
        at = asked[-1]
        for line in messages[at].text.splitlines():
            yield Line((Span(one_line(line), "muted"),), (Span("> ", "accent"),))
        answers = [m.text for m in messages[at:] if isinstance(m, AIMessage) and m.text.strip()]
        yield from text_lines(answers[-1]) if answers else ()


def _row(number: int, mark: str, body: tuple[Span, ...]) -> Line:
    lead = Span(mark, "success", plain=mark.strip() and ">")
    return Line(body, (lead, Span(f"{number:>3}  ", "accent")))


def _beneath(lines: Iterable[Line]) -> Iterator[Line]:
    return (replace(line, lead=(Span(" " * 6), *line.lead)) for line in lines)


def _status(todos: list[TodoItem]) -> tuple[Span, ...]:
    return (show_status(todos).lines or show_todos(todos).lines)[0].spans


def _happened(before: StateSnapshot | None, snapshot: StateSnapshot) -> str:
    """What led to a checkpoint, in a few words."""
    if (snapshot.metadata or {}).get("source") == "update":
        same = before is not None and todos_in(before.values) == todos_in(snapshot.values)
        return "branched here" if same else "list edited by hand"
    messages = messages_in(snapshot.values)
    if before is not None and len(messages) == len(messages_in(before.values)):
        outcome = snapshot.values.get("todo_outcome")
        return f"stopped: {outcome}" if outcome else "the list changed"
    return _said(messages[-1]) if messages else "the beginning"


def _said(message: BaseMessage) -> str:
    if message.additional_kwargs.get("lc_source") == "todo_tools":
        return "↻ sent back to work"
    if isinstance(message, ToolMessage):
        return _brief(f"│ {message.name}: {message.text}")
    if isinstance(message, AIMessage):
        calls = [f"{show_call(call['name'], call['args']).lines[0]}" for call in message.tool_calls]
        return _brief(" → ".join([f"💬 {message.text}" if message.text else "", *calls]).strip())
    return _brief(f"> {message.text}")


def _brief(text: str) -> str:
    first, _, further = text.partition("\n")
    shown = one_line(first)
    cut = further or len(shown) > _BRIEF_CHARACTERS
    return f"{shown[:_BRIEF_CHARACTERS]}…" if cut else shown
