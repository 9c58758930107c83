"""Format lists of either format as text; these two functions are for applications."""

from collections.abc import Sequence

from todo_tools._list import formatting
from todo_tools._list.formats import ClientTodo, from_client
from todo_tools._list.todos import TodoItem


def format_todos(todos: Sequence[TodoItem | ClientTodo]) -> str:
    """Format a list in the same way as the tools do for the model.

    Args:
        todos: The items in order, in this library's format or in that of LangChain's clients.

    Returns:
        A line `icon [index] text` for each item, or `No todos`.

    Example:
        ```python
        text = format_todos([{"text": "Write tests", "status": "in_progress"}])
        assert text == "● [0] Write tests"
        ```
    """
    return formatting.format_todos([from_client(todo) for todo in todos])


def format_status(todos: Sequence[TodoItem | ClientTodo]) -> str:
    """Format the progress of a list in a few characters.

    Args:
        todos: The items in order, in this library's format or in that of LangChain's clients.

    Returns:
        `📋 2/5` if 2 of 5 items are finished (abandoned items count as finished),
        `✓ Done (5 items)` if all are finished, and an empty string if there are no todos.

    Example:
        ```python
        assert format_status([{"text": "Write tests", "status": "in_progress"}]) == "📋 0/1"
        ```
    """
    return formatting.format_status([from_client(todo) for todo in todos])
