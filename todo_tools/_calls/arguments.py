"""Parse the arguments that a model wrote for a tool call.

Besides the exact form, these are accepted:

- a list as a JSON string;
- a todo as a bare string, or with its text in `content`;
- a whole number as a numeric string;
- one index without a list.

Anything else raises a `CallError`, whose message never repeats a long argument.
"""

import json
import re
import reprlib
from collections.abc import Sequence

from todo_tools._list.todos import MAX_INDEX, is_list, is_mapping


class CallError(Exception):
    """The error for a refused call: a message for the model and a short form for the details."""

    def __init__(self, message: str, short: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.short = short or message


def read_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Read a string that must be one of `choices`."""
    allowed = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
    if value is None:
        raise CallError(f"'{name}' is required: {allowed}", f"{name} required")
    if not isinstance(value, str) or value not in choices:
        raise CallError(f"unknown {name} {brief(value)}; use {allowed}", f"unknown {name}")
    return value


def read_texts(value: object) -> list[str]:
    """Read the texts from the `todos` argument."""
    form = 'a list of {"text": "..."} objects'
    if value is None:
        raise CallError(f"'todos' is required: {form}", "todos required")
    items = _unwrap_json(value)
    if not is_list(items):
        raise CallError(f"'todos' must be {form}, got {brief(value)}", "todos must be a list")
    return [_read_text(position, item) for position, item in enumerate(items)]


def read_indices(value: object) -> list[int]:
    """Read the `indices` argument; empty if the model gave none."""
    if value is None:
        return []
    items = _unwrap_json(value)
    if _as_whole_number(items) is not None:
        items = [items]
    if not is_list(items):
        raise CallError(
            f"'indices' must be a list of 0-based indices such as [0, 2], got {brief(value)}",
            "indices must be a list",
        )
    return [read_index("indices", item) for item in items]


def read_index(name: str, value: object) -> int:
    """Read a whole number; `2.0` and `"2"` are accepted."""
    number = _as_whole_number(value)
    if number is None or abs(number) > MAX_INDEX:
        raise CallError(
            f"'{name}' takes 0-based whole numbers, got {brief(value)}",
            f"{name} not a whole number",
        )
    return number


def brief(value: object) -> str:
    """Describe an argument for an error message, without repeating all of it."""
    if is_list(value):
        return f"a list of {len(value)}"
    if is_mapping(value):
        return "an object"
    if isinstance(value, int) and abs(value) > MAX_INDEX:
        return "a very large number"  # it may have thousands of digits
    is_word = value is None or isinstance(value, bool)
    return json.dumps(value) if is_word else reprlib.repr(value)


def _read_text(position: int, item: object) -> str:
    if isinstance(item, str):
        return item
    given = f"got {brief(item)}"
    if is_mapping(item):
        text = item.get("text", item.get("content"))
        if isinstance(text, str):
            return text
        given = f"its 'text' is {brief(text)}" if "text" in item else "it has no 'text'"
    raise CallError(
        f'todo item at index {position} must be {{"text": "..."}}, {given}', "todo without text"
    )


def _unwrap_json(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):  # JSON that is nested too deeply
        return value


def _as_whole_number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,10}\s*", value):
        return int(value)
    return None
