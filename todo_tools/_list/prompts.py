"""The texts that models read, except the tools' answers and parameter descriptions.

The snippet and the eight guidelines are copied exactly from the tools' specification. No function
here puts the text of a todo into an instruction. Such a text occurs only in list lines and in the
line of progress, where it cannot imitate another line.
"""

from collections.abc import Sequence

from todo_tools._list.formatting import one_line
from todo_tools._list.todos import TodoItem, incomplete

PROMPT_SNIPPET = (
    "Manage a todo list: write (replace/append/insert), list, edit (start/complete/abandon by "
    "indices)"
)

PROMPT_GUIDELINES = (
    "Use `write_todos` with mode `'replace'` to create or replace the full todo list at the start "
    "of a task.",
    "Use `write_todos` with mode `'append'` to add new items to the end of the existing list.",
    "Use `write_todos` with mode `'insert'` and an `'index'` parameter to insert items at a "
    "specific position.",
    "Use `edit_todos` with action `'start'` and an array of 0-based indices to begin work on "
    "specific items.",
    "Use `edit_todos` with action `'complete'` and an array of 0-based indices to mark items as "
    "done.",
    "Use `edit_todos` with action `'abandon'` and an array of 0-based indices when items are no "
    "longer needed.",
    "Use `list_todos` to review the current todo list.",
    "Always call `edit_todos` with action `'start'` on the next item before working on it, then "
    "`'complete'` when done.",
)

# A todo call in a separate turn costs ten times as much as one in a turn with other tool calls.
_TOGETHER = (
    "Call the todo tools in one turn with the tools of the work: complete an item, start the next "
    "one and begin on it."
)

TODO_SYSTEM_PROMPT = "\n".join(
    [
        f"{PROMPT_SNIPPET}.",
        "",
        *(f"- {guideline}" for guideline in (*PROMPT_GUIDELINES, _TOGETHER)),
    ]
)
"""A system prompt for an agent with the three tools; add your own prompt before or after it."""

TODO_LIGHT_PROMPT = (
    "For work of three or more steps you can keep a todo list with `write_todos` and mark its "
    "items with `edit_todos`. Make these calls in the same turn as calls of the work. A simple "
    "request needs no list."
)
"""A shorter system prompt for models that plan well by themselves.

With strong models, turns that only update the list cause much of its cost. This prompt does not
ask for a status change at every step. The loop works with both prompts.
"""

WRITE_DESCRIPTION = (
    "Write the todo list; new items are not started. For work of three or more steps, not for "
    "simple requests."
)
LIST_DESCRIPTION = "Show the todo list: status, index and text of each item."
EDIT_DESCRIPTION = (
    "Set the status of todo items: 'start' before working on one, 'complete' when it is done, "
    "'abandon' when it is not needed. Call it in one turn with the next calls of the work."
)

OUTSIDE_GRAPH = (
    "Error: the todo tools work only inside a LangGraph graph whose state has the 'todos' channel "
    "of todo_tools.TodoState; nothing was changed. Run this tool in a ToolNode of such a graph."
)
"""The answer of a tool that is called outside a graph with a todo list."""

CUT_OFF = "Error: the run ended before this tool answered; it may have done part of its work."
NO_JSON = "Error: the arguments of this call were not valid JSON, so the tool was not run."
"""The results that the model reads for calls that have none."""


NOTE = "[Automatic note: the todo list]"
"""The beginning of each text about the list that is appended to an existing message."""


def list_block(lines: str) -> str:
    """Format the whole list, to append it where the tool results do not show it."""
    return f"{NOTE}\n{lines}"


def progress(todos: Sequence[TodoItem]) -> str:
    """Format the progress on one line: the count and the items in progress, or the next item."""
    open_items = incomplete(todos)
    if not open_items:
        return "Every item is finished. Now answer the user."
    finished = f"{len(todos) - len(open_items)}/{len(todos)} done."
    started = [entry for entry in open_items if entry[1]["status"] == "in_progress"]
    if not started:
        return f"{finished} Next: {_brief(*open_items[0])}"
    shown = "; ".join(_brief(*entry) for entry in started[:_SHOWN_ITEMS])
    more = len(started) - _SHOWN_ITEMS
    return f"{finished} Now: {shown}{f'; {more} more' if more > 0 else ''}"


def reminder(todos: Sequence[TodoItem]) -> str:
    """Format the progress as a reminder, for when the list was not used for many calls."""
    return f"{NOTE} {progress(todos)}"


def _brief(index: int, todo: TodoItem) -> str:
    text = one_line(todo["text"])
    cut = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return f"[{index}] {cut}"


_SHOWN_ITEMS = 3
# Enough to recognise an item: the model has read its whole text in the list.
_SHOWN_CHARACTERS = 40


CONTINUE = (
    "[Automatic note] The todo list has incomplete items. Go on working; complete each item when "
    "it is done, abandon what cannot or need not be done. If you need an answer from the user, "
    "or something blocks you, say so without calling a tool, and simply stop."
)


def continuation(instruction: str, lines: str, action: str | None, index: int) -> str:
    """Build the continuation message: instruction, incomplete items, next call."""
    following = f"\n\nNext: call edit_todos with action '{action}' on [{index}]." if action else ""
    return f"{instruction}\n\n{lines}{following}"


OUT_OF_STEPS = "[Automatic note] No more tools were called: this run is near its recursion limit."
"""Appended to an answer whose tool calls were dropped; the user and the model read it."""


def gate_refusal(*, has_todos: bool) -> str:
    """Return the error for a tool call that the gate refuses: no item is in progress."""
    first = "" if has_todos else "write your plan with write_todos, then "
    return (
        "Error: no todo is in progress, so this tool was not run; "
        f"{first}call edit_todos with action 'start' on the next item, and call it again."
    )
