"""Create the three tools, which are thin wrappers around `answer_call`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import create_model

from todo_tools._calls.answers import Answer, answer_call, refuse_call
from todo_tools._calls.arguments import CallError
from todo_tools._calls.records import TOOLS, TodoTool
from todo_tools._calls.schemas import LenientArgs, argument, optional_argument
from todo_tools._list import prompts
from todo_tools._list.formats import in_format
from todo_tools._list.todos import DEFAULT_LIMITS, TodoItem, TodoLimits, is_mapping
from todo_tools._thread.channels import PROGRESS
from todo_tools._thread.events import todos_event
from todo_tools._thread.reading import read
from todo_tools._thread.state import format_in, has_channel, messages_in, todos_in
from todo_tools._thread.transcript import find_call, result_metadata
from todo_tools._tools.checks import Check, achecked, checked, require_check
from todo_tools._tools.turn import list_before
from todo_tools._view.blocks import record_block

_Runtime = Annotated[ToolRuntime[Any, Any] | None, InjectedToolArg]


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings that the three tools share."""

    limits: TodoLimits
    check: Check | None
    records_blocks: bool


def create_todo_tools(
    limits: TodoLimits = DEFAULT_LIMITS,
    *,
    descriptions: Mapping[str, str] | None = None,
    check: Check | None = None,
) -> list[StructuredTool]:
    """Create the tools `write_todos`, `list_todos` and `edit_todos`.

    The tools read and write the `todos` channel of `TodoState` in the graph that calls them. Give
    them to the model and to a `ToolNode`. Several calls in one AI message take effect in call
    order. A refused call returns a `ToolMessage(status="error")` and changes nothing. A call
    outside a graph also returns an error.

    Args:
        limits: The limits for lists that the model writes.
        descriptions: Other descriptions for the model, by tool name. Tools that are not named
            keep their description.
        check: A sync or async function of an item and the graph state. It returns `None`, or the
            reason why the item is not done; `edit_todos` then refuses to complete the item. The
            function runs once for each item of a call, before the list changes. It may run again
            if the step fails or is interrupted, and the run is resumed. It may call `interrupt()`
            in `create_agent`, where each call is a task of its own.

    Returns:
        The three tools, in that order. The `metadata` of each tool holds its `label`,
        `prompt_snippet`, `prompt_guidelines` and `limits`.

    Raises:
        TypeError: `limits` is not a `TodoLimits`, `descriptions` is not a dict, a description is
            not a string, or `check` is not a function.
        ValueError: `descriptions` names an unknown tool.

    Example:
        ```python
        tools = create_todo_tools(TodoLimits(max_todos=20))
        assert [tool.name for tool in tools] == ["write_todos", "list_todos", "edit_todos"]
        ```
    """
    return build_tools(limits, descriptions, check, records_blocks=True)


def build_tools(
    limits: TodoLimits,
    descriptions: Mapping[str, str] | None,
    check: Check | None,
    *,
    records_blocks: bool,
) -> list[StructuredTool]:
    """Create the tools; set `records_blocks` if no middleware records the list blocks."""
    if not isinstance(limits, TodoLimits):
        raise TypeError(f"limits must be a TodoLimits, got {limits!r}")
    require_check(check)
    described = _checked({} if descriptions is None else descriptions)
    settings = _Settings(limits, check, records_blocks)
    return [
        _tool(name, replace(tool, description=described.get(name, tool.description)), settings)
        for name, tool in TOOLS.items()
    ]


def _checked(descriptions: Mapping[str, str]) -> Mapping[str, str]:
    """Raise an error for descriptions of unknown tools and for values that are not strings."""
    if not is_mapping(descriptions):
        raise TypeError(f"descriptions must be a dict by tool name, got {descriptions!r}")
    for name, description in descriptions.items():
        if name not in TOOLS:
            raise ValueError(
                f"descriptions has an unknown tool {name!r}; the tools are {', '.join(TOOLS)}"
            )
        if not isinstance(description, str):
            raise TypeError(f"descriptions[{name!r}] must be a string, got {description!r}")
    return descriptions


