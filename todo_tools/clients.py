"""The list in the words of LangChain's clients.

Interfaces made for LangChain's own todo middleware, such as deep-agents-ui, read `todos` as items
with `content` and one of three statuses. A state that keeps its list in these words is shown right
by them; the tools, the view and the loop read either form.
"""

from typing import Any, Literal, NotRequired

# pydantic accepts only this TypedDict before 3.12
from typing_extensions import TypedDict

from todo_tools.models import (
    DEFAULT_LIMITS,
    TodoItem,
    TodoLimits,
    TodoStatus,
    is_list,
    is_mapping,
    validate_todos,
)

ClientStatus = Literal["pending", "in_progress", "completed"]

_CLIENT_STATUS: dict[TodoStatus, ClientStatus] = {
    "not_started": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
    "abandoned": "completed",  # they know no fourth; the content says what it is
}
_STATUS: dict[str, TodoStatus] = {
    "pending": "not_started",
    "in_progress": "in_progress",
    "completed": "completed",
}
_ABANDONED = " (abandoned)"


class ClientTodo(TypedDict):
    """An item as LangChain's clients read it."""

    content: str
    """The text; of an abandoned item followed by `(abandoned)`."""
    status: ClientStatus
    """How far it is, in their words; `completed` for an abandoned item."""
    abandoned: NotRequired[bool]
    """True for an abandoned item, which they do not know."""


def to_client_todos(todos: list[TodoItem]) -> list[ClientTodo]:
    """Say a list in the words of LangChain's clients.

    Example:
        >>> to_client_todos([{"text": "Measure", "status": "not_started"}])
        [{'content': 'Measure', 'status': 'pending'}]
    """
    return [_to_client(todo) for todo in todos]


def from_client_todos(todos: object, limits: TodoLimits = DEFAULT_LIMITS) -> list[TodoItem]:
    """Read a list in their words, or in ours, or in both.

    Args:
        todos: What stands in the `todos` channel, or what a client sends to it.
        limits: How long the list and its texts may be.

    Returns:
        The list in our words.

    Raises:
        ValueError: It is neither; says which item, what was given, what is allowed.
    """
    read = [_from_client(item) for item in todos] if is_list(todos) else todos
    return validate_todos(read, limits)


def _to_client(todo: TodoItem) -> ClientTodo:
    status = _CLIENT_STATUS[todo["status"]]
    if todo["status"] == "abandoned":
        return {"content": todo["text"] + _ABANDONED, "status": status, "abandoned": True}
    return {"content": todo["text"], "status": status}


def _from_client(item: Any) -> Any:
    """An item in our words; what is no item of theirs is left for the validation to judge."""
    if not is_mapping(item) or not isinstance(item.get("content"), str):
        return item
    content, status = item["content"], str(item.get("status"))
    if not item.get("abandoned"):
        return {"text": content, "status": _STATUS.get(status, status)}
    # Still abandoned, unless a client has given it another status.
    status = "abandoned" if status == "completed" else _STATUS.get(status, status)
    return {"text": content.removesuffix(_ABANDONED), "status": status}
