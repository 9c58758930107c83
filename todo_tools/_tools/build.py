"""Create the three tools, which are thin wrappers around `answer_call`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from todo_tools._calls.answers import Answer, Before, answer_call, before_call, refuse_call
from todo_tools._calls.arguments import CallError
from todo_tools._calls.records import TOOLS, TodoTool
from todo_tools._list import prompts
from todo_tools._list.todos import DEFAULT_LIMITS, TodoItem, TodoLimits
from todo_tools._thread.channels import PROGRESS
from todo_tools._thread.events import todos_event
from todo_tools._thread.notes import result_metadata
from todo_tools._thread.reading import read
from todo_tools._thread.state import has_channel, todos_in
from todo_tools._thread.transcript import CallPlace, place_of_call
from todo_tools._tools.checks import Check, achecked, checked, require_check
from todo_tools._tools.schemas import lenient_schema
from todo_tools._view.blocks import record_block

_Runtime = Annotated[ToolRuntime[Any, Any] | None, InjectedToolArg]


def create_todo_tools(
    limits: TodoLimits = DEFAULT_LIMITS,
    *,
    descriptions: Mapping[str, str] | None = None,
    check: Check | None = None,
) -> list[StructuredTool]:
    """Create the tools `write_todos`, `list_todos` and `edit_todos`.

    They read and write the `todos` channel of the graph that calls them. Give them to the model and
    to a `ToolNode`. Several calls in one AI message take effect in call order. A refused call
    returns a `ToolMessage(status="error")` and changes nothing; so does a call outside a graph.

    Args:
        limits: The limits for lists that the model writes.
        descriptions: Other descriptions for the model, by tool name.
        check: A sync or async function of an item and the graph state, such as `has_worked`. It
            returns `None`, or the reason why the item is not done, of which the model reads up to
            180 characters; `edit_todos` then refuses to complete the item. It may run again if the
            run is resumed. It may call `interrupt()` in `create_agent`.

    Returns:
        The three tools, in that order. The `metadata` of each tool holds its `label`,
        `prompt_snippet`, `prompt_guidelines` and `limits`.

    Raises:
        TypeError: `limits` or `check` has the wrong type.
        ValueError: `descriptions` names an unknown tool, or has a value that is not a string.

    Example:
        ```python
        tools = create_todo_tools(TodoLimits(max_todos=20))
        assert [tool.name for tool in tools] == ["write_todos", "list_todos", "edit_todos"]
        ```
    """
    if not isinstance(limits, TodoLimits):
        raise TypeError(f"limits must be a TodoLimits, got {limits!r}")
    require_check(check)
    described = descriptions or {}
    if unknown := [name for name in described if name not in TOOLS]:
        tools = ", ".join(TOOLS)
        raise ValueError(f"descriptions has an unknown tool {unknown[0]!r}; the tools are {tools}")
    return [
        _tool(name, tool, described.get(name, tool.description), limits, check)
        for name, tool in TOOLS.items()
    ]


def _tool(
    name: str, tool: TodoTool, description: str, limits: TodoLimits, check: Check | None
) -> StructuredTool:
    def call(runtime: _Runtime = None, **args: Any) -> Command[Any] | ToolMessage:
        made = _Call.receive(name, args, runtime, limits)
        answer = made.answer
        if check:
            answer = checked(name, answer, made.before, check, made.runtime.state)
        return made.respond(answer)

    async def acall(runtime: _Runtime = None, **args: Any) -> Command[Any] | ToolMessage:
        made = _Call.receive(name, args, runtime, limits)
        answer = made.answer
        if check:
            answer = await achecked(name, answer, made.before, check, made.runtime.state)
        return made.respond(answer)

    return StructuredTool(
        name=name,
        description=description,
        args_schema=lenient_schema(name, *tool.optional, **tool.parameters(limits)),
        func=call,
        coroutine=acall,
        handle_tool_error=True,
        metadata={
            "label": tool.label,
            "prompt_snippet": prompts.PROMPT_SNIPPET,
            "prompt_guidelines": list(tool.guidelines),
            "limits": asdict(limits),
        },
    )


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a todo tool inside a graph."""

    name: str
    runtime: ToolRuntime[Any, Any]
    place: CallPlace | None
    before: Before
    answer: Answer
    """The answer, unless the application's check refuses the call."""

    @classmethod
    def receive(
        cls,
        name: str,
        args: Mapping[str, Any],
        runtime: ToolRuntime[Any, Any] | None,
        limits: TodoLimits,
    ) -> "_Call":
        """Validate a call; refuse one outside a graph with a todo list."""
        if not isinstance(runtime, ToolRuntime) or not has_channel(runtime.state, "todos"):
            # Raise instead of returning a ToolMessage: outside a graph there may be no call id.
            raise ToolException(prompts.OUTSIDE_GRAPH)
        place = place_of_call(runtime.state, runtime.tool_call_id)
        before = list_before(todos_in(runtime.state), place, limits)
        answer = answer_call(name, args, before.todos, limits)
        if error := _fault(runtime.tool_call_id, place, answer, before):
            answer = refuse_call(name, error, before.todos)
        return cls(name, runtime, place, before, answer)

    def respond(self, answer: Answer) -> Command[Any] | ToolMessage:
        """Return the result and the update, and send the event of a change."""
        message = ToolMessage(
            answer.content,
            name=self.name,
            tool_call_id=self.runtime.tool_call_id or "",
            status="error" if "error" in answer.details else "success",
            artifact=answer.details,
            response_metadata=result_metadata(answer),
        )
        # Without the middleware, the tools note where the last prompt showed the list.
        recorded = record_block(read(self.runtime.state)) if self.place else []
        update: dict[str, Any] = {"messages": [*recorded, message]}
        if answer.operation is not None:
            turn, position = (self.place.turn, self.place.position) if self.place else (None, 0)
            event = todos_event(answer.todos, position, turn=turn)
            self.runtime.stream_writer(event)
            update["todos"] = answer.operation
            if answer.todos != answer.before:  # a list that is written again is no progress
                update["todo_loop"] = PROGRESS
        if not self.runtime.tool_call_id or (update.keys() == {"messages"} and not recorded):
            return message  # a Command needs a result with an id
        return Command(update=update)


def list_before(todos: list[TodoItem], place: CallPlace | None, limits: TodoLimits) -> Before:
    """Return the list before a call, after the earlier calls of its AI message."""
    calls = place.pending if place and place.is_read else []
    before = before_call(((call["name"], call["args"]) for call in calls), todos, limits)
    return before._replace(is_written=before.is_written and not (place and place.is_refused))


def _fault(
    call_id: str | None, place: CallPlace | None, answer: Answer, before: Before
) -> CallError | None:
    """Return the error for a call that no result can name, or that would change an unread list."""
    if not call_id:
        return CallError("this call has no id, so it was not run; call again", "no call id")
    if place and place.is_repeated:
        return CallError(
            "another call of this turn has the same id, so this one was not run; call again",
            "repeated call id",
        )
    if place and place.is_answered:
        return CallError("this call has a result already, so it was not run", "answered already")
    if place is None or answer.operation is None:
        return None
    if not place.is_read:
        return CallError(
            "the list was changed after you read it, so this call changed nothing; read the new "
            "list and call again if it still fits",
            "the list was changed",
        )
    if answer.operation["op"] == "set_status" and not before.is_written:
        return CallError(
            "an earlier write_todos call of this turn was not carried out as you made it, so this "
            "call changed nothing; read the list and call again if it still fits",
            "the list was not written",
        )
    return None
