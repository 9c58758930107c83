"""The three tools: thin StructuredTools around `answer_call`."""

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolArg, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import create_model

from todo_tools import prompts
from todo_tools.calls import EDITS, MODES, ToolName, answer_call
from todo_tools.events import todos_event
from todo_tools.models import DEFAULT_LIMITS, TodoLimits
from todo_tools.schemas import LenientArgs, argument, optional_argument
from todo_tools.state import has_todos, messages_in
from todo_tools.transcript import call_position, todos_at_call

_Runtime = Annotated[ToolRuntime[Any, Any] | None, InjectedToolArg]


def create_todo_tools(limits: TodoLimits = DEFAULT_LIMITS) -> list[StructuredTool]:
    """Make the tools `write_todos`, `list_todos` and `edit_todos`.

    They read and write the `todos` channel of the graph that calls them, which must be that of
    `TodoState`. Give them to the model and to a `ToolNode`. Several calls in one model turn act in
    call order. A refused call answers with a `ToolMessage(status="error")` and changes nothing, so
    does a call outside a graph.

    Args:
        limits: How much the model may write.

    Returns:
        The three tools, in that order. `metadata` holds each one's `label`, `prompt_snippet` and
        `prompt_guidelines`.

    Raises:
        TypeError: `limits` is not a `TodoLimits`.

    Example:
        >>> tools = create_todo_tools(TodoLimits(max_todos=20))
        >>> model = init_chat_model("openai:gpt-5").bind_tools(tools)
        >>> builder.add_node("tools", ToolNode(tools))
    """
    if not isinstance(limits, TodoLimits):
        raise TypeError(f"limits must be a TodoLimits, got {limits!r}")
    return [
        _tool(
            "write_todos",
            "Write Todos",
            prompts.WRITE_DESCRIPTION,
            _write_args(limits),
            limits,
            guidelines=prompts.PROMPT_GUIDELINES,
        ),
        _tool("list_todos", "List Todos", prompts.LIST_DESCRIPTION, _list_args(), limits),
        _tool("edit_todos", "Edit Todos", prompts.EDIT_DESCRIPTION, _edit_args(limits), limits),
    ]


def _write_args(limits: TodoLimits) -> type[LenientArgs]:
    text = {
        "type": "string",
        "description": f"Description of the task, at most {limits.max_text_length} characters",
    }
    return create_model(
        "write_todos",
        __base__=LenientArgs,
        mode=argument(
            type="string",
            enum=list(MODES),
            description="Mode: 'replace' clears and replaces the entire list, 'append' adds to "
            "the end, 'insert' inserts at a specific index",
        ),
        index=optional_argument(
            type="integer", description="0-based index to insert at (required for 'insert' mode)"
        ),
        todos=argument(
            type="array",
            items={"type": "object", "properties": {"text": text}, "required": ["text"]},
            description=f"Ordered list of todo items, at most {limits.max_todos}",
        ),
    )


def _list_args() -> type[LenientArgs]:
    return create_model("list_todos", __base__=LenientArgs)


def _edit_args(limits: TodoLimits) -> type[LenientArgs]:
    return create_model(
        "edit_todos",
        __base__=LenientArgs,
        action=argument(
            type="string",
            enum=list(EDITS),
            description="Action to apply to the todo items: 'start', 'complete' or 'abandon'",
        ),
        indices=argument(
            type="array",
            items={"type": "integer"},
            description=f"0-based indices to apply the action to, 1 to {limits.max_indices}",
        ),
    )


def _tool(
    name: ToolName,
    label: str,
    description: str,
    args_schema: type[LenientArgs],
    limits: TodoLimits,
    *,
    guidelines: tuple[str, ...] = (),
) -> StructuredTool:
    def call(runtime: _Runtime = None, **args: Any) -> Command[Any] | ToolMessage:
        return _respond(name, args, runtime, limits)

    async def acall(runtime: _Runtime = None, **args: Any) -> Command[Any] | ToolMessage:
        return _respond(name, args, runtime, limits)

    return StructuredTool(
        name=name,
        description=description,
        args_schema=args_schema,
        func=call,
        coroutine=acall,
        handle_tool_error=True,
        metadata={
            "label": label,
            "prompt_snippet": prompts.PROMPT_SNIPPET,
            "prompt_guidelines": list(guidelines),
        },
    )


def _respond(
    name: ToolName,
    args: Mapping[str, Any],
    runtime: ToolRuntime[Any, Any] | None,
    limits: TodoLimits,
) -> Command[Any] | ToolMessage:
    if not isinstance(runtime, ToolRuntime) or not has_todos(runtime.state):
        # Not a ToolMessage of our own: outside a graph there may be no call id to answer to.
        raise ToolException(prompts.OUTSIDE_GRAPH)
    todos = todos_at_call(runtime.state, runtime.tool_call_id, limits)
    answer = answer_call(name, args, todos, limits)
    message = ToolMessage(
        answer.content,
        name=name,
        tool_call_id=runtime.tool_call_id or "",
        status="error" if answer.failed else "success",
        artifact=answer.details,
    )
    if answer.operation is None:
        return message
    position = call_position(messages_in(runtime.state), runtime.tool_call_id)
    runtime.stream_writer(todos_event(answer.todos, position))
    # A change is progress: it re-arms the limit on continuations in a row.
    return Command(
        update={
            "todos": answer.operation,
            "todo_loop": {"in_a_row": 0, "outcome": None},
            "messages": [message],
        }
    )
