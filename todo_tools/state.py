"""The checkpointed state of a thread, and functions that read it.

A state may be a dict or an object with attributes.
"""

from todo_tools._list.todos import validate_todos
from todo_tools._thread.channels import LoopState, TodosUpdate, add_messages_batch
from todo_tools._thread.state import (
    ClientTodoState,
    DeltaTodoState,
    TodoState,
    loop_in,
    messages_in,
    todos_in,
)

__all__ = [
    "ClientTodoState",
    "DeltaTodoState",
    "LoopState",
    "TodoState",
    "TodosUpdate",
    "add_messages_batch",
    "loop_in",
    "messages_in",
    "todos_in",
    "validate_todos",
]
