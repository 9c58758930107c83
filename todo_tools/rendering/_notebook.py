"""Show a run in a notebook: one display below the cell, which is updated in place."""

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from importlib import import_module
from threading import Event, Thread
from typing import Any, overload

from todo_tools._list.todos import TodoItem
from todo_tools.rendering._follow import Chunk, PlainScreen, follow, print_plain
from todo_tools.rendering._followed import Followed
from todo_tools.rendering._followed_lines import whole
from todo_tools.rendering._lines import progress_of
from todo_tools.rendering._live import LiveLines
from todo_tools.rendering._tool_view import ToolView
from todo_tools.rendering._views import View

_SECONDS_A_FRAME = 0.25
_ROWS = 100_000  # a page scrolls, so all lines have room


@overload
def follow_in_notebook(
    stream: Iterator[Chunk],
    *,
    todos: Sequence[TodoItem] | None = None,
    views: Mapping[str, ToolView] | None = None,
) -> Generator[Chunk, None, None]: ...
@overload
def follow_in_notebook(
    stream: AsyncIterator[Chunk],
    *,
    todos: Sequence[TodoItem] | None = None,
    views: Mapping[str, ToolView] | None = None,
) -> AsyncGenerator[Chunk, None]: ...
def follow_in_notebook(
    stream: Any,
    *,
    todos: Sequence[TodoItem] | None = None,
    views: Mapping[str, ToolView] | None = None,
) -> Any:
    """Show the list of a running graph below a notebook cell, and pass its stream through.

    The list, its status and what goes on are updated in place. The saved notebook has the last list
    and its status. Outside a notebook, each change is printed as plain lines.

    Args:
        stream: The result of `graph.stream(...)` or `graph.astream(...)`, with the modes that
            `follow_in_terminal` describes. Nothing is shown before there is a list.
        todos: The list before the first change, as for `follow_in_terminal`.
        views: The forms of your own tools, by tool name, for the call that runs.

    Returns:
        A generator of the unchanged chunks, as `follow_in_terminal` returns it.

    Raises:
        TypeError: `stream` is not an iterator or async iterator.
        ValueError: `todos` is not a list of todos.

    Example:
        ```python
        stream = graph.stream(request, config, stream_mode=["updates", "custom"])
        for mode, chunk in follow_in_notebook(stream):
            pass
        ```
    """
    screen = _NotebookScreen() if _in_notebook() else PlainScreen(print_plain)
    return follow(stream, screen, todos, views)


class _NotebookScreen:
    """A display below the notebook cell, which a thread updates: seconds pass in silence, too."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.before = Followed()
        self.live = LiveLines()
        self.ended = Event()
        self.thread = Thread(target=self._update, daemon=True)

    def show(self, followed: Followed) -> None:
        before, self.before = self.before, followed
        self.live.see(followed)
        if self.handle is None and followed.shown != before.shown:
            self.handle = import_module("IPython.display").display(self._frame(), display_id=True)
            self.thread.start()

    def finish(self, followed: Followed) -> None:
        if self.handle is not None:
            self.ended.set()
            self.thread.join()
            self.handle.update(View(whole(followed), progress_of(followed.todos or [])))

    def _update(self) -> None:
        while not self.ended.wait(_SECONDS_A_FRAME):
            self.handle.update(self._frame())

    def _frame(self) -> View:
        return View(self.live.lines(_ROWS))


def _in_notebook() -> bool:
    """Whether this process has an IPython shell that shows HTML; one in a terminal does not."""
    ipython = sys.modules.get("IPython")  # in a notebook it is imported
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and "text/html" in shell.display_formatter.active_types
