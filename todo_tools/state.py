"""The checkpointed state of a thread, and functions that read it.

A state may be a dict or an object with attributes.
"""

from todo_tools._list.todos import validate_todos
from todo_tools._thread.state import TodoList, TodoLoop, TodoOutcome, messages_in, todos_in

__all__ = [
    "TodoList",
    "TodoLoop",
    "TodoOutcome",
    "messages_in",
    "todos_in",
    "validate_todos",
]
