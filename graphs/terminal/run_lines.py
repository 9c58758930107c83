"""Turn the chunks of a run's stream into lines to print.

The calls of one AI message run at the same time, so their results and events arrive in any order.
Results are shown in the order of the calls, followed by the list.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from graphs.terminal.spoken import spoken
from graphs.terminal.tool_views import VIEWS, call_view, result_view
from graphs.terminal.tools.ask_first import answered
from todo_tools import TodoItem
from todo_tools.rendering.lowlevel import (
    Followed,
    Line,
    OutputLines,
    Span,
    View,
    advance,
    changes,
    note_lines,
)
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import details_of

# The node in which LangChain's middleware answers calls that a person rejected.
_DECIDES = "HumanInTheLoopMiddleware.after_model"
# The node that answers calls which cannot succeed, before a person is asked about the others.
_REFUSES = "RefuseImpossible.after_model"
_INDENT = Span("  ")


class RunLines:
    """Turns the chunks of a thread's runs into lines.

    Args:
        state: The state of the thread before the first run.
        output: Whether the lines contain the output of running tools, for a console that cannot
            update lines in place.
        asks: Whether a person is asked about a tool. The question shows the call, so its lines are
            held back: they are shown only if nobody was asked (`shown_now`, or its result comes).
    """

    def __init__(
        self,
        state: Mapping[str, Any] | None = None,
        *,
        output: bool = False,
        asks: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._asks = asks
        self._held = list[ToolCall]()
        self._output = OutputLines()
        self._shows_output = output
        self._shown = set[str | None]()
        self._results = dict[str | None, ToolMessage]()
        self.resume_at(state or {})

    def resume_at(self, state: Mapping[str, Any]) -> None:
        """Start from a state of the thread; its unanswered calls may be answered next."""
        messages = messages_in(state)
        answers = [message for message in messages if isinstance(message, AIMessage)]
        calls = tuple(call["id"] for call in answers[-1].tool_calls) if answers else ()
        self._decided = set[str]()
        self.followed = self._printed = Followed(todos_in(state), turn=calls, views=VIEWS)
        done = answered(messages)
        self._calls = [call for call in calls if call not in done]
        self._held = [call for call in self._held if call["id"] in self._calls]
        self._results.clear()
        self._shown |= {message.id for message in answers}
        self.tokens = sum(map(_tokens, answers))
        """What all answers of the model have cost, as far as its provider says it."""

    def after(self, mode: str, chunk: Any) -> tuple[Line | View, ...]:
        """Process a chunk.

        Args:
            mode: The stream mode: `updates`, `custom` or `messages`.
            chunk: The content of the chunk.

        Returns:
            Lines for the model's texts and calls, the tools' results and the loop's decisions. The
            list and the countdown are in `followed`.
        """
        # A notice is one of the lines, so nothing below them repeats it.
        self.followed = replace(advance(self.followed, (mode, chunk)), notice="")
        output = self._output.after(self.followed) if self._shows_output else ()
        return (*output, *self._chunk_lines(mode, chunk))

    def _chunk_lines(self, mode: str, chunk: Any) -> tuple[Line | View, ...]:
        if mode == "custom":
            return tuple(_loop_lines(chunk))
        if mode != "updates":
            return ()
        if _DECIDES in chunk:  # earlier decisions may be about calls with the same ids
            self._decided = answered_in({_DECIDES: chunk[_DECIDES]})
        refused = answered_in({_REFUSES: chunk.get(_REFUSES)})  # these are shown at once
        self._calls = [call for call in self._calls if call not in refused]
        return tuple(line for message in messages_of(chunk) for line in self._message(message))

    def changed_list(self) -> tuple[Line, ...]:
        """The list, once all calls of an AI message are answered, if they changed it.

        If items only changed status or were appended, only those items are shown.
        """
        if self._calls or self.followed.todos == self._printed.todos:
            return ()
        before, self._printed = self._printed, Followed(self.followed.todos)
        return tuple(_indented(changes(before, self._printed)))

    def has_asked(self, action: Mapping[str, Any]) -> None:
        """Do not show a call again that was shown with its question."""
        for call in self._held:
            if (call["name"], call["args"]) == (action["name"], action["args"]):
                self._held.remove(call)
                return

    def shown_now(self) -> tuple[Line, ...]:
        """The calls that were held back and need no question."""
        return tuple(self._release(list(self._held)))

    def _release(self, calls: Sequence[ToolCall]) -> Iterator[Line]:
        for call in calls:
            self._held.remove(call)
            yield from _call_lines(call)

    def has_shown(self, todos: list[TodoItem] | None) -> None:
        """Do not show a list again that a person has just approved; `None` means no list."""
        if todos is not None:
            self._printed = Followed(todos)

    def _message(self, message: BaseMessage) -> Iterator[Line | View]:
        if isinstance(message, AIMessage):
            # Middleware repeats the model's answer, for example when its calls need approval.
            if message.id is None or message.id not in self._shown:
                self.tokens += _tokens(message)
                yield from text_lines(message)
                self._held = [call for call in message.tool_calls if self._asks(call["name"])]
                for call in message.tool_calls:
                    yield from () if call in self._held else _call_lines(call)
                # Not when it is repeated: some of its calls may be answered by then.
                self._calls = [call["id"] for call in message.tool_calls]
                self._results.clear()
            self._shown.add(message.id)
        elif isinstance(message, ToolMessage):
            yield from self._result(message)

    def _result(self, message: ToolMessage) -> Iterator[Line]:
        if message.tool_call_id not in self._calls:  # the AI message is not in this stream
            yield from self._shown_result(message)
            return
        self._results[message.tool_call_id] = message
        while self._calls and self._calls[0] in self._results:
            yield from self._shown_result(self._results.pop(self._calls.pop(0)))

    def _shown_result(self, message: ToolMessage) -> Iterator[Line]:
        """A tool's result, without the text that informs the model of a person's decision.

        Of the todo tools only errors are shown, because the list is shown separately.
        """
        is_list = details_of(message) is not None and message.status != "error"
        yield from self._release([c for c in self._held if c["id"] == message.tool_call_id])
        if message.tool_call_id not in self._decided and not is_list:
            yield from self._output.result(message.tool_call_id, result_view(message).lines)


def _tokens(message: AIMessage) -> int:
    return message.usage_metadata["total_tokens"] if message.usage_metadata else 0


def messages_of(updates: Mapping[str, Any]) -> Iterator[BaseMessage]:
    """The messages in an `updates` chunk."""
    for update in updates.values():
        # The value is not a dict if the node waits for a person or wrote nothing.
        for part in _each(update):
            if isinstance(part, Mapping):
                messages = _each(cast("Mapping[str, object]", part).get("messages"))
                yield from (each for each in messages if isinstance(each, BaseMessage))


def answered_in(updates: Mapping[str, Any]) -> set[str]:
    """The ids of the calls whose results are in an `updates` chunk."""
    return {each.tool_call_id for each in messages_of(updates) if isinstance(each, ToolMessage)}


def _each(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list) else [value]


def text_lines(message: AIMessage) -> Iterator[Line | View]:
    """The model's text as one block."""
    if message.text.strip():
        yield spoken(message.text)


def _call_lines(call: ToolCall) -> Iterator[Line]:
    """A tool call in one line, with long texts below it."""
    first, *further = call_view(call["name"], call["args"]).lines
    yield replace(first, lead=(Span("→ ", "accent", plain="-> "),))
    yield from further


def _loop_lines(event: Mapping[str, Any]) -> Iterator[Line]:
    match event:
        case {"type": "todo_loop", "outcome": None, "in_turn": count}:
            text = f" not finished: sent back to work (continuation {count})"
            yield Line((Span(text, "accent"),), (Span("↻", "accent", plain="<-"),))
        case {"type": "todo_loop", "text": str(notice)}:
            yield from note_lines(notice)
        case _:
            pass


def _indented(lines: Iterable[Line]) -> Iterator[Line]:
    return (replace(line, lead=(_INDENT, *line.lead)) for line in lines)
