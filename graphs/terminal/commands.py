"""The lines that a user types into the chat: messages, and commands that begin with a slash."""

from dataclasses import dataclass
from typing import Any

from todo_tools import TodoItem
from todo_tools.rendering.lowlevel import one_line
from todo_tools.state import validate_todos

HELP = """\
/todos                 show the whole list
/edit add TEXT         add an item; /edit N TEXT and /edit drop N change it
/edit N start|done|abandon|open   set the status of item N
/history               list the checkpoints of this branch and what each changed
/fork N [MESSAGE]      go back to checkpoint N and branch there
/redo N [MESSAGE]      do item N again on a new branch, from its last start
/branches, /switch N   list the branches, each with its list; continue on one
/go                    continue where the agent was stopped
/help, /exit           show this; leave: the thread is kept
Other lines are messages; put a space before one that begins with a slash.
While the agent works, Enter keeps a message until it stops; Ctrl-C stops it.
Type during the countdown to stop it. Ctrl-C twice leaves, and so does Ctrl-D."""

_MOST_DIGITS = 9
_PLAIN = ("todos", "history", "branches", "go", "help", "exit")
_STATUS_WORDS: dict[str, str] = {
    "start": "in_progress",
    "done": "completed",
    "abandon": "abandoned",
    "open": "not_started",
}
_EDIT_FORMS = "/edit add TEXT, /edit drop N, /edit N TEXT or /edit N start|done|abandon|open"


class CommandError(ValueError):
    """A command cannot be carried out; the message is a one-line reason."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a line asks for: a message to the agent (`say`), or a command by its name.

    `/edit` adds an item if there is no number, and drops it if there is neither text nor status.
    """

    name: str
    number: int | None = None
    text: str = ""
    status: str | None = None


def read_line(line: str) -> Asked:
    """Read what the user typed, a line that is not blank.

    Raises:
        CommandError: The line begins with a slash but is not a valid command.

    Example:
        ```python
        assert read_line("/edit 2 done") == Asked("edit", 2, status="completed")
        ```
    """
    if not line.startswith("/"):
        return Asked("say", text=line.strip())
    name, argument = _first_word(line.removeprefix("/"))
    match name:
        case "edit":
            return _read_edit(argument)
        case "fork" | "redo":
            number, message = _first_word(argument)
            return Asked(name, _number(number, f"/{name} N [MESSAGE]"), message)
        case "switch":
            return Asked(name, _number(argument, "/switch N"))
        case _ if name not in _PLAIN:
            raise CommandError(f"no command {_brief(f'/{name}')}; /help lists them")
        case _ if argument:
            raise CommandError(f"/{name} takes no argument, got {_brief(argument)}")
        case _:
            return Asked(name)


def edited(todos: list[TodoItem], edit: Asked) -> list[TodoItem]:
    """Return the list after `/edit`; the given list is not changed.

    Raises:
        CommandError: There is no such item.
        ValueError: The new list or one of its texts would be too long.
    """
    if edit.number is None:
        return validate_todos([*todos, {"text": edit.text, "status": "not_started"}])
    item = todos[within(todos, edit.number)]
    changed: list[Any] = []
    if edit.status or edit.text:
        status = edit.status or item["status"]
        changed = [{"text": edit.text or item["text"], "status": status}]
    return validate_todos([*todos[: edit.number], *changed, *todos[edit.number + 1 :]])


def within(todos: list[TodoItem], index: int) -> int:
    """Return the index of an item.

    Raises:
        CommandError: There is no such item.
    """
    if index >= len(todos):
        items = f"items are 0 to {len(todos) - 1}" if todos else "the list is empty"
        raise CommandError(f"no item [{index}]; {items}")
    return index


def _read_edit(argument: str) -> Asked:
    first, rest = _first_word(argument)
    if not rest:
        raise CommandError(f"/edit takes one of {_EDIT_FORMS}")
    if first == "add":
        return Asked("edit", text=rest)
    if first == "drop":
        return Asked("edit", _number(rest, "/edit drop N"))
    index, status = _number(first, _EDIT_FORMS), _STATUS_WORDS.get(rest.lower())
    return Asked("edit", index, "" if status else rest, status)


def _first_word(text: str) -> tuple[str, str]:
    words = text.split(maxsplit=1)
    return (words[0] if words else ""), (words[1].rstrip() if len(words) > 1 else "")


def _number(text: str, form: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise CommandError(f"N must be a number in {form}, got {_brief(text)}")
    return int(text)


def _brief(text: str) -> str:
    return repr(one_line(text[:40]))
