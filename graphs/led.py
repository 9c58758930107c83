"""An agent that is led through its list: the graph keeps the list, and the model only works.

This file needs only the library and `langchain`. The model gets no todo tools and spends no call
on the list. It is handed one item at a time, and never sees the list before its end.

    agent = create_agent(model, tools, middleware=[LedMiddleware()])
    agent.invoke({"messages": [("user", "Do all of it.")], "todos": todos})
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile, takewhile, zip_longest
from typing import Annotated, Any, NotRequired, cast

from langchain.agents.middleware import ModelRequest, hook_config
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_core.runnables import run_in_executor
from typing_extensions import override

from todo_tools import TodoItem, TodoStatus, asks_user, format_todos, model_view
from todo_tools.middleware import TodoAgentState, TodoMiddleware
from todo_tools.rendering.lowlevel import one_line
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import is_from_user

_STEP = "Step {} of {}: {}"
_AGAIN = "This step is still open. Call the tools that do its work now."
_REFUSED = "This step is not done: {}. Call your tools again."
_END = "[Automatic note] The list ends here. Tell the user what was done and what was not, and why."


class _State(TodoAgentState):
    led_item: NotRequired[Annotated[str | None, PrivateStateAttr]]
    """The name of the item that was handed out last, and `None` after the end of a list. A summary
    may remove its message, and a person may change the list."""


class LedMiddleware(TodoMiddleware):
    """Lead the agent through the list of the state: one item at a time.

    The text of an item must say all that its work needs: until the list ends, the model reads the
    items so far and their work, but neither the request nor what was said before it. The request is
    the user's only new message, and comes with a list of which nothing is begun, when no other list
    goes on. The model answers any other message; it and all that follows stay in the prompts.

    The agent stops working when it answers without a call, or gets the same results of the same
    calls again. The item is then completed if a tool has worked and the check agrees. If not, the
    agent is told once more, and then the item is abandoned. A question ends the run. After a
    message that it answers or a rejected call, only work from then on counts: without a call that
    succeeds, the run ends, and the user's next message goes on.

    A person may speak and change the list between two runs, and while a call waits for their
    answer, but at no other point of a run. A structured response or a tool with `return_direct`
    ends the run too, so use neither. Tag a human message that a tool adds, such as an image, with
    `additional_kwargs={"lc_source": ...}`, or it counts as the user's. Work counts while its result
    is in the history, so let a summarizer keep more than the last few messages. When it removes the
    beginning of the list, the model reads all that it keeps. A call that a person answers
    (`respond`) counts, and so does that of a subagent whose own calls a person rejected, so use a
    check too.

    Args:
        check: A sync function of an item and the state; returns `None`, or why it is not done. In
            an async run it is called in a thread.
    """

    def __init__(self, *, check: Callable[[TodoItem, Any], str | None] | None = None) -> None:
        super().__init__(policy=None, system_prompt=None, view=None)
        self.tools = []
        self.state_schema = _State
        self.check = check

    @override
    def __setstate__(self, state: dict[str, Any]) -> None:
        """Give a copy no todo tools either."""
        super().__setstate__(state)
        self.tools = []

    @override
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Hand out the first open item, or the one in progress if it was changed.

        If the list goes on, the model answers the user, too.
        """
        update = super().before_agent(state, runtime) or {}
        state = {**state, "todos": update.get("todos", todos_in(state))}  # empty in a subagent
        is_begun = any(todo["status"] != "not_started" for todo in todos_in(state))
        loop: dict[str, Any] = state.get("todo_loop") or {}
        heard = loop.get("user_message")  # by this hook, in earlier runs
        since = reversed(messages_in(state))
        new = takewhile(lambda message: message.id != heard and not _data(message), since)
        spoke_before = sum(map(is_from_user, new)) > 1  # and the run ended before this hook
        goes_on = is_begun or state.get("led_item") is not None or spoke_before
        return {**update, **_hand_out(state, **{"answers" if goes_on else "begins": 1})}

    @override
    def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        """Send the model its item, without the list, so that no prompt is recorded with a copy."""
        return super().wrap_model_call(_viewed(request), handler)

    @override
    async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
        """Do the same as `wrap_model_call`."""
        return await super().awrap_model_call(_viewed(request), handler)

    @hook_config(can_jump_to=["end"])
    @override
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Go on with the list if the agent repeats itself, or if its item was changed."""
        messages = messages_in(state)
        new = [*takewhile(lambda m: not isinstance(m, AIMessage), reversed(messages))]
        if any(map(_is_rejection, new)):
            return None
        if any(map(is_from_user, new)):
            return _hand_out(state, answers=1)
        if _first(todos_in(state), "in_progress") is not None and _repeats(messages):
            return self._next(state) or {"jump_to": "end"}
        return _hand_out(state)

    @hook_config(can_jump_to=["end"])
    @override
    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Do the same as `before_model`; the check runs in a thread."""
        return await run_in_executor(None, self.before_model, state, runtime)

    @hook_config(can_jump_to=["model"])
    @override
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Go on with the list if an item is in progress, and no limit has ended the run."""
        note: dict[str, Any] = state.get("todo_answer") or {}
        # A guard or a limit ends a run with calls that did not run, or with a message of its own.
        by_model = any(
            last.id == note.get("id") and not getattr(last, "tool_calls", None)
            for last in messages_in(state)[-1:]
        )
        update = self._next(state) if by_model else None
        return update and {**update, "jump_to": "model"}

    @hook_config(can_jump_to=["model"])
    @override
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Do the same as `after_agent`; the check runs in a thread."""
        return await run_in_executor(None, self.after_agent, state, runtime)

    def _next(self, state: Any) -> dict[str, Any] | None:
        """Complete, repeat or abandon the item in progress, and hand out the next one."""
        todos, messages = [*todos_in(state)], messages_in(state)
        if (at := _first(todos, "in_progress")) is None:
            return None
        if isinstance(messages[-1], AIMessage) and asks_user(state):
            return None
        told = next(filter(_tells, reversed(messages)), None)
        worked = any(result.status == "success" for result in _results(messages))
        spoke = told is not None and (not _data(told) or "answers" in _data(told))
        if spoke and not worked:  # the user may have said "stop"
            return None
        if state.get("led_item") != _name(todos, at):  # what was done was not for this item
            return _started(todos, at)
        is_broken = getattr(messages[-1], "invalid_tool_calls", None)
        fault = None if worked and not is_broken else _AGAIN
        reason = self.check(todos[at], state) if self.check and not fault else None
        if reason is not None:  # an empty reason refuses, too
            fault = _REFUSED.format(reason)
        note = next(filter(_data, reversed(messages)), None)  # a tool may speak like the user
        if fault and not (note and _data(note).get("again")):
            return {"messages": [_note(fault, again=True)]}
        todos[at] = {**todos[at], "status": "abandoned" if fault else "completed"}
        end = {"todos": todos, "messages": [_note(f"{_END}\n\n{format_todos(todos)}")]}
        return _hand_out({"todos": todos}) or {**end, "led_item": None}


