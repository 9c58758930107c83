"""What shows itself: in a terminal through rich, in a notebook as HTML, anywhere as plain text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, ToolMessage

from todo_tools._todos import TodoItem
from todo_tools.rendering import _html, _lines, _terminal
from todo_tools.rendering._calls import call_lines
from todo_tools.rendering._messages import message_lines
from todo_tools.state import todos_in

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


@dataclass(frozen=True, slots=True, repr=False)
class View:
    """Something to look at: a list, a call, a result, a status.

    The last expression of a notebook cell shows it as HTML; `console.print(view)` of rich shows it
    in colour, in the width and with the characters of that console. `print(view)` does so where the
    output is a terminal with colours and rich is installed; otherwise, and in an f-string, it is
    plain text.
    What a model wrote in it cannot act in any of them.
    """

    lines: tuple[_lines.Line, ...]
    progress: _lines.Progress | None = None

    def __str__(self) -> str:
        return _terminal.coloured(self) if _terminal.has_colours() else repr(self)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __repr__(self) -> str:
        return "\n".join(map(str, self.lines))  # what IPython puts beside the HTML as text/plain

    def _repr_html_(self) -> str:
        return _html.html_of(self.lines, self.progress)

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> "Iterable[RenderableType]":
        return _terminal.texts(self.lines, console, options)


def show_todos(todos: Sequence[TodoItem]) -> View:
    """Show a list.

    Args:
        todos: The items in order, such as `state["todos"]`.

    Returns:
        Each item with its icon, index and text, and in a notebook a bar of how far the list is.

    Raises:
        ValueError: `todos` is not a list of todos.

    Example:
        ```python
        view = show_todos([{"text": "Measure", "status": "completed"}])
        assert str(view) == "✓ [0] Measure"
        ```
    """
    checked = _checked(todos)
    return View(_lines.list_lines(checked), _lines.progress_of(checked))


def show_status(todos: Sequence[TodoItem]) -> View:
    r"""Show in a few lines how far a list is.

    Args:
        todos: The items in order.

    Returns:
        The status line and the items in progress; nothing without todos.

    Raises:
        ValueError: `todos` is not a list of todos.

    Example:
        ```python
        view = show_status([{"text": "Measure", "status": "in_progress"}])
        assert str(view) == "📋 0/1\n[0] Measure"
        ```
    """
    checked = _checked(todos)
    return View((*_lines.status_lines(checked), *_lines.in_progress_lines(checked)))


def show_call(name: str, args: Mapping[str, Any], *, label: str = "") -> View:
    """Show a tool call.

    Args:
        name: The tool called; any tool will do, the todo tools have a form of their own.
        args: Its arguments as the model wrote them, of any shape.
        label: What to call the tool, such as its `metadata["label"]`; its name by default.

    Returns:
        One line: the tool, the action, the main argument, the others as `name=value`. Long texts
        follow on further lines.

    Example:
        ```python
        view = show_call("edit_todos", {"action": "start", "indices": [0, 1]})
        assert str(view) == "edit_todos start [0, 1]"
        ```
    """
    return View(call_lines(name, args, label))


def show_result(message: ToolMessage) -> View:
    """Show the result of a tool.

    Args:
        message: What the tool answered. Of another tool the text is shown as it is.

    Returns:
        The list after a change, the listing of `list_todos`, or the error in short.

    Raises:
        TypeError: `message` is not a `ToolMessage`.

    Example:
        ```python
        result = ToolMessage("No todos", name="list_todos", tool_call_id="1")
        assert str(show_result(result)) == "No todos"
        ```
    """
    if not isinstance(message, ToolMessage):
        raise TypeError(f"message must be a ToolMessage, got {type(message).__name__}")
    return View(_lines.result_lines(message))


def show_messages(
    messages: Iterable[BaseMessage], *, labels: Mapping[str, str] | None = None
) -> View:
    """Show a conversation.

    Args:
        messages: The messages in order, such as `state["messages"]`.
        labels: What to call tools, by name.

    Returns:
        What was said, which tools were called, and what they answered.

    Raises:
        TypeError: `messages` holds something else than messages.

    Example:
        ```python
        view = show_messages([AIMessage("Done.")])
        assert f"{view}" == "💬 Done."
        ```
    """
    lines = list[_lines.Line]()
    for message in messages:
        if not isinstance(message, BaseMessage):
            raise TypeError(f"messages must hold messages, got {type(message).__name__}")
        lines += message_lines(message, labels or {})
    return View(tuple(lines))


def _checked(todos: Sequence[TodoItem]) -> list[TodoItem]:
    return todos_in({"todos": list(todos)})
