"""Define how the channels of a thread take updates: the list, the messages, the loop, the blocks.

Updates are applied one at a time, so the result does not depend on how checkpoints batch them, as
`DeltaChannel` requires.
"""

import reprlib
from collections.abc import Sequence
from functools import reduce
from typing import Annotated, Any, cast

from langchain_core.messages import AnyMessage, convert_to_messages
from langgraph.channels import BinaryOperatorAggregate
from langgraph.errors import InvalidUpdateError
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict, override

from todo_tools._list.formats import ClientTodo, from_client_todos, own_format, to_client_todos
from todo_tools._list.operations import Operation, apply
from todo_tools._list.todos import TodoItem, is_mapping
from todo_tools._thread.events import Outcome

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
    """
    if update is None:
        return todos
    if isinstance(update, dict):
        return apply(own_format(todos), update)
    return from_client_todos(update)


def fold_client_todos(todos: list[ClientTodo], update: TodosUpdate) -> list[ClientTodo]:
    """Do the same as `fold_todos`, for a channel in the format of LangChain's clients."""
    if update is None:
        return todos
    return to_client_todos(fold_todos(own_format(todos), update))


def fold_todos_batch(todos: list[TodoItem], updates: Sequence[TodosUpdate]) -> list[TodoItem]:
    """Apply several updates with `fold_todos`, as `DeltaChannel` requires."""
    return reduce(fold_todos, updates, todos)


class TodosChannel(BinaryOperatorAggregate[Any]):
    """LangGraph's reducer channel, for values that subgraphs return unchanged.

    A subgraph returns its whole state. If others run in the same step, it would undo their changes.
    """

    @override
    def update(self, values: Sequence[Any]) -> bool:
        kept = [value for value in values if value != self.value]
        lists = [value for value in kept if isinstance(value, list)]
        if any(each != lists[0] for each in lists):
            raise InvalidUpdateError(
                "two nodes of one step returned different lists for 'todos', and one would undo "
                "the other; return operations from parallel nodes (todo_tools.operations), which "
                "are all applied"
            )
        return super().update(sorted(kept, key=lambda value: not isinstance(value, list)))


def as_messages(given: Sequence[Any]) -> list[AnyMessage]:
    """Convert messages from any form that LangChain accepts."""
    return cast("list[AnyMessage]", convert_to_messages(list(given)))


_Count = Annotated[int, Field(ge=0)]


@with_config(ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True))
class LoopState(TypedDict, total=False):
    """What the loop stores between its decisions; a missing counter is zero."""

    in_a_row: _Count
    """Continuations since the list last changed or the user last spoke."""
    in_turn: _Count
    """Continuations since the user's last message."""
    idle: _Count
    """Continuations since the agent last worked: got a new tool result."""
    user_message: str
    """The id of the user's last message; a message with another id resets the counters."""
    outcome: Outcome | None
    """Why the loop last stopped; `None` after a continuation or a change of the list by a call."""


PROGRESS: LoopState = {"in_a_row": 0, "outcome": None}
"""The update of a tool that changed the list; it resets the count in a row."""

_LOOP_STATE = TypeAdapter(LoopState)


def merge_loop(loop: LoopState, update: LoopState | None) -> LoopState:
    """Merge an update into the `todo_loop` channel; new values replace old ones, key by key.

    Raises:
        ValueError: `update` has an unknown key or an invalid value.
    """
    if update is None:
        return loop
    _validate("todo_loop", _LOOP_STATE, update)
    # Stored values are not checked here: only an `Overwrite`, which bypasses reducers, can store
    # invalid ones, and `valid_loop` ignores them.
    return cast("LoopState", {**(loop if isinstance(loop, dict) else {}), **update})


def valid_loop(stored: object) -> LoopState:
    """Return a stored `LoopState` without its unknown keys and invalid values."""
    try:
        return _LOOP_STATE.validate_python(stored)
    except ValidationError as error:
        invalid = {fault["loc"][:1] for fault in error.errors()}
        items = stored.items() if is_mapping(stored) else ()
        return cast("LoopState", {key: value for key, value in items if (key,) not in invalid})


def _validate(channel: str, adapter: TypeAdapter[Any], update: object) -> None:
    try:
        adapter.validate_python(update)
    except ValidationError as error:
        fault = error.errors()[0]
        place = "".join(f"[{reprlib.repr(key)}]" for key in fault["loc"])
        raise ValueError(
            f"{channel}{place} is invalid: {fault['msg']}, got "
            f"{reprlib.repr(fault['input'])}; leave it out, or pass the value from get_state"
        ) from None
