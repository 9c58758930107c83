"""The two formats of a list: this library's, and the one that LangChain's clients read.

Inside the library a list has the library's format. Lists of either format are read; a list leaves
the library, in events, artifacts and questions, through `in_format`.
"""

from typing import Any, Literal, NotRequired, Self, cast, get_args

from langgraph.channels import BinaryOperatorAggregate

# pydantic accepts only this TypedDict before 3.12
from typing_extensions import TypedDict

from todo_tools._todos import STATUSES, ClientStatus, TodoItem, TodoStatus, is_mapping, is_todo

TodosFormat = Literal["todo_tools", "langchain"]
"""The format of an agent's lists: this library's, or that of LangChain's clients."""


class _LangChain(str):
    """A string that is `langchain` without arguments, since a channel begins with such a value."""

    __slots__ = ()

    def __new__(cls, value: str = "langchain") -> Self:
        return super().__new__(cls, value)


def _constant(value: _LangChain, _: _LangChain) -> _LangChain:
    return value


LANGCHAIN_FORMAT = BinaryOperatorAggregate(_LangChain, _constant)
"""A channel that tells the tools and the loop the format of a state; its value never changes."""


class ClientTodo(TypedDict):
    """An item as LangChain's clients read it."""

    content: str
    """The text; of an abandoned item followed by `(abandoned)`."""
    status: ClientStatus
    """How far it is; `completed` for an abandoned item."""
    abandoned: NotRequired[bool]
    """True for an abandoned item, a status that these clients do not have."""


def require_format(value: object) -> None:
    """Refuse a setting that is not the name of a format.

    Raises:
        TypeError: `value` is not a string.
        ValueError: `value` names no format.
    """
    allowed = " or ".join(map(repr, get_args(TodosFormat)))
    if not isinstance(value, str):
        raise TypeError(f"todos_format must be {allowed}, got {value!r}")
    if value not in get_args(TodosFormat):
        raise ValueError(f"todos_format must be {allowed}, got {value!r}")


def in_format(todos: list[TodoItem], todos_format: TodosFormat) -> list[TodoItem]:
    """The list as it leaves the library.

    Typed in the library's own format, so that the many who use that one can read it without a cast.
    """
    if todos_format == "todo_tools":
        return todos
    return cast("list[TodoItem]", [to_client(todo) for todo in todos])


def to_client(todo: TodoItem) -> ClientTodo:
    """Convert one item to the format of LangChain's clients."""
    row = STATUSES[todo["status"]]
    item = {"content": todo["text"] + row.client_suffix, "status": row.client}
    # A key of its own name marks a status that these clients do not have.
    return cast("ClientTodo", {**item, todo["status"]: True} if row.client_suffix else item)


def from_client(item: Any) -> Any:
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


def read_todo(item: object) -> TodoItem | None:
    """An item of either format in the library's own; `None` for anything else."""
    todo = item if is_todo(item) else from_client(item)
    return todo if is_todo(todo) else None


def _status_of(client_status: str) -> TodoStatus | str:
    """The status that these clients call `client_status`; itself where there is none."""
    for name, row in STATUSES.items():
        if row.client == client_status and not row.client_suffix:
            return name
    return client_status
