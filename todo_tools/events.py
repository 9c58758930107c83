"""What the tools and the loop write to the custom stream (`stream_mode="custom"`)."""

from typing import Literal

from typing_extensions import TypedDict

from todo_tools._formats import TodosFormat, in_format
from todo_tools._formatting import format_in_progress, format_status
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
    "declined",
]
"""Why the loop stopped.

`ended_elsewhere`: another middleware ended the run, for example a limit on model calls; `stalled`:
the agent was sent back several times and called no tool; `declined`: a person answered no when
asked whether to continue.
"""


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
    """The place of the call in the model's turn, from 0. Where LangGraph runs the calls of a turn
    in threads, events may overtake each other: the one with the highest position is the last."""


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
    """A notice for the user when a limit was reached; otherwise empty."""


class ContinueQuestion(TypedDict):
    """The value of the interrupt before a continuation (`AutoContinue(ask=True)`)."""

    type: Literal["todo_continue"]
    question: str
    """What the person is asked, and how to answer."""
    todos: list[TodoItem]
    """The whole list, in the agent's `todos_format`."""
    status: str
    """The status line."""


def todos_event(
    todos: list[TodoItem], position: int = 0, todos_format: TodosFormat = "todo_tools"
) -> TodosEvent:
    """Describe a changed list."""
    return {
        "type": "todos",
        "todos": in_format(todos, todos_format),
        "status": format_status(todos),
        "in_progress": format_in_progress(todos),
        "position": position,
    }


def countdown_event(seconds: int) -> CountdownEvent:
    """Describe a second of the grace period."""
    text = f"⏳ Auto-continuing in {seconds}s..."
    return {"type": "todo_countdown", "seconds": seconds, "text": text}


def continue_question(
    todos: list[TodoItem], *, repeated: bool = False, todos_format: TodosFormat = "todo_tools"
) -> ContinueQuestion:
    """Ask whether to continue; once more, if the answer could not be read."""
    question = "Items remain. Continue? Answer yes, no, or with a message of your own."
    return {
        "type": "todo_continue",
        "question": f"That could not be read. {question}" if repeated else question,
        "todos": in_format(todos, todos_format),
        "status": format_status(todos),
    }
