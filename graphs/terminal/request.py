"""The input that a program sends to its thread: a checklist, or nothing to resume it."""

import errno
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.types import StateSnapshot

from graphs.terminal.options import UnusableInputError
from graphs.terminal.session import Session
from todo_tools import TodoItem, TodoLimits
from todo_tools.checklist import command_in, read_checklist
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import details_of, is_from_user

_DEMO = Path(__file__).with_name("checklist.md")
_LIMITS = TodoLimits()
_OPEN = ("not_started", "in_progress")


def read_plan(source: str | None, *, resuming: bool) -> str | None:
    """The checklist as text; `None` if the thread is resumed unchanged."""
    if source is None and resuming:
        return None
    name = {None: str(_DEMO), "-": "standard input"}.get(source, source)
    try:
        plan = _text_of(source)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UnusableInputError(f"cannot read {name}: {reason}") from None
    steps = read_checklist(plan)
    if not steps:
        raise UnusableInputError(f"{name} has no open step, for example '- [ ] Build it: `make`'")
    if len(steps) > _LIMITS.max_todos:
        raise UnusableInputError(f"{name} has {len(steps)} steps, at most {_LIMITS.max_todos} fit")
    if any(len(step) > _LIMITS.max_text_length for step in steps):
        raise UnusableInputError(
            f"{name} has a step of more than {_LIMITS.max_text_length} characters"
        )
    return plan


def request_of(
    snapshot: StateSnapshot, plan: str | None, session: Session
) -> dict[str, Any] | None:
    """What to send to the thread: a new checklist, or `None` to resume where it stopped."""
    messages: list[BaseMessage] = snapshot.values.get("messages", [])
    thread = session.thread
    # A person may have opened an item again, or added one, also before the first message.
    is_open = bool(_opened(snapshot.values))
    if not (messages or is_open):
        if plan is None:
            raise UnusableInputError(f"there is no thread {thread!r} to resume; give a checklist")
        return _beginning(plan, session)
    asked = (message.text for message in reversed(messages) if is_from_user(message))
    latest = next(filter(read_checklist, asked), "")
    # `next` would be empty if all results of a step are stored but its checkpoint is not.
    is_in_a_step = bool(snapshot.tasks)
    unfinished = is_open or snapshot.values["todo_loop"].get("outcome") != "finished"
    if plan is not None and plan != latest:
        if not (is_in_a_step or is_open or (latest and unfinished)):
            return _beginning(plan, session)
        if not _is_the_same(plan, latest, snapshot.values):
            raise UnusableInputError(
                f"thread {thread!r} is still working on another list, or the checklist has "
                "changed; resume the thread without one, or name another --thread"
            )
    # A limit stopped the loop, and a message resets it; or nobody has asked for anything yet.
    if not messages or (unfinished and not is_in_a_step):
        return {"messages": [("user", "Go on.")]}
    return None


def _text_of(source: str | None) -> str:
    if source == "-" and not sys.stdin:
        raise OSError(errno.EBADF, "it is closed")
    # Many containers have no locale; `sys.stdin` then takes bytes that are not UTF-8.
    given = sys.stdin.fileno() if source == "-" else source or _DEMO
    with open(given, encoding="utf-8-sig", closefd=source != "-") as file:
        return file.read()


def _is_the_same(plan: str, latest: str, state: Mapping[str, Any]) -> bool:
    """Whether a checklist is the thread's own; boxes of finished items may be ticked now.

    The model would not read any other change that a person made.
    """
    before, after = Counter(read_checklist(latest)), Counter(read_checklist(plan))
    closed = _texts(todo for todo in todos_in(state) if todo["status"] not in _OPEN)
    return _without_marks(plan) == _without_marks(latest) and after <= before <= after + closed


def _without_marks(checklist: str) -> str:
    return checklist.replace("[x]", "[ ]").replace("[X]", "[ ]")


def commandless_steps(plan: str | None, state: Mapping[str, Any]) -> list[str]:
    """The open steps that have no command whose success could be checked."""
    steps = _opened(state) if plan is None else read_checklist(plan)
    return [step for step in steps if command_in(step) is None]


def _opened(state: Mapping[str, Any]) -> list[str]:
    return [todo["text"] for todo in todos_in(state) if todo["status"] in _OPEN]


def dropped_steps(state: Mapping[str, Any]) -> list[str]:
    """The steps of the newest checklist that the model abandoned and then left out of the list."""
    messages = messages_in(state)
    asked = [at for at, m in enumerate(messages) if is_from_user(m) and read_checklist(m.text)]
    since = messages[asked[-1] if asked else len(messages) :]
    dropped = Counter[str]()
    written = (todos for message in since if (todos := _written(message)) is not None)
    for before, after in pairwise(written):
        given_up = _texts(todo for todo in before if todo["status"] == "abandoned")
        dropped |= given_up & (_texts(before) - _texts(after))
    steps = Counter(read_checklist(since[0].text) if since else [])
    return [*(dropped & (steps - _texts(todos_in(state))))]


def _written(message: AnyMessage) -> list[TodoItem] | None:
    """The list in a result that changed it."""
    details = details_of(message)
    if details is None or "error" in details or details["action"] == "list":
        return None
    return details["todos"]


def _texts(todos: Iterable[TodoItem]) -> Counter[str]:
    return Counter(todo["text"] for todo in todos)


def _beginning(plan: str, session: Session) -> dict[str, Any]:
    """Return the input for a checklist, with one todo for each step, so that any model finds them.

    If plans need approval, the list is empty: the agent could start its items without asking.
    """
    steps = [] if session.ask_plan else read_checklist(plan)
    todos: list[TodoItem] = [{"text": step, "status": "not_started"} for step in steps]
    return {"messages": [("user", plan)], "todos": todos}
