"""Views of todos and messages: rich text in a terminal, HTML in a notebook, or plain text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from todo_tools._list.formatting import one_line
from todo_tools._list.todos import STATUSES, TodoItem
from todo_tools._runner.jobs import ItemReport, reports_in
from todo_tools.rendering import _html, _lines, _terminal
from todo_tools.rendering._messages import message_lines, superseded
from todo_tools.rendering._tool_view import ToolView, shown_call, shown_result


@dataclass(frozen=True, slots=True, repr=False)
class View:
    """A view of a list, a call, a result or a status.

    As the last expression of a notebook cell, a view is shown as HTML. With rich,
    `console.print(view)` shows it in colour and in the width of the console. `print(view)` does the
    same if the output is a terminal with colours and rich is installed; otherwise it replaces what
    the output cannot encode. In an f-string, the view is plain text. Texts from the model are
    escaped in each of these forms.
    """

    lines: tuple[_lines.Line, ...]
    progress: _lines.Progress | None = None

    def __str__(self) -> str:
        coloured = _terminal.coloured(self)
        return "\n".join(map(_lines.printable, self.lines)) if coloured is None else coloured

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __repr__(self) -> str:
        return "\n".join(map(str, self.lines))  # IPython adds this to the HTML as text/plain

    def _repr_html_(self) -> str:
        return _html.html_of(self.lines, self.progress)

    def __rich_console__(self, console: Any, options: Any) -> Any:
        return _terminal.texts(self.lines, console, options)


def show_todos(todos: Sequence[TodoItem]) -> View:
    """Show a list.

    Args:
        todos: The items in order, such as `state["todos"]`.

    Returns:
        A view of each item with its icon, index and text. In a notebook it has a progress bar.

    Raises:
        TypeError: `todos` is a whole state.
        ValueError: `todos` is not a list of todos.

    Example:
        ```python
        view = show_todos([{"text": "Measure", "status": "completed"}])
        assert str(view) == "✓ [0] Measure"
        ```
    """
    checked = _lines.checked(todos)
    return View(_lines.list_lines(checked), _lines.progress_of(checked))


def show_status(todos: Sequence[TodoItem]) -> View:
    r"""Show the progress of a list in a few lines.

    Args:
        todos: The items in order.

    Returns:
        A view of the status line and the items in progress; empty if there are no todos.

    Raises:
        TypeError: `todos` is a whole state.
        ValueError: `todos` is not a list of todos.

    Example:
        ```python
        view = show_status([{"text": "Measure", "status": "in_progress"}])
        assert str(view) == "📋 0/1\n[0] Measure"
        ```
    """
    checked = _lines.checked(todos)
    return View((*_lines.status_lines(checked), *_lines.in_progress_lines(checked)))


def show_call(
    name: str,
    args: Mapping[str, Any],
    *,
    label: str = "",
    views: Mapping[str, ToolView] | None = None,
) -> View:
    """Show a tool call.

    Args:
        name: The name of any tool. The todo tools have a special form.
        args: The arguments as the model wrote them; they may have any shape.
        label: A label for the tool, such as its `metadata["label"]`; the name by default.
        views: The forms of your own tools, by tool name.

    Returns:
        A view of one line: the tool, the action, the main argument, and the others as `name=value`.
        Long texts follow on extra lines.

    Example:
        ```python
        view = show_call("edit_todos", {"action": "start", "indices": [0, 1]})
        assert str(view) == "edit_todos start [0, 1]"
        ```
    """
    return View(shown_call(name, args, label, views))


def show_result(message: ToolMessage, *, views: Mapping[str, ToolView] | None = None) -> View:
    """Show the result of a tool.

    Args:
        message: The result. For tools other than the todo tools, its text is shown unchanged.
        views: The forms of your own tools, by tool name.

    Returns:
        A view of the list after a change, the output of `list_todos`, or the short error.

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
    return View(shown_result(message, views))


def show_messages(
    messages: Iterable[BaseMessage],
    *,
    labels: Mapping[str, str] | None = None,
    views: Mapping[str, ToolView] | None = None,
) -> View:
    """Show a conversation.

    Args:
        messages: The messages in order, such as `state["messages"]`.
        labels: Labels for tools, by tool name.
        views: The forms of your own tools, by tool name.

    Returns:
        A view of the texts, the tool calls and their results. If several calls of one turn change
        the list, the list is shown once, after the last of them.

    Raises:
        TypeError: `messages` has an element that is not a message.

    Example:
        ```python
        view = show_messages([AIMessage("Done.")])
        assert f"{view}" == "💬 Done."
        ```
    """
    history, lines = list(messages), list[_lines.Line]()
    for message in history:
        if not isinstance(message, BaseMessage):
            raise TypeError(f"messages must hold messages, got {type(message).__name__}")
    hidden = superseded(history)
    for position, message in enumerate(history):
        if position not in hidden:
            lines += message_lines(message, labels or {}, views)
    return View(tuple(lines))


def show_reports(state: Mapping[str, Any]) -> View:
    """Show what became of the items of an item runner.

    Args:
        state: The state of the runner, such as the result of `graph.invoke`.

    Returns:
        A view of each report in order: the item, what its run took, and the first line of the
        report, or the last reason if the item was abandoned. A last line adds up what several took.

    Example:
        ```python
        report = ItemReport(
            text="Cut", status="completed", report="Cut.", reasons=[], calls=2, tokens=9, seconds=3
        )
        view = show_reports({"reports": {"1": report}})
        assert f"{view}".startswith("✓ Cut (1 attempt, 2 calls, 9 tokens, 3 seconds)")
        ```
    """
    reports = [*reports_in(state).values()]
    lines = [line for report in reports for line in _report_lines(report)]
    if reports[1:]:
        total = f"{len(reports)} runs: {_taken(*reports)}"
        lines.append(_lines.Line((_lines.Span(total, "muted"),)))
    return View(tuple(lines))


def _report_lines(report: ItemReport) -> Iterator[_lines.Line]:
    row, is_done = STATUSES[report["status"]], report["status"] == "completed"
    icon = _lines.Span(row.icon, row.color, plain=row.plain_icon)
    taken = _lines.Span(f" ({_taken(report)})", "dim")
    text = _lines.Span(one_line(report["text"]))
    yield _lines.Line((text, taken), (icon, _lines.Span(" ")), report["status"])
    said = report["report"] if is_done else "".join(report["reasons"][-1:])
    first = one_line(said.strip().partition("\n")[0])
    yield _lines.Line((_lines.Span(first, "muted"),), (_lines.Span("  "),))


def _taken(*reports: ItemReport) -> str:
    """Say how much some runs took together."""
    attempts = [len(each["reasons"]) + (each["status"] == "completed") for each in reports]
    rest = ((each["calls"], each["tokens"], round(each["seconds"])) for each in reports)
    sums = map(sum, (attempts, *zip(*rest, strict=True)))
    return ", ".join(map(_lines.counted, sums, ("attempt", "call", "token", "second")))
