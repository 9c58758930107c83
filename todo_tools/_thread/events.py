"""Define the events that the tools and the loop send to the stream (`stream_mode="custom"`)."""

from typing import Any, Literal

from typing_extensions import TypedDict

from todo_tools._list.formatting import format_in_progress, format_items, format_status
from todo_tools._list.todos import TodoItem, incomplete

Outcome = Literal[
    "no_todos",
    "finished",
    "aborted",
    "refused",
    "ended_elsewhere",
    "stop_condition",
    "limit_in_a_row",
    "limit_in_turn",
    "answered",
    "stalled",
    "out_of_steps",
    "declined",
]
"""The reason why the loop stopped.

- `no_todos`, `finished`: there is no list, or every item is finished.
- `aborted`, `refused`: the user cut the last answer off, or the provider refused or filtered it.
- `ended_elsewhere`: another middleware ended the run, for example a limit on model calls, or an
  agent that is a node left a tool call open.
- `stop_condition`: `AutoContinue.stop_when` returned true.
- `limit_in_a_row`, `limit_in_turn`: a limit of `AutoContinue` was reached.
- `answered`: the agent has not worked since the user's message: it answered, or needs the user.
- `stalled`: the agent was sent back to work and got no new tool result.
- `out_of_steps`: the run is close to LangGraph's `recursion_limit`.
- `declined`: a person answered no when asked whether to continue.
"""


_ACTION = "Items remain. Continue?"  # the heading of the question in agent-chat-ui
_DECISIONS = ("approve", "edit", "reject", "respond")


class TodosEvent(TypedDict):
    """A tool has changed the list."""

    type: Literal["todos"]
    todos: list[TodoItem]
    """The whole list after the change."""
    status: str
    """The status line, such as `📋 2/5`; empty if there are no todos."""
    in_progress: list[str]
    """The items in progress, each as `[index] text`."""
    position: int
    """The position of the call in its AI message, from 0. LangGraph runs these calls in parallel,
    so events may arrive out of order. The event with the highest position has the final list."""
    turn: str | None
    """The id of the AI message with the call; events of one turn have the same id."""


class CountdownEvent(TypedDict):
    """One second of the grace period before a continuation begins."""

    type: Literal["todo_countdown"]
    seconds: int
    """The seconds left; the last event has 1."""
    text: str
    """The countdown as a line for the user. It does not say how to stop the countdown, because that
    depends on the interface."""


class LoopEvent(TypedDict):
    """The loop has decided whether to continue after an answer without a tool call."""

    type: Literal["todo_loop"]
    outcome: Outcome | None
    """The reason why the loop stopped; `None` if the agent is sent back to work."""
    in_a_row: int
    """Continuations since the list last changed or the user last spoke."""
    in_turn: int
    """Continuations since the user's last message."""
    text: str
    """A notice for the user if a limit was reached or the provider refused the answer; otherwise
    empty."""


class ContinueQuestion(TypedDict):
    """The value of the interrupt before a continuation (`AutoContinue(ask=True)`)."""

    type: Literal["todo_continue"]
    question: str
    """The question to the person, and the possible answers."""
    todos: list[TodoItem]
    """The whole list."""
    status: str
    """The status line."""
    action_requests: list[dict[str, Any]]
    """The question in the format of LangChain's human-in-the-loop middleware (`HITLRequest`), which
    interfaces such as agent-chat-ui show with buttons. It has one action, with an empty `message`
    that the person can fill in."""
    review_configs: list[dict[str, Any]]
    """The decisions that the person can choose from, in the same format."""


def todos_event(todos: list[TodoItem], position: int = 0, *, turn: str | None = None) -> TodosEvent:
    """Create the event for a changed list."""
    return {
        "type": "todos",
        "todos": [todo.copy() for todo in todos],
        "status": format_status(todos),
        "in_progress": format_in_progress(todos),
        "position": position,
        "turn": turn,
    }


def countdown_event(seconds: int) -> CountdownEvent:
    """Create the event for one second of the grace period."""
    text = f"⏳ Auto-continuing in {seconds}s..."
    return {"type": "todo_countdown", "seconds": seconds, "text": text}


def continue_question(todos: list[TodoItem], *, problem: str = "") -> ContinueQuestion:
    """Create the question whether to continue; `problem` says why the last answer was invalid."""
    question = "Items remain. Continue? Answer yes, no, or with a message of your own."
    if problem:
        question = f"That could not be read. {problem} {question}"
    status = format_status(todos)
    description = "\n\n".join([question, status, format_items(incomplete(todos))])
    action = {"name": _ACTION, "args": {"message": ""}, "description": description}
    return {
        "type": "todo_continue",
        "question": question,
        "todos": [todo.copy() for todo in todos],
        "status": status,
        "action_requests": [action],
        "review_configs": [{"action_name": _ACTION, "allowed_decisions": list(_DECISIONS)}],
    }
