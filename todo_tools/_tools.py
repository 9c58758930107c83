"""The three tools: thin StructuredTools around `answer_call`."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import create_model

from todo_tools import _prompts as prompts
from todo_tools._answers import Answer
from todo_tools._checks import Check, TodoStructuredTool, arun_steps, require_check, run_steps
from todo_tools._decision import PROGRESS
from todo_tools._records import TOOLS, TodoTool
from todo_tools._replay import Turn, turn_of
from todo_tools._shown_list import record_block
from todo_tools._todos import DEFAULT_LIMITS, TodoLimits
from todo_tools.events import todos_event
from todo_tools.schemas import LenientArgs, argument, optional_argument
from todo_tools.state import has_todos, messages_in
from todo_tools.transcript import find_call

_Runtime = Annotated[ToolRuntime[Any, Any] | None, InjectedToolArg]


def create_todo_tools(
    limits: TodoLimits = DEFAULT_LIMITS,
    *,
    descriptions: Mapping[str, str] | None = None,
    check: Check | None = None,
) -> list[StructuredTool]:
    """Make the tools `write_todos`, `list_todos` and `edit_todos`.

    They read and write the `todos` channel of the graph that calls them, which must be that of
    `TodoState`. Give them to the model and to a `ToolNode`. Several calls in one AI message act in
    call order. A refused call answers with a `ToolMessage(status="error")` and changes nothing. A
    call outside a graph also changes nothing and answers with an error.

    Args:
        limits: How much the model may write.
        descriptions: Other descriptions for the model, by tool name. Tools that are not named
            keep theirs.
        check: A function, sync or async, of an item and the graph state. It answers `None`, or why
            the item is not done. `edit_todos` then refuses to complete it, with that reason. It
            runs once for each item of a call, before the list changes.

    Returns:
        The three tools, in that order. `metadata` holds each one's `label`, `prompt_snippet`,
        `prompt_guidelines` and `limits`.

    Raises:
        TypeError: `limits` is not a `TodoLimits`, a description is not a string, or `check` is not
            a function.
        ValueError: `descriptions` names another tool.

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
    """Make the tools; `records_blocks` where no middleware records what prompts show."""
    if not isinstance(limits, TodoLimits):
        raise TypeError(f"limits must be a TodoLimits, got {limits!r}")
    require_check(check)
    described = _checked(descriptions or {})
    return [
        _tool(
            name,
            replace(tool, description=described.get(name, tool.description)),
            limits,
            check,
            records_blocks=records_blocks,
        )
        for name, tool in TOOLS.items()
    ]


def _checked(descriptions: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse descriptions of other tools, and what is no text."""
    for name, description in descriptions.items():
        if name not in TOOLS:
            raise ValueError(f"descriptions names {name!r}; the tools are {', '.join(TOOLS)}")
        if not isinstance(description, str):
            raise TypeError(f"descriptions[{name!r}] must be a string, got {description!r}")
    return descriptions


def _tool(
    name: str, tool: TodoTool, limits: TodoLimits, check: Check | None, *, records_blocks: bool
) -> StructuredTool:
    def call(runtime: _Runtime = None, **args: Any) -> Command[Any] | ToolMessage:
        inside, turn = _turn(runtime, limits, check)
        with turn.lock:
            steps = turn.answer(inside.tool_call_id, name, args)
            answer = run_steps(steps, check, inside.state)
        return _respond(name, answer, inside, records_blocks=records_blocks)

    async def acall(runtime: _Runtime = None, **args: Any) -> Command[Any] | ToolMessage:
        inside, turn = _turn(runtime, limits, check)
        async with turn.async_lock:
            steps = turn.answer(inside.tool_call_id, name, args)
            answer = await arun_steps(steps, check, inside.state)
        return _respond(name, answer, inside, records_blocks=records_blocks)

    return TodoStructuredTool(
        name=name,
        description=tool.description,
        args_schema=_args_schema(name, tool, limits),
        func=call,
        coroutine=acall,
        handle_tool_error=True,
        metadata={
            "label": tool.label,
            "prompt_snippet": prompts.PROMPT_SNIPPET,
            "prompt_guidelines": list(tool.guidelines),
            "limits": asdict(limits),
        },
        limits=limits,
        check=check,
    )


def _args_schema(name: str, tool: TodoTool, limits: TodoLimits) -> type[LenientArgs]:
    fields: dict[str, Any] = {
        parameter: (argument if given.required else optional_argument)(**given.schema)
        for parameter, given in tool.parameters(limits).items()
    }
    return create_model(name, __base__=LenientArgs, **fields)


def _turn(
    runtime: ToolRuntime[Any, Any] | None, limits: TodoLimits, check: Check | None
) -> tuple[ToolRuntime[Any, Any], Turn]:
    if not isinstance(runtime, ToolRuntime) or not has_todos(runtime.state):
        # Not a ToolMessage made here: outside a graph there may be no call id to answer to.
        raise ToolException(prompts.OUTSIDE_GRAPH)
    return runtime, turn_of(runtime.state, runtime.tool_call_id, limits, check)


def _respond(
    name: str, answer: Answer, runtime: ToolRuntime[Any, Any], *, records_blocks: bool
) -> Command[Any] | ToolMessage:
    message = ToolMessage(
        answer.content,
        name=name,
        tool_call_id=runtime.tool_call_id or "",
        status="error" if answer.failed else "success",
        artifact=answer.details,
    )
    found = find_call(messages_in(runtime.state), runtime.tool_call_id)
    # The block that the prompt before this call showed.
    update: dict[str, Any] = {}
    if found and records_blocks:
        update |= record_block(runtime.state, found[0])
    if answer.operation is not None:
        runtime.stream_writer(todos_event(answer.todos, found[1] if found else 0))
        update |= {"todos": answer.operation, "todo_loop": PROGRESS}
    if answer.check_failed:
        update |= {"todo_loop": {"refused": answer.details.get("error")}}
    return Command(update={**update, "messages": [message]}) if update else message
