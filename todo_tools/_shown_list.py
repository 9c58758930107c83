"""What a prompt shows of the list, and the blocks that it needs besides the results of the tools.

Pure: messages and recorded blocks give the list that their reader knows. Where that is not the list
of the state, a block with the whole list is due; it is recorded under the id of the message that it
is appended to, so that every later prompt shows it again in the same place.
"""

from collections.abc import Iterator, Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from todo_tools._formatting import format_todos, one_line, read_lines
from todo_tools._ids import stable_ids
from todo_tools._shown_history import shown_history
from todo_tools._todos import TodoItem, incomplete
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
    """The list that a reader of these messages knows: the one that was shown last."""
    places = list(stable_ids(messages))
    for at in reversed(range(len(messages))):
        shown = shown_list(messages[at], blocks.get(places[at]))
        if shown is not None:
            return shown
    return []


def shown_list(message: BaseMessage, block: list[TodoItem] | None) -> list[TodoItem] | None:
    """The list that a message or the block appended to it shows; `None` for most messages."""
    if block is not None:
        return block
    changed = changed_list(message)
    return listed_list(message) if changed is None else changed


def changed_list(message: BaseMessage) -> list[TodoItem] | None:
    """The list that a result of `write_todos` or `edit_todos` shows; `None` for other messages.

    Also `None` where a middleware has replaced the text, for example to save tokens.
    """
    todos = list_after(message)
    if todos is None or not isinstance(message.content, str):
        return None
    # One line a todo, below the summary and an empty line.
    return todos if message.content.count("\n") == max(len(todos), 1) + 1 else None


def listed_list(message: BaseMessage) -> list[TodoItem] | None:
    """The list that a `list_todos` result shows."""
    details = details_of(message)
    if details is None or "error" in details or details["action"] != "list":
        return None
    if message.text == format_todos([]):
        return []
    items = list(read_lines(message.text))
    return [item[1] for item in items if item] if all(items) else None


def due_block(state: object, *, at_newest: bool) -> TodoBlocks:
    """The block that the prompt for a state needs and that is not recorded yet.

    Args:
        state: The graph state, or one with the messages of a single request.
        at_newest: Append it to the newest message: right where each call of the model is seen and
            the block is recorded at once. Otherwise it goes where it was at every call of the model
            since the list changed: to the newest message of the user, or to the last tool result of
            the newest turn that showed the list, whichever is later.

    Returns:
        The list under the id of a message; empty where no block is needed, or none can be.
    """
    messages = shown_history(state)
    if not has_todos(state):
        return {}
    todos, blocks = todos_in(state), blocks_in(state)
    if same_list(known_list(messages, blocks), todos) or _is_over(todos, messages):
        return {}
    at = _newest(messages) if at_newest else _stable_place(messages)
    return {} if at is None else {list(stable_ids(messages))[at]: todos}


def record_block(state: object, answer_at: int) -> dict[str, TodoBlocks]:
    """What to write to the state so that later prompts show the block of an earlier one.

    A view cannot write. In a graph without `TodoMiddleware` the tools and the loop record it, as
    soon as they run.

    Args:
        state: The graph state.
        answer_at: The index of the answer that the model gave to that prompt.

    Returns:
        The update; empty where nothing is due, or the graph has no channel for it.
    """
    if not has_blocks(state):
        return {}
    prompt = {
        "messages": messages_in(state)[:answer_at],
        "todos": todos_in(state),
        "todo_blocks": blocks_in(state),
        "todo_loop": loop_in(state),
    }
    due = due_block(prompt, at_newest=False)
    return {"todo_blocks": due} if due else {}


def same_list(known: list[TodoItem], todos: list[TodoItem]) -> bool:
    """Whether a reader knows the list, as far as characters can be shown."""
    if known == todos:
        return True
    return [_as_read(todo) for todo in known] == [_as_read(todo) for todo in todos]


def _as_read(todo: TodoItem) -> tuple[str, str]:
    return one_line(todo["text"]), todo["status"]


def _is_over(todos: list[TodoItem], messages: Sequence[BaseMessage]) -> bool:
    """Whether the list was finished before the user's last message: it is of no use any more."""
    since = messages[last_user_message(messages) or 0 :]
    finished = bool(todos) and not incomplete(todos)
    return finished and all(changed_list(message) is None for message in since)


def _newest(messages: Sequence[AnyMessage]) -> int | None:
    """The newest message that a block can be appended to."""
    for at in reversed(range(len(messages))):
        if isinstance(messages[at], HumanMessage | ToolMessage):
            return at
    return None


def _stable_place(messages: Sequence[AnyMessage]) -> int | None:
    shown = -1
    for _, results in turns(messages):
        if any(shown_list(messages[at], None) is not None for at in results):
            shown = results[-1]
    spoken = last_user_message(messages)
    at = max(shown, -1 if spoken is None else spoken)
    return at if at >= 0 else _newest(messages)


def turns(messages: Sequence[BaseMessage]) -> Iterator[tuple[AIMessage | None, list[int]]]:
    """Each answer of the model with the indices of the tool results after it."""
    answer: AIMessage | None = None
    results: list[int] = []
    for at, message in enumerate(messages):
        if isinstance(message, AIMessage):
            yield answer, results
            answer, results = message, []
        elif isinstance(message, ToolMessage):
            results.append(at)
    yield answer, results
