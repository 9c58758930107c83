"""Turn the chunks of a run's stream into lines to print above the list."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from todo_tools.rendering import show_call, show_result
from todo_tools.rendering.lowlevel import Line, Span, one_line

_MOST_LINES = 12


_TODO_TOOLS = ("write_todos", "list_todos", "edit_todos")


class RunLines:
    """Turns the chunks of a thread's runs into lines: texts, calls with their results, the loop.

    The calls of one answer run at the same time, so each is shown together with its result.

    Args:
        messages: The messages of the thread before the first run.
    """

    def __init__(self, messages: Sequence[BaseMessage] = ()) -> None:
        self._shown = set[str | None]()
        self._calls = dict[str | None, ToolCall]()
        for message in messages:
            if isinstance(message, AIMessage):
                self._note(message)

    def after(self, mode: str, chunk: Any) -> Iterator[Line]:
        """Return the lines for a chunk of the stream mode `updates` or `custom`."""
        if mode == "updates":
            for message in messages_of(chunk):
                yield from self._message(message)
        elif mode == "custom" and chunk.get("type") == "todo_loop" and chunk["outcome"] is None:
            yield Line((Span("not finished: sent back to work", "accent"),), (_mark("↻", "<-"),))

    def _message(self, message: BaseMessage) -> Iterator[Line]:
        # Middleware repeats the model's answer, for example when its calls need approval.
        if isinstance(message, AIMessage):
            if message.id is None or message.id not in self._shown:
                yield from text_lines(message.text)
            self._note(message)
        # The list is shown separately, so of its tools only errors are shown.
        elif isinstance(message, ToolMessage) and (
            message.name not in _TODO_TOOLS or message.status == "error"
        ):
            if call := self._calls.get(message.tool_call_id):
                yield from call_lines(call)
            yield from result_lines(message)

    def _note(self, message: AIMessage) -> None:
        self._shown.add(message.id)
        self._calls = {call["id"]: call for call in message.tool_calls}


def messages_of(updates: Mapping[str, Any]) -> Iterator[BaseMessage]:
    """The messages in an `updates` chunk."""
    for update in updates.values():
        # The value is not a dict if the node waits for a person or wrote nothing.
        for part in _each(update):
            if isinstance(part, Mapping):
                messages = _each(cast("Mapping[str, object]", part).get("messages"))
                yield from (each for each in messages if isinstance(each, BaseMessage))


def _each(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else [value]


def text_lines(text: str) -> Iterator[Line]:
    """A text of the model."""
    for number, line in enumerate(text.strip().splitlines()):
        mark = Span("   ", plain="") if number else Span("💬 ", plain="")
        yield Line((Span(one_line(line)),), (mark,))


def call_lines(call: ToolCall) -> Iterator[Line]:
    """A call in one line, with long texts below it."""
    first, *further = show_call(call["name"], call["args"]).lines
    yield replace(first, lead=(_mark("→", "->"),))
    yield from further


def result_lines(message: ToolMessage) -> Iterator[Line]:
    """The end of a result; the exit code of a command is on its last line."""
    lines = show_result(message).lines
    bar = Span("  │ ", "dim", plain="  | ")
    if len(lines) > _MOST_LINES:
        yield Line((Span(f"({len(lines) - _MOST_LINES:,} more lines above)", "dim"),), (bar,))
    yield from (replace(line, lead=(bar, *line.lead)) for line in lines[-_MOST_LINES:])


def _mark(text: str, plain: str) -> Span:
    return Span(f"{text} ", "accent", plain=f"{plain} ")
