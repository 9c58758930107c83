"""The checkpointed state: messages, the list, and the counters of the loop.

The `todos` channel folds operations; it also takes a whole list from the application. Updates are
applied one at a time, so the result does not depend on how checkpoints batch them, as
`DeltaChannel` requires.
"""

import reprlib
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages, messages_from_dict
from langgraph.channels import UntrackedValue
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import add_messages
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from todo_tools._channels import DeltaTodosChannel, TodosChannel
from todo_tools._formats import LANGCHAIN_FORMAT, TodosFormat
from todo_tools._ids import stable_ids
from todo_tools._operations import Operation, apply
from todo_tools._todos import LIST, TodoItem, is_list, is_mapping, is_todo, validate_todos
from todo_tools.clients import ClientTodo, from_client_todos, to_client_todos
from todo_tools.events import Outcome

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
"""What the `todos` channel takes; see `fold_todos`."""


def fold_todos(todos: list[TodoItem], update: TodosUpdate) -> list[TodoItem]:
    """Reducer of the `todos` channel.

    Args:
        todos: The list before, also in the format of LangChain's clients; it is not changed.
        update: A whole list in either format, which replaces it (`[]` empties it); an operation of
            the tools; or `None`, which changes nothing.

    Returns:
        The list after, in the pack's own format.

    Raises:
        ValueError: `update` is something else; says what, and what is allowed.

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
    """The list of a channel in the pack's own format; without a copy where it already is."""
    if is_list(stored) and all(map(is_todo, stored)):
        return stored
    return from_client_todos(stored)


def fold_client_todos(todos: list[ClientTodo], update: TodosUpdate) -> list[ClientTodo]:
    """`fold_todos`, for a channel that keeps its list in the format of LangChain's clients."""
    if update is None:
        return todos
    return to_client_todos(fold_todos(_own_format(todos), update))


_Count = Annotated[int, Field(ge=0)]


@with_config(ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True))
class LoopState(TypedDict, total=False):
    """What the loop remembers; absent counters are zero."""

    in_a_row: _Count
    """Continuations since the list last changed or the user last spoke."""
    in_turn: _Count
    """Continuations since the user's last message."""
    idle: _Count
    """Continuations since the model last called a tool."""
    heard: list[str]
    """The ids of the newest messages that are not new any more, whoever wrote them."""
    user_message: str
    """Written by version 0.1.0 instead of `heard`: the id of the user's last message."""
    continuations: dict[str, dict[str, str]]
    """Continuations that are not in the history (`AutoContinue(store=False)`), each with its `text`
    and its `lines`, by the id of the message that it follows."""
    answers: _Count
    """Number of AI messages before the model's latest answer; set by the middleware."""
    steps_left: _Count
    """Steps that LangGraph's `recursion_limit` left at that answer; set by the middleware."""
    round_steps: _Count
    """Steps between the model's latest two answers; set by the middleware."""
    outcome: Outcome | None
    """Why the loop last stopped; `None` once it sent the agent back to work or the list changed."""
    refused: str | None
    """Which item the application's check refused to complete last, and why; `None` once the list
    changed."""


_LOOP_STATE = TypeAdapter(LoopState)


def merge_loop(loop: LoopState, update: LoopState | None) -> LoopState:
    """Reducer of the `todo_loop` channel: later values win, key by key.

    Raises:
        ValueError: `update` holds something that the loop does not write.
    """
    if update is None:
        return loop
    try:
        _LOOP_STATE.validate_python(update)
    except ValidationError as error:
        fault = error.errors()[0]
        place = "".join(f"[{reprlib.repr(key)}]" for key in fault["loc"])
        raise ValueError(
            f"todo_loop{place} is not what the loop writes: {fault['msg']}, got "
            f"{reprlib.repr(fault['input'])}; leave it out, or pass what get_state returned"
        ) from None
    return {**loop, **update}


TodoBlocks = dict[str, list[TodoItem]]
"""Lists that prompts show besides the results of the tools, by the id of the message that each is
appended to (`todo_tools.model_view`)."""


def merge_blocks(blocks: TodoBlocks, update: Mapping[str, list[TodoItem]] | None) -> TodoBlocks:
    """Reducer of the `todo_blocks` channel: recorded once, a block stays.

    Raises:
        ValueError: `update` is not a dict of lists of todos by message id.
    """
    if update is None:
        return blocks
    if not is_mapping(update) or not all(isinstance(key, str) for key in update):
        raise ValueError(
            "todo_blocks must be a dict from message ids to lists of todos, got "
            f"{reprlib.repr(update)}; leave it out, or pass what get_state returned"
        )
    return {**{key: validate_todos(todos) for key, todos in update.items()}, **blocks}


