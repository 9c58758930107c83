"""What a conversation shows: the part of a list that fits, and a run as lines."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from todo_tools.rendering import Line, Span, note_lines, one_line, show_call, show_result
from todo_tools.transcript import details_of

_OUTPUT_LINES = 12


def in_view(rows: tuple[Line, ...], height: int) -> tuple[Line, ...]:
    """The part of a list that fits: around the item in progress, or else the first open one.

    Args:
        rows: The lines of the list.
        height: How many may be shown, at least 1.

    Returns:
        All lines, or a part of them and how many more there are.
    """
    if len(rows) <= height:
        return rows
    statuses = [row.status for row in rows]
    open_ones = [status for status in ("in_progress", "not_started") if status in statuses]
    focus = statuses.index(open_ones[0]) if open_ones else len(rows)
    start = max(0, min(focus - height // 3, len(rows) - height))
    more = Line((Span(f"({len(rows) - height} more)", "dim"),))
    return (*rows[start : start + height], more)


def run_lines(mode: str, chunk: Mapping[str, Any]) -> Iterator[Line]:
    """What is printed of a chunk of a run; changes of the list are shown below instead."""
    match mode, chunk:
        case "custom", {"type": "todo_loop", "outcome": None, "in_turn": count}:
            yield from said(f"↻ not finished: sent back to work ({count} in this turn)")
        case "custom", {"type": "todo_loop", "text": str(notice)}:
            yield from note_lines(notice)
        case "updates", _:
            for update in chunk.values():
                for part in update if isinstance(update, list) else [update]:
                    if isinstance(part, Mapping) and isinstance(part.get("messages"), list):
                        for message in part["messages"]:
                            yield from _message_lines(message)
        case _:
            pass


def _message_lines(message: BaseMessage) -> Iterator[Line]:
    if isinstance(message, AIMessage):
        for line in message.text.splitlines():
            yield Line((Span(one_line(line)),), (Span("💬 ", plain=""),))
        for call in message.tool_calls:
            (shown,) = show_call(call["name"], call["args"]).lines
            yield replace(shown, lead=(Span("→ ", "accent", plain="-> "),))
    elif isinstance(message, ToolMessage) and (
        details_of(message) is None or message.status == "error"
    ):
        yield from _beside_bar(show_result(message).lines)


def _beside_bar(lines: tuple[Line, ...]) -> Iterator[Line]:
    left_out = len(lines) - _OUTPUT_LINES
    if left_out > 0:
        yield Line((Span(f"  ({left_out} more lines)", "dim"),))
    for line in lines[-_OUTPUT_LINES:]:
        yield replace(line, lead=(Span("  │ ", "dim", plain="  | "), *line.lead))


def said(text: str) -> tuple[Line, ...]:
    """Words of the program itself."""
    return tuple(Line((Span(one_line(line), "muted"),)) for line in text.splitlines())


def error_lines(error: Exception) -> tuple[Line, ...]:
    """An error in one line, its kind named where the text alone would not tell."""
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    return (Line((Span(one_line(f"error: {kind}{' '.join(str(error).split())}"), "error"),)),)
