"""The list at a call: earlier calls of the same AI message are executed first."""

from todo_tools._answers import answer_call
from todo_tools._records import TOOLS
from todo_tools._todos import TodoItem, TodoLimits
from todo_tools.state import todos_in
from todo_tools.transcript import pending_calls


def todos_at_call(state: object, call_id: str | None, limits: TodoLimits) -> list[TodoItem]:
    """The list that a call acts on.

    The state is from before the whole AI message. The todo calls before this one in that message
    are applied first; the channel folds their operations in the same order.
    """
    todos = todos_in(state)
    for call in pending_calls(state, call_id):
        name = call["name"]
        if name in TOOLS:
            todos = answer_call(name, call["args"], todos, limits).todos
    return todos
