"""Compute which list a prompt shows, and add the whole list as a block if it is outdated.

The model knows the list from the tool results and from the blocks of earlier prompts. If that list
differs from the state, the next prompt needs a block with the whole list. The block is recorded
under the id of the message that it is appended to. So every later prompt repeats it in the same
place. The functions here have no side effects.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from todo_tools._list.formatting import format_todos, one_line, read_lines
from todo_tools._list.todos import TodoItem, incomplete
from todo_tools._thread.ids import stable_ids
from todo_tools._view.shown_history import shown_history
from todo_tools.state import (
    TodoBlocks,
    blocks_in,
    has_blocks,
    has_todos,
    loop_in,
    messages_in,
    todos_in,
)
from todo_tools.transcript import details_of, last_user_message, list_after


def known_list(messages: Sequence[BaseMessage], blocks: TodoBlocks) -> list[TodoItem]:
    """Return the list that these messages show last."""
    places = list(stable_ids(messages))
    for at in reversed(range(len(messages))):
        shown = shown_list(messages[at], blocks.get(places[at]))
        if shown is not None:
            return shown
    return []


def shown_list(message: BaseMessage, block: list[TodoItem] | None) -> list[TodoItem] | None:
    """Return the list that a message or its block shows; `None` for most messages."""
    if block is not None:
        return block
    changed = changed_list(message)
    return listed_list(message) if changed is None else changed


def changed_list(message: BaseMessage) -> list[TodoItem] | None:
    """Return the list in a `write_todos` or `edit_todos` result; `None` for other messages.

    Also return `None` if middleware replaced the text, for example to save tokens.
    """
    todos = list_after(message)
    if todos is None or not isinstance(message.content, str):
        return None
    # One line for each todo, after the summary and an empty line.
    return todos if message.content.count("\n") == max(len(todos), 1) + 1 else None


def listed_list(message: BaseMessage) -> list[TodoItem] | None:
    """Return the list in a `list_todos` result; `None` for other messages."""
    details = details_of(message)
    if details is None or "error" in details or details["action"] != "list":
        return None
    if message.text == format_todos([]):
        return []
    items = list(read_lines(message.text))
    return [item[1] for item in items if item] if all(items) else None


def due_block(state: object, *, at_newest: bool) -> TodoBlocks:
    """Return the block that the next prompt needs and that is not recorded yet.

    Args:
        state: The graph state, or a copy with the messages of one request.
        at_newest: Append the block to the newest message. Use this only if every model call is
            intercepted and the block is recorded at once. Otherwise every call must compute the
            same place: the user's newest message, or the last tool result of the newest turn that
            showed the list. The later of the two is used.

    Returns:
        The list under the id of a message; empty if no block is needed or possible.
    """
    messages = shown_history(state)
    if not has_todos(state):
        return {}
    todos, blocks = todos_in(state), blocks_in(state)
    if same_list(known_list(messages, blocks), todos) or _is_over(todos, messages):
        return {}
    at = _newest(messages) if at_newest else _stable_place(messages)
    return {} if at is None else {list(stable_ids(messages))[at]: todos}


def block_update(block: TodoBlocks, state: object) -> dict[str, Any]:
    """Build the state update that records a block.

    It also removes the blocks of messages that are no longer in the history. Otherwise a run whose
    history is summarized again and again would store more and more blocks.
    """
    if not block:
        return {}
    places = set(stable_ids(shown_history(state)))
    removed = {place: None for place in blocks_in(state) if place not in places}
    return {"todo_blocks": {**removed, **block}}


def record_block(state: object, answer_at: int) -> dict[str, Any]:
    """Build the state update that records the block of an earlier prompt for later ones.

    `model_view` cannot write to the state. In a graph without `TodoMiddleware`, the tools and the
    loop record the block when they run next.

    Args:
        state: The graph state.
        answer_at: The index of the model's answer to that prompt.

    Returns:
        The update; empty if there is no block to record, or the graph has no channel for it.
    """
    if not has_blocks(state):
        return {}
    prompt = {
        "messages": messages_in(state)[:answer_at],
        "todos": todos_in(state),
        "todo_blocks": blocks_in(state),
        "todo_loop": loop_in(state),
    }
    return block_update(due_block(prompt, at_newest=False), state)


def same_list(known: list[TodoItem], todos: list[TodoItem]) -> bool:
    """Whether two lists look the same to a reader, who sees marks for invisible characters."""
    if known == todos:
        return True
    return [_as_read(todo) for todo in known] == [_as_read(todo) for todo in todos]


def _as_read(todo: TodoItem) -> tuple[str, str]:
    return one_line(todo["text"]), todo["status"]


def _is_over(todos: list[TodoItem], messages: Sequence[BaseMessage]) -> bool:
    """Whether the list was finished before the user's last message, so no prompt needs it."""
    since = messages[last_user_message(messages) or 0 :]
    finished = bool(todos) and not incomplete(todos)
    return finished and all(changed_list(message) is None for message in since)


def _newest(messages: Sequence[AnyMessage]) -> int | None:
    """Return the index of the newest message that a block can be appended to."""
    for at in reversed(range(len(messages))):
        if isinstance(messages[at], HumanMessage | ToolMessage):
            return at
    return None


def _stable_place(messages: Sequence[AnyMessage]) -> int | None:
    places = [
        results[-1]
        for _, results in turns(messages)
        if any(shown_list(messages[at], None) is not None for at in results)
    ]
    spoken = last_user_message(messages)
    if spoken is not None:
        places.append(spoken)
    return max(places, default=_newest(messages))


def turns(messages: Sequence[BaseMessage]) -> Iterator[tuple[AIMessage | None, list[int]]]:
    """Yield each answer of the model with the indices of the tool results after it."""
    answer: AIMessage | None = None
    results: list[int] = []
    for at, message in enumerate(messages):
        if isinstance(message, AIMessage):
            yield answer, results
            answer, results = message, []
        elif isinstance(message, ToolMessage):
            results.append(at)
    yield answer, results
