"""An agent that works until its todo list is finished: a hand-built graph with the loop.

This file needs only the library, so it can be copied alone.
"""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime

from todo_tools import (
    TODO_SYSTEM_PROMPT,
    AutoContinue,
    TodoItem,
    TodoLimits,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    model_view,
)

CHECKLIST_PROMPT = (
    "You work through checklists. Each open step is one todo, unchanged and in order; add the "
    "steps that the list lacks. If a step has a command in backticks, run it once, exactly "
    "as written. Complete a step if its command ends with exit code 0. Abandon a step that fails "
    "or that you have no tool for, say why or name the exit code, and go on to the next one."
)

_HIDDEN: RunnableConfig = {"tags": ["langsmith:hidden"]}
"""For helpers that a reader of a trace need not see."""


def build_graph(
    model: BaseChatModel,
    tools: Sequence[BaseTool] = (),
    *,
    system_prompt: str = CHECKLIST_PROMPT,
    policy: AutoContinue | Callable[[Runtime[Any]], AutoContinue] = AutoContinue(),
    limits: TodoLimits = TodoLimits(),
    state_schema: type[Any] = TodoState,
    context_schema: type[Any] | None = None,
    check: Callable[[TodoItem, Any], str | None] | None = None,
) -> StateGraph[Any, Any, Any, Any]:
    """Build the uncompiled graph, so that you choose its checkpointer.

    Args:
        model: Any chat model that can call tools.
        tools: The agent's tools, besides the todo tools. Here all calls of one answer run in one
            task. So a tool should not ask a person with `interrupt()`: if the answer has several,
            the reply may reach the wrong call, and calls may run again. Compile the graph with
            `interrupt_before=["tools"]` instead, or use `create_agent`.
        system_prompt: Placed before the prompt of the todo tools.
        policy: When and how the agent is sent back to work, or a function that chooses it per run.
        limits: How much the model may write into the list.
        state_schema: `TodoState`, or a state derived from it.
        context_schema: What can be set for each run, for a `policy` that is a function.
        check: Says why an item is not done, before it is completed; `graphs/checked.py` has one.

    Returns:
        The builder; call `.compile(checkpointer=...)` on it.
    """
    todo_tools = create_todo_tools(limits, check=check)
    all_tools: list[BaseTool] = [*todo_tools, *tools]
    system = SystemMessage(f"{system_prompt}\n\n{TODO_SYSTEM_PROMPT}")

    def prompt(state: TodoState) -> list[AnyMessage]:
        return [system, *model_view(state)]

    def update(answer: BaseMessage) -> dict[str, list[BaseMessage]]:
        return {"messages": [answer]}

    before = RunnableLambda(prompt).with_config(_HIDDEN)
    after = RunnableLambda(update).with_config(_HIDDEN)
    builder = StateGraph(state_schema, context_schema)
    builder.add_node("agent", before | model.bind_tools(all_tools) | after)
    builder.add_node("tools", ToolNode(all_tools))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    return add_auto_continue(builder, policy=policy)
