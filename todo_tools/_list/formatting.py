"""Turn todos into text and back: list lines, status line, items in progress."""

import re
from collections.abc import Iterable, Sequence

from todo_tools._list.formats import ClientTodo, own_format
from todo_tools._list.todos import STATUSES, TodoItem, incomplete

# What a model reads and a person does not see: Unicode's format characters, characters that a font
# may leave out, and all blanks but the space. Wide blanks push text out of sight or imitate a
# column; a blank that looks like a space makes two different texts look equal.
_HIDDEN = (
    *(0xA0, 0xAD, 0x34F, *range(0x600, 0x606), 0x61C, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2),
    *(0x115F, 0x1160, 0x1680, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x2000, 0x200C)),
    *(0x200E, 0x200F, *range(0x2028, 0x2030), *range(0x205F, 0x2070), 0x2800, 0x3000, 0x3164),
    *(*range(0xFE00, 0xFE0E), 0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFFC), 0x110BD, 0x110CD),
    *(*range(0x13430, 0x13443), 0x16FE4, *range(0x1BCA0, 0x1BCA4), 0x1D159),
    *(*range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
)


def _mark(code: int) -> str:
    return f"<U+{code:04X}>"


def _visible_marks() -> dict[int, str]:
    """Map each character that could break a line or hide text to a visible mark."""
    marks = {code: chr(0x2400 + code) for code in range(0x20)}
    marks[0x7F] = "␡"
    others = [*range(0x80, 0xA0), *range(0xD800, 0xE000), *_HIDDEN]
    return marks | {code: _mark(code) for code in others}


_MARKS = _visible_marks()

# Joiners and variation selectors are invisible too. They belong to ordinary text in three places:
# after a picture, in a keycap, and within words of Arabic and Indic scripts. No character of the
# two sets below is ever marked, so a second pass over the text keeps the same joiners.
_PICTURE = "[©®‼⁉\u2100-\u27ff\u2900-\u2bff〰〽㊗㊙\U0001f000-\U0001faff]"
_LETTER = "[\u0620-\u06d3\u0750-\u077f\u0900-\u0dff]"
_JOINERS = re.compile("[\u200c\u200d\ufe0e\ufe0f]")
_KEPT = re.compile(
    f"[\ufe0e\ufe0f](?<={_PICTURE}.)|\ufe0f(?<=[0-9#*].)(?=\u20e3)"
    f"|\u200d(?:(?<={_PICTURE}.)|(?<={_PICTURE}\ufe0f.))(?={_PICTURE})"
    f"|[\u200c\u200d](?<={_LETTER}.)(?={_LETTER})"
)


def _shown_joiner(found: re.Match[str]) -> str:
    return found[0] if _KEPT.match(found.string, found.start()) else _mark(ord(found[0]))


def one_line(text: str) -> str:
    """Put a text on one line and make its control and invisible characters visible.

    Line breaks and control characters become symbols such as `␊` and `␛`. Bidirectional overrides,
    line separators, lone surrogates, invisible characters and blanks other than the space become
    marks such as `<U+202E>`. Without this, a text could imitate another list line, or hide a
    message to the model.
    """
    if text.isascii() and text.isprintable():
        return text
    return _JOINERS.sub(_shown_joiner, text).translate(_MARKS)


def format_line(index: int, todo: TodoItem) -> str:
    """Format one list line: `icon [index] text`."""
    return f"{STATUSES[todo['status']].icon} [{index}] {one_line(todo['text'])}"


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
    lines = (format_line(*entry) for entry in enumerate(own_format(todos)))
    return "\n".join(lines) or "No todos"


def format_items(items: Iterable[tuple[int, TodoItem]]) -> str:
    """Format the list lines of some items, each with its index, such as those of `incomplete`."""
    return "\n".join(format_line(*item) for item in items)


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
    if not todos:
        return ""
    remaining = len(incomplete(own_format(todos)))
    if not remaining:
        return f"✓ Done ({len(todos)} items)"
    return f"📋 {len(todos) - remaining}/{len(todos)}"


def format_in_progress(todos: Sequence[TodoItem]) -> list[str]:
    """Format each item in progress as `[index] text`, to show next to the status line."""
    return [
        f"[{index}] {one_line(todo['text'])}"
        for index, todo in enumerate(todos)
        if todo["status"] == "in_progress"
    ]
