"""Build the messages that the model reads: an append-only view of the history.

Every prompt repeats the earlier prompts byte for byte, and new text comes only after them. So the
provider's prompt cache stays valid, wherever its breakpoints are. Models that bind their reasoning
to the exact text before it keep working. The view is built for each call and never stored.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    ToolCall,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.messages.utils import count_tokens_approximately

from todo_tools._calls.records import TOOLS
from todo_tools._list import prompts
from todo_tools._list.formatting import format_items
from todo_tools._list.todos import (
    TodoItem,
    incomplete,
    is_blank,
    is_mapping,
    require_whole_number,
)
from todo_tools._thread.reading import Entry, Reading, Turn, read, read_messages
from todo_tools._thread.transcript import continuation_lines, is_from_user, note_of
from todo_tools._view.folding import folded, folds_of

ModelView = Callable[[Any], Sequence[BaseMessage]]
"""A function from the state to the messages for the model."""

_SUBAGENT = "task"  # the tool of deepagents that gives work to a subagent

REMIND_EVERY = 10
"""The default number of model calls without a todo call after which a reminder is shown."""


def model_view(
    state: Any, *, remind_every: int | None = REMIND_EVERY, fold_finished: bool = False
) -> list[AnyMessage]:
    """Return the messages to send to the model.

    Only two kinds of messages are added: an error for each tool call that never got a result, and
    continuations that are kept out of the history (`AutoContinue(store=False)`). Notices that the
    loop appended to answers are removed. Information about the list is added to existing messages:

    - A result of `write_todos` or `edit_todos` is cut to its first line if the model can infer the
      new list from that line. The last such result of a turn also gets a line of progress.
    - If the results do not show the current list, the whole list is appended to the newest message
      of the user or of a tool. This happens when the list was seeded or edited, or when results
      were summarized away.
    - After many model calls without a todo call, and after the work of a deepagents subagent
      (`task`), the progress is appended to a tool result, as a reminder.
    - With `fold_finished`, the work of finished items is left out.

    Args:
        state: The graph state, with `messages` and `todos`. It is not changed.
        remind_every: The progress is shown again after this number of model calls in a row without
            a todo call; at least 1. `None`: there are no reminders.
        fold_finished: Whether to leave out the calls and results of finished items. The state keeps
            everything, and so do branches. Add `TODO_FOLD_PROMPT` to the system prompt.

    Returns:
        The messages. They begin with all messages of earlier prompts in the same thread. But with
        `fold_finished`, a prompt loses the work of an item at its end when the item is finished.
        Without `TodoMiddleware`, other code may change the list between two model calls of one run,
        or a run with a seeded list may end before a todo tool or the loop ran.

    Raises:
        TypeError: `remind_every` is not a whole number, or `state` is a list, such as the messages.
        ValueError: `remind_every` is smaller than 1, or `todos` holds something that is not a list
            of todos.

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
    return _without_empty_answers(_answered(kept, turns))


def _shown(reading: Reading, turns: Sequence[Turn], remind_every: int | None) -> list[AnyMessage]:
    """Return each message with what is said about the list."""
    closings = {at for turn in turns for at in _closing(turn, reading.entries)}
    reminders = set(_reminders(turns, reading.entries, remind_every) if remind_every else ())
    shown: list[AnyMessage] = []
    known: list[TodoItem] | None = []
    for at, entry in enumerate(reading.entries):
        message = entry.message
        if entry.changed:
            message = _shortened(entry, known, closes_turn=at in closings)
        elif isinstance(message, HumanMessage):
            message = _without_list(message, known)
        elif isinstance(message, AIMessage) and _is_empty(message):
            message = message.model_copy(update={"content": prompts.EMPTY_ANSWER})
        known = entry.shows if entry.shows is not None or entry.lost else known
        if entry.block is not None:
            message = _extended(message, prompts.list_block(entry.block))
        elif at in reminders and known and incomplete(known):
            message = _extended(message, prompts.reminder(known))
        shown.append(message)
    return shown


def count_folded_tokens(messages: Iterable[Any], *, tools: Sequence[Any] | None = None) -> int:
    """Count the tokens of a prompt with `fold_finished=True`, approximately.

    Pass it to a summarizer of LangChain or deepagents, as in
    `SummarizationMiddleware(model, token_counter=count_folded_tokens)`. Then a run whose folded
    prompt fits is not summarized.

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
    history = cast("list[AnyMessage]", convert_to_messages(list(messages)))
    prompt = view_of(read_messages(history), fold_finished=True)
    return count_tokens_approximately(prompt, tools=list(tools) if tools else None)


def count_left_out(messages: Sequence[AnyMessage]) -> int:
    """Count the tokens that `fold_finished=True` left out of the prompts of a history, roughly."""
    reading = read_messages(messages)
    turns = reading.turns
    folds = folds_of(reading.entries, turns, _shown(reading, turns, REMIND_EVERY))
    later_calls = [len(turns) - 1 - turn for turn, _ in folds.saved]
    saved = sum(size * calls for (_, size), calls in zip(folds.saved, later_calls, strict=True))
    return saved // _CHARACTERS_OF_A_TOKEN


_CHARACTERS_OF_A_TOKEN = 4  # as in LangChain's `count_tokens_approximately`


def _shortened(entry: Entry, known: list[TodoItem] | None, *, closes_turn: bool) -> AnyMessage:
    """Shorten the result of a list change to what the model does not know yet."""
    text, todos = entry.message.text, entry.shows or []
    lines = [text.partition("\n")[0] if entry.told else text]
    if entry.told and todos == known and entry.block is None:
        lines.append(prompts.UNCHANGED)
    if closes_turn and todos:
        lines.append(prompts.progress(todos, texts=entry.told))
    content = "\n".join(lines) if entry.told else "\n\n".join(lines)
    return entry.message.model_copy(update={"content": content})


def _is_empty(answer: AIMessage) -> bool:
    calls = answer.tool_calls or answer.invalid_tool_calls
    parts = [answer.content] if isinstance(answer.content, str) else answer.content
    return not calls and all(map(_is_blank_part, parts))


def _is_blank_part(part: Any) -> bool:
    """Whether a part of an answer is only blank text; Anthropic's empty answers have no parts."""
    text = part.get("text") if is_mapping(part) and part.get("type") == "text" else part
    return isinstance(text, str) and is_blank(text)


