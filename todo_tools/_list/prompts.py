"""The texts that models read, except the tools' answers and parameter descriptions.

The snippet and the eight guidelines are copied exactly from the tools' specification. No function
here puts the text of a todo into an instruction. Such a text occurs only in list lines and in the
line of progress, where it cannot imitate another line.
"""

from collections.abc import Sequence

from todo_tools._list.formatting import format_todos, one_line
from todo_tools._list.todos import STATUSES, TodoItem, incomplete

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
    "The list only keeps track: do the started item with your other tools, and complete it when "
    "their results show that it is done. Make todo calls in one turn with these tools."
)

TODO_SYSTEM_PROMPT = "\n".join(
    [
        f"{PROMPT_SNIPPET}.",
        "",
        *(f"- {guideline}" for guideline in (*PROMPT_GUIDELINES, _WORK)),
    ]
)
"""A system prompt for an agent with the three tools; add your own prompt before or after it."""

TODO_LIGHT_PROMPT = (
    "For work of three or more steps you can keep a todo list with `write_todos`, and complete its "
    "items with `edit_todos` when the results of your other tools show that they are done. Make "
    "these calls in the same turn as calls of the work. A simple request needs no list."
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
    "Set the status of todo items: 'start' before working on one, 'complete' when the results of "
    "other tools show that it is done, 'abandon' when it is not needed. Call it in one turn with "
    "those tools."
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
    "result again. With the call that completes an item, write what later items and your answer "
    "need."
)
"""An addition to the system prompt for `fold_finished=True`; `TodoMiddleware` adds it itself."""

FOLDED = "[Left out: the item is finished. Call again if needed.]"
"""Shown instead of a result whose item is finished, in a turn with a todo call."""


NOTE = "[Automatic note: the todo list]"
"""The beginning of each text about the list that is appended to an existing message."""


def list_block(todos: Sequence[TodoItem]) -> str:
    """Format the whole list, to append it where the tool results do not show it."""
    rest = f"\nThe list is in place already. {progress(todos, texts=False)}" if todos else ""
    return f"{NOTE}\n{format_todos(todos)}{rest}"


def progress(todos: Sequence[TodoItem], *, texts: bool = True) -> str:
    """Format the progress on one line: the count and the items in progress, or the next item."""
    open_items = incomplete(todos)
    if not open_items:
        return "Every item is finished. Now answer the user."
    finished = f"{len(todos) - len(open_items)}/{len(todos)} done."
    started = [entry for entry in open_items if entry[1]["status"] == "in_progress"]
    if not started:
        waiting = (each for each in open_items if STATUSES[each[1]["status"]].next_action)
        following = next(waiting, None)
        return f"{finished} Next: start {_brief(*following, text=texts)}" if following else finished
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
    "[Automatic note] The todo list has open items. If you need an answer from the user, or "
    "something blocks you, say so without calling a tool. Otherwise go on with the work; abandon "
    "what cannot or need not be done."
)


def next_step(action: str | None, index: int, *, has_tools: bool = True) -> str:
    """Name the work of an item, and the call that marks it if the model has the todo tools."""
    if action is None:
        return ""
    work = f"Next: do the work of [{index}] with your other tools."
    if not has_tools:
        return work
    when = _WHEN.get(action, "")
    return f"{work} Call edit_todos with action '{action}' on [{index}]{when}."


_WHEN = {"start": " in the same turn", "complete": " when their results show that it is done"}


def gate_refusal(*, has_todos: bool) -> str:
    """Return the error for a tool call that the gate refuses."""
    first = "" if has_todos else "write your plan with write_todos, then "
    return (
        "Error: no todo is in progress, so this tool was not run; "
        f"{first}call edit_todos with action 'start' on the next item, and call it again."
    )
