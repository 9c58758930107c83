"""An agent that is led through its list: the graph keeps the list, and the model only works.

This file needs only the library and `langchain`. The model gets no todo tools and spends no call
on the list. It is handed one item at a time, and never sees the list before its end.

    agent = create_agent(model, tools, middleware=[LedMiddleware()])
    agent.invoke({"messages": [("user", "Do all of it.")], "todos": todos})
"""

from collections.abc import Callable, Sequence
from itertools import takewhile, zip_longest
from typing import Any

from langchain.agents.middleware import hook_config
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from typing_extensions import override

from todo_tools import TodoItem, TodoStatus, asks_user, format_todos, model_view
from todo_tools.middleware import TodoMiddleware
from todo_tools.rendering.lowlevel import one_line
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import is_from_user

_STEP = "Step {} of {}: {}"
_AGAIN = "This step is still open. Call the tools that do its work now."
_REFUSED = "This step is not done: {}. Call your tools again."
_END = "[Automatic note] The list ends here. Tell the user what was done and what was not, and why."


class LedMiddleware(TodoMiddleware):
    """Lead the agent through the list of the state: one item at a time.

    The text of an item must say all that its work needs: until the list ends, the model reads the
    items so far and their work, but not the request. It stops working when it answers without a
    call, or gets the same results of the same calls again. The item is then completed if a tool has
    worked and the check agrees. If not, the agent is told once more, and then the item is
    abandoned. A question ends the run, and so does an answer to the user without work or after a
    rejected call; the user's next message goes on. A structured response or a tool with
    `return_direct` ends the run too, so use neither. Beside a summarizer, give a check: if a
    summary removes what was handed out, nothing else says for which item the last work was.

    Args:
        check: A function of an item and the state that returns `None`, or why it is not done.
    """

    def __init__(self, *, check: Callable[[TodoItem, Any], str | None] | None = None) -> None:
        super().__init__(policy=None, system_prompt=None, view=_view)
        self.tools = []
        self.check = check

    @override
    def __setstate__(self, state: dict[str, Any]) -> None:
        """Give a copy no todo tools either."""
        super().__setstate__(state)
        self.tools = []

    @override
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Hand out the first open item, or the one in progress if it was changed."""
        return {**(super().before_agent(state, runtime) or {}), **_hand_out(state, is_start=True)}

    @override
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Go on with the list if the agent repeats itself, or no longer has its item."""
        if _repeats(messages_in(state)):
            return self._next(state)
        if _rejected(messages_in(state)) or _first(todos_in(state), "in_progress") is None:
            return None
        return _hand_out(state)

    @hook_config(can_jump_to=["model"])
    @override
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Go on with the list if an item is in progress, and no limit has ended the run."""
        note: dict[str, Any] = state.get("todo_answer") or {}
        by_model = note.get("id") == messages_in(state)[-1].id
        update = self._next(state) if by_model else None
        return update and {**update, "jump_to": "model"}

    @hook_config(can_jump_to=["model"])
    @override
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Do the same as `after_agent`."""
        return self.after_agent(state, runtime)

    def _next(self, state: Any) -> dict[str, Any] | None:
        """Complete, repeat or abandon the item in progress, and hand out the next one."""
        todos, messages = [*todos_in(state)], messages_in(state)
        if (at := _first(todos, "in_progress")) is None or _rejected(messages):
            return None
        if isinstance(messages[-1], AIMessage) and asks_user(state):
            return None
        told, results = next(filter(_tells, reversed(messages)), None), _results(messages)
        # The user may have said "stop".
        if not results and (told is None or is_from_user(told) or "answers" in _data(told)):
            return None
        if _last_read(messages) != todos[at]["text"]:  # what was done was not for this item
            return _started(todos, at)
        fault = None if any(m.status == "success" for m in results) else _AGAIN
        if not fault and self.check and (reason := self.check(todos[at], state)):
            fault = _REFUSED.format(reason)
        if fault and not (told and _data(told).get("again")):
            return {"messages": [_note(fault, again=True)]}
        todos[at] = {**todos[at], "status": "abandoned" if fault else "completed"}
        end = {"todos": todos, "messages": [_note(f"{_END}\n\n{format_todos(todos)}")]}
        return _hand_out({"todos": todos}) or end