def _tool(name: str, tool: TodoTool, settings: _Settings) -> StructuredTool:
    def call(runtime: _Runtime = None, **args: Any) -> Command[Any] | ToolMessage:
        inside = _inside(runtime)
        answer, todos = _answer(name, args, inside, settings.limits)
        final = checked(name, answer, todos, settings.check, inside)
        update = _update(final, todos, inside, settings)
        if final is not answer:
            update["todo_loop"] = {"refused": final.details.get("error")}
        return _respond(name, final, inside, update)

    async def acall(runtime: _Runtime = None, **args: Any) -> Command[Any] | ToolMessage:
        inside = _inside(runtime)
        answer, todos = _answer(name, args, inside, settings.limits)
        final = await achecked(name, answer, todos, settings.check, inside)
        update = _update(final, todos, inside, settings)
        if final is not answer:
            update["todo_loop"] = {"refused": final.details.get("error")}
        return _respond(name, final, inside, update)

    return StructuredTool(
        name=name,
        description=tool.description,
        args_schema=_args_schema(name, tool, settings.limits),
        func=call,
        coroutine=acall,
        handle_tool_error=True,
        metadata={
            "label": tool.label,
            "prompt_snippet": prompts.PROMPT_SNIPPET,
            "prompt_guidelines": list(tool.guidelines),
            "limits": asdict(settings.limits),
        },
    )


def _args_schema(name: str, tool: TodoTool, limits: TodoLimits) -> type[LenientArgs]:
    fields: dict[str, Any] = {
        parameter: (argument if given.required else optional_argument)(**given.schema)
        for parameter, given in tool.parameters(limits).items()
    }
    return create_model(name, __base__=LenientArgs, **fields)


def _inside(runtime: ToolRuntime[Any, Any] | None) -> ToolRuntime[Any, Any]:
    """Return the runtime of a call; refuse a call outside a graph with a todo list."""
    if not isinstance(runtime, ToolRuntime) or not has_channel(runtime.state, "todos"):
        # Raise instead of returning a ToolMessage: outside a graph there may be no call id.
        raise ToolException(prompts.OUTSIDE_GRAPH)
    return runtime


def _answer(
    name: str, args: Mapping[str, Any], runtime: ToolRuntime[Any, Any], limits: TodoLimits
) -> tuple[Answer, list[TodoItem]]:
    """Return the answer to a call, and the list before it."""
    try:
        todos = list_before(runtime.state, runtime.tool_call_id, limits)
    except CallError as error:
        todos = todos_in(runtime.state)
        return refuse_call(name, error, todos), todos
    return answer_call(name, args, todos, limits), todos


def _update(
    answer: Answer, before: list[TodoItem], runtime: ToolRuntime[Any, Any], settings: _Settings
) -> dict[str, Any]:
    """Return the state update of a call, and send the event of a change."""
    messages = messages_in(runtime.state)
    at, position = find_call(messages, runtime.tool_call_id) or (None, 0)
    update: dict[str, Any] = {}
    if settings.records_blocks and has_channel(runtime.state, "todo_blocks"):
        update |= record_block(read(runtime.state))  # the block of the prompt before this call
    if answer.operation is None:
        return update
    turn = None if at is None else messages[at].id
    event = todos_event(answer.todos, position, format_in(runtime.state), turn=turn)
    runtime.stream_writer(event)
    # A list that is written again unchanged is no progress.
    progress = {"todo_loop": PROGRESS} if answer.todos != before else {}
    return {**update, "todos": answer.operation, **progress}


def _respond(
    name: str, answer: Answer, runtime: ToolRuntime[Any, Any], update: dict[str, Any]
) -> Command[Any] | ToolMessage:
    todos = in_format(answer.details["todos"], format_in(runtime.state))
    message = ToolMessage(
        answer.content,
        name=name,
        tool_call_id=runtime.tool_call_id or "",
        status="error" if answer.failed else "success",
        artifact={**answer.details, "todos": todos},
        response_metadata=result_metadata(answer),
    )
    return Command(update={**update, "messages": [message]}) if update else message
