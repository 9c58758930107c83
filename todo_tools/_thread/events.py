"""Define the events that the tools and the loop send to the stream (`stream_mode="custom"`)."""

from typing import Any, Literal

from typing_extensions import TypedDict

from todo_tools._list.formatting import format_in_progress, format_line, format_status
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
"""The reason why the loop stopped; the page "Why it stopped" of the documentation has a table."""


_ACTION = "Items remain. Continue?"  # the heading of the question in agent-chat-ui


class TodosEvent(TypedDict):
    """A tool has changed the list."""

    type: Literal["todos"]
    todos: list[TodoItem]
    status: str
    """The status line, such as `📋 2/5`; empty if there are no todos."""
    in_progress: list[str]
    """The items in progress, each as `[index] text`."""
    position: int
    """The position of the call in its AI message. LangGraph runs these calls in parallel, so the
    event with the highest position of a turn has the final list."""
    turn: str | None
    """The id of the AI message with the call."""


class CountdownEvent(TypedDict):
    """One second of the grace period before a continuation begins."""

    type: Literal["todo_countdown"]
    seconds: int
    """The seconds left; the last event has 1."""
    text: str
    """The countdown as a line, which does not say how to stop it: that depends on the interface."""


class LoopEvent(TypedDict):
    """The loop has decided whether to continue after an answer without a tool call."""

    type: Literal["todo_loop"]
    outcome: Outcome | None
    """`None` if the agent is sent back to work."""
    in_a_row: int
    in_turn: int
    text: str
    """The notice for the user; empty if there is none."""


class ContinueQuestion(TypedDict):
    """The value of the interrupt before a continuation (`AutoContinue(ask=True)`)."""

    type: Literal["todo_continue"]
    question: str
    todos: list[TodoItem]
    status: str
    action_requests: list[dict[str, Any]]
    """The question as a `HITLRequest` of LangChain, which agent-chat-ui shows with buttons. It has
    one action, with an empty `message` that the person can fill in."""
    review_configs: list[dict[str, Any]]


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
    lines = "\n".join(format_line(*item) for item in incomplete(todos))
    description = "\n\n".join([question, status, lines])
    action = {"name": _ACTION, "args": {"message": ""}, "description": description}
    decisions = ["approve", "edit", "reject", "respond"]
    return {
        "type": "todo_continue",
        "question": question,
        "todos": [todo.copy() for todo in todos],
        "status": status,
        "action_requests": [action],
        "review_configs": [{"action_name": _ACTION, "allowed_decisions": decisions}],
    }