def _without_list(message: AnyMessage, known: list[TodoItem] | None) -> AnyMessage:
    """Remove the list from a continuation message if the model already knows these items."""
    lines = continuation_lines(message)
    if not lines or known is None or lines != format_items(incomplete(known)):
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
    """Yield the indices of the results with a reminder.

    There is one after `every` turns without a todo call, and one after each work of a subagent.
    """
    calls = 0
    for turn in turns:
        answer = None if turn.answer is None else entries[turn.answer].message
        called = {call["name"] for call in getattr(answer, "tool_calls", [])}
        touched = answer is None or not called.isdisjoint(TOOLS)
        calls = 0 if touched else calls + 1
        if (calls and calls % every == 0) or (_SUBAGENT in called and not touched):
            yield from turn.results[-1:]


def _answered(messages: Sequence[AnyMessage | None], turns: Sequence[Turn]) -> Iterator[AnyMessage]:
    """Yield the messages without gaps, and add an error result for each call without a result.

    A call gets no result if its arguments are not valid JSON, or if the run was cancelled or failed
    while the tool ran. Providers reject a history with such a call. Only results in the same turn
    count, because some model servers use the same ids in every turn.
    """
    results = {turn.answer: turn.results for turn in turns}
    missing: list[ToolMessage] = []
    for at, message in enumerate(messages):
        if message is None:
            continue
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


def _without_empty_answers(messages: Iterable[AnyMessage]) -> list[AnyMessage]:
    """Leave out each empty answer, and append the message after it to the message before.

    A model that reads an empty answer gives the next one. Only continuations and texts of other
    code are appended. Before a message of the user, or one with pictures, a placeholder takes the
    place of the answer, because some chat templates refuse two messages of a user in a row.
    """
    kept: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, HumanMessage) and _end_empty(kept) and _is_added_text(message):
            kept[-2:] = [_extended(kept[-2], message.text)]
        else:
            kept.append(message)
    return kept


def _is_added_text(message: HumanMessage) -> bool:
    """Whether the loop or other code wrote the message, and it is nothing but a text."""
    return isinstance(message.content, str) and not is_from_user(message)


def _end_empty(messages: Sequence[AnyMessage]) -> bool:
    """Whether the last message is an empty answer."""
    return (
        len(messages) > 1
        and isinstance(messages[-1], AIMessage)
        and messages[-1].content == prompts.EMPTY_ANSWER
        and isinstance(messages[-2], ToolMessage | HumanMessage)
    )


def _failed(
    calls: Sequence[ToolCall | InvalidToolCall], answered: set[str], reason: str
) -> Iterator[ToolMessage]:
    for call in calls:
        call_id = call["id"]
        if call_id and call_id not in answered:  # no result can name a call without an id
            yield ToolMessage(reason, name=call["name"] or "", tool_call_id=call_id, status="error")


def needs_block(reading: Reading) -> bool:
    """Whether the messages of a prompt do not show the list of the state."""
    return reading.todos not in (None, reading.known)


def due_block(reading: Reading) -> int | None:
    """Return the index of the message that needs a block; `None` if no block is needed or possible.

    Every model call must compute the same place, because the block may not be noted yet: the
    newest message of the user, the loop or the application, or the last tool result of the newest
    turn that showed the list. The later of the two is used.
    """
    if not needs_block(reading):
        return None
    entries = reading.entries
    shows = {at for at, entry in enumerate(entries) if entry.shows is not None or entry.lost}
    places = [turn.results[-1] for turn in reading.turns if not shows.isdisjoint(turn.results)]
    places += reading.told[-1:]
    return max(places) if places else reading.last(_takes_block)


def newest_place(prompt: Reading, stored: Collection[str | None]) -> int | None:
    """Return the index of the newest message for a block that is noted at once.

    Args:
        prompt: The messages that the model is sent; other middleware may have changed them.
        stored: The ids of the stored messages. Nobody can find the block of another message later.
    """
    answer = prompt.last_answer()
    new = range(0 if answer is None else answer + 1, len(prompt.entries))
    places = [at for at in reversed(new) if _takes_block(prompt.entries[at].message)]
    found = (at for at in places if prompt.entries[at].stored.id in stored)
    return next(found, places[0] if places else prompt.last(_takes_block))


def _takes_block(message: AnyMessage) -> bool:
    return isinstance(message, HumanMessage | ToolMessage)


def unnoted_block(reading: Reading) -> int | None:
    """Return the index of the message at which the last prompt showed a block that nobody noted."""
    answer = reading.last_answer()
    if answer is not None and "shown" in note_of(reading.entries[answer].stored):
        return None  # the middleware has noted it
    return due_block(reading.until(len(reading.entries) if answer is None else answer))


def record_block(reading: Reading) -> list[AnyMessage]:
    """Return the message of the last prompt with its block, to store it again with this note.

    `model_view` cannot write to the state. In a graph without `TodoMiddleware`, the tools and the
    loop note the block when they run next.
    """
    at = unnoted_block(reading)
    if at is None or reading.entries[at].stored.id is None:
        return []
    return [reading.entries[at].with_note(reading.todos or [])]
