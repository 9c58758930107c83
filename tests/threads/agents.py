"""The agents of the stored threads: an older version ran them, and the tests continue their runs.

The module uses public names only, so that every version can run it.
"""

from collections.abc import Callable, Iterable
from typing import Any

from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

from todo_tools import (
    AutoContinue,
    DeltaTodoState,
    TodoItem,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    model_view,
)
from todo_tools.clients import ClientTodoState
from todo_tools import TodoMiddleware
from todo_tools.operations import complete_items
from todo_tools.testing import ScriptedChatModel

Build = Callable[[ScriptedChatModel, BaseCheckpointSaver[str]], Any]

# Every setting whose default may change is given.
STORED = AutoContinue(max_in_a_row=2, max_idle=None)
UNSTORED = AutoContinue(max_in_a_row=2, max_idle=None, store=False)
ASKING = AutoContinue(max_in_a_row=2, max_idle=None, ask=True)

CHECKED = "Publish"
"""The todo that can be completed only after the user's permission."""
PERMISSION = "You may publish."


class CutOffError(Exception):
    """Ends a run in the middle of a tool call, like a cancellation."""


@tool
def look(path: str) -> str:
    """Look at a file."""
    return f"the content of {path}"


@tool
def describe(path: str) -> list[dict[str, Any]]:
    """Describe a file, in blocks."""
    return [{"type": "text", "text": path}, {"type": "text", "text": "is a file"}]


@tool
def cut_off() -> str:
    """End the run."""
    raise CutOffError


@tool
def ask(question: str) -> str:
    """Ask the user."""
    return str(interrupt(question))


TOOLS = [look, describe, cut_off, ask]


def allowed(item: TodoItem, state: Any) -> str | None:
    """The application's check of a todo that the model wants to complete."""
    permitted = any(message.text == PERMISSION for message in state["messages"])
    return None if permitted or item["text"] != CHECKED else "the user has not allowed it"


def loop_graph(state: type[Any], policy: AutoContinue) -> Callable[[ScriptedChatModel], Any]:
    """Build hand-built graphs with the loop, without an edge from the start."""

    def build(model: ScriptedChatModel) -> Any:
        tools = [*create_todo_tools(check=allowed), *TOOLS]
        bound = model.bind_tools(tools)
        builder = StateGraph(state)
        builder.add_node("agent", lambda state: {"messages": [bound.invoke(model_view(state))]})
        builder.add_node("tools", ToolNode(tools))
        builder.add_edge("tools", "agent")
        return add_auto_continue(builder, policy=policy)

    return build


def hand_built(state: type[Any], policy: AutoContinue = STORED) -> Build:
    build = loop_graph(state, policy)
    return lambda model, saver: build(model).add_edge(START, "agent").compile(checkpointer=saver)


def after_branches(model: ScriptedChatModel, saver: BaseCheckpointSaver[str]) -> Any:
    """A graph whose first run begins with two parallel subgraphs; each returns its whole list."""
    builder = loop_graph(DeltaTodoState, STORED)(model)
    branches = ["branch 0", "branch 1"]
    for index, name in enumerate(branches):
        branch = StateGraph(DeltaTodoState)
        branch.add_node("work", lambda _, index=index: {"todos": complete_items(index)})
        builder.add_node(name, branch.add_edge(START, "work").compile())
    builder.add_edge(branches, "agent")
    builder.add_conditional_edges(
        START, lambda state: branches if len(state["messages"]) == 1 else ["agent"]
    )
    return builder.compile(checkpointer=saver)


def agent(*others: Any, **settings: Any) -> Build:
    """Build `create_agent` agents; `others` are listed before the middleware."""
    return lambda model, saver: create_agent(
        model,
        TOOLS,
        middleware=[*others, TodoMiddleware(**{"policy": STORED, "check": allowed, **settings})],
        checkpointer=saver,
    )


def deep_agent(model: ScriptedChatModel, saver: BaseCheckpointSaver[str]) -> Any:
    middleware = [TodoMiddleware(policy=STORED, check=allowed)]
    return create_deep_agent(model, TOOLS, middleware=middleware, checkpointer=saver)


AGENTS: dict[str, Build] = {
    "hand_built": hand_built(TodoState),
    "hand_built_edited": hand_built(TodoState),
    "hand_built_unstored": hand_built(TodoState, UNSTORED),
    "hand_built_asking": hand_built(TodoState, ASKING),
    "hand_built_paused": hand_built(TodoState, UNSTORED),
    "delta": hand_built(DeltaTodoState),
    "delta_merged": after_branches,
    "client": hand_built(ClientTodoState),
    "middleware": agent(policy=UNSTORED),
    "middleware_client": agent(todos_format="langchain"),
    "middleware_asking": agent(policy=ASKING),
    "middleware_approval": agent(HumanInTheLoopMiddleware({"edit_todos": True})),
    "middleware_paused": agent(),
    "middleware_tool_asking": agent(),
    "deep_agent": deep_agent,
}
"""The agent of each stored thread."""


def as_sent(prompt: Iterable[BaseMessage]) -> list[dict[str, Any]]:
    """What a provider gets of a prompt, without the system prompt."""
    fields = {"content", "tool_calls", "invalid_tool_calls", "tool_call_id"}
    return [
        {"type": message.type, **message.model_dump(include=fields, exclude_defaults=True)}
        for message in prompt
        if not isinstance(message, SystemMessage)
    ]
