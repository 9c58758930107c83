"""The list in the format that LangChain's clients read.

Interfaces made for LangChain's own todo middleware, such as deep-agents-ui, read `todos` as items
with `content` and one of three statuses. An agent whose lists have this format is shown right by
them: `TodoMiddleware(todos_format="langchain")`, or a graph whose state is `ClientTodoState`. The
library reads either format.
"""

from todo_tools._formats import ClientTodo, TodosFormat, from_client, to_client
from todo_tools._todos import ClientStatus, TodoItem, is_list, validate_todos

__all__ = ["ClientStatus", "ClientTodo", "TodosFormat", "from_client_todos", "to_client_todos"]


def to_client_todos(todos: list[TodoItem]) -> list[ClientTodo]:
    """Convert todos to the format of LangChain's clients.

    Example:
        ```python
        client_todos = to_client_todos([{"text": "Measure", "status": "not_started"}])
        assert client_todos == [{"content": "Measure", "status": "pending"}]
        ```
    """
    return [to_client(todo) for todo in todos]


def from_client_todos(todos: object) -> list[TodoItem]:
    """Read a list in the format of LangChain's clients, in the pack's own, or in both.

    Args:
        todos: The value of a `todos` channel, an event or an artifact, or what a client sends.

    Returns:
        A copy in the pack's own format.

    Raises:
        ValueError: It is neither; says which item, what was given, what is allowed.

    Example:
        ```python
        todos = from_client_todos([{"content": "Measure", "status": "pending"}])
        assert todos == [{"text": "Measure", "status": "not_started"}]
        ```
    """
    return validate_todos([from_client(item) for item in todos] if is_list(todos) else todos)
