"""Turn todos into text and back: list lines, status line, items in progress."""

import re
from collections.abc import Sequence
from unicodedata import category

from todo_tools._list.formats import ClientTodo, own_format
from todo_tools._list.todos import STATUSES, TodoItem, incomplete

# Characters that break a line, hide text or imitate a column: control and format characters, half
# an emoji, separators, and blanks other than the space.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
# They look empty, though they are letters or marks.
_EMPTY = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u180b\u180c\u180d\u180f\U00016fe4\U0001d159"
)


_SELECTORS = re.compile("[\ufe00-\ufe0d\U000e0000-\U000e0fff]")


def _mark(character: str) -> str:
    if character < " ":
        return chr(0x2400 + ord(character))
    return "␡" if character == "\x7f" else f"<U+{ord(character):04X}>"


def _is_hidden(character: str) -> bool:
    is_selector = bool(_SELECTORS.match(character))
    return is_selector or character in _EMPTY or category(character) in _HIDDEN


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
    return found[0] if _KEPT.match(found.string, found.start()) else _mark(found[0])


def one_line(text: str) -> str:
    """Put a text on one line and make its control and invisible characters visible.

    Line breaks and control characters become symbols such as `␊` and `␛`. Bidirectional overrides,
    line separators, lone surrogates, invisible characters and blanks other than the space become
    marks such as `<U+202E>`. Without this, a text could imitate another list line, or hide a
    message to the model.
    """
    if text.isascii() and text.isprintable():
        return text
    joined = _JOINERS.sub(_shown_joiner, text)
    hidden = {c for c in set(joined) if c != " " and not _JOINERS.match(c) and _is_hidden(c)}
    return joined.translate({ord(character): _mark(character) for character in hidden})


def format_line(index: int, todo: TodoItem) -> str:
    """Format one list line: `icon [index] text`."""
    return f"{STATUSES[todo['status']].icon} [{index}] {one_line(todo['text'])}"


def format_todos(todos: Sequence[TodoItem | ClientTodo]) -> str:
    """Format a list in the same way as the tools do for the model.

    Args:
        todos: The items in order, in this package's format or in that of LangChain's clients.

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


def format_status(todos: Sequence[TodoItem | ClientTodo]) -> str:
    """Format the progress of a list in a few characters.

    Args:
        todos: The items in order, in this package's format or in that of LangChain's clients.

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
