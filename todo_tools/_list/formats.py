"""The two formats of a list: this package's, and the one that LangChain's clients read.

Inside this package, a list always has the first format. Input may have either format.
"""

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, cast, get_args

from typing_extensions import TypedDict

from todo_tools._list.todos import (
    STATUSES,
    ClientStatus,
    TodoItem,
    TodoStatus,
    are_todos,
    is_blank,
    is_list,
    is_mapping,
    validate_todos,
)

TodosFormat = Literal["todo_tools", "langchain"]
"""The format of an agent's lists: this package's, or that of LangChain's clients."""


class ClientTodo(TypedDict):
    """An item in the format of LangChain's clients."""

    content: str
    """The text; a status that these clients do not have is appended, as in ` (abandoned)`."""
    status: ClientStatus
    """The status; of those that these clients have, the one nearest to the item's."""
    abandoned: NotRequired[bool]
    """True if the item is abandoned; these clients have no such status."""


def require_format(value: object) -> None:
    """Raise ValueError if a setting is not the name of a format."""
    allowed = " or ".join(map(repr, get_args(TodosFormat)))
    if value not in get_args(TodosFormat):
        raise ValueError(f"todos_format must be {allowed}, got {value!r}")


def to_client(todo: TodoItem) -> ClientTodo:
    """Convert one item to the format of LangChain's clients."""
    row = STATUSES[todo["status"]]
    item = {"content": todo["text"] + row.client_suffix, "status": row.client}
    # The status name as a key marks a status that these clients do not have.
    return cast("ClientTodo", {**item, todo["status"]: True} if row.client_suffix else item)


def from_client(item: Any) -> Any:
    """Convert one item; return anything else unchanged, so that the validation refuses it."""
    if not is_mapping(item) or not isinstance(item.get("content"), str):
        return item
    content, status = item["content"], str(item.get("status"))
    for name, row in STATUSES.items():
        if row.client_suffix and item.get(name):
            # The item still has this status, unless a client has given it another one.
            kept = name if status == row.client else _status_of(status)
            return _item(content.removesuffix(row.client_suffix), kept)
    return _item(content, _status_of(status))


def _item(text: str, status: str) -> dict[str, str]:
    return {"text": "(no text)" if is_blank(text) else text, "status": status}


def read_todos(stored: object) -> list[TodoItem] | None:
    """Convert a list of either format without its invalid items; `None` if it has no other."""
    if are_todos(stored):
        return stored
    if not is_list(stored):
        return None
    items = [todo for item in stored if are_todos([todo := from_client(item)])]
    return items or None


def _status_of(client_status: str) -> TodoStatus | str:
    """Return the status for a client status; return an unknown one unchanged."""
    for name, row in STATUSES.items():
        if row.client == client_status and not row.client_suffix:
            return name
    return client_status


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
    """Convert todos from the format of LangChain's clients; items in this package's format stay."""
    return validate_todos([from_client(item) for item in todos] if is_list(todos) else todos)


def own_format(stored: object) -> list[TodoItem]:
    """Convert the list of a channel to this package's format; do not copy it if it has it."""
    if are_todos(stored):
        return stored
    return from_client_todos(stored)
