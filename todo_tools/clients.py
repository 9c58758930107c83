"""The list in the format that LangChain's clients read.

Interfaces made for LangChain's own todo middleware, such as deep-agents-ui, read `todos` as items
with `content` and one of three statuses. A state that keeps its list in this format is shown right
by them; the tools, the view and the loop read either format.
"""

from typing import Any, NotRequired, cast

# pydantic accepts only this TypedDict before 3.12
from typing_extensions import TypedDict

from todo_tools._todos import (
    STATUSES,
    ClientStatus,
    TodoItem,
    TodoStatus,
    is_list,
    is_mapping,
    validate_todos,
)

__all__ = ["ClientStatus", "ClientTodo", "from_client_todos", "to_client_todos"]


class ClientTodo(TypedDict):
    """An item as LangChain's clients read it."""

    content: str
    """The text; of an abandoned item followed by `(abandoned)`."""
    status: ClientStatus
    """How far it is; `completed` for an abandoned item."""
    abandoned: NotRequired[bool]
    """True for an abandoned item, a status that these clients do not have."""


def to_client_todos(todos: list[TodoItem]) -> list[ClientTodo]:
    """Convert todos to the format of LangChain's clients.

    Example:
        ```python
        client_todos = to_client_todos([{"text": "Measure", "status": "not_started"}])
        assert client_todos == [{"content": "Measure", "status": "pending"}]
        ```
    """
    return [_to_client(todo) for todo in todos]


def from_client_todos(todos: object) -> list[TodoItem]:
    """Read a list in the format of LangChain's clients, in the pack's own, or in both.

    Args:
        todos: The value of a `todos` channel, or what a client sends to it.

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
    return validate_todos([_from_client(item) for item in todos] if is_list(todos) else todos)


def _to_client(todo: TodoItem) -> ClientTodo:
    row = STATUSES[todo["status"]]
    item = {"content": todo["text"] + row.client_suffix, "status": row.client}
    # A key of its own name marks a status that these clients do not have.
    return cast("ClientTodo", {**item, todo["status"]: True} if row.client_suffix else item)


def _from_client(item: Any) -> Any:
    """Convert one item; anything else is returned unchanged, for the validation to reject."""
    if not is_mapping(item) or not isinstance(item.get("content"), str):
        return item
    content, status = item["content"], str(item.get("status"))
    for name, row in STATUSES.items():
        if row.client_suffix and item.get(name):
            # The item still has this status, unless a client has given it another one.
            kept = name if status == row.client else _status_of(status)
            return {"text": content.removesuffix(row.client_suffix), "status": kept}
    return {"text": content, "status": _status_of(status)}


def _status_of(client_status: str) -> TodoStatus | str:
    """The status that these clients call `client_status`; itself where there is none."""
    for name, row in STATUSES.items():
        if row.client == client_status and not row.client_suffix:
            return name
    return client_status
