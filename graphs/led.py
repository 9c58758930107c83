"""An agent that is led through its list: the graph keeps the list, and the model only works.

This file needs only the library and `langchain`. The model gets no todo tools and spends no call
on the list. It sees the list, with ● at the item that it has to do.

    agent = create_agent(model, tools, middleware=[LedMiddleware()])
    agent.invoke({"messages": [("user", "Do all of it.")], "todos": todos})
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any

from langchain.agents.middleware import hook_config
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from typing_extensions import override

from todo_tools import TodoItem, TodoStatus, asks_user, format_todos
from todo_tools.middleware import TodoMiddleware
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import is_from_user

Check = Callable[[TodoItem, Any], str | None]
"""Takes an item and the state; returns `None`, or the reason why the item is not done."""

LED_PROMPT = (
    "Your work has a todo list; ● marks the item to do now. Call the tools that do the work of "
    "this item, and nothing else. When it is done, the next item is marked."
)
# A weak model repeats what a prompt says instead of working. So these texts neither speak of
# failure nor ask the model to report what it did.
_NEXT = "[Automatic note] Now do the work of the item marked ●: call your tools."
_AGAIN = "[Automatic note] The item marked ● is still open. Call the tools that do its work now."
_REFUSED = "[Automatic note] The item marked ● is not done: {}. Call your tools again."
_END = "[Automatic note] The list ends here. Tell the user what was done and what was not, and why."


class LedMiddleware(TodoMiddleware):
    """Lead the agent through the list of the state: one item at a time.

    An item is completed when a tool has worked since it was handed out and the check agrees. If
    not, the agent is told once more, and then the item is abandoned. A question to the user, or an
    answer to a later message without any work, ends the run; the user's next message goes on.

    Args:
        check: A function of an item and the state that returns the reason why it is not done.
        fold_finished: Whether prompts leave out the work of finished items.
    """

    def __init__(self, *, check: Check | None = None, fold_finished: bool = False) -> None:
        super().__init__(policy=None, system_prompt=LED_PROMPT, fold_finished=fold_finished)
        self.tools = []
        self.check = check

    @override
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Start the first open item, unless one is in progress."""
        return {"todos": _started(todos_in(state)), **(super().before_agent(state, runtime) or {})}

    @hook_config(can_jump_to=["model"])
    @override
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Complete, repeat or abandon the item in progress, and hand out the next one."""
        todos, messages = list(todos_in(state)), messages_in(state)
        if (at := _first(todos, "in_progress")) is None:
            return None
        told = next(each for each in reversed(messages) if isinstance(each, HumanMessage))
        results = _results(messages)
        # The user's first message hands the work over. Later ones, also the first after a summary,
        # may be "stop", so what answers them without any call ends the run. So does a question.
        first = next(each for each in messages if each.type != "system")
        is_later = is_from_user(told) and told is not first
        if not results and (is_later or asks_user(state)):
            return None
        fault = self._fault(todos[at], state, results)
        if fault and not _is_again(told):
            return _tell(fault, again=True)
        todos[at] = {**todos[at], "status": "abandoned" if fault else "completed"}
        is_last = _first(todos, "not_started") is None
        text = f"{_END}\n\n{format_todos(todos)}" if is_last else _NEXT
        return {"todos": _started(todos), **_tell(text)}

    @hook_config(can_jump_to=["model"])
    @override
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Do the same as `after_agent`."""
        return self.after_agent(state, runtime)

    def _fault(self, item: TodoItem, state: Any, results: list[ToolMessage]) -> str | None:
        """Return what to tell the agent if an item is not done."""
        if not any(result.status == "success" for result in results):
            return _AGAIN
        reason = self.check(item, state) if self.check else None
        return _REFUSED.format(reason) if reason else None


def _results(messages: Sequence[AnyMessage]) -> list[ToolMessage]:
    """Return the results of tools since the item was handed out."""
    since = takewhile(lambda m: not isinstance(m, HumanMessage) or _is_again(m), reversed(messages))
    return [message for message in since if isinstance(message, ToolMessage)]


def _first(todos: list[TodoItem], status: TodoStatus) -> int | None:
    return next((at for at, todo in enumerate(todos) if todo["status"] == status), None)


def _started(todos: list[TodoItem]) -> list[TodoItem]:
    """Start the first open item, unless one is in progress."""
    at = _first(todos, "not_started")
    if at is None or _first(todos, "in_progress") is not None:
        return todos
    return [*todos[:at], {**todos[at], "status": "in_progress"}, *todos[at + 1 :]]


def _tell(text: str, *, again: bool = False) -> dict[str, Any]:
    tags = {"lc_source": "led", "lc_data": {"again": again}}
    return {"messages": [HumanMessage(text, additional_kwargs=tags)], "jump_to": "model"}


def _is_again(message: HumanMessage) -> bool:
    return bool(message.additional_kwargs.get("lc_data", {}).get("again"))
