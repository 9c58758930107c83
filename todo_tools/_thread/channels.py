"""Define how the channels of a thread take updates: the list, the counters, the outcome.

Updates are applied one at a time, so the result does not depend on how checkpoints batch them, as
`DeltaChannel` requires.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Annotated, Any, Self

from langgraph.channels import BinaryOperatorAggregate, LastValue
from langgraph.errors import InvalidUpdateError
from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict, override

from todo_tools._list.formats import ClientTodo, from_client_todos, own_format, to_client_todos
from todo_tools._list.operations import Operation, apply
from todo_tools._list.todos import TodoItem

TodosUpdate = list[TodoItem] | list[ClientTodo] | Operation | None
"""The updates that the `todos` channel accepts; see `fold_todos`."""


def fold_todos(todos: list[TodoItem], update: TodosUpdate) -> list[TodoItem]:
    """Apply a whole list of either format, an operation, or `None` for no change."""
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
    """LangGraph's reducer channel, for values that subgraphs return unchanged beside others."""

    @override
    def update(self, values: Sequence[Any]) -> bool:
        kept = [value for value in values if value != self.value]
        lists: list[list[Any]] = [value for value in kept if isinstance(value, list)]
        if any(each != lists[0] for each in lists):
            raise InvalidUpdateError(
                "two nodes of one step returned different lists for 'todos', and one would undo "
                "the other; return operations from parallel nodes (todo_tools.operations), which "
                "are all applied"
            )
        return bool(super().update(sorted(kept, key=lambda value: not isinstance(value, list))))


class OutcomeChannel(LastValue[Any]):
    """The last outcome; a new run forgets it."""

    # A run begins by loading the checkpoint that its predecessor finished. LangGraph finishes the
    # channels also before tasks that were made with `Send`, but does not load them again then.
    __slots__ = ("_is_finished", "_is_of_earlier_run")

    def __init__(self, typ: Any, key: str = "") -> None:
        super().__init__(typ, key)
        self.value: Any = None
        self._is_finished = self._is_of_earlier_run = False

    @override
    def checkpoint(self) -> Any:
        return [self.value, self._is_finished]

    @override
    def from_checkpoint(self, checkpoint: Any) -> Self:
        made = self.__class__(self.typ, self.key)
        if isinstance(checkpoint, list | tuple):
            made.value, made._is_of_earlier_run = checkpoint
        return made

    @override
    def copy(self) -> Self:
        made = self.from_checkpoint([self.value, self._is_of_earlier_run])
        made._is_finished = self._is_finished
        return made

    @override
    def update(self, values: Sequence[Any]) -> bool:
        before = self.checkpoint()
        kept = None if self._is_of_earlier_run else self.value
        # A subgraph beside the loop returns `None`.
        said = [value for value in values if value is not None]
        self.value = said[-1] if said else None if values else kept
        self._is_finished = self._is_of_earlier_run = False
        return bool(before != self.checkpoint())

    @override
    def finish(self) -> bool:
        self._is_finished, before = True, self._is_finished
        return not before


_Count = Annotated[int, Field(ge=0)]


@with_config(ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True))
class LoopState(TypedDict, total=False):
    """What the loop stores between its decisions; a missing counter is zero."""

    in_a_row: _Count
    """Continuations since the list last changed or the user last spoke."""
    in_turn: _Count
    """Continuations since the user's last message."""
    idle: _Count
    """Continuations since the agent last worked."""
    user_message: str
    """The id of the user's last message; a message with another id resets the counters."""


PROGRESS: LoopState = {"in_a_row": 0}
"""The update of a tool that changed the list; it resets the counter `in_a_row`."""

_LOOP_STATE = TypeAdapter(LoopState)


def merge_loop(loop: LoopState, update: LoopState | None) -> LoopState:
    """Merge an update into the counters, key by key; pydantic refuses one that is invalid."""
    return loop if update is None else {**loop, **_LOOP_STATE.validate_python(update)}
