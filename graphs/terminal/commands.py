"""The lines that a user types into the chat: messages, and commands that begin with a slash."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from todo_tools import TodoItem, TodoStatus
from todo_tools.rendering.lowlevel import one_line
from todo_tools.state import validate_todos

HELP = """\
/todos                 show the whole list
/edit add TEXT         add an item; /edit N TEXT and /edit drop N change it
/edit N start|done|abandon|open   set the status of item N
/history               list the checkpoints of this branch and what each changed
/fork N [MESSAGE]      go back to checkpoint N and branch there
/redo N [MESSAGE]      go back to where item N was last started and branch there
/branches, /switch N   list the branches, each with its list; continue on one
/show [N]              print the newest result in full, or the Nth newest
/go                    continue where the agent was stopped
/ask                   ask again about tools that you approved with always
/model NAME, /clear    go on with another model; begin an empty thread
!COMMAND, /diff        run a command yourself; show what has changed, with git
/help or ?             show this; /quit or /exit leaves, and the thread is kept
Other lines are messages; put a space before one that begins with / or !.
Tab completes a command. Alt-Enter, or \\ at the end of a line, starts a line.
While the agent works, Enter keeps a message until it stops; Ctrl-C stops it.
Type during the countdown to stop it. Ctrl-C twice leaves, and so does Ctrl-D."""

_Name = Literal["todos", "history", "branches", "go", "ask", "clear", "diff", "help", "quit"]
COMMANDS = (
    *("/ask", "/branches", "/clear", "/diff", "/edit add ", "/edit drop ", "/exit", "/fork "),
    *("/go", "/help", "/history", "/model ", "/quit", "/redo ", "/show", "/switch ", "/todos"),
)
"""The beginnings of commands, for Tab completion."""

_STATUS_WORDS: dict[str, TodoStatus] = {
    **{status: status for status in get_args(TodoStatus)},
    "complete": "completed",
    "start": "in_progress",
    "done": "completed",
    "abandon": "abandoned",
    "open": "not_started",
}
_EDIT_FORMS = "/edit add TEXT, /edit drop N, /edit N TEXT or /edit N start|done|abandon|open"


class CommandError(ValueError):
    """A command cannot be carried out; the message is a one-line reason."""


@dataclass(frozen=True, slots=True)
class Say:
    """A message to the agent."""

    text: str


@dataclass(frozen=True, slots=True)
class Plain:
    """A command without arguments."""

    name: _Name


@dataclass(frozen=True, slots=True)
class Shell:
    """Run a command of the person's own."""

    command: str


@dataclass(frozen=True, slots=True)
class Model:
    """Go on with another chat model."""

    name: str


@dataclass(frozen=True, slots=True)
class Fork:
    """Go back to a checkpoint and branch there, optionally with a message."""

    number: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Redo:
    """Go back to the last start of an item and branch there, optionally with a message."""

    index: int
    message: str = ""


@dataclass(frozen=True, slots=True)
class Switch:
    """Continue on another branch."""

    number: int


@dataclass(frozen=True, slots=True)
class Add:
    """Add an item at the end of the list."""

    text: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Change the text of an item."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Change the status of an item."""

    index: int
    status: TodoStatus


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove an item."""

    index: int


@dataclass(frozen=True, slots=True)
class Show:
    """Print a result in full; 1 is the newest."""

    number: int


Edit = Add | Rewrite | Mark | Drop
_MEANT: dict[str, Plain | Shell] = {
    **dict.fromkeys(("quit", "exit", "/exit"), Plain("quit")),
    **dict.fromkeys(("?", "/?"), Plain("help")),
}
Asked = Say | Shell | Plain | Model | Show | Fork | Redo | Switch | Edit


def read_line(line: str) -> Asked:
    """Read what the user typed.

    Args:
        line: A line that is not blank.

    Returns:
        The message or command.

    Raises:
        CommandError: The line begins with a slash but is not a valid command.

    Example:
        ```python
        assert read_line("/edit 2 done") == Mark(2, "completed")
        ```
    """
    if meant := _MEANT.get(line.strip().lower()):
        return meant
    if line.startswith("!") and line.strip("! "):
        return Shell(line[1:].strip())
    if not line.startswith("/"):
        return Say(line.strip())
    name, argument = _first_word(line.removeprefix("/"))
    match name:
        case "edit":
            return _read_edit(argument)
        case "fork" | "redo":
            place, message = _first_word(argument)
            kind = Fork if name == "fork" else Redo
            return kind(_number(place, f"/{name} N [MESSAGE]"), message)
        case "show" | "switch":
            number = _number(argument or "1" * (name == "show"), f"/{name} N")
            return Show(number) if name == "show" else Switch(number)
        case "model":
            return Model(_needed(argument, "/model NAME"))
        case "todos" | "history" | "branches" | "go" | "ask" | "clear" | "diff" | "help" | "quit":
            if argument:
                raise CommandError(f"/{name} takes no argument, got {_brief(argument)}")
            return Plain(name)
        case _:
            raise CommandError(f"no command {_brief(f'/{name}')}; /help lists them")


def as_typed(message: str) -> str:
    """Return the line that `read_line` reads as this message, and not as a command."""
    return f" {message}" if message.startswith(("/", "!")) else message


def edited(todos: list[TodoItem], edit: Edit) -> list[TodoItem]:
    """Return the list after a manual edit; the given list is not changed.

    Raises:
        CommandError: There is no such item.
        ValueError: The new list or one of its texts would be too long.
    """
    match edit:
        case Add(text):
            return validate_todos([*todos, {"text": text, "status": "not_started"}])
        case Drop(index):
            return [todo for at, todo in enumerate(todos) if at != within(todos, index)]
        case Mark(index, status):
            changed: TodoItem = {**todos[within(todos, index)], "status": status}
        case Rewrite(index, text):
            changed = {**todos[within(todos, index)], "text": text}
    return validate_todos([*todos[:index], changed, *todos[index + 1 :]])


def _read_edit(argument: str) -> Edit:
    first, rest = _first_word(argument)
    if not rest:
        raise CommandError(f"/edit takes one of {_EDIT_FORMS}")
    if first == "add":
        return Add(rest)
    if first == "drop":
        return Drop(_number(rest, "/edit drop N"))
    index = _number(first, _EDIT_FORMS)
    status = _STATUS_WORDS.get(rest.lower())
    return Mark(index, status) if status else Rewrite(index, rest)


def _first_word(text: str) -> tuple[str, str]:
    words = text.split(maxsplit=1)
    return (words[0] if words else ""), (words[1].rstrip() if len(words) > 1 else "")


def _needed(text: str, form: str) -> str:
    if not text:
        raise CommandError(f"NAME is missing in {form}")
    return text


def _number(text: str, form: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise CommandError(f"N must be a whole number in {form}, got {_brief(text)}")
    return int(text)


def within(todos: list[TodoItem], index: int) -> int:
    """Return the index of an item.

    Raises:
        CommandError: There is no such item.
    """
    if index >= len(todos):
        items = f"items are 0 to {len(todos) - 1}" if todos else "the list is empty"
        raise CommandError(f"no item [{index}]; {items}")
    return index


def _brief(text: str) -> str:
    return repr(one_line(text[:40]))
