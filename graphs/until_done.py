"""An agent that works until its todo list is finished: a hand-built graph with the loop.

The file needs only this package, so it can be copied alone. Its limit: all calls of one answer
run in one task, so a tool should not ask a person with `interrupt()`, because the reply may reach
another call; compile the graph with `interrupt_before=["tools"]` instead, or use `create_agent`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode

import todo_tools
from todo_tools import AutoContinue, TodoLimits, TodoState

CHECKLIST_PROMPT = (
    "You work through checklists. Each open step is one todo, unchanged and in order; add the "
    "steps that the list lacks. If a step has a command in backticks, run it once, exactly "
    "as written. Complete a step if its command ends with exit code 0. Abandon a step that fails "
    "or that you have no tool for, say why or name the exit code, and go on to the next one."
)


def build_graph(
    model: BaseChatModel,
    tools: Sequence[BaseTool] = (),
    *,
    system_prompt: str = CHECKLIST_PROMPT,
    policy: AutoContinue | Callable[[Any], AutoContinue] = AutoContinue(),
    limits: TodoLimits = TodoLimits(),
    state_schema: type[Any] = TodoState,
    context_schema: type[Any] | None = None,
    check: Callable[[Any, Any], str | None] | None = None,
) -> StateGraph[Any, Any, Any, Any]:
    """Build the graph; call `.compile(checkpointer=...)` on what is returned."""
    all_tools: list[BaseTool] = [*todo_tools.create_todo_tools(limits, check=check), *tools]
    system = SystemMessage(f"{system_prompt}\n\n{todo_tools.TODO_SYSTEM_PROMPT}")

    def prompt(state: TodoState) -> list[AnyMessage]:
        return [system, *todo_tools.model_view(state)]

    def update(answer: BaseMessage) -> dict[str, list[BaseMessage]]:
        return {"messages": [answer]}

    hidden: Any = {"tags": ["langsmith:hidden"]}  # a reader of a trace need not see these helpers
    before, after = (
        RunnableLambda[Any, Any](each).with_config(hidden) for each in (prompt, update)
    )
    builder = StateGraph(state_schema, context_schema)
    builder.add_node("agent", before | model.bind_tools(all_tools) | after)
    builder.add_node("tools", ToolNode(all_tools))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    return todo_tools.add_auto_continue(builder, policy=policy)
