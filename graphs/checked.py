"""A check for `create_todo_tools(check=...)`: the command of a step must have succeeded.

This file needs only the library, so it can be copied alone. It believes nothing but the artifact
of a tool's result, which no model can write. So your tool for commands must return one with the
command that ran and its exit code: `{"command": "make", "exit_code": 0}`. The `execute` of
deepagents leaves the command out; `graphs/terminal/tools/ran.py` adds it.

If the user's message may leave the history, for example by a summary, or if the list comes as
input, use `TodoLimits(keep_open=True)` as well: it keeps the steps, and so their commands,
until the model abandons a step. In a thread in which no message has a checklist, all runs of a
command count.

A tick stays, because a person may have set it: a check runs only for an item that was not completed
before. So if a list is to be done again, begin a new thread, or send the checklist together with a
new list, `{"messages": [("user", text)], "todos": read_todos(text)}`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from todo_tools import TodoItem
from todo_tools.checklist import command_in, read_checklist
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import is_from_user


def command_passed(item: TodoItem, state: Any) -> str | None:
    """Say why a step is not done, from the results of the commands in the history.

    The model can rewrite the list, but not the checklist in the user's newest message that has
    one. The command of a step that is no longer in the list must have succeeded too, before any
    item is completed. One run counts for all steps with the same command.

    Args:
        item: The step; its command is the first text in backticks.
        state: The graph state.

    Returns:
        `None` if the step has no command, or if the last run of the command since the checklist
        ended with exit code 0; otherwise the reason. A call whose result has no exit code, also one
        that a person rejected, counts as a run that did not end. Without a result, nothing says
        whether a person had edited a call, so it counts as the model wrote it.
    """
    messages = messages_in(state)
    asked = (at for at in reversed(range(len(messages))) if _steps(messages[at]))
    since = messages[next(asked, 0) :]
    own = command_in(item["text"])
    if own and (fault := _fault(own, since)):
        return f"its command {fault}"
    for command in _left_out(since, state):
        if fault := _fault(command, since):
            return f"the command {command!r} of the checklist {fault}"
    return None


def _steps(message: AnyMessage) -> list[str]:
    """The steps of a checklist that the user wrote; empty for any other message."""
    return read_checklist(message.text) if is_from_user(message) else []


def _left_out(since: Sequence[AnyMessage], state: Any) -> Iterator[str]:
    """The commands of the checklist that no item has."""
    listed = {command_in(todo["text"]) for todo in todos_in(state)}
    newest = next((each for each in reversed(since) if isinstance(each, AIMessage)), None)
    if newest and any(map(_may_replace, newest.tool_calls)):
        listed.clear()  # the model replaces the list and completes an item in one turn
    commands = map(command_in, _steps(since[0]) if since else [])
    return (command for command in commands if command and command not in listed)


def _may_replace(call: ToolCall) -> bool:
    return call["name"] == "write_todos" and call["args"].get("mode") not in ("append", "insert")


def _fault(command: str, messages: Sequence[AnyMessage]) -> str | None:
    """What is wrong with the last runs of a command; `None` if they succeeded."""
    turn: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            turn.append(message)
        elif isinstance(message, AIMessage):
            if _is_running(command, message, turn):
                break
            codes = [code for each in turn for ran, code in _ran(each) if _is_same(ran, command)]
            if codes:  # the calls of one turn run at the same time
                failed = next(filter(None, codes), None)
                return f"ended with exit code {failed}" if failed else None
            turn.clear()
    return "was not run to its end"


def _is_running(command: str, answer: AIMessage, turn: Sequence[ToolMessage]) -> bool:
    """Whether a call of an answer runs the command, and no result says how that ended."""
    ids = [call["id"] for call in answer.tool_calls]
    results = {each.tool_call_id: each for each in turn if ids.count(each.tool_call_id) == 1}
    for call in answer.tool_calls:
        result = results.get(call["id"] or "")
        recorded = _recorded(result)
        ran = [recorded] if recorded else call["args"].values()
        if any(_is_same(each, command) for each in ran) and not _has_ended(call["name"], result):
            return True
    return False


def _recorded(result: ToolMessage | None) -> str | None:
    """The command that a result names, because a person may have edited the call."""
    match result:
        case ToolMessage(artifact={"command": str(ran)}):
            return ran
        case _:
            return None


def _has_ended(name: str, result: ToolMessage | None) -> bool:
    """Whether a result has an exit code, or says that nothing was started in the background."""
    if result is None:
        return False
    return any(_ran(result)) or (name == "run_in_background" and result.status == "error")


def _ran(message: ToolMessage) -> Iterator[tuple[str, int]]:
    """The command that ran, and its exit code, if a result has both."""
    match message:
        case ToolMessage(status="success", artifact={"command": str(ran), "exit_code": int(code)}):
            yield ran, code
        case _:
            pass


def _is_same(ran: object, command: str) -> bool:
    """Whether a shell runs the same; it ignores no other blanks than these."""
    return isinstance(ran, str) and ran.strip(" \t\n") == command
