"""Draw the lines of a live view: the list, its recent changes, and the current activity."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from todo_tools._list.formatting import one_line
from todo_tools.rendering._followed import Followed
from todo_tools.rendering._followed_lines import list_part
from todo_tools.rendering._lines import (
    Line,
    Span,
    bar_spans,
    in_view,
    list_lines,
    note_lines,
    progress_of,
    status_lines,
)
from todo_tools.rendering._output import bar

_SECONDS_MARKED = 1.5
_PIECES_SHOWN = 6
_TURNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_TURNS = "|/-\\"
_MARK = Span(" ←", "accent", plain=" <")


class LiveLines:
    """Keeps the state of a run and draws it as lines, again for each refresh.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Followed | None = None
        self._changed = dict[int, float]()
        self._since = {"": clock()}

    def see(self, followed: Followed) -> None:
        """Store the new state of the run, and remember which items changed."""
        before, now = self._known or followed, self._clock()
        todos = followed.todos or []
        old = before.todos or todos
        for index, todo in enumerate(todos):
            if index >= len(old) or old[index] != todo:
                self._changed[index] = now
        known = dict(before.conversations)
        for item, each in followed.conversations:
            was = known.get(item, Followed())
            if (was.open, was.answer) != (each.open, each.answer):
                self._since[item] = now
        self._known = followed

    def begin(self) -> None:
        """Restart the counter of seconds."""
        self._since = {"": self._clock()}

    def lines(
        self,
        height: int,
        rows_of: Callable[[Line], int] = lambda _: 1,
        *,
        working: bool = True,
        hint: str = "",
    ) -> tuple[Line, ...]:
        """Draw the current state.

        Args:
            height: The number of rows on the screen.
            rows_of: Returns the number of rows that a line needs.
            working: Whether the agent is working.
            hint: Advice for the user, to show in the status line.

        Returns:
            The end of the answer and of the tools' output, the part of the list that fits, the
            status with a progress bar, and the current activity with its seconds.
        """
        followed = self._known or Followed()
        above = [*_said(followed), *_put_out(followed)] if working else []
        below = [*self._status(followed, hint), *note_lines(followed.countdown or followed.notice)]
        if working and not followed.countdown:
            below.append(self._activity(followed))
        above = above[-max(height // 3, 1) :]
        room = height - sum(map(rows_of, [*above, *below]))
        rows = tuple(self._marked_rows(followed)) if followed.todos or followed.lists else ()
        return (*above, *(in_view(rows, max(room, 1), rows_of) if rows else ()), *below)

    def _marked_rows(self, followed: Followed) -> Iterator[Line]:
        """Draw the list; mark the rows that have just changed, and say what items at work do."""
        now, at_work = self._clock(), dict(followed.conversations)
        own = len(followed.todos or [])  # the rows after these are of subgraphs
        for index, row in enumerate(list_part(followed)):
            is_recent = now - self._changed.get(index, -_SECONDS_MARKED) < _SECONDS_MARKED
            marks = [_MARK] if is_recent and index < own else []
            item = str(row).partition(" ")[2]
            if item in at_work:
                doing = self._doing(item, at_work[item])
                marks.append(Span(f" · {doing}", "dim", plain=f" - {doing}"))
            yield replace(row, body=(*row.body, *marks))

    def _status(self, followed: Followed, hint: str) -> tuple[Line, ...]:
        todos = followed.todos or []
        lines = status_lines(todos) or (list_lines(todos) if hint else ())
        if not lines:
            return ()
        advice = (Span(f" · {hint}", "dim", plain=f" - {hint}"),) if hint else ()
        bar = (Span("  "), *bar_spans(progress_of(todos))) if todos else ()
        return (replace(lines[0], body=(*lines[0].body, *advice, *bar)),)

    def _activity(self, followed: Followed) -> Line:
        turn = int(self._clock() * 8)
        mark = Span(f"{_TURNS[turn % len(_TURNS)]} ", "accent", plain=f"{_PLAIN_TURNS[turn % 4]} ")
        return Line((Span(self._doing("", followed), "dim"),), (mark,))

    def _doing(self, item: str, followed: Followed) -> str:
        """Say which calls run in a conversation, and for how many seconds."""
        seconds = int(self._clock() - self._since.get(item, self._since[""]))
        what = followed.open[0][1] if followed.open else "working"
        others = f" and {len(followed.open) - 1} more" if len(followed.open) > 1 else ""
        return f"{seconds}s {what}{others}" if seconds else f"{what}{others}"


def _said(followed: Followed) -> list[Line]:
    """Draw the last lines of the answer that the model is writing."""
    lines = followed.saying[1].strip().split("\n")[-_PIECES_SHOWN:]
    return [Line((Span(one_line(line), "text"),)) for line in lines if line]


def _put_out(followed: Followed) -> list[Line]:
    """Draw the last lines of the output of running tools."""
    lines = list[Line]()
    pieces = max(_PIECES_SHOWN // max(len(followed.conversations) - 1, 1), 1)
    for _, each in followed.conversations:
        for output in each.outputs:
            last = output.text.rstrip("\n").split("\n")[-pieces:]
            lines += (Line((Span(one_line(line), "dim"),), (bar(each),)) for line in last)
    return lines
