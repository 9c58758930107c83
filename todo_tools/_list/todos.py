"""Define todos, their statuses and limits, and validate them.

This module does not import LangChain. To add a status, add its name to `TodoStatus` and a row to
`STATUSES`; the other modules read the row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import itemgetter
from typing import Annotated, Any, Literal, NotRequired, TypeGuard

from pydantic import ConfigDict, Field, with_config
from pydantic.dataclasses import dataclass as settings

# pydantic builds LangGraph's JSON schemas from these and accepts only this TypedDict before 3.12
from typing_extensions import TypedDict

TodoStatus = Literal["not_started", "in_progress", "completed", "abandoned"]
"""The status of a todo. `not_started` and `in_progress` are open, the others finished."""

ClientStatus = Literal["pending", "in_progress", "completed"]
"""The status of a todo in LangChain's clients."""

Token = Literal["toolTitle", "text", "dim", "muted", "accent", "warning", "success", "error"]
"""The roles that the specification of the tools gives colours to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """The complete definition of one status. No field has a default, so none can be forgotten."""

    icon: str
    plain_icon: str
    color: Token
    finished: bool
    action: str | None
    done_label: str
    precedence: int
    client: ClientStatus
    client_suffix: str


STATUSES: dict[TodoStatus, Status] = {
    "not_started": Status(
        icon="–",  # noqa: RUF001  the specified icon is an en dash
        plain_icon="[ ]",
        color="dim",
        finished=False,
        action=None,
        done_label="",
        precedence=1,
        client="pending",
        client_suffix="",
    ),
    "in_progress": Status(
        icon="●",
        plain_icon="[>]",
        color="warning",
        finished=False,
        action="start",
        done_label="Started",
        precedence=0,
        client="in_progress",
        client_suffix="",
    ),
    "completed": Status(
        icon="✓",
        plain_icon="[x]",
        color="success",
        finished=True,
        action="complete",
        done_label="Completed",
        precedence=2,
        client="completed",
        client_suffix="",
    ),
    "abandoned": Status(
        icon="✗",
        plain_icon="[-]",
        color="error",
        finished=True,
        action="abandon",
        done_label="Abandoned",
        precedence=2,
        client="completed",
        client_suffix=" (abandoned)",
    ),
}


@with_config(ConfigDict(use_attribute_docstrings=True))
class TodoItem(TypedDict):
    """One item of the list in the state."""

    text: str
    """The task; not empty, and not only white space."""
    status: TodoStatus
    """The status of the task."""


class TodoDetails(TypedDict):
    """The structured part of a tool result, in `ToolMessage.artifact`."""

    action: Literal["write", "list", "edit"]
    """The tool that answered."""
    todos: list[TodoItem]
    """The whole list after a change; empty for `list` and for
    errors, which change nothing."""
    error: NotRequired[str]
    """A short form of the error; present only if the call was refused."""


# Limits for lists from the application; larger input is a mistake or an attack.
MAX_ITEMS = 10_000
MAX_CHARACTERS = 100_000
# No list is that long: a larger index is a mistake, and its digits would fill the error message.
MAX_INDEX = 10**9


def require_whole_number(
    name: str, value: object, *, minimum: int, maximum: int | None = None
) -> None:
    """Raise TypeError or ValueError if a setting is not a whole number in its range."""
    allowed = f"{minimum} or more" if maximum is None else f"{minimum} to {maximum}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}; give {allowed}")
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(f"{name} must be {allowed}, got {value}")


_Count = Annotated[int, Field(ge=1, le=MAX_ITEMS)]


@settings(frozen=True, kw_only=True, slots=True, config=ConfigDict(strict=True, extra="forbid"))
class TodoLimits:
    """Limits for lists that a model writes. They do not apply to lists from the application.

    Args:
        max_todos: The most items in a list, 1 to 10,000.
        max_text_length: The most characters in the text of an item, 1 to 100,000.
        max_indices: The most indices in one `edit_todos` call, 1 to 10,000.
        keep_open: Whether the model must keep open items when it replaces the list. Use it for a
            list that a person gave: the model must abandon an item before it can drop it.

    Raises:
        ValueError: A limit is not a whole number in its range, `keep_open` is not a bool, or there
            is no limit of that name.
    """

    max_todos: _Count = 100
    max_text_length: Annotated[int, Field(ge=1, le=MAX_CHARACTERS)] = 1000
    max_indices: _Count = 50
    keep_open: bool = False


DEFAULT_LIMITS = TodoLimits()


def incomplete(todos: Sequence[TodoItem]) -> list[tuple[int, TodoItem]]:
    """Return the items that are neither completed nor abandoned, each with its index."""
    return [
        (index, todo) for index, todo in enumerate(todos) if not STATUSES[todo["status"]].finished
    ]


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a value of unknown origin is a mapping."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value of unknown origin is a list."""
    return isinstance(value, list)