class TodoState(TypedDict):
    """State of a graph with the todo tools; derive from it to add channels of your own.

    Seed or edit the list with plain dicts: `graph.invoke({"messages": [...], "todos": [...]})`,
    `graph.update_state(config, {"todos": [...]})`. LangGraph stores the input of a run before the
    list in it can be refused: until the next valid input or update, `get_state` raises the same
    `ValueError`. `validate_todos` checks a list beforehand.

    LangGraph's `create_react_agent` needs one more key: `remaining_steps: RemainingSteps`, from
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
    """The list. Updates: a whole list, or what the tools write."""
    todo_loop: NotRequired[Annotated[LoopState, merge_loop]]
    """Counters and outcome of the loop; written by the loop and the tools, read by you."""
    todo_blocks: NotRequired[Annotated[TodoBlocks, merge_blocks]]
    """Lists that prompts show besides the results of the tools; written by the loop and the
    tools."""
    todo_run: NotRequired[Annotated[bool, UntrackedValue]]
    """Whether the loop has sent the agent back to work in this run; never checkpointed."""


class ClientTodoState(TypedDict):
    """`TodoState` for threads that people look at in LangChain's clients.

    `todos` is in the format of these clients, and so are the lists in events, artifacts and
    questions; `todos_in` and `todo_tools.clients.from_client_todos` convert them. For checkpoints
    that hold only the new messages, as with `DeltaTodoState`, derive a state with
    `messages: Annotated[list[AnyMessage], DeltaChannel(add_messages_batch)]`.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    todos: NotRequired[Annotated[list[ClientTodo], LIST, TodosChannel(list, fold_client_todos)]]
    todos_format: NotRequired[Annotated[Literal["langchain"], LANGCHAIN_FORMAT]]
    """Tells the tools, the loop and clients the format; nobody needs to write it."""
    todo_loop: NotRequired[Annotated[LoopState, merge_loop]]
    todo_blocks: NotRequired[Annotated[TodoBlocks, merge_blocks]]
    todo_run: NotRequired[Annotated[bool, UntrackedValue]]


def fold_todos_batch(todos: list[TodoItem], updates: Sequence[TodosUpdate]) -> list[TodoItem]:
    """`fold_todos`, in the form that `DeltaChannel` takes."""
    return reduce(fold_todos, updates, todos)


def add_messages_batch(messages: list[AnyMessage], updates: Sequence[Any]) -> list[AnyMessage]:
    """LangGraph's `add_messages`, in the form that `DeltaChannel` takes."""
    known = _as_messages(messages) if any(map(is_mapping, messages)) else messages
    return reduce(_add_messages, updates, known)


def _add_messages(messages: list[AnyMessage], update: Any) -> list[AnyMessage]:
    added = _as_messages(update if is_list(update) else [update])
    last = (messages[-1].id if messages else "") or ""
    for message, stable_id in zip(added, stable_ids(added, last), strict=True):
        message.id = stable_id
    return cast("list[AnyMessage]", add_messages(cast("Any", messages), cast("Any", added)))


def _as_messages(given: Sequence[Any]) -> list[AnyMessage]:
    """Messages in any form; LangGraph's development server replays a thread as dicts."""
    return cast("list[AnyMessage]", [_as_message(message) for message in given])


def _as_message(message: Any) -> BaseMessage:
    dumped: Mapping[str, Any] = message if is_mapping(message) else {}
    if dumped.get("type") in ("ai", "AIMessageChunk") and "response_metadata" in dumped:
        # Of these, `convert_to_messages` loses token counts and calls whose arguments are no JSON.
        return messages_from_dict([{"type": dumped["type"], "data": dumped}])[0]
    return convert_to_messages([cast("Any", message)])[0]


class DeltaTodoState(TypedDict):
    """`TodoState` for long runs: checkpoints hold what changed, not the whole again.

    Behaves like `TodoState`. `DeltaChannel` is in beta in LangGraph, so it is not the default.
    """

    messages: Annotated[list[AnyMessage], DeltaChannel(add_messages_batch)]
    todos: NotRequired[Annotated[list[TodoItem], LIST, DeltaTodosChannel(fold_todos_batch)]]
    todo_loop: NotRequired[Annotated[LoopState, merge_loop]]
    todo_blocks: NotRequired[Annotated[TodoBlocks, merge_blocks]]
    todo_run: NotRequired[Annotated[bool, UntrackedValue]]


def run_in(state: object) -> bool:
    """Whether the loop has sent the agent back to work in the run of a state."""
    return bool(_value(state, "todo_run"))


def has_todos(state: object) -> bool:
    """Whether a state has the `todos` channel at all."""
    return "todos" in state if is_mapping(state) else hasattr(state, "todos")


def has_blocks(state: object) -> bool:
    """Whether a state has the `todo_blocks` channel."""
    return "todo_blocks" in state if is_mapping(state) else hasattr(state, "todo_blocks")


def todos_in(state: object) -> list[TodoItem]:
    """The list of a state, in the pack's own format; empty where there is none yet.

    Raises:
        ValueError: An `Overwrite`, which LangGraph lets past the reducer, wrote something else.
    """
    return _own_format(_value(state, "todos") or [])


def format_in(state: object) -> TodosFormat:
    """The format of the lists of a graph, which its state class decides."""
    return "langchain" if _value(state, "todos_format") == "langchain" else "todo_tools"


def messages_in(state: object) -> Sequence[AnyMessage]:
    """The history of a state."""
    return cast("Sequence[AnyMessage]", _value(state, "messages") or [])


def loop_in(state: object) -> LoopState:
    """The counters of a state; empty where the loop has not decided yet."""
    return cast("LoopState", _value(state, "todo_loop") or {})


def blocks_in(state: object) -> TodoBlocks:
    """The recorded blocks of a state; empty where it has none, or no channel for them."""
    return cast("TodoBlocks", _value(state, "todo_blocks") or {})


def _value(state: object, key: str) -> object:
    """One channel of a state, which may be a dict or, in users' graphs, an object."""
    return state.get(key) if is_mapping(state) else getattr(state, key, None)
