"""A reader of prompts that knows only the texts of the messages."""

import re
from collections.abc import Sequence

from langchain_core.messages import BaseMessage, ToolMessage

from todo_tools import TodoStatus

NOTE = "[Automatic note: the todo list]\n"
EMPTY = "No todos"
ICONS: dict[str, TodoStatus] = {
    "–": "not_started",  # noqa: RUF001  the specified icon
    "●": "in_progress",
    "✓": "completed",
    "✗": "abandoned",
}
CHANGES: dict[str, TodoStatus] = {
    "Started": "in_progress",
    "Completed": "completed",
    "Abandoned": "abandoned",
}

Read = list[tuple[str, TodoStatus]]
"""Each item of a list, in order: its text on one line, and its status."""


def read_list(prompt: Sequence[BaseMessage]) -> Read:
    """The todo list according to the prompt."""
    known: Read = []
    for message in prompt:
        text, note, noted = message.text.partition(NOTE)
        if isinstance(message, ToolMessage) and message.status != "error":
            known = _after_result(known, message.name, text)
        if note:
            known = read_lines(noted)
    return known


def _after_result(known: Read, name: str | None, text: str) -> Read:
    first, _, rest = text.partition("\n")
    if name == "list_todos":
        listed = read_lines(text)
        return listed if listed or first == EMPTY else known  # somebody may have replaced the text
    if name not in ("write_todos", "edit_todos"):
        return known
    if rest.startswith("\n"):  # an empty line, then the whole list
        return read_lines(rest)
    change = re.fullmatch(r"(\w+) \[([\d, ]+)\]", first)
    if change:
        indices = {int(index) for index in change[2].split(",")}
        return [
            (item, CHANGES[change[1]] if at in indices else status)
            for at, (item, status) in enumerate(known)
        ]
    if first.startswith("Wrote"):
        return [(item, "not_started") for item, _ in known]
    return known  # nothing was added, or middleware cleared the result


def read_lines(text: str) -> Read:
    """The items in the list lines of a text; each line has the index of its item."""
    items: Read = []
    for line in text.split("\n"):
        found = re.fullmatch(r"(\S) \[(\d+)\] (.+)", line)
        if found and found[1] in ICONS:
            assert int(found[2]) == len(items), line
            items.append((found[3], ICONS[found[1]]))
    return items
