"""The checkpointed state of a thread: its channels for any state class, and how to read them."""

from todo_tools._list.todos import validate_todos
from todo_tools._thread.events import Outcome
from todo_tools._thread.state import TodoList, TodoLoop, TodoOutcome, todos_in

__all__ = ["Outcome", "TodoList", "TodoLoop", "TodoOutcome", "todos_in", "validate_todos"]
