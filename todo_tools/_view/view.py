"""Build the messages that the model reads: an append-only view of the history.

Every prompt repeats the earlier prompts byte for byte, and new text comes only after them. So the
provider's prompt cache stays valid, wherever its breakpoints are. Models that bind their reasoning
to the exact text before it keep working. The view is built for each call and never stored.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    ToolMessage,
)

from todo_tools._calls.records import TOOLS
from todo_tools._list import prompts
from todo_tools._list.formatting import format_incomplete, format_todos
from todo_tools._list.todos import TodoItem, incomplete, require_whole_number
from todo_tools._thread.reading import Entry, Reading, Turn, read
from todo_tools._thread.transcript import continuation_lines
from todo_tools._view.blocks import due_block

ModelView = Callable[[Any], Sequence[BaseMessage]]
"""A function from the state to the messages for the model."""

REMIND_EVERY = 10
"""The default number of model calls without a todo call after which a reminder is shown."""


def model_view(state: Any, *, remind_every: int = REMIND_EVERY) -> list[AnyMessage]:
    """Return the messages to send to the model.

    Only two kinds of messages are added: an error for each tool call that never got a result, and
    continuations that are kept out of the history (`AutoContinue(store=False)`). Notices that the
    loop appended to answers are removed. Information about the list is added to existing messages:

    - A result of `write_todos` or `edit_todos` is cut to its first line if the model can infer the
      new list from that line. The last such result of a turn also gets a line of progress.
    - If the results do not show the current list, the whole list is appended to the newest message.
      This happens when the list was seeded or edited, or when results were summarized away.
    - After many model calls without a todo call, the progress is appended to a tool result.

    Args:
        state: The graph state, with `messages` and `todos`. It is not changed.
        remind_every: The progress is shown again after this number of model calls in a row without
            a todo call; at least 1.

    Returns:
        The messages. They begin with all messages of earlier prompts in the same thread. Without
        `TodoMiddleware` there are two exceptions: other code changed the list between two model
        calls of one run, or a run with a seeded list ended before a todo tool or the loop ran.

    Raises:
        TypeError: `remind_every` is not a whole number.
        ValueError: `remind_every` is smaller than 1, or `todos` holds something that is not a list
            of todos.

    Example:
        ```python
        def agent(state: TodoState):
            prompt = [SystemMessage(TODO_SYSTEM_PROMPT), *model_view(state)]
            return {"messages": [model.invoke(prompt)]}
        ```
    """
    require_whole_number("remind_every", remind_every, minimum=1)
    reading = read(state)
    due = due_block(reading, at_newest=False)
    return view_of(reading if due is None else reading.with_block(due), remind_every)


def view_of(reading: Reading, remind_every: int) -> list[AnyMessage]:
    """Return the messages of a reading as the model reads them."""
    turns = reading.turns
    closings = {at for turn in turns for at in _closing(turn, reading.entries)}
    reminders = set(_reminders(turns, reading.entries, remind_every))
    shown: list[AnyMessage] = []
    known: list[TodoItem] = []
    for at, entry in enumerate(reading.entries):
        message = entry.message
        if entry.changed:
            message = _shortened(entry, closes_turn=at in closings)
        elif message.type == "human":
            message = _without_list(message, known)
        if entry.shows is not None:
            known = entry.shows
        if entry.block is not None:
            message = _extended(message, prompts.list_block(format_todos(entry.block)))
        elif at in reminders and incomplete(known):
            message = _extended(message, prompts.reminder(known))
        shown.append(message)
    return list(_answered(shown, turns))


def _shortened(entry: Entry, *, closes_turn: bool) -> AnyMessage:
    """Shorten the result of a list change to what the model does not know yet."""
    text, todos = entry.message.text, entry.shows or []
    lines = [text.partition("\n")[0] if entry.told else text]
    if closes_turn and todos and (entry.told or not incomplete(todos)):
        lines.append(prompts.progress(todos))
    content = "\n".join(lines) if entry.told else "\n\n".join(lines)
    return entry.message.model_copy(update={"content": content})


def _without_list(message: AnyMessage, known: list[TodoItem]) -> AnyMessage:
    """Remove the list from a continuation message if the model already knows these items."""
    lines = continuation_lines(message)
    if not lines or lines != format_incomplete(known):
        return message
    return message.model_copy(update={"content": message.text.replace(f"\n\n{lines}", "", 1)})


def _extended(message: AnyMessage, text: str) -> AnyMessage:
    """Append a text to a message; as a separate block if its content is a list of blocks."""
    if isinstance(message.content, str):
        content: Any = f"{message.content}\n\n{text}" if message.content else text
    else:
        content = [*message.content, {"type": "text", "text": text}]
    return message.model_copy(update={"content": content})


def _closing(turn: Turn, entries: Sequence[Entry]) -> list[int]:
    """Return the index of the last list-changing result of a turn, in a list."""
    return [at for at in turn.results if entries[at].changed][-1:]


def _reminders(turns: Sequence[Turn], entries: Sequence[Entry], every: int) -> Iterator[int]:
    """Yield the indices of the results with a reminder: one after `every` turns without todos."""
    calls = 0
    for turn in turns:
        answer = None if turn.answer is None else entries[turn.answer].message
        touched = not isinstance(answer, AIMessage) or any(
            call["name"] in TOOLS for call in answer.tool_calls
        )
        calls = 0 if touched else calls + 1
        if calls and calls % every == 0:
            yield from turn.results[-1:]


def _answered(messages: Sequence[AnyMessage], turns: Sequence[Turn]) -> Iterator[AnyMessage]:
    """Yield the messages and add an error result for each tool call without a result.

    A call gets no result if its arguments are not valid JSON, or if the run was cancelled or failed
    while the tool ran. Providers reject a history with such a call. Only results in the same turn
    count, because some model servers use the same ids in every turn.
    """
    results = {turn.answer: turn.results for turn in turns}
    missing: list[ToolMessage] = []
    for at, message in enumerate(messages):
        if not isinstance(message, ToolMessage):
            yield from missing
            missing = []
        yield message
        if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
            given = (messages[result] for result in results[at])
            answered = {each.tool_call_id for each in given if isinstance(each, ToolMessage)}
            yield from _failed(message.invalid_tool_calls, answered, prompts.NO_JSON)
            missing = list(_failed(message.tool_calls, answered, prompts.CUT_OFF))
    yield from missing


def _failed(
    calls: Sequence[ToolCall | InvalidToolCall], answered: set[str], reason: str
) -> Iterator[ToolMessage]:
    for call in calls:
        call_id = call["id"]
        if call_id and call_id not in answered:  # no result can name a call without an id
            yield ToolMessage(reason, name=call["name"] or "", tool_call_id=call_id, status="error")
