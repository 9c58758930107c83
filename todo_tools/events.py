"""The events that the tools and the loop send to the custom stream (`stream_mode="custom"`)."""

from todo_tools._thread.events import (
    ContinueQuestion,
    CountdownEvent,
    LoopEvent,
    Outcome,
    TodosEvent,
    todos_event,
)

__all__ = [
    "ContinueQuestion",
    "CountdownEvent",
    "LoopEvent",
    "Outcome",
    "TodosEvent",
    "todos_event",
]
