"""Define the events that the tools and the loop send to the stream (`stream_mode="custom"`)."""

from typing import Any, Literal

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
"""The reason why the loop ended; the page "Why it stopped" of the documentation has a table."""

_ACTION = "Items remain. Continue?"  # the heading of the question in agent-chat-ui


def todos_event(
    todos: list[TodoItem], position: int = 0, *, turn: str | None = None
) -> dict[str, Any]:
    """Create the event for a changed list; in a `turn`, the highest `position` has the last."""
    return {
        "type": "todos",
        "todos": [todo.copy() for todo in todos],
        "status": format_status(todos),
        "in_progress": format_in_progress(todos),
        "position": position,
        "turn": turn,
    }


def countdown_event(seconds: int) -> dict[str, Any]:
    """Create the event for one second of the grace period; the interface says how to stop it."""
    text = f"⏳ Auto-continuing in {seconds}s..."
    return {"type": "todo_countdown", "seconds": seconds, "text": text}


def continue_question(todos: list[TodoItem], *, problem: str = "") -> dict[str, Any]:
    """Create the question, also a `HITLRequest` of LangChain; `problem`: of the last reply."""
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
