"""A check for `create_todo_tools(check=...)`: the command of a step must have succeeded.

It believes nothing but the artifact of a tool's result, which no model can write. So your tool for
commands must return one: `{"command": "make", "exit_code": 0}`. The file needs only this package,
so it can be copied alone. Its limit: it knows only the steps of the list, so give the list as input
with `TodoLimits(keep_open=True)`, or a model can write it again without the commands.
"""

import re
from typing import Any

from langchain_core.messages import ToolMessage

from todo_tools import TodoItem
from todo_tools.state import messages_in
from todo_tools.transcript import is_from_user

_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def command_in(step: str) -> str | None:
    """The command of a step: its first text in backticks, or `None`."""
    found = _CODE.search(step)
    return found[2].strip() if found else None


def command_passed(item: TodoItem, state: Any) -> str | None:
    """Say why a step is not done, from the results of the commands in the history.

    Args:
        item: The step.
        state: The graph state.

    Returns:
        `None` if the step has no command, or if its last run since the user's last message ended
        with exit code 0; otherwise the reason. A run whose result has no exit code does not count.
    """
    command = command_in(item["text"])
    if command is None:
        return None
    for message in reversed(messages_in(state)):
        if is_from_user(message):
            break
        match message:
            case ToolMessage(artifact={"command": str(ran), "exit_code": int(code)}):
                if ran.strip(" \t\n") == command:
                    return f"its command ended with exit code {code}" if code else None
            case _:
                pass
    return "its command was not run to its end since the user's last message"
