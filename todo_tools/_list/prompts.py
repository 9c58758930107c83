"""The texts that models read, except the tools' answers and parameter descriptions.

The snippet and the eight guidelines are copied exactly from the tools' specification. No function
here puts the text of a todo into an instruction. Such a text occurs only in list lines and in the
line of progress, where it cannot imitate another line.
"""

from collections.abc import Sequence

from todo_tools._list.formatting import format_todos, one_line
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

# A weak model plays with the list instead of working, unless it is told where the work is done. A
# todo call in a separate turn costs ten times as much as one in a turn with other tool calls.
_WORK = (
    "The list only keeps track of the work, which your other tools do. Todo calls need no turn of "
    "their own: make them beside other calls. Complete an item beside the last call of its work; "
    "if that call fails, start the item again."
)
_ABANDON = "Abandon what cannot be done, and say so in your answer."

TODO_SYSTEM_PROMPT = "\n".join(
    [
        f"{PROMPT_SNIPPET}.",
        "",
        *(f"- {guideline}" for guideline in (*PROMPT_GUIDELINES, f"{_WORK} {_ABANDON}")),
    ]
)
"""A system prompt for an agent with the three tools; add your own prompt before or after it."""

TODO_LIGHT_PROMPT = (
    "For work that takes more than a few rounds of calls, keep a todo list with `write_todos` and "
    f"`edit_todos`. {_WORK} You need not start items otherwise. {_ABANDON}"
)
"""A shorter system prompt for models that plan well by themselves; it asks for no `start`."""

WRITE_DESCRIPTION = "Write the todo list; new items are not started. Not for simple requests."
LIST_DESCRIPTION = "Show the todo list."
EDIT_DESCRIPTION = (
    "Set the status of todo items, several at once: 'start', 'complete' beside the last call of "
    "their work, 'abandon' when it is not needed or cannot be done."
)

OUTSIDE_GRAPH = (
    "Error: the todo tools work only inside a LangGraph graph whose state has the 'todos' channel "
    "of todo_tools.TodoState; nothing was changed. Give create_agent the TodoMiddleware, or "
    "run this tool in a ToolNode of such a graph."
)
"""The answer of a tool that is called outside a graph with a todo list."""

CUT_OFF = "Error: the run ended before this tool answered; it may have done part of its work."
NO_JSON = "Error: the arguments of this call were not valid JSON, so the tool was not run."
"""The results that the model reads for calls that have none."""


TODO_FOLD_PROMPT = (
    "The calls and results of finished items leave this conversation; call a tool again to see its "
    "result again. Beside the call that completes an item, write in your text what later items and "
    "your answer need."
)
"""An addition to the system prompt for `fold_finished=True`; `TodoMiddleware` adds it itself."""

FOLDED = "[Left out: the item is finished. Call again if needed.]"
"""Shown instead of a result whose item is finished, in a turn with a todo call."""


def folded_calls(number: int) -> str:
    """Say on the line of a tick how much of its work a prompt leaves out."""
    calls = "1 call" if number == 1 else f"{number} calls"
    return f"{calls} of its work {'is' if number == 1 else 'are'} left out"


NOTE = "[Automatic note: the todo list]"
"""The beginning of each text about the list that is appended to an existing message."""


def list_block(todos: Sequence[TodoItem]) -> str:
    """Format the whole list, to append it where the tool results do not show it."""
    rest = f"\nThe list is in place already. {progress(todos, texts=False)}" if todos else ""
    return f"{NOTE}\n{format_todos(todos)}{rest}"


def progress(
    todos: Sequence[TodoItem], *, texts: bool = True, works: bool = False, failed: bool = False
) -> str:
    """Format the progress on one line: the count and the items in progress, or the next item."""
    open_items = incomplete(todos)
    if failed:
        return "A call of this turn failed: start again what is not done."
    if not open_items:
        abandoned = any(todo["status"] == "abandoned" for todo in todos)
        done = "All items are completed or abandoned" if abandoned else "Every item is finished"
        return f"{done}. Now answer the user."
    finished = f"{len(todos) - len(open_items)}/{len(todos)} done."
    started = [entry for entry in open_items if entry[1]["status"] == "in_progress"]
    if not started:
        return f"{finished} Next: {_brief(*open_items[0], text=texts)}"
    if works:
        return finished
    shown = "; ".join(_brief(*entry, text=texts) for entry in started[:_SHOWN_ITEMS])
    more = len(started) - _SHOWN_ITEMS
    return f"{finished} Now do: {shown}{f'; {more} more' if more > 0 else ''}"


def reminder(todos: Sequence[TodoItem]) -> str:
    """Format the progress as a reminder, for when the list was not used for many calls."""
    return f"{NOTE} {progress(todos)}"


UNCHANGED = "Nothing changed: the list was like this already."
"""Shown with the result of a call that changed nothing."""

EMPTY_ANSWER = "(This answer was empty.)"
"""Shown instead of an answer without text, which providers refuse."""


def _brief(index: int, todo: TodoItem, *, text: bool) -> str:
    if not text:
        return f"[{index}]"
    line = one_line(todo["text"])
    cut = line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}…"
    return f"[{index}] {cut}"


_SHOWN_ITEMS = 3
# The line says what to do, so it must not cut off a file name.
_SHOWN_CHARACTERS = 120


CONTINUE = (
    "[Automatic note] The todo list has open items. If you wait for the user, repeat only your "
    "question. If something blocks you, say what."
)


def next_step(index: int, *, is_started: bool, has_tools: bool = True) -> str:
    """Name the work of an item, and the call that marks it if the model has the todo tools."""
    work = f"Otherwise go on: do the work of [{index}] now with your other tools"
    if not has_tools:
        return f"{work}."
    action, when = ("start", "in the same turn")
    if is_started:
        action, when = ("complete", "beside the last of these calls")
    return (
        f"{work}, and call edit_todos with action '{action}' on [{index}] {when}; abandon what "
        "cannot or need not be done."
    )


def gate_refusal(*, has_todos: bool) -> str:
    """Return the error for a tool call that the gate refuses."""
    first = "" if has_todos else "write your plan with write_todos, then "
    return (
        "Error: no todo is in progress, so this tool was not run; "
        f"{first}call edit_todos with action 'start' on the next item, and call it again."
    )
