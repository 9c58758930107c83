"""An agent that works until its todo list is finished: the loop in a hand-built graph."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode

from graphs.model import chat_model
from graphs.tools.shell import shell_tool
from todo_tools import (
    TODO_SYSTEM_PROMPT,
    AutoContinue,
    TodoLimits,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    model_view,
)

CHECKLIST_PROMPT = (
    "You work off checklists. Write each open step as one todo, unchanged and in order. Run the "
    "command that a step has in backticks with the shell tool, once and as it stands. Complete a "
    "step whose command ends with exit code 0; abandon it otherwise, name the exit code, and go on "
    "with the next one."
)


def build_graph(
    model: BaseChatModel,
    tools: Sequence[BaseTool] = (),
    *,
    system_prompt: str = CHECKLIST_PROMPT,
    policy: AutoContinue = AutoContinue(),
    limits: TodoLimits = TodoLimits(),
    state_schema: type[Any] = TodoState,
) -> StateGraph[Any, Any, Any, Any]:
    """Build the graph, uncompiled, so that its checkpointer is yours to choose.

    Args:
        model: Any chat model that can call tools.
        tools: What the agent works with, besides the todo tools.
        system_prompt: Put before the prompt of the todo tools.
        policy: When and how the agent is sent back to work.
        limits: How much the model may write into the list.
        state_schema: `TodoState`, or a state derived from it.

    Returns:
        The builder; call `.compile(checkpointer=...)` on it.
    """
    todo_tools = create_todo_tools(limits)
    all_tools: list[BaseTool] = [*todo_tools, *tools]
    system = SystemMessage(f"{system_prompt}\n\n{TODO_SYSTEM_PROMPT}")

    def prompt(state: TodoState) -> list[AnyMessage]:
        return [system, *model_view(state)]

    def update(answer: BaseMessage) -> dict[str, list[BaseMessage]]:
        return {"messages": [answer]}

    agent = RunnableLambda(prompt) | model.bind_tools(all_tools) | RunnableLambda(update)
    builder = StateGraph(state_schema)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(all_tools))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    return add_auto_continue(builder, policy=policy)


def serve() -> StateGraph[Any, Any, Any, Any]:
    """The graph as `graphs.served` compiles it for a server, which brings the checkpointer.

    `TODO_MODEL` names the chat model (`provider:name`), without it the stand-in answers;
    `TODO_WORKDIR` is where commands run, without it a new temporary directory.
    """
    workdir = os.environ.get("TODO_WORKDIR") or tempfile.mkdtemp(prefix="todo-")
    return build_graph(chat_model(os.environ.get("TODO_MODEL")), [shell_tool(Path(workdir))])
