"""Convert lists to and from the format of LangChain's clients.

Interfaces made for LangChain's own todo middleware, such as deep-agents-ui, read `todos` as items
with `content` and one of three statuses. They can show an agent's list if the agent stores it in
this format. To do so, use `TodoMiddleware(todos_format="langchain")`, or a graph whose state is
`ClientTodoState`. The library reads both formats.
"""

from collections.abc import Sequence

from todo_tools._list.formats import ClientTodo, TodosFormat, from_client, to_client
from todo_tools._list.todos import ClientStatus, TodoItem, is_list, validate_todos

__all__ = ["ClientStatus", "ClientTodo", "TodosFormat", "from_client_todos", "to_client_todos"]


def to_client_todos(todos: Sequence[TodoItem | ClientTodo]) -> list[ClientTodo]:
    """Convert todos to the format of LangChain's clients; items in that format stay.

    Example:
        ```python
        client_todos = to_client_todos([{"text": "Measure", "status": "not_started"}])
        assert client_todos == [{"content": "Measure", "status": "pending"}]
        ```
    """
    return [to_client(from_client(todo)) for todo in todos]


def from_client_todos(todos: object) -> list[TodoItem]:
    """Convert todos from the format of LangChain's clients; items in this library's format stay.

    Args:
        todos: A list from a `todos` channel, an event, an artifact or a client.

    Returns:
        A copy in this library's format.

    Raises:
        ValueError: `todos` is not such a list; the error names the item and the allowed values.

    Example:
        ```python
        todos = from_client_todos([{"content": "Measure", "status": "pending"}])
        assert todos == [{"text": "Measure", "status": "not_started"}]
        ```
    """
    return validate_todos([from_client(item) for item in todos] if is_list(todos) else todos)
