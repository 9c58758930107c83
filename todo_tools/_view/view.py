"""Build the messages that the model reads: an append-only view of the history.

Every prompt repeats the earlier prompts byte for byte, and new text comes only after them. So the
provider's prompt cache stays valid, wherever its breakpoints are. Models that bind their reasoning
to the exact text before it keep working. The view is built for each call and never stored.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.utils import count_tokens_approximately

from todo_tools._calls.records import TOOLS
from todo_tools._list import prompts
from todo_tools._list.todos import TodoItem, incomplete, is_blank, is_mapping, require_whole_number
from todo_tools._thread.notes import Message, note_of
from todo_tools._thread.reading import Entry, Reading, Turn, read, read_messages
from todo_tools._thread.state import as_messages
from todo_tools._view.blocks import due_block
from todo_tools._view.folding import folded, folds_of

ModelView = Callable[[Any], Sequence[BaseMessage]]
"""A function from the state to the messages for the model."""

_SUBAGENT = "task"  # the tool of deepagents that gives work to a subagent

REMIND_EVERY = 10
"""The default number of model calls without a todo call after which a reminder is shown."""


def model_view(
    state: Any, *, remind_every: int | None = REMIND_EVERY, fold_finished: bool = False
) -> list[AnyMessage]:
    """Return the messages to send to the model: the history, and what is new about the list.

    A result that changed the list is shortened to what is new. Where a prompt does not show the
    list of the state, the whole list is appended to an existing message. Each call without a result
    gets an error result. The page "Your own graph" of the documentation has all rules.

    Args:
        state: The graph state, with `messages` and `todos`. It is not changed.
        remind_every: The progress is shown again after this number of model calls in a row without
            a todo call; at least 1. `None`: there are no reminders.
        fold_finished: Whether to leave out the calls and results of finished items. The state keeps
            everything, and so do branches. Add `TODO_FOLD_PROMPT` to the system prompt.

    Returns:
        The messages. They begin with all messages of earlier prompts of the thread. But with
        `fold_finished`, a prompt loses the work of an item at its end when the item is finished.

    Raises:
        TypeError: `remind_every` is not a whole number, or `state` is a list, such as the messages.
        ValueError: `remind_every` is smaller than 1, or `todos` is not a list of todos.

    Example:
        ```python
        def agent(state: TodoState):
            prompt = [SystemMessage(TODO_SYSTEM_PROMPT), *model_view(state)]
            return {"messages": [model.invoke(prompt)]}
        ```
    """
    if remind_every is not None:
        require_whole_number("remind_every", remind_every, minimum=1)
    reading = read(state)
    due = due_block(reading)
    reading = reading if due is None else reading.with_block(due)
    return view_of(reading, remind_every, fold_finished=fold_finished)


def view_of(
    reading: Reading, remind_every: int | None = REMIND_EVERY, *, fold_finished: bool = False
) -> list[AnyMessage]:
    """Return the messages of a reading as the model reads them."""
    turns = reading.turns
    shown = _shown(reading, turns, remind_every)
    kept = folded(shown, folds_of(reading.entries, turns, shown)) if fold_finished else shown
    return [*_answered(kept, turns)]


def _shown(reading: Reading, turns: Sequence[Turn], remind_every: int | None) -> list[AnyMessage]:
    """Return each message with the text about the list that is added to it."""
    closings = dict(_closings(turns, reading.entries))
    reminders = set(_reminders(turns, reading.entries, remind_every) if remind_every else ())
    shown, known = list[AnyMessage](), reading.known_before()
    for at, entry in enumerate(reading.entries):
        message = entry.message
        if entry.changed:
            message = _shortened(entry, known[at], closings.get(at))
        elif isinstance(message, AIMessage) and _is_empty(message):
            message = message.model_copy(update={"content": prompts.EMPTY_ANSWER})
        if entry.block is not None:
            message = extended(message, prompts.list_block(entry.block))
        elif at in reminders and (todos := known[at + 1]) and incomplete(todos):
            message = extended(message, prompts.reminder(todos))
        shown.append(message)
    return shown


def count_folded_tokens(messages: Iterable[Any], *, tools: Sequence[Any] | None = None) -> int:
    """Count the tokens of a prompt with `fold_finished=True`, approximately.

    Pass it to a summarizer of LangChain or deepagents as `token_counter`, so that a run whose
    folded prompt fits is not summarized.

    Args:
        messages: The whole history.
        tools: The tools of the request, which count too.

    Returns:
        The number of tokens, as LangChain's `count_tokens_approximately` counts them.

    Example:
        ```python
        assert count_folded_tokens([HumanMessage("Hello.")]) > 0
        ```
    """
    prompt = view_of(read_messages(as_messages(messages)), fold_finished=True)
    return count_tokens_approximately(prompt, tools=list(tools) if tools else None)


def _closings(
    turns: Sequence[Turn], entries: Sequence[Entry]
) -> Iterator[tuple[int, dict[str, bool]]]:
    """Yield the last list-changing result of each turn, and what its line of progress says."""
    for turn in turns:
        changes = [at for at in turn.results if entries[at].changed]
        if not changes or turn.answer is None:
            continue
        answer = cast("AIMessage", entries[turn.answer].message)
        calls = [*answer.tool_calls, *answer.invalid_tool_calls]
        others = {call["id"] for call in calls if call["name"] not in TOOLS}
        results = [cast("ToolMessage", entries[at].message) for at in turn.results]
        succeeded = {each.tool_call_id for each in results if each.status != "error"}
        failed = not others <= succeeded and any(_is_tick(entries[at]) for at in changes)
        yield changes[-1], {"works": bool(others), "failed": failed}


def _is_tick(entry: Entry) -> bool:
    operation = note_of(entry.message).get("operation", {})
    return operation.get("status") == "completed" and bool(operation.get("indices"))


def _shortened(
    entry: Entry, known: list[TodoItem] | None, closing: dict[str, bool] | None
) -> AnyMessage:
    """Shorten the result of a list change to what the model does not know yet."""
    lines = [entry.message.text if entry.summary is None else entry.summary]
    if entry.summary is not None and entry.shows == known and entry.block is None:
        lines.append(prompts.UNCHANGED)
    if closing and entry.shows:
        is_short = entry.summary is not None
        lines.append(prompts.progress(entry.shows, texts=is_short, **closing))
    content = ("\n\n" if entry.summary is None else "\n").join(lines)
    return entry.message.model_copy(update={"content": content})


def _is_empty(answer: AIMessage) -> bool:
    calls = answer.tool_calls or answer.invalid_tool_calls
    parts = [answer.content] if isinstance(answer.content, str) else answer.content
    return not calls and all(map(_is_blank_part, parts))


def _is_blank_part(part: Any) -> bool:
    """Whether a part of an answer is only blank text; Anthropic's empty answers have no parts."""
    text = part.get("text") if is_mapping(part) and part.get("type") == "text" else part
    return isinstance(text, str) and is_blank(text)


