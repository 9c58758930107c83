"""What the model is sent: the history with short todo results, and the live list at its end.

The view is made for one call and never stored. A todo result is short from the first prompt it
appears in, so the history part of a prompt never changes once sent and stays in the provider's
prompt cache; only the last block is new.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from todo_tools import _prompts as prompts
from todo_tools._formatting import format_todos
from todo_tools._todos import TodoItem, incomplete
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import details_of, is_injected, last_user_message

ModelView = Callable[[Any], Sequence[BaseMessage]]
"""A function from the state to the messages that the model is sent."""


def model_view(state: Any) -> list[AnyMessage]:
    """Give the messages to send to the model.

    Args:
        state: The graph state, with `messages` and `todos`. It is left as it is.

    Returns:
        The history with every todo result cut to its first line (errors stay whole) and a result
        for every tool call that will never have one; at the end one message with the live list,
        while items remain and once more when the last one was finished since the user's last
        message.

    Raises:
        ValueError: `todos` holds something that is not a list of todos.

    Example:
        ```python
        def agent(state: TodoState):
            prompt = [SystemMessage(TODO_SYSTEM_PROMPT), *model_view(state)]
            return {"messages": [model.invoke(prompt)]}
        ```
    """
    messages = messages_in(state)
    view = list(_answered([_shortened(message) for message in messages]))
    block = live_block(todos_in(state), messages)
    return [*view, block] if block else view


def _answered(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """The messages, with a result for each call that will never have one.

    That is a call whose arguments were no JSON, and one of a run that was cancelled or failed while
    a tool worked, before the user went on. Providers refuse a history with such a call.
    """
    results = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    open_calls: list[ToolMessage] = []
    for message in messages:
        if not isinstance(message, ToolMessage):
            yield from open_calls
            open_calls = []
        yield message
        if isinstance(message, AIMessage):
            calls = [call for call in message.tool_calls if call["id"] not in results]
            open_calls = [_failed(call["name"], call["id"], prompts.CUT_OFF) for call in calls]
            for call in message.invalid_tool_calls:
                if call["id"] not in results:
                    yield _failed(call["name"] or "", call["id"], prompts.NO_JSON)


def _failed(name: str, call_id: str | None, reason: str) -> ToolMessage:
    return ToolMessage(reason, name=name, tool_call_id=call_id or "", status="error")


def _injected(text: str) -> HumanMessage:
    return HumanMessage(text, additional_kwargs={"lc_source": "todo_tools"})


def live_block(todos: list[TodoItem], messages: Sequence[AnyMessage]) -> HumanMessage | None:
    """The message with the live list, where the model needs one."""
    remaining = len(incomplete(todos))
    if remaining:
        return _injected(prompts.live_list_block(format_todos(todos), remaining))
    if todos and _todo_tool_answered(messages):
        return _injected(prompts.finished_list_block(format_todos(todos)))
    return None


def _todo_tool_answered(messages: Sequence[AnyMessage]) -> bool:
    """Whether a todo tool was called since the user's last message."""
    since = messages[last_user_message(messages) or 0 :]
    return any(details_of(message) for message in since)


def _shortened(message: AnyMessage) -> AnyMessage:
    if isinstance(message, HumanMessage) and is_injected(message):
        return _without_list(message)
    details = details_of(message)
    if not isinstance(message, ToolMessage) or details is None or "error" in details:
        return message
    if not isinstance(message.content, str):
        return message  # someone replaced the result by content blocks; theirs to keep
    if details["action"] != "list":
        return message.model_copy(update={"content": message.content.partition("\n")[0]})
    if message.content == format_todos([]):
        return message
    return message.model_copy(update={"content": prompts.LISTED})


def _without_list(message: HumanMessage) -> HumanMessage:
    """A continuation message without its middle part, which the live list repeats."""
    parts = message.text.split("\n\n")
    if len(parts) != 3 or parts[0] != prompts.CONTINUE:  # noqa: PLR2004  the three parts
        return message  # someone else's words under our name
    return message.model_copy(update={"content": f"{parts[0]}\n\n{parts[2]}"})
