"""Define the checkpointed state: messages, the list, and the counters of the loop.

The `todos` channel applies operations; it also accepts a whole list from the application. Updates
are applied one at a time, so the result does not depend on how checkpoints batch them, as
`DeltaChannel` requires.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages, messages_from_dict
from langgraph.channels import UntrackedValue
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from todo_tools._list.formats import TodosFormat
from todo_tools._list.operations import Operation, apply
from todo_tools._list.todos import LIST, TodoItem, is_list, is_mapping, is_todo, validate_todos
from todo_tools._thread.blocks import TodoBlocks, merge_blocks, valid_blocks
from todo_tools._thread.channels import LANGCHAIN_FORMAT, DeltaTodosChannel, TodosChannel
from todo_tools._thread.counters import LoopState, merge_loop, valid_counters
from todo_tools._thread.ids import stable_ids
from todo_tools.clients import ClientTodo, from_client_todos, to_client_todos

__all__ = [
    "ClientTodoState",
    "DeltaTodoState",
    "LoopState",
    "TodoBlocks",
    "TodoState",
    "TodosUpdate",
    "add_messages_batch",
    "blocks_in",
    "fold_client_todos",
    "fold_todos",
    "fold_todos_batch",
    "format_in",
    "has_blocks",
    "has_todos",
    "loop_in",
    "merge_blocks",
    "merge_loop",
    "messages_in",
    "run_in",
    "todos_in",
    "validate_todos",
]

TodosUpdate = list[TodoItem] | list[ClientTodo] | Operation | None
"""The updates that the `todos` channel accepts; see `fold_todos`."""


def fold_todos(todos: list[TodoItem], update: TodosUpdate) -> list[TodoItem]:
    """Apply an update to the list; this is the reducer of the `todos` channel.

    Args:
        todos: The list before the update, in either format; it is not changed.
        update: A whole list in either format, which replaces the old one (`[]` empties it); an
            operation of the tools; or `None`, which changes nothing.

    Returns:
        The list after the update, in this library's format.

    Raises:
        ValueError: `update` is something else; the error names the allowed values.

    Example:
        ```python
        todos = fold_todos([], [{"text": "Measure", "status": "not_started"}])
        assert fold_todos(todos, None) == todos
        assert fold_todos(todos, []) == []
        ```
    """
    if update is None:
        return todos
    if is_mapping(update):
        return apply(_own_format(todos), update)
    return from_client_todos(update)


def _own_format(stored: object) -> list[TodoItem]:
    """Convert the list of a channel to this library's format; do not copy it if it has it."""
    if is_list(stored) and all(map(is_todo, stored)):
        return stored
    return from_client_todos(stored)


def fold_client_todos(todos: list[ClientTodo], update: TodosUpdate) -> list[ClientTodo]:
    """Do the same as `fold_todos`, for a channel in the format of LangChain's clients."""
    if update is None:
        return todos
    return to_client_todos(fold_todos(_own_format(todos), update))


# Without the guard, agents that run as parallel subgraphs may each return it.
_RUN = UntrackedValue(bool, guard=False)


class TodoState(TypedDict):
    """The state of a graph with the todo tools; derive from it to add your own channels.

    Seed or edit the list with plain dicts: `graph.invoke({"messages": [...], "todos": [...]})`,
    `graph.update_state(config, {"todos": [...]})`. LangGraph stores the input of a run before the
    reducer checks it. So after an invalid list, `get_state` raises the same `ValueError` until the
    next valid input or update. To check a list first, call `validate_todos`.

    LangGraph's `create_react_agent` needs one more key: `remaining_steps: RemainingSteps` from
    `langgraph.managed`.

    Example:
        ```python
        class ReportState(TodoState):
            report: str

        builder = StateGraph(ReportState)
        ```
    """

    messages: Annotated[list[AnyMessage], add_messages]
    """The history."""
    todos: NotRequired[Annotated[list[TodoItem], LIST, TodosChannel(list, fold_todos)]]
    """The list. Update it with a whole list or with an operation."""
    todo_loop: NotRequired[Annotated[LoopState, merge_loop]]
    """The counters and the outcome of the loop. You can read them; the loop and the tools write
    them."""
    todo_blocks: NotRequired[Annotated[TodoBlocks, merge_blocks]]
    """Whole lists that were appended to messages in earlier prompts. The loop and the tools write
    them."""
    todo_run: NotRequired[Annotated[bool, _RUN]]
    """Whether the loop has sent the agent back to work in this run; never checkpointed."""