def extended(message: Message, text: str) -> Message:
    """Append a text to a message; as a separate block if its content is a list of blocks."""
    if isinstance(message.content, str):
        content: Any = f"{message.content}\n\n{text}" if message.content else text
    else:
        content = [*message.content, {"type": "text", "text": f"\n\n{text}"}]
    return message.model_copy(update={"content": content})


def _reminders(turns: Sequence[Turn], entries: Sequence[Entry], every: int) -> Iterator[int]:
    """Yield the results with a reminder: after `every` turns without a todo call, and subagents."""
    calls = 0
    for turn in turns:
        answer = None if turn.answer is None else entries[turn.answer].message
        called = {call["name"] for call in getattr(answer, "tool_calls", [])}
        touched = answer is None or not called.isdisjoint(TOOLS)
        calls = 0 if touched else calls + 1
        if (calls and calls % every == 0) or (_SUBAGENT in called and not touched):
            yield from turn.results[-1:]


def _answered(messages: Sequence[AnyMessage | None], turns: Sequence[Turn]) -> Iterator[AnyMessage]:
    """Yield the messages without gaps, and an error for each call of a turn without a result."""
    results = {turn.answer: turn.results for turn in turns}
    missing: list[ToolMessage] = []
    seen = set[str]()
    for at, message in enumerate(messages):
        if message is None:
            continue
        if not isinstance(message, ToolMessage):
            yield from missing
            missing = []
        elif message.tool_call_id in seen:
            continue  # a review node rejected the call, and it ran all the same
        else:
            seen.add(message.tool_call_id)
        yield message
        if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
            seen = set[str]()
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
