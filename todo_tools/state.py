"""The checkpointed state of a thread: its channels for any state class, and how to read them."""

from todo_tools._list.todos import validate_todos
from todo_tools._thread.state import TodoList, TodoLoop, TodoOutcome, messages_in, todos_in

__all__ = ["TodoList", "TodoLoop", "TodoOutcome", "messages_in", "todos_in", "validate_todos"]