class ClientTodoState(TypedDict):
    """`TodoState` for graphs whose threads are shown in LangChain's clients.

    `todos` and the lists in events, artifacts and questions are in the format of these clients.
    Convert them with `todos_in` or `todo_tools.clients.from_client_todos`. To store only the new
    messages in each checkpoint, as `DeltaTodoState` does, derive a state with
    `messages: Annotated[list[AnyMessage], DeltaChannel(add_messages_batch)]`.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    todos: NotRequired[Annotated[list[ClientTodo], LIST, TodosChannel(list, fold_client_todos)]]
    todos_format: NotRequired[Annotated[Literal["langchain"], LANGCHAIN_FORMAT]]
    """Marks the format of the lists; no code needs to write this channel."""
    todo_loop: NotRequired[Annotated[LoopState, merge_loop]]
    todo_blocks: NotRequired[Annotated[TodoBlocks, merge_blocks]]
    todo_run: NotRequired[Annotated[bool, _RUN]]


def fold_todos_batch(todos: list[TodoItem], updates: Sequence[TodosUpdate]) -> list[TodoItem]:
    """Apply several updates with `fold_todos`, as `DeltaChannel` requires."""
    return reduce(fold_todos, updates, todos)


def add_messages_batch(messages: list[AnyMessage], updates: Sequence[Any]) -> list[AnyMessage]:
    """Apply several updates with LangGraph's `add_messages`, as `DeltaChannel` requires."""
    known = _as_messages(messages) if any(map(is_mapping, messages)) else messages
    return reduce(_add_messages, updates, known)


def _add_messages(messages: list[AnyMessage], update: Any) -> list[AnyMessage]:
    added = _as_messages(update if is_list(update) else [update])
    last = (messages[-1].id if messages else "") or ""
    for message, stable_id in zip(added, stable_ids(added, last), strict=True):
        message.id = stable_id
    return cast("list[AnyMessage]", add_messages(cast("Any", messages), cast("Any", added)))


def _as_messages(given: Sequence[Any]) -> list[AnyMessage]:
    """Convert messages from any form; LangGraph's development server replays them as dicts."""
    return cast("list[AnyMessage]", [_as_message(message) for message in given])


def _as_message(message: Any) -> BaseMessage:
    dumped: Mapping[str, Any] = message if is_mapping(message) else {}
    if dumped.get("type") in ("ai", "AIMessageChunk") and "response_metadata" in dumped:
        # `convert_to_messages` would drop the token counts and invalid tool calls of such dicts.
        return messages_from_dict([{"type": dumped["type"], "data": dumped}])[0]
    return convert_to_messages([cast("Any", message)])[0]


class DeltaTodoState(TypedDict):
    """`TodoState` for long runs: each checkpoint stores only the changes.

    It behaves like `TodoState`. It is not the default, because LangGraph's `DeltaChannel` is in
    beta.
    """

    messages: Annotated[list[AnyMessage], DeltaChannel(add_messages_batch)]
    todos: NotRequired[Annotated[list[TodoItem], LIST, DeltaTodosChannel(fold_todos_batch)]]
    todo_loop: NotRequired[Annotated[LoopState, merge_loop]]
    todo_blocks: NotRequired[Annotated[TodoBlocks, merge_blocks]]
    todo_run: NotRequired[Annotated[bool, _RUN]]


def run_in(state: object) -> bool:
    """Whether the loop has sent the agent back to work in the current run."""
    return bool(_value(state, "todo_run"))


def has_todos(state: object) -> bool:
    """Whether a state has the `todos` channel."""
    return "todos" in state if is_mapping(state) else hasattr(state, "todos")


def has_blocks(state: object) -> bool:
    """Whether a state has the `todo_blocks` channel."""
    return "todo_blocks" in state if is_mapping(state) else hasattr(state, "todo_blocks")


def todos_in(state: object) -> list[TodoItem]:
    """Return the list of a state in this library's format; empty if there is none yet.

    Raises:
        ValueError: The state has an invalid list, because an `Overwrite` bypassed the reducer.
    """
    return _own_format(_value(state, "todos") or [])


def format_in(state: object) -> TodosFormat:
    """Return the format of the lists in a state; the state class determines it."""
    return "langchain" if _value(state, "todos_format") == "langchain" else "todo_tools"


def messages_in(state: object) -> Sequence[AnyMessage]:
    """Return the messages of a state."""
    return cast("Sequence[AnyMessage]", _value(state, "messages") or [])


def loop_in(state: object) -> LoopState:
    """Return the counters of the loop; empty before the loop's first decision.

    Invalid values are left out, as if the loop had never written them.
    """
    return valid_counters(_value(state, "todo_loop") or {})


def blocks_in(state: object) -> TodoBlocks:
    """Return the recorded blocks of a state; empty if it has none or lacks the channel.

    Invalid blocks are left out.
    """
    return valid_blocks(_value(state, "todo_blocks"))


def _value(state: object, key: str) -> object:
    """Return one channel of a state, which may be a dict or an object with attributes."""
    return state.get(key) if is_mapping(state) else getattr(state, key, None)
