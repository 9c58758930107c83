"""Build the messages that the model reads: an append-only view of the history.

Every prompt repeats the earlier prompts byte for byte, and new text comes only after them. So the
provider's prompt cache stays valid, wherever its breakpoints are. Models that bind their reasoning
to the exact text before it keep working. The view is built for each call and never stored.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, TypeVar

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
from todo_tools._list.formatting import format_incomplete, format_todos, read_change
from todo_tools._list.todos import TodoItem, incomplete, require_whole_number
from todo_tools._thread.ids import stable_ids
from todo_tools._view.shown_history import shown_history
from todo_tools._view.shown_list import changed_list, due_block, listed_list, same_list, turns
from todo_tools.state import TodoBlocks, blocks_in
from todo_tools.transcript import continuation_lines

Message = TypeVar("Message", bound=BaseMessage)
ModelView = Callable[[Any], Sequence[BaseMessage]]
"""A function from the state to the messages for the model."""


def model_view(state: Any, *, remind_every: int = 10) -> list[AnyMessage]:
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
        `TodoMiddleware` there is one exception: other code changed the list between two model calls
        of one run.

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
    blocks = {**blocks_in(state), **due_block(state, at_newest=False)}
    return list(_answered(list(_viewed(shown_history(state), blocks, remind_every))))


def _viewed(
    messages: Sequence[AnyMessage], blocks: TodoBlocks, remind_every: int
) -> Iterator[AnyMessage]:
    """Yield each message as the model reads it; it depends only on the messages up to it."""
    known: list[TodoItem] = []
    reminders = _reminder_places(messages, remind_every)
    changed = [changed_list(message) for message in messages]
    closings = _closing_places(messages, changed)
    for at, place in enumerate(stable_ids(messages)):
        message, block = messages[at], blocks.get(place)
        todos = changed[at]
        if todos is None:
            viewed = _without_list(message, known)
        else:
            viewed = _shortened(message, todos, known, closes_turn=at in closings)
        known = _known_after(known, message, todos if block is None else block)
        if block is not None:
            viewed = _extended(viewed, prompts.list_block(format_todos(known)))
        elif at in reminders and incomplete(known):
            viewed = _extended(viewed, prompts.reminder(known))
        yield viewed


def _known_after(
    known: list[TodoItem], message: BaseMessage, shown: list[TodoItem] | None
) -> list[TodoItem]:
    """Return the list that the model knows after it has read a message."""
    if shown is not None:
        return shown
    listed = listed_list(message)
    # A listing shows marks instead of control characters, so prefer the known list's exact texts.
    return known if listed is None or same_list(known, listed) else listed


def _shortened(
    message: Message, todos: list[TodoItem], known: list[TodoItem], *, closes_turn: bool
) -> Message:
    """Shorten the result of a list change to what the model does not know yet."""
    text = message.text
    summary = text.partition("\n")[0]
    is_told = _after_summary(known, summary) == todos
    lines = [summary if is_told else text]
    if closes_turn and todos and (is_told or not incomplete(todos)):
        lines.append(prompts.progress(todos))
    content = "\n".join(lines) if is_told else "\n\n".join(lines)
    return message.model_copy(update={"content": content})


def _after_summary(known: list[TodoItem], summary: str) -> list[TodoItem] | None:
    """Infer the new list from the first line of a result; `None` if that is not possible."""
    if summary.startswith("Wrote"):
        return [{"text": todo["text"], "status": "not_started"} for todo in known]
    change = read_change(summary)
    if change is None:
        return known  # correct only if no item was inserted; the caller compares the lists
    status, indices = change
    return [
        {"text": todo["text"], "status": status} if index in indices else todo
        for index, todo in enumerate(known)
    ]


def _without_list(message: Message, known: list[TodoItem]) -> Message:
    """Remove the list from a continuation message if the model already knows these items."""
    lines = continuation_lines(message)
    if not lines or lines != format_incomplete(known):
        return message
    return message.model_copy(update={"content": message.text.replace(f"\n\n{lines}", "", 1)})


def _extended(message: Message, text: str) -> Message:
    """Append a text to a message; as a separate block if its content is a list of blocks."""
    if isinstance(message.content, str):
        content: Any = f"{message.content}\n\n{text}" if message.content else text
    else:
        content = [*message.content, {"type": "text", "text": text}]
    return message.model_copy(update={"content": content})


def _closing_places(
    messages: Sequence[BaseMessage], changed: Sequence[list[TodoItem] | None]
) -> set[int]:
    """Return the indices of the last list-changing result of each turn."""
    places: set[int] = set()
    for _, results in turns(messages):
        changes = [at for at in results if changed[at] is not None]
        places.update(changes[-1:])
    return places


def _reminder_places(messages: Sequence[BaseMessage], every: int) -> set[int]:
    """Return the indices of the results with a reminder: one after `every` turns without todos."""
    places: set[int] = set()
    calls = 0
    for answer, results in turns(messages):
        touched = any(call["name"] in TOOLS for call in answer.tool_calls) if answer else True
        calls = 0 if touched else calls + 1
        if calls and calls % every == 0:
            places.update(results[-1:])
    return places


def _answered(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """Yield the messages and add an error result for each tool call without a result.

    A call gets no result if its arguments are not valid JSON, or if the run was cancelled or failed
    while the tool ran. Providers reject a history with such a call. Only results in the same turn
    count, because some model servers use the same ids in every turn.
    """
    missing: list[ToolMessage] = []
    for at, message in enumerate(messages):
        if not isinstance(message, ToolMessage):
            yield from missing
            missing = []
        yield message
        if isinstance(message, AIMessage):
            answered = _answered_ids(messages[at + 1 :])
            yield from _failed(message.invalid_tool_calls, answered, prompts.NO_JSON)
            missing = list(_failed(message.tool_calls, answered, prompts.CUT_OFF))
    yield from missing


def _answered_ids(following: Sequence[AnyMessage]) -> set[str]:
    """Return the call ids of the results before the model's next answer."""
    turn = takewhile(lambda message: not isinstance(message, AIMessage), following)
    return {message.tool_call_id for message in turn if isinstance(message, ToolMessage)}


def _failed(
    calls: Sequence[ToolCall | InvalidToolCall], answered: set[str], reason: str
) -> Iterator[ToolMessage]:
    for call in calls:
        call_id = call["id"]
        if call_id and call_id not in answered:  # no result can name a call without an id
            yield ToolMessage(reason, name=call["name"] or "", tool_call_id=call_id, status="error")
