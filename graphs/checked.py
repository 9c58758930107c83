"""A check for `create_todo_tools(check=...)`: the command of a step must have succeeded.

This file needs only the library, so it can be copied alone.
"""

import re
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from todo_tools import TodoItem
from todo_tools.checklist import command_in
from todo_tools.state import messages_in

_EXIT_CODE = re.compile(r"exit code (-?\d+)")


def command_passed(item: TodoItem, state: Any) -> str | None:
    """Say why a step is not done, from the results of the commands in the history.

    Args:
        item: The step; its command is in backticks.
        state: The graph state.

    Returns:
        `None` if the step has no command, or if the command's last run ended with exit code 0;
        otherwise the reason.
    """
    command = command_in(item["text"])
    if command is None:
        return None
    result = _last_result(command, state)
    if result is None:
        return "its command was not run"
    codes = _EXIT_CODE.findall(result)
    if not codes:
        return "its command did not end"
    return None if codes[-1] == "0" else f"its command ended with exit code {codes[-1]}"


def _last_result(command: str, state: Any) -> str | None:
    """What a tool answered last to a call with this command."""
    asked: set[str | None] = set()
    result: str | None = None
    for message in messages_in(state):
        if isinstance(message, AIMessage):
            # Some model servers use the same ids in every turn.
            asked = {call["id"] for call in message.tool_calls if _runs(call["args"], command)}
        elif isinstance(message, ToolMessage) and message.tool_call_id in asked:
            result = message.text
    return result


def _runs(args: dict[str, Any], command: str) -> bool:
    given = args.get("command")
    return isinstance(given, str) and given.strip() == command
