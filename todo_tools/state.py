"""The checkpointed state: messages, the list, and the counters of the loop.

The `todos` channel folds operations; it also takes a whole list from the application. That the
fold goes through single updates, one after the other, makes it independent of how checkpoints
batch them, which is what `DeltaChannel` asks for.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Annotated, Any, NotRequired, cast
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import AnyMessage, convert_to_messages
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from todo_tools.clients import ClientTodo, from_client_todos, to_client_todos
from todo_tools.models import (
    ANY_LENGTH,
    DEFAULT_LIMITS,
    TodoItem,
    TodoLimits,
    is_list,
    is_mapping,
    validate_todos,
)
from todo_tools.operations import Operation, apply

TodosUpdate = list[TodoItem] | Operation | None
ClientTodosUpdate = list[ClientTodo] | TodosUpdate
ClientTodosReducer = Callable[[list[ClientTodo], ClientTodosUpdate], list[ClientTodo]]
TodosReducer = Callable[[list[TodoItem], TodosUpdate], list[TodoItem]]


def todos_reducer(limits: TodoLimits = DEFAULT_LIMITS) -> TodosReducer:
    """Make the reducer of a `todos` channel.

    Args:
        limits: How long a list may be that the application seeds or edits.

    Returns:
        A function of the list and an update. A list replaces the list (`[]` empties it) and is
        validated with a `ValueError`; an operation of the tools is applied; `None` changes nothing.

    Example:
        >>> reducer = todos_reducer(TodoLimits(max_todos=500))
        >>> class LongList(TodoState):
        ...     todos: NotRequired[Annotated[list[TodoItem], reducer]]
    """
    return _reducer(limits)


@lru_cache  # equal limits, same function: LangGraph compares channels by their reducer
def _reducer(limits: TodoLimits) -> TodosReducer:
    def fold_todos(todos: list[TodoItem], update: TodosUpdate) -> list[TodoItem]:
        if update is None:
            return todos
        return apply(todos, update) if is_mapping(update) else validate_todos(update, limits)

    return fold_todos


def client_todos_reducer(limits: TodoLimits = DEFAULT_LIMITS) -> ClientTodosReducer:
    """Make the reducer of a `todos` channel in the words of LangChain's clients.

    Args:
        limits: How long a list may be that the application or a client seeds or edits.

    Returns:
        A function that takes what that of `todos_reducer` takes, and whole lists in their words.
    """
    return _client_reducer(limits)


@lru_cache  # as above
def _client_reducer(limits: TodoLimits) -> ClientTodosReducer:
    def fold_client_todos(todos: list[ClientTodo], update: ClientTodosUpdate) -> list[ClientTodo]:
        if is_list(update):
            return to_client_todos(from_client_todos(update, limits))
        ours = from_client_todos(todos, ANY_LENGTH)
        return to_client_todos(todos_reducer(limits)(ours, cast("TodosUpdate", update)))

    return fold_client_todos


class LoopState(TypedDict, total=False):
    """What the loop remembers between turns; absent counters are zero."""

    in_a_row: int
    """Continuations since the list last changed or the user last spoke."""
    in_turn: int
    """Continuations since the user last spoke."""
    user_message: str
    """The id of the user's message that these counts belong to."""
    answers: int
    """How many answers stood before the model's last one, where a middleware notes it."""
    outcome: str | None
    """Why the agent was last let go (`todo_tools.continuation.Outcome`); `None` once it was sent
    back to work or changed the list."""


def merge_loop(loop: LoopState, update: LoopState | None) -> LoopState:
    """Reducer of the `todo_loop` channel: later values win, key by key."""
    return {**loop, **(update or {})}


class TodoState(TypedDict):
    """State of a graph with the todo tools; derive from it to add channels of your own.

    Seed or edit the list with plain dicts: `graph.invoke({"messages": [...], "todos": [...]})`,
    `graph.update_state(config, {"todos": [...]})`.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    """The history."""
    todos: NotRequired[Annotated[list[TodoItem], todos_reducer()]]
    """The list. Updates: a whole list, or what the tools write."""
    todo_loop: NotRequired[Annotated[LoopState, merge_loop]]
    """Counters and outcome of the loop; written by the loop and the tools, read by you."""


class ClientTodoState(TypedDict):
    """`TodoState` for threads that are looked at in LangChain's clients.

    `todos` stands in their words; `todo_tools.clients.from_client_todos` reads it in ours.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    todos: NotRequired[Annotated[list[ClientTodo], client_todos_reducer()]]
    todo_loop: NotRequired[Annotated[LoopState, merge_loop]]


def fold_todos_batch(todos: list[TodoItem], updates: Sequence[TodosUpdate]) -> list[TodoItem]:
    """The `todos` reducer of the default limits, in the form that `DeltaChannel` takes."""
    return reduce(todos_reducer(), updates, todos)


def add_messages_batch(messages: list[AnyMessage], updates: Sequence[Any]) -> list[AnyMessage]:
    """LangGraph's `add_messages` in the form that `DeltaChannel` takes."""
    return reduce(_add_messages, updates, messages)


def _add_messages(messages: list[AnyMessage], update: Any) -> list[AnyMessage]:
    """Add messages with ids that are the same on every replay.

    LangGraph gives message objects and dicts their ids before they are stored. A `("user", "hi")`
    or a bare string gets its id only here, each time the thread is read, so it must follow from
    what is stored: from the last message before it.
    """
    added = convert_to_messages(update if is_list(update) else [update])
    last = messages[-1].id if messages else ""
    for message in added:
        if message.id is None:
            message.id = str(uuid5(NAMESPACE_OID, f"{last}/{message.type}/{message.text}"))
        last = message.id
    return cast("list[AnyMessage]", add_messages(cast("Any", messages), cast("Any", added)))


class DeltaTodoState(TypedDict):
    """`TodoState` for long runs: checkpoints hold what changed, not the whole again.

    Behaves like `TodoState`. `DeltaChannel` is in beta in LangGraph, so it is not the default.
    """

    messages: Annotated[list[AnyMessage], DeltaChannel(add_messages_batch)]
    todos: NotRequired[Annotated[list[TodoItem], DeltaChannel(fold_todos_batch)]]
    todo_loop: NotRequired[Annotated[LoopState, merge_loop]]


def has_todos(state: object) -> bool:
    """Whether a state has the `todos` channel at all."""
    return "todos" in state if is_mapping(state) else hasattr(state, "todos")


def todos_in(state: object) -> list[TodoItem]:
    """The list of a state; empty where there is none yet.

    Raises:
        ValueError: An `Overwrite`, which LangGraph lets past the reducer, wrote something else.
    """
    return from_client_todos(_value(state, "todos") or [], ANY_LENGTH)


def messages_in(state: object) -> Sequence[AnyMessage]:
    """The history of a state."""
    return cast("Sequence[AnyMessage]", _value(state, "messages") or [])


def loop_in(state: object) -> LoopState:
    """The counters of a state; empty where the loop has not decided yet."""
    return cast("LoopState", _value(state, "todo_loop") or {})


def edited_calls(state: object) -> Mapping[str, Mapping[str, Any]]:
    """The calls of this turn that a person replaced, by call id.

    LangChain's `HumanInTheLoopMiddleware` leaves the AI message as it was and keeps them apart.
    """
    edited = _value(state, "hitl_edited_tool_calls")
    return edited if is_mapping(edited) else {}


def _value(state: object, key: str) -> object:
    """One channel of a state, which may be a dict or, in users' graphs, an object."""
    return state.get(key) if is_mapping(state) else getattr(state, key, None)
