"""What the tools and the loop write to the custom stream (`stream_mode="custom"`)."""

from typing import Any, Literal

from typing_extensions import TypedDict

from todo_tools._formats import TodosFormat, in_format
from todo_tools._formatting import format_in_progress, format_incomplete, format_status
from todo_tools._todos import TodoItem

__all__ = [
    "ContinueQuestion",
    "CountdownEvent",
    "LoopEvent",
    "Outcome",
    "TodosEvent",
    "continue_question",
    "countdown_event",
    "todos_event",
]

Outcome = Literal[
    "no_todos",
    "finished",
    "aborted",
    "refused",
    "ended_elsewhere",
    "stop_condition",
    "limit_in_a_row",
    "limit_in_turn",
    "stalled",
    "out_of_steps",
    "declined",
]
"""Why the loop stopped.

`ended_elsewhere`: another middleware ended the run, for example a limit on model calls; `stalled`:
the agent was sent back several times and called no tool; `out_of_steps`: the run came near
LangGraph's `recursion_limit`; `declined`: a person answered no when
asked whether to continue.
"""


_ACTION = "Items remain. Continue?"  # the heading of the question in agent-chat-ui
_DECISIONS = ("approve", "edit", "reject", "respond")


class TodosEvent(TypedDict):
    """The list has changed."""

    type: Literal["todos"]
    todos: list[TodoItem]
    """The whole list after the change, in the agent's `todos_format`."""
    status: str
    """The status line, such as `📋 2/5`; empty without todos."""
    in_progress: list[str]
    """The items in progress, each as `[index] text`."""
    position: int
    """The place of the call in the model's turn, from 0. LangGraph runs the calls of a turn at the
    same time, so events may overtake each other: the one with the highest position is the last."""
    turn: str | None
    """The id of the AI message with the call, which says which events are of one turn."""


class CountdownEvent(TypedDict):
    """A second of the grace period before a continuation begins."""

    type: Literal["todo_countdown"]
    seconds: int
    """Seconds left, counted down to 1."""
    text: str
    """The countdown as a line for the user, without what the user can do about it: that depends on
    where it is shown."""


class LoopEvent(TypedDict):
    """The loop has decided, after an answer without a tool call."""

    type: Literal["todo_loop"]
    outcome: Outcome | None
    """Why the loop stopped; `None` when the agent is sent back to work."""
    in_a_row: int
    """Continuations since the list last changed or the user last spoke."""
    in_turn: int
    """Continuations since the user's last message."""
    text: str
    """A notice for the user when a limit was reached or the provider refused the answer; otherwise
    empty."""


class ContinueQuestion(TypedDict):
    """The value of the interrupt before a continuation (`AutoContinue(ask=True)`)."""

    type: Literal["todo_continue"]
    question: str
    """What the person is asked, and how to answer."""
    todos: list[TodoItem]
    """The whole list, in the agent's `todos_format`."""
    status: str
    """The status line."""
    action_requests: list[dict[str, Any]]
    """The question in the form of LangChain's human-in-the-loop middleware (`HITLRequest`), which
    interfaces such as agent-chat-ui show with buttons: one action, with an empty `message` for the
    person to fill in."""
    review_configs: list[dict[str, Any]]
    """The decisions that this form allows."""


def todos_event(
    todos: list[TodoItem],
    position: int = 0,
    todos_format: TodosFormat = "todo_tools",
    *,
    turn: str | None = None,
) -> TodosEvent:
    """Describe a changed list."""
    return {
        "type": "todos",
        "todos": in_format(todos, todos_format),
        "status": format_status(todos),
        "in_progress": format_in_progress(todos),
        "position": position,
        "turn": turn,
    }


def countdown_event(seconds: int) -> CountdownEvent:
    """Describe a second of the grace period."""
    text = f"⏳ Auto-continuing in {seconds}s..."
    return {"type": "todo_countdown", "seconds": seconds, "text": text}


def continue_question(
    todos: list[TodoItem], *, problem: str = "", todos_format: TodosFormat = "todo_tools"
) -> ContinueQuestion:
    """Ask whether to continue.

    Args:
        todos: The whole list.
        problem: Why the answer before could not be read, where the question is repeated.
        todos_format: The format of the list in the question.
    """
    question = "Items remain. Continue? Answer yes, no, or with a message of your own."
    if problem:
        question = f"That could not be read. {problem} {question}"
    status = format_status(todos)
    description = "\n\n".join([question, status, format_incomplete(todos)])
    action = {"name": _ACTION, "args": {"message": ""}, "description": description}
    return {
        "type": "todo_continue",
        "question": question,
        "todos": in_format(todos, todos_format),
        "status": status,
        "action_requests": [action],
        "review_configs": [{"action_name": _ACTION, "allowed_decisions": list(_DECISIONS)}],
    }
