"""Draw messages as lines: texts, tool calls and tool results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from todo_tools._list.formatting import one_line
from todo_tools._thread.transcript import is_from_user, is_injected, list_after
from todo_tools.rendering._lines import Line, Span
from todo_tools.rendering._tool_view import ToolViews, shown_call, shown_result

_ANSWER = Span("   ", plain="  ")
_MARKS = {
    "human": Span("›  ", "accent", plain="> "),  # noqa: RUF001  the mark of a prompt
    "ai": Span("💬 ", plain="  "),
    "other": Span("·  ", "dim", plain="- "),
}


def superseded(messages: Sequence[BaseMessage]) -> set[int]:
    """Find the positions of results that a later result of their turn replaces."""
    found, calls, last = set[int](), set[str | None](), list[int]()
    for position, message in enumerate(messages):
        if isinstance(message, AIMessage):
            calls, last = {each["id"] for each in message.tool_calls}, []
        elif (
            isinstance(message, ToolMessage)
            and message.tool_call_id in calls
            and list_after(message) is not None
        ):
            found.update(last)
            last = [position]
    return found


def message_lines(
    message: BaseMessage, labels: Mapping[str, str], views: ToolViews | None
) -> Iterator[Line]:
    """Draw a message: its text and its tool calls, or a tool result."""
    if isinstance(message, ToolMessage):
        bar = Span("   │ ", "dim", plain="   | ")
        yield from (replace(line, lead=(bar, *line.lead)) for line in shown_result(message, views))
        return
    if is_injected(message):
        mark = Span("↻  ", "accent", plain="< ")
        yield Line((Span("not finished: sent back to work", "accent"),), (mark,))
        return
    kind = "ai" if isinstance(message, AIMessage) else "human" if is_from_user(message) else "other"
    for number, line in enumerate(message.text.splitlines()):
        yield Line((Span(one_line(line)),), (_ANSWER if number else _MARKS[kind],))
    for call in message.tool_calls if isinstance(message, AIMessage) else ():
        label = labels.get(call["name"], "")
        first, *further = shown_call(call["name"], call["args"], label, views)
        yield replace(first, lead=(Span("→  ", "accent", plain="-> "),))
        yield from (replace(line, lead=(Span("   "), *line.lead)) for line in further)
