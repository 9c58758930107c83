"""Create the three tools, which are thin wrappers around `answer_call`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import create_model

from todo_tools._calls.answers import Answer
from todo_tools._calls.records import TOOLS, TodoTool
from todo_tools._list import prompts
from todo_tools._list.formats import TodosFormat, in_format, require_format
from todo_tools._list.todos import DEFAULT_LIMITS, TodoLimits, is_mapping
from todo_tools._loop.decision import PROGRESS
from todo_tools._tools.checks import Check, TodoStructuredTool, arun_steps, require_check, run_steps
from todo_tools._tools.turn import Turn, turn_of
from todo_tools._view.shown_list import record_block
from todo_tools.events import todos_event
from todo_tools.schemas import LenientArgs, argument, optional_argument
from todo_tools.state import format_in, has_todos, messages_in
from todo_tools.transcript import find_call

_Runtime = Annotated[ToolRuntime[Any, Any] | None, InjectedToolArg]


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings that the three tools share."""

    limits: TodoLimits
    check: Check | None
    todos_format: TodosFormat | None
    records_blocks: bool


def create_todo_tools(
    limits: TodoLimits = DEFAULT_LIMITS,
    *,
    descriptions: Mapping[str, str] | None = None,
    check: Check | None = None,
    todos_format: TodosFormat | None = None,
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
            if the step fails or is interrupted, and the run is resumed. It must not call
            `interrupt()`.
        todos_format: The format of the lists in events and artifacts. The default is the format of
            the graph's state: `"langchain"` for `ClientTodoState`, otherwise `"todo_tools"`. Set it
            only if you define a state around `fold_client_todos` yourself.

    Returns:
        The three tools, in that order. The `metadata` of each tool holds its `label`,
        `prompt_snippet`, `prompt_guidelines` and `limits`.

    Raises:
        TypeError: `limits` is not a `TodoLimits`, `descriptions` is not a dict, a description
            or `todos_format` is not a string, or `check` is not a function.
        ValueError: `descriptions` names an unknown tool, or `todos_format` an unknown format.

    Example:
        ```python
        tools = create_todo_tools(TodoLimits(max_todos=20))
        assert [tool.name for tool in tools] == ["write_todos", "list_todos", "edit_todos"]
        ```
    """
    return build_tools(limits, descriptions, check, todos_format, records_blocks=True)


def build_tools(
    limits: TodoLimits,
    descriptions: Mapping[str, str] | None,
    check: Check | None,
    todos_format: TodosFormat | None,
    *,
    records_blocks: bool,
) -> list[StructuredTool]:
    """Create the tools; set `records_blocks` if no middleware records the list blocks."""
    if not isinstance(limits, TodoLimits):
        raise TypeError(f"limits must be a TodoLimits, got {limits!r}")
    require_check(check)
    if todos_format is not None:
        require_format(todos_format)
    described = _checked({} if descriptions is None else descriptions)
    return [
        _tool(
            name,
            replace(tool, description=described.get(name, tool.description)),
            _Settings(limits, check, todos_format, records_blocks),
        )
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
        inside, turn = _turn(runtime, settings)
        with turn.lock:
            steps = turn.answer(inside.tool_call_id, name, args)
            answer = run_steps(steps, settings.check, inside.state)
        return _respond(name, answer, inside, settings)

    async def acall(runtime: _Runtime = None, **args: Any) -> Command[Any] | ToolMessage:
        inside, turn = _turn(runtime, settings)
        async with turn.async_lock:
            steps = turn.answer(inside.tool_call_id, name, args)
            answer = await arun_steps(steps, settings.check, inside.state)
        return _respond(name, answer, inside, settings)

    return TodoStructuredTool(
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
        limits=settings.limits,
        check=settings.check,
    )


def _args_schema(name: str, tool: TodoTool, limits: TodoLimits) -> type[LenientArgs]:
    fields: dict[str, Any] = {
        parameter: (argument if given.required else optional_argument)(**given.schema)
        for parameter, given in tool.parameters(limits).items()
    }
    return create_model(name, __base__=LenientArgs, **fields)


def _turn(
    runtime: ToolRuntime[Any, Any] | None, settings: _Settings
) -> tuple[ToolRuntime[Any, Any], Turn]:
    if not isinstance(runtime, ToolRuntime) or not has_todos(runtime.state):
        # Raise instead of returning a ToolMessage: outside a graph there may be no call id.
        raise ToolException(prompts.OUTSIDE_GRAPH)
    turn = turn_of(runtime, settings.limits, settings.check)
    return runtime, turn


def _respond(
    name: str, answer: Answer, runtime: ToolRuntime[Any, Any], settings: _Settings
) -> Command[Any] | ToolMessage:
    shown_format = settings.todos_format or format_in(runtime.state)
    message = ToolMessage(
        answer.content,
        name=name,
        tool_call_id=runtime.tool_call_id or "",
        status="error" if answer.failed else "success",
        artifact={**answer.details, "todos": in_format(answer.details["todos"], shown_format)},
    )
    messages = messages_in(runtime.state)
    at, position = find_call(messages, runtime.tool_call_id) or (None, 0)
    update: dict[str, Any] = {}
    if at is not None and settings.records_blocks:
        update |= record_block(runtime.state, at)  # the block of the prompt before this call
    if answer.operation is not None:
        turn_id = None if at is None else messages[at].id
        runtime.stream_writer(todos_event(answer.todos, position, shown_format, turn=turn_id))
        update |= {"todos": answer.operation, "todo_loop": PROGRESS}
    if answer.check_failed:
        update |= {"todo_loop": {"refused": answer.details.get("error")}}
    return Command(update={**update, "messages": [message]}) if update else message