def _hand_out(state: Any, **marks: int) -> dict[str, Any]:
    """Start the next item, unless none is left or the model works on the one in progress.

    Args:
        state: The state.
        marks: `begins` if the user's new message is the request; `answers` if the model answers it,
            too: an answer without work then ends the run.
    """
    todos = todos_in(state)
    at = _first(todos, "in_progress")
    if at is not None and state.get("led_item") == _name(todos, at):
        return {}
    at = _first(todos, "not_started") if at is None else at
    if at is None:  # a person may have finished the last item
        return {"led_item": None} if state.get("led_item") else {}
    return _started(todos, at, **marks)


def _started(todos: Sequence[TodoItem], at: int, **marks: Any) -> dict[str, Any]:
    """Start an item; the model reads its text in a note."""
    item: TodoItem = {"text": todos[at]["text"], "status": "in_progress"}
    started = [*todos[:at], item, *todos[at + 1 :]]
    note = _step(todos, at, **marks)
    return {"todos": started, "messages": [note], "led_item": _name(todos, at)}


def _name(todos: Sequence[TodoItem], at: int) -> str:
    """Name an item by its text and the number of items before it with the same text."""
    text = todos[at]["text"]
    return f"{sum(todo['text'] == text for todo in todos[:at])} {text}"


def _step(todos: Sequence[TodoItem], at: int, **marks: Any) -> HumanMessage:
    text = todos[at]["text"]
    return _note(_STEP.format(at + 1, len(todos), one_line(text)), item=text, **marks)