def _hand_out(state: Any, *, is_start: bool = False) -> dict[str, Any]:
    """Start the next item, unless none is left or the model works on one that it has read.

    Args:
        state: The state.
        is_start: Whether a run begins. If the list goes on, the model answers the user, too.
    """
    todos, messages = todos_in(state), messages_in(state)
    marks = {"answers": 1} if is_start and _goes_on(todos, messages) else {}
    if (at := _first(todos, "in_progress")) is not None:
        read = _last_read(messages)
        # Nothing old may follow a message of the user, which may be "stop".
        if read == todos[at]["text"] or (read is None and any(map(is_from_user, messages))):
            return {}
        return _started(todos, at, **marks, **({"more": 1} if read is None else {}))
    at = _first(todos, "not_started")
    return {} if at is None else _started(todos, at, **marks)


def _goes_on(todos: Sequence[TodoItem], messages: Sequence[AnyMessage]) -> bool:
    """Whether a list was begun and has not ended; a summary may have removed all notes."""
    last = next((_data(m) for m in reversed(messages) if _data(m)), None)
    is_begun = any(todo["status"] != "not_started" for todo in todos)
    return is_begun if last is None else "end" not in last


def _started(todos: Sequence[TodoItem], at: int, **data: Any) -> dict[str, Any]:
    """Start an item; the model reads its text in a note."""
    text = todos[at]["text"]
    item: TodoItem = {"text": text, "status": "in_progress"}
    note = _note(_STEP.format(at + 1, len(todos), one_line(text)), item=text, **data)
    return {"todos": [*todos[:at], item, *todos[at + 1 :]], "messages": [note]}


def _last_read(messages: Sequence[AnyMessage]) -> str | None:
    """The item that was handed out last; `None` if its note was summarized, or in a new thread."""
    return next(filter(None, (_data(m).get("item") for m in reversed(messages))), None)


def _view(state: Any) -> Sequence[AnyMessage]:
    """Return what the model is sent: until the list ends, what was handed out and its work.

    A weak model repeats what it said. So abandoned items are left out, and what it said at its end.
    """
    todos, kept = todos_in(state), list[AnyMessage]()
    worked = {each["text"] for each in todos if each["status"] in {"completed", "in_progress"}}
    shown = {todo["text"]: todo["text"] in worked for todo in todos}
    messages = messages_in(state)
    keeps = bool(messages) and not is_from_user(messages[0])  # a summary
    for message, following in zip_longest(messages, messages[1:]):
        if data := _data(message):
            keeps = shown.get(data["item"], False) if "item" in data else "again" in data and keeps
        note = _data(following) if following else {}
        is_end = note and "answers" not in note and not isinstance(message, ToolMessage)
        if (keeps or is_from_user(message)) and not is_end:
            kept.append(message)
    is_led = keeps and _first(todos, "in_progress") is not None
    return model_view({"messages": kept if is_led else messages})


def _results(messages: Sequence[AnyMessage]) -> list[ToolMessage]:
    """The results since the item was handed out, or since the user's message."""
    goes_on = {"again", "more"}
    since = takewhile(lambda m: not _tells(m) or goes_on & {*_data(m)}, reversed(messages))
    return [m for m in since if isinstance(m, ToolMessage)]


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


def _rejected(messages: Sequence[AnyMessage]) -> bool:
    """Whether a person has rejected a call of the last turn, and so spoke to the agent."""
    rest = reversed(messages)
    since = takewhile(lambda m: not (is_from_user(m) or getattr(m, "tool_calls", None)), rest)
    mark = "User rejected the tool call"  # LangChain's HumanInTheLoopMiddleware has no other
    return any(isinstance(m, ToolMessage) and m.text.startswith(mark) for m in since)


def _first(todos: Sequence[TodoItem], status: TodoStatus) -> int | None:
    return next((at for at, todo in enumerate(todos) if todo["status"] == status), None)


def _note(text: str, **data: Any) -> HumanMessage:
    return HumanMessage(text, additional_kwargs={"lc_source": "led", "lc_data": data or {"end": 1}})


def _tells(message: AnyMessage) -> bool:
    """Whether the user or this middleware wrote a message; a tool may add an image as a "user"."""
    return is_from_user(message) or bool(_data(message))


def _data(message: AnyMessage) -> dict[str, Any]:
    fields = message.additional_kwargs  # LangChain has data in the results of rejected calls
    data: dict[str, Any] = fields.get("lc_data", {}) if fields.get("lc_source") == "led" else {}
    return data
