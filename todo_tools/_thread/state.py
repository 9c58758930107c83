"""Define the checkpointed state of a thread, and read it."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NotRequired, cast

from langchain_core.messages import AnyMessage, BaseMessage, convert_to_messages
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import (
    _messages_delta_reducer,  # pyright: ignore[reportPrivateUsage]  # documented, but named so
    add_messages,
)
from pydantic import Field
from typing_extensions import TypedDict

from todo_tools._list.formats import ClientTodo, own_format
from todo_tools._list.todos import TodoItem
from todo_tools._thread.channels import (
    LoopState,
    OutcomeChannel,
    TodosChannel,
    fold_client_todos,
    fold_todos,
    fold_todos_batch,
    merge_loop,
)
from todo_tools._thread.events import Outcome

_LIST = Field(description="The todo list. A whole list replaces it; leave it out to keep it.")
TodoList = Annotated[list[TodoItem], _LIST, TodosChannel(list, fold_todos)]
"""The channel of the list, to put into any state class. A whole list or an operation updates it."""
ClientTodoList = Annotated[list[ClientTodo], _LIST, TodosChannel(list, fold_client_todos)]
"""The same in the format of LangChain's clients."""
TodoLoop = Annotated[LoopState, TodosChannel(dict, merge_loop)]
"""The channel of the loop's counters. You can read them; the loop and the tools write them."""
TodoOutcome = Annotated[Outcome | None, OutcomeChannel]
"""The channel that says why the loop of the last run stopped; `None` if it did not."""


class TodoState(TypedDict):
    """The state of a graph with the todo tools; derive from it to add your own channels.

    Seed or edit the list with plain dicts: `graph.invoke({"messages": [...], "todos": [...]})`,
    `graph.update_state(config, {"todos": [...]})`. For a dataclass or a Pydantic model, put
    `TodoList`, `TodoLoop` and `TodoOutcome` into your class.

    Example:
        ```python
        class ReportState(TodoState):
            report: str

        builder = StateGraph(ReportState)
        ```
    """

    messages: Annotated[list[AnyMessage], add_messages]
    """The history."""
    todos: NotRequired[TodoList]
    """The list."""
    todo_loop: NotRequired[TodoLoop]
    """The counters of the loop."""
    todo_outcome: NotRequired[TodoOutcome]
    """Why the loop of the last run stopped."""


class DeltaTodoState(TypedDict):
    """`TodoState` for long runs: each checkpoint stores only the changes.

    LangGraph's `DeltaChannel` is in beta. Of whole lists from parallel subgraphs, the last one
    wins; return operations instead.
    """

    messages: Annotated[list[AnyMessage], DeltaChannel(cast("Any", _messages_delta_reducer))]
    todos: NotRequired[Annotated[list[TodoItem], _LIST, DeltaChannel(fold_todos_batch)]]
    todo_loop: NotRequired[TodoLoop]
    todo_outcome: NotRequired[TodoOutcome]


class ClientTodoState(TypedDict):
    """`TodoState` for graphs whose threads are shown in LangChain's clients.

    `todos` is in the format of these clients; read it with `todos_in`. Events, artifacts and
    questions have this package's format.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    todos: NotRequired[ClientTodoList]
    todo_loop: NotRequired[TodoLoop]
    todo_outcome: NotRequired[TodoOutcome]


def as_messages(given: Iterable[Any]) -> list[AnyMessage]:
    """Convert messages from any form that LangChain accepts."""
    return cast("list[AnyMessage]", convert_to_messages(list(given)))


def messages_in(state: object) -> Sequence[AnyMessage]:
    """Return the messages of a state, converted from any form that chat models accept.

    Raises:
        TypeError: `state` is a list, such as the messages themselves.
    """
    if isinstance(state, list):
        raise TypeError("state must be the graph state with 'messages' and 'todos', got a list")
    messages = cast("Sequence[AnyMessage]", value_in(state, "messages") or [])
    is_converted = all(isinstance(each, BaseMessage) for each in messages)
    return messages if is_converted else as_messages(messages)


def todos_in(state: object) -> list[TodoItem]:
    """Return the list of a state in this package's format; empty if there is none yet.

    Raises:
        ValueError: The state has an invalid list, because an `Overwrite` bypassed the reducer.
    """
    return own_format(value_in(state, "todos") or [])


def loop_in(state: object) -> LoopState:
    """Return the counters of the loop; empty before its first decision."""
    return cast("LoopState", value_in(state, "todo_loop") or {})


def has_channel(state: object, name: str) -> bool:
    """Whether a state has a channel."""
    return name in state if isinstance(state, dict) else hasattr(state, name)


def value_in(state: object, key: str) -> object:
    """Return one channel of a state, which may be a dict or an object with attributes."""
    get = getattr(state, "get", None)
    return get(key) if callable(get) else getattr(state, key, None)
