"""Find the calls that a killed or stopped program left without a result."""

from collections.abc import Iterator

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import ToolCall
from langgraph.types import StateSnapshot

from graphs.terminal.run_lines import answered_in
from graphs.terminal.tool_views import call_view
from graphs.terminal.tools.ask_first import answered
from todo_tools.rendering.lowlevel import Line, Span
from todo_tools.state import messages_in

_ONLY_THE_LIST = frozenset({"write_todos", "list_todos", "edit_todos"})


def cut_off_lines(snapshot: StateSnapshot) -> tuple[Line, ...]:
    """Name the calls that run again when the thread is resumed.

    They may have been carried out in part; a command that had ended does not run again. Left out
    are calls that wait for a person, which have not begun, and todo calls, which only change the
    state.
    """
    if snapshot.interrupts or "tools" not in snapshot.next:
        return ()
    text = "cut off, runs again unless it had ended: "
    lead = (Span(f"⚠ {text}", "warning", plain=f"! {text}"),)
    calls = [call for call in _unanswered(snapshot) if call["name"] not in _ONLY_THE_LIST]
    views = [call_view(call["name"], call["args"]).lines for call in calls]
    return tuple(line for first, *others in views for line in (Line(first.body, lead), *others))


def _unanswered(snapshot: StateSnapshot) -> Iterator[ToolCall]:
    messages = messages_in(snapshot.values)
    answers = [message for message in messages if isinstance(message, AIMessage)]
    # A finished call's writes are stored before the other calls of its step have finished.
    kept = (answered_in({task.name: task.result}) for task in snapshot.tasks)
    results = answered(messages).union(*kept)
    yield from (call for call in answers[-1].tool_calls if call["id"] not in results)
