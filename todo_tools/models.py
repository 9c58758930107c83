"""The todo, its statuses, the limits and what a tool tells besides its text.

Plain data and its validation; nothing here knows of LangChain.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NotRequired, TypeGuard, get_args

# pydantic builds LangGraph's JSON schemas from these and accepts only this TypedDict before 3.12
from typing_extensions import TypedDict

TodoStatus = Literal["not_started", "in_progress", "completed", "abandoned"]
"""What a todo can be: `not_started` and `in_progress` are incomplete, the other two finished."""

STATUSES: tuple[TodoStatus, ...] = get_args(TodoStatus)
INCOMPLETE = frozenset[TodoStatus]({"not_started", "in_progress"})


class TodoItem(TypedDict):
    """One item of the list, as it stands in the state."""

    text: str
    """What is to be done: 1 to 1,000 characters, not only white space."""
    status: TodoStatus
    """How far it is."""


class TodoDetails(TypedDict):
    """What a tool result carries besides its text, in `ToolMessage.artifact`."""

    action: Literal["write", "list", "edit"]
    """Which of the three tools answered."""
    todos: list[TodoItem]
    """The whole list after a change; empty for `list` and for errors, which change nothing."""
    error: NotRequired[str]
    """Short form of the error, only when the call was refused."""


def require_whole_number(name: str, value: object, *, minimum: int) -> None:
    """Refuse a setting that is not a whole number of at least `minimum`.

    Raises:
        TypeError: `value` is not an `int`.
        ValueError: `value` is smaller than `minimum`.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}; give {minimum} or more")
    if value < minimum:
        raise ValueError(f"{name} must be {minimum} or more, got {value}")


@dataclass(frozen=True, kw_only=True, slots=True)
class TodoLimits:
    """How much a model may write.

    Args:
        max_todos: Items in a list, at least 1.
        max_text_length: Characters in the text of an item, at least 1.
        max_indices: Indices in one `edit_todos` call, at least 1.

    Raises:
        TypeError: A limit is not a whole number.
        ValueError: A limit is smaller than 1.
    """

    max_todos: int = 100
    max_text_length: int = 1000
    max_indices: int = 50

    def __post_init__(self) -> None:
        for field in fields(self):
            require_whole_number(field.name, getattr(self, field.name), minimum=1)


DEFAULT_LIMITS = TodoLimits()

# For lists that the tools wrote within limits of their own: only their shape is in doubt.
ANY_LENGTH = TodoLimits(max_todos=10**9, max_text_length=10**9)


def incomplete(todos: list[TodoItem]) -> list[tuple[int, TodoItem]]:
    """The items that are neither completed nor abandoned, each with its index."""
    return [(index, todo) for index, todo in enumerate(todos) if todo["status"] in INCOMPLETE]


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value is a dict of some kind, for values that anyone may have made."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a list, for values that anyone may have made."""
    return isinstance(value, list)


def is_blank(text: str) -> bool:
    """Whether a text says nothing: the one rule that tools and state share about texts."""
    return not text.strip()


def validate_todos(value: object, limits: TodoLimits = DEFAULT_LIMITS) -> list[TodoItem]:
    """Check a whole list that comes from the application and return a copy of it.

    Args:
        value: What should be a list of `TodoItem`.
        limits: How long the list and its texts may be.

    Returns:
        New dicts in a new list, so that no caller can change the state afterwards.

    Raises:
        ValueError: `value` is not such a list; says which item, what is wrong, what is allowed.
    """
    if not is_list(value):
        raise ValueError(f"todos must be a list of todo items, got {type(value).__name__}")
    if len(value) > limits.max_todos:
        raise ValueError(
            f"todos has {len(value)} items, at most {limits.max_todos} are allowed; "
            "a larger list needs TodoLimits and todo_tools.state.todos_reducer"
        )
    return [_validate_item(index, item, limits) for index, item in enumerate(value)]


def _validate_item(index: int, item: object, limits: TodoLimits) -> TodoItem:
    if not is_mapping(item) or set(item) != {"text", "status"}:
        shown = sorted(map(str, item))[:5] if is_mapping(item) else type(item).__name__
        raise ValueError(
            f"todos[{index}] must be a dict with exactly 'text' and 'status', got {shown}"
        )
    text, status = item["text"], item["status"]
    if not isinstance(text, str) or is_blank(text) or len(text) > limits.max_text_length:
        given = f"{len(text)} characters" if isinstance(text, str) else type(text).__name__
        raise ValueError(
            f"todos[{index}]['text'] must be a string of 1 to {limits.max_text_length} "
            f"characters, not only white space, got {given}"
        )
    if status not in STATUSES:
        raise ValueError(
            f"todos[{index}]['status'] must be one of {', '.join(STATUSES)}, "
            f"got {str(status)[:40]!r}"
        )
    return {"text": text, "status": status}