def _viewed(request: ModelRequest[Any]) -> ModelRequest[Any]:
    """Return the request with what the model is sent; other middleware may have changed it."""
    messages = cast("list[AnyMessage]", convert_to_messages(request.messages))
    return request.override(messages=_view(request.state, messages))


def _view(state: Any, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return what the model is sent: until the list ends, what was handed out and its work.

    A weak model repeats what it said. So abandoned items are left out, and what it said at its end.
    Once the user has spoken, everything stays: the model might do an order again without its work.
    """
    todos = todos_in(state)
    if (at := _first(todos, "in_progress")) is None:
        return model_view({"messages": messages})
    worked = {each["text"] for each in todos if each["status"] in {"completed", "in_progress"}}
    own = messages[_beginning(messages) :]
    # A summary or a trimmed history may have removed the message of the item.
    is_lost = all(_data(message).get("item") != todos[at]["text"] for message in own)
    kept: list[AnyMessage] = [_step(todos, at)] if is_lost else []
    keeps, keeps_answer, has_spoken = True, True, False
    for message, following in zip_longest(own, own[1:]):
        is_end = following is not None and _ends(message, _data(following))
        data = _data(message)
        keeps = data["item"] in worked if "item" in data else keeps
        has_spoken = has_spoken or (is_from_user(message) and not is_end)
        shows = "end" not in data and (has_spoken or (keeps and not is_end))
        if isinstance(message, AIMessage):
            keeps_answer = shows
        if shows and (keeps_answer or not isinstance(message, ToolMessage)):
            kept.append(message)
    # A person may change the item while a call waits; its result then needs the other messages.
    return model_view({"messages": kept if keeps or has_spoken else messages})


def _beginning(messages: Sequence[AnyMessage]) -> int:
    """Return the index of the note that follows the request; 0 if it is gone, or there was none."""
    begun = (at for at in reversed(range(len(messages))) if "begins" in _data(messages[at]))
    return next(begun, 0)


def _ends(message: AnyMessage, note: Mapping[str, Any]) -> bool:
    """Whether a message is the request, or what the agent said at the end of its work.

    Args:
        message: The message.
        note: The data of the next message; empty if this middleware did not write it.
    """
    by_one_of_them = isinstance(message, AIMessage) or is_from_user(message)
    return by_one_of_them and bool(note) and "answers" not in note


def _results(messages: Sequence[AnyMessage]) -> list[ToolMessage]:
    """The results of the calls since the item was handed out, or since a person spoke."""
    since = [*takewhile(lambda m: not _tells(m) or "again" in _data(m), reversed(messages))]
    # The user may have spoken while a call ran.
    later = dropwhile(lambda m: not isinstance(m, AIMessage), reversed(since))
    return [m for m in later if isinstance(m, ToolMessage)]


def _repeats(messages: Sequence[AnyMessage]) -> bool:
    """Whether the last two turns made the same calls and got the same results."""
    said = [
        [(each["name"], each["args"]) for each in m.tool_calls]
        if isinstance(m, AIMessage)
        else m.content
        for m in messages
    ]
    size = next((n for n, m in enumerate(reversed(messages), 1) if isinstance(m, AIMessage)), 0)
    return size > 1 and said[-size:] == said[-2 * size : -size]


def _is_rejection(message: AnyMessage) -> bool:
    """Whether a person has rejected a call, and so spoke to the agent."""
    mark = "User rejected the tool call"  # LangChain 1.4 has no other
    return isinstance(message, ToolMessage) and message.text.startswith(mark)


def _first(todos: Sequence[TodoItem], status: TodoStatus) -> int | None:
    return next((at for at, todo in enumerate(todos) if todo["status"] == status), None)


def _note(text: str, **data: Any) -> HumanMessage:
    return HumanMessage(text, additional_kwargs={"lc_source": "led", "lc_data": data or {"end": 1}})


def _tells(message: AnyMessage) -> bool:
    """Whether a person or this middleware told the agent something; a tool may add an image."""
    return is_from_user(message) or _is_rejection(message) or bool(_data(message))


def _data(message: AnyMessage) -> dict[str, Any]:
    fields = message.additional_kwargs  # LangChain has data in the results of rejected calls
    data: dict[str, Any] = fields.get("lc_data", {}) if fields.get("lc_source") == "led" else {}
    return data