def is_blank(text: str) -> bool:
    """Whether a text is empty or only white space."""
    return not text.strip()


def is_valid_text(text: object) -> TypeGuard[str]:
    """Whether a value may be the text of an item in the state."""
    return isinstance(text, str) and not is_blank(text) and len(text) <= MAX_CHARACTERS


def is_status(value: object) -> TypeGuard[TodoStatus]:
    """Whether a value is the name of a status."""
    return isinstance(value, str) and value in STATUSES


def are_todos(value: object) -> TypeGuard[list[TodoItem]]:
    """Whether a value is a list of todo items without extra keys."""
    if not is_list(value):
        return False
    # Every model call checks each item of each result in the history. So this works on whole lists,
    # without Python code for a single item.
    try:
        return (
            {*map(type, value)} <= _DICT
            and {*map(len, value)} <= _TWO
            and {*map(type, map(_text_of, value))} <= _STR
            and STATUSES.keys() >= {*map(_status_of, value)}
        )
    except (KeyError, TypeError):  # a key is missing, or a status cannot be hashed
        return False


_DICT, _TWO, _STR = {dict}, {len(TodoItem.__annotations__)}, {str}
_text_of, _status_of = itemgetter("text"), itemgetter("status")


def texts_of(todos: Sequence[TodoItem]) -> list[str]:
    """Return the texts of a list."""
    return [*map(_text_of, todos)]


def mark_of(todos: Sequence[TodoItem]) -> str:
    """Return a short mark of a list; two lists with the same mark are equal."""
    items = "\0".join(f"{todo['status']} {todo['text']}" for todo in todos)
    # Checkpointers store half an emoji as a question mark.
    return sha256(items.encode(errors="replace")).hexdigest()[:16]


def validate_todos(value: object) -> list[TodoItem]:
    """Check a whole list from the application and return a copy of it.

    Args:
        value: A list of `TodoItem`, or of texts of items that are not started: at most 10,000
            items, each text 1 to 100,000 characters and not only white space.

    Returns:
        New dicts in a new list, so that the caller cannot change the state through the old ones.

    Raises:
        ValueError: `value` is not such a list; the error names the item and the allowed values.
    """
    if not is_list(value):
        hint = "; pass its 'todos'" if is_mapping(value) and "todos" in value else ""
        raise ValueError(f"todos must be a list of todo items, got {type(value).__name__}{hint}")
    if len(value) > MAX_ITEMS:
        raise ValueError(f"todos has {len(value)} items, at most {MAX_ITEMS} are allowed")
    return [_validate_item(index, item) for index, item in enumerate(value)]


def _validate_item(index: int, given: object) -> TodoItem:
    new = {"text": given} if isinstance(given, str) else given
    item = {"status": "not_started", **new} if is_mapping(new) else new
    if not is_mapping(item) or set(item) != {"text", "status"}:
        shown = sorted(map(str, item))[:5] if is_mapping(item) else type(item).__name__
        raise ValueError(
            f"todos[{index}] must be a text or a dict with 'text' and 'status', got {shown}; "
            "give for example {'text': 'Measure', 'status': 'not_started'}"
        )
    text, status = item["text"], item["status"]
    if not is_valid_text(text):
        shown = f"{len(text)} characters" if isinstance(text, str) else type(text).__name__
        raise ValueError(
            f"todos[{index}]['text'] must be a string of 1 to {MAX_CHARACTERS} "
            f"characters, not only white space, got {shown}"
        )
    if not is_status(status):
        raise ValueError(
            f"todos[{index}]['status'] must be one of {', '.join(STATUSES)}, "
            f"got {str(status)[:40]!r}"
        )
    return {"text": text, "status": status}
