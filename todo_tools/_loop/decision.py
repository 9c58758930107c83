"""Decide whether an agent that stopped calling tools is sent back to work.

The decision has no side effects. Only this module defines the order of the checks and the limits;
the conditional edge and the middleware carry the decision out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from todo_tools._calls.records import TOOLS
from todo_tools._list import prompts
from todo_tools._list.todos import STATUSES, TodoItem, incomplete, mark_of
from todo_tools._loop.policy import AutoContinue
from todo_tools._loop.said import broken_off
from todo_tools._thread.channels import LoopState
from todo_tools._thread.events import Outcome
from todo_tools._thread.notes import note_of
from todo_tools._thread.reading import Entry, Reading
from todo_tools._thread.transcript import is_from_user, is_injected, is_spoken

# The loop needs a few rounds of a model call, its tools and the hooks of other middleware.
_STEPS_NEEDED = 25


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of `decide`: end the loop, or send the agent back to work."""

    loop: LoopState
    """The counters before this decision, reset if the user has spoken."""
    outcome: Outcome | None = None
    """Why the loop ends; `None` sends the agent back to work."""
    worked: bool = False
    """Whether the agent has worked since it was last told something."""
    prompt: str = ""
    """The text of the continuation; empty if the loop ends."""
    mark: str = ""
    """The mark of the list, to note with the continuation."""
    notice: str = ""
    """A notice for the user about the end of the loop; empty if none is needed."""

    @property
    def next_loop(self) -> LoopState:
        """The counters to store."""
        if self.outcome:
            return self.loop
        return {
            **self.loop,
            "in_a_row": self.loop.get("in_a_row", 0) + 1,
            "in_turn": self.loop.get("in_turn", 0) + 1,
            "idle": 0 if self.worked else self.loop.get("idle", 0) + 1,
        }

    @property
    def event(self) -> dict[str, Any]:
        """The decision as an event of the custom stream."""
        loop = self.next_loop
        return {
            "type": "todo_loop",
            "outcome": self.outcome,
            "in_a_row": loop.get("in_a_row", 0),
            "in_turn": loop.get("in_turn", 0),
            "text": self.notice,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What only the caller knows of the end of an answer."""

    by_model: bool = True
    steps_left: int | None = None
    has_tools: bool = True


def heard(loop: LoopState, reading: Reading) -> LoopState:
    """Return the counters with all of them zero if the user has spoken since they were stored."""
    at = reading.last(is_from_user)
    message_id = None if at is None else reading.entries[at].message.id
    if message_id is None or message_id == loop.get("user_message"):
        return loop
    return reset(loop, message_id)


def reset(loop: LoopState, message_id: str) -> LoopState:
    """Return the counters after a message of the user: all are zero."""
    return {**loop, "user_message": message_id, "in_a_row": 0, "in_turn": 0, "idle": 0}


def decide(
    reading: Reading, loop: LoopState, policy: AutoContinue, state: Any, ended: Ended = Ended()
) -> Decision:
    """Decide what happens after an answer without a tool call; `loop` comes from `heard`."""
    todos = reading.todos or []
    if not todos:
        return Decision(loop, "no_todos")
    if not (open_items := incomplete(todos)):
        return Decision(loop, "finished")
    if outcome := _stopped(reading, policy, state, ended):
        return Decision(loop, outcome, notice=_notice(outcome, todos, loop))
    if _has_spoken(reading):
        return Decision(loop, "answered")
    told, mark = _Told.find(reading, loop), mark_of(todos)
    if told.mark not in ("", mark):
        # The application changed the list. Only the todo tools reset the counter themselves.
        loop = {**loop, "in_a_row": 0}
    worked = _has_worked(reading, told)
    if limit := _limit(loop, policy, told, ended.steps_left, worked=worked):
        return Decision(loop, limit, notice=_notice(limit, todos, loop))
    prompt = _prompt(open_items, policy.prompt, has_tools=ended.has_tools)
    return Decision(loop, worked=worked, prompt=prompt, mark=mark)


def _stopped(
    reading: Reading, policy: AutoContinue, state: Any, ended: Ended
) -> Literal["aborted", "refused", "ended_elsewhere", "stop_condition"] | None:
    """Return the outcome if somebody else ended the answer, or the application ends the loop."""
    answers = _last_answers(reading.entries)
    # If middleware added the last answer, the model's answer is one of those before it.
    for answer in answers[:1] if ended.by_model else answers:
        if reason := broken_off(answer):
            return reason
    if not ended.by_model:
        return "ended_elsewhere"
    return "stop_condition" if policy.stop_when and policy.stop_when(state) else None


def _last_answers(entries: Sequence[Entry]) -> list[AIMessage]:
    """Return the last answer and those directly before it, newest first."""
    answers: list[AIMessage] = []
    for entry in reversed(entries):
        if isinstance(entry.message, AIMessage):
            answers.append(entry.message)
        elif answers:
            break
    return answers


def _has_spoken(reading: Reading) -> bool:
    """Whether a person has spoken after the last answer, for example by `update_state`."""
    newest_first = (entry.message for entry in reversed(reading.entries))
    after = takewhile(lambda message: not isinstance(message, AIMessage), newest_first)
    return any(map(is_from_user, after))


@dataclass(frozen=True, slots=True)
class _Told:
    """Where the agent was last told something, as indices of entries; -1 if that was removed."""

    by_user: int
    """The user's message."""
    at: int
    by_person: bool
    """Whether a person was the last to tell it something, and not the loop."""
    mark: str
    """The mark of the list at the loop's last continuation; empty without one."""

    @classmethod
    def find(cls, reading: Reading, loop: LoopState) -> "_Told":
        message_id = loop.get("user_message")
        entries = enumerate(reading.entries) if message_id else ()
        by_user = next((at for at, each in entries if each.message.id == message_id), -1)
        continued = reading.last(is_injected)
        by_loop = -1 if continued is None else continued
        entry = None if continued is None else reading.entries[continued]
        mark = note_of(entry.message).get("mark", "") if entry else ""
        spoken = reading.last(is_spoken)  # also words that came within a run
        by_person = max(by_user, -1 if spoken is None else spoken)
        by_person = _end_of_results(reading.entries, by_person)
        return cls(by_user, max(by_person, by_loop), by_person >= by_loop, mark)


def _end_of_results(entries: Sequence[Entry], at: int) -> int:
    """Return the index of the last entry before the next answer: results of earlier calls."""

    def belongs(entry: Entry) -> bool:
        return not (isinstance(entry.message, AIMessage) or is_injected(entry.message))

    return at + len(list(takewhile(belongs, entries[at + 1 :])))


def _has_worked(reading: Reading, told: _Told) -> bool:
    """Whether the agent has changed the list or got a new result since it was last told something.

    A result of another tool is new if it is no error, and differs in tool, arguments or text from
    all that the agent got before it was told, but after the user's message. So a refused call is no
    work; nor is a look at the list, or a command that gives the same result again.
    """
    since = reading.entries[told.at + 1 :]
    if any(each.changed and note_of(each.message).get("changed", True) for each in since):
        return True
    if any(_used_server_tool(each.message) for each in since):
        return True
    results = list(_results(reading.entries, told.by_user + 1))
    # The results of the last answer are that answer: a structured response, or a tool's own result
    # (`return_direct`). Earlier results of the same tools, such as one with an error, are not work.
    answer = reading.last_answer() or 0
    no_work = {result.tool for at, result in results if at > answer}
    before = {result for at, result in results if at <= told.at}
    return any(
        at > told.at and result not in before and result.tool not in no_work
        for at, result in results
    )


class _Result(NamedTuple):
    """What distinguishes the result of a tool from another."""

    tool: str
    args: str
    text: str


# deepagents names the call, and the file into which it moved the result, before the result's text.
_IN_A_FILE = re.compile(r"\ATool result too large.*?\n\n", re.DOTALL)


def _results(entries: Sequence[Entry], start: int) -> Iterator[tuple[int, _Result]]:
    """Yield each successful result of another tool, with its index."""
    calls: Mapping[str | None, Any] = {}
    for at, entry in enumerate(entries[start:], start):
        message = entry.message
        if isinstance(message, AIMessage):
            calls = {call["id"]: call["args"] for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.name not in TOOLS:
            args = repr(calls.get(message.tool_call_id))
            if message.status != "error":
                yield at, _Result(message.name or "", args, _IN_A_FILE.sub("", message.text))


def _used_server_tool(message: AnyMessage) -> bool:
    """Whether the provider ran a tool of its own within the answer, such as a web search."""
    blocks = message.content_blocks if isinstance(message, AIMessage) else ()
    return any(block["type"] == "server_tool_call" for block in blocks)


def _limit(
    loop: LoopState, policy: AutoContinue, told: _Told, steps_left: int | None, *, worked: bool
) -> Literal["answered", "stalled", "out_of_steps", "limit_in_turn", "limit_in_a_row"] | None:
    if not worked and policy.max_idle is not None and loop.get("idle", 0) >= policy.max_idle:
        return "answered" if told.by_person else "stalled"
    if steps_left is not None and steps_left < _STEPS_NEEDED:
        return "out_of_steps"
    if loop.get("in_turn", 0) >= policy.max_in_turn:
        return "limit_in_turn"
    return "limit_in_a_row" if loop.get("in_a_row", 0) >= policy.max_in_a_row else None


def _notice(outcome: Outcome, todos: list[TodoItem], loop: LoopState) -> str:
    """Return the notice for the user; empty if the user or the application ended the loop."""
    reached = {
        "out_of_steps": "before the recursion limit of this run",
        "limit_in_turn": f"after {_sent(loop.get('in_turn', 0))} for one message",
        "limit_in_a_row": f"after {_sent(loop.get('in_a_row', 0))} without progress",
        "stalled": "because the agent did no work after it was sent back",
        "refused": "after the provider refused or filtered the answer",
    }.get(outcome)
    if reached is None:
        return ""
    left = len(incomplete(todos))
    remain = "1 todo remains" if left == 1 else f"{left} todos remain"
    return f"⚠ Stopped {reached}; {remain}. Send a message to go on."


def _sent(number: int) -> str:
    return "1 continuation" if number == 1 else f"{number} continuations"


def _prompt(open_items: list[tuple[int, TodoItem]], instruction: str, *, has_tools: bool) -> str:
    """Build the text of a continuation; it asks for the work of the most urgent item."""
    index, item = min(open_items, key=lambda entry: STATUSES[entry[1]["status"]].precedence)
    is_started = item["status"] == "in_progress"
    step = prompts.next_step(index, is_started=is_started, has_tools=has_tools)
    return f"{instruction} {step}"
