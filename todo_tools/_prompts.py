"""All wording that a model reads, except what the tools answer and say of their arguments.

The snippet and the eight guidelines are the tools' specification, to the letter.
No function here puts the text of a todo into a sentence: it stands only in list lines.
"""

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

_WHEN_TO_USE = "For work of three or more steps; a simple request is better done directly."
_ANSWER_LAST = "The user's answer belongs in a message after your last todo call."

TODO_SYSTEM_PROMPT = "\n".join(
    [
        f"{PROMPT_SNIPPET}. {_WHEN_TO_USE}",
        "",
        *(f"- {guideline}" for guideline in PROMPT_GUIDELINES),
        f"- {_ANSWER_LAST}",
    ]
)
"""A system prompt for an agent with the three tools; put your own before or after it."""

WRITE_DESCRIPTION = (
    "Write the todo list. New items are not started; with 'append' and 'insert' the others keep "
    "their status. For work of three or more steps, not for simple requests."
)
LIST_DESCRIPTION = "Show the todo list: status icon, 0-based index and text of each item."
EDIT_DESCRIPTION = (
    "Set the status of todo items by index: 'start' before working on one, 'complete' when it is "
    "done, 'abandon' when it is no longer needed. All indices must exist, or nothing changes."
)

OUTSIDE_GRAPH = (
    "Error: the todo tools work only inside a LangGraph graph whose state has the 'todos' channel "
    "of todo_tools.TodoState; nothing was changed. Run this tool in a ToolNode of such a graph."
)
"""What a tool answers where there is no list that it could work on."""

LISTED = "The list is shown at the end of this conversation as long as it is of use."
"""What the model is shown of a `list_todos` result in the history."""

CUT_OFF = "Error: the run ended before this tool answered; it may have done part of its work."
NO_JSON = "Error: the arguments of this call were not valid JSON, so the tool was not run."
"""What the model is shown for a call without a result."""

_REMINDER = "Start the next item before you work on it; complete it as soon as it is done."


def live_list_block(lines: str, remaining: int) -> str:
    """The block at the end of every prompt while items remain: the list, then the reminder."""
    return f"[Automatic note: the todo list, {remaining} remaining]\n{lines}\n[{_REMINDER}]"


def finished_list_block(lines: str) -> str:
    """The block at the end of the prompt when the last item was finished in this turn."""
    return f"[Automatic note: every todo is finished]\n{lines}\n[Now answer the user.]"


CONTINUE = (
    "[Automatic note] The todo list has incomplete items. Go on working; complete each item when "
    "it is done, abandon what cannot or need not be done."
)


def continuation(instruction: str, lines: str, action: str | None, index: int) -> str:
    """The message that sends the agent back to work: instruction, incomplete items, next call."""
    following = f"\n\nNext: call edit_todos with action '{action}' on [{index}]." if action else ""
    return f"{instruction}\n\n{lines}{following}"


def gate_refusal(*, has_todos: bool) -> str:
    """What a tool answers that is called before an item is in progress."""
    first = "" if has_todos else "write your plan with write_todos, then "
    return (
        "Error: no todo is in progress, so this tool was not run; "
        f"{first}call edit_todos with action 'start' on the next item, and call it again."
    )
