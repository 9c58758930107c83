"""Decide which items run next, what has ended, and what an item is told; pure."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Annotated, Any, NotRequired
from uuid import uuid4

from langgraph.channels.delta import DeltaChannel
from typing_extensions import TypedDict

from todo_tools._list.formatting import format_line, one_line
from todo_tools._list.todos import TodoItem, TodoStatus, incomplete
from todo_tools._thread.state import DeltaTodoState, TodoState, messages_in, todos_in
from todo_tools._thread.transcript import is_from_user

_REQUESTS, _AROUND, _REPORTS, _WHOLE = 5, 20, 20, 3
_LONG, _SHORT = 2000, 400


class ItemReport(TypedDict):
    """What became of a run of an item; an item that is done again has two reports."""

    text: str
    status: TodoStatus  # completed or abandoned
    report: str  # the last answer of the agent; empty if an error ended its first attempt
    reasons: list[str]  # why attempts failed: what the check said, or the error
    calls: int  # answers of the model in the conversation, without those of subagents
    tokens: int  # sent and received, as far as these answers report them
    seconds: float  # from the start to the end, with retries and the wait for a person


class Job(TypedDict):
    """A run that was handed out; the node that carries it out also gets its prompt."""

    id: str
    index: int
    item: TodoItem
    started: float
    prompt: NotRequired[str]


Reports = dict[str, ItemReport]


def _all_merged(reports: Reports, updates: Sequence[Reports]) -> Reports:
    return {key: report for each in (reports, *updates) for key, report in each.items()}


def _merged(reports: Reports, new: Reports) -> Reports:
    return _all_merged(reports, [new])


class ItemsState(TodoState):
    """`TodoState` with the reports by the ids of the runs, and what was handed out last."""

    reports: NotRequired[Annotated[Reports, _merged]]
    running: NotRequired[list[Job]]


class DeltaItemsState(DeltaTodoState):
    """`ItemsState` for hundreds of items: each checkpoint stores only the changes."""

    reports: NotRequired[Annotated[Reports, DeltaChannel(_all_merged)]]
    running: NotRequired[list[Job]]


def reports_in(state: Mapping[str, Any]) -> Reports:
    """Return the reports of a state."""
    return state.get("reports") or {}


def places_of_jobs(state: Mapping[str, Any]) -> dict[int, Job]:
    """Find what was handed out; an item that a person changed or removed is not found."""
    todos, found = todos_in(state), dict[int, Job]()
    jobs: list[Job] = state.get("running") or []
    for job in jobs:
        same = [at for at, each in enumerate(todos) if each == job["item"] and at not in found]
        found |= dict.fromkeys(sorted(same, key=lambda at: abs(at - job["index"]))[:1], job)
    return found


def next_jobs(
    state: Mapping[str, Any], at_once: int, now: float
) -> tuple[list[TodoItem], list[Job]]:
    """Return the list with the ticks of the runs that ended, and the runs to hand out now."""
    after, jobs = [todo.copy() for todo in todos_in(state)], list[Job]()
    for at, job in places_of_jobs(state).items():
        if report := reports_in(state).get(job["id"]):
            after[at]["status"] = report["status"]
    # First those in progress, which a person has changed or begun.
    for at, todo in sorted(incomplete(after), key=lambda each: each[1]["status"])[:at_once]:
        todo["status"] = "in_progress"
        jobs.append(Job(id=str(uuid4()), index=at, item=todo.copy(), started=now))
    return after, jobs


def item_prompt(state: Mapping[str, Any], index: int) -> str:
    """Write the message that begins the run of an item; its size does not grow with the list.

    It has the user's last five messages, 20 items on each side, and the last 20 reports: the newest
    three with up to 2,000 characters each, the others with up to 400.

    Example:
        ```python
        def prompt(state: ItemsState, index: int) -> str:
            return item_prompt(state, index) + " Use centimetres."
        ```
    """
    requests = [each.text for each in messages_in(state) if is_from_user(each)][-_REQUESTS:]
    reports = [*reports_in(state).values()][-_REPORTS:]
    sizes = [_LONG if at + _WHOLE >= len(reports) else _SHORT for at in range(len(reports))]
    todos, first = todos_in(state), max(index - _AROUND, 0)
    lines = [*map(format_line, count(first), todos[first : index + _AROUND + 1])]
    parts = [
        *(["The whole request:", *requests, ""] if requests else []),
        f"Its {len(todos)} items; the first is [0]:",
        *lines,
        "",
        *(["What earlier items reported:", *map(_told, reports, sizes), ""] if reports else []),
        f"Do only this item: {lines[index - first]}",
        "End with a short report of what later items need. Ask only if you cannot go on.",
    ]
    return "\n".join(parts)


def _told(report: ItemReport, size: int) -> str:
    """Write a report, cut to a size; at the end of a line, if that leaves at least half of it."""
    is_done = report["status"] == "completed"
    text = report["report"] if is_done else f"not done: {' '.join(report['reasons'][-1:])}"
    if len(text) > size:
        end = text.rfind("\n", size // 2, size)
        text = f"{text[: size if end < 0 else end]} …"
    return f"- {one_line(report['text'])}: {text}"
