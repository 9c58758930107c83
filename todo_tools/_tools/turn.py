"""Make the parallel todo calls of one AI message behave as if they ran one after the other."""

from typing import cast

from langchain_core.messages import AIMessage

from todo_tools._calls.answers import after_calls
from todo_tools._calls.arguments import CallError
from todo_tools._calls.records import TOOLS
from todo_tools._list.todos import TodoItem, TodoLimits
from todo_tools._thread.state import messages_in, todos_in
from todo_tools._thread.transcript import find_call, pending_calls


def list_before(state: object, call_id: str | None, limits: TodoLimits) -> list[TodoItem]:
    """Return the list before a call: after the earlier calls of its AI message.

    Every call receives the state from before the message; the channel applies the operations of all
    calls in the same order. Whether a check or another middleware refuses an earlier call is not
    known here. The operation of this call then changes nothing, or the same items as here.

    Args:
        state: The graph state that the call received.
        call_id: The id of the call.
        limits: The limits of the todo tools.

    Raises:
        CallError: The call has no id, or the id of another call of its message.
    """
    if not call_id:
        raise CallError("this call has no id, so it was not run; call again", "no call id")
    messages, todos = messages_in(state), todos_in(state)
    found = find_call(messages, call_id)
    if found is None:
        return todos
    ids = [call["id"] for call in cast("AIMessage", messages[found[0]]).tool_calls]
    if ids.count(call_id) > 1:
        raise CallError(
            "another call of this turn has the same id, so this one was not run; call again",
            "repeated call id",
        )
    pending = pending_calls(state, call_id)
    # Calls without an id of their own are refused.
    own = [call for call in pending if call["id"] and ids.count(call["id"]) == 1]
    return after_calls(((call["name"], call["args"]) for call in own), todos, limits)


def follows_todo_call(state: object, call_id: str | None) -> bool:
    """Whether the AI message has an earlier todo call whose result is not known yet."""
    return any(call["name"] in TOOLS for call in pending_calls(state, call_id))
