"""The shape of a service's assistant: a guard before the model, steps that remain, a chat."""

from collections.abc import AsyncIterator
from typing import Any, Literal

from langchain_core.messages import AIMessage, SystemMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.managed import RemainingSteps
from langgraph.prebuilt import ToolNode

from todo_tools import TODO_SYSTEM_PROMPT, add_auto_continue, create_todo_tools, model_view  # new
from todo_tools.state import TodoList, TodoLoop, TodoOutcome  # new

SORRY = "Sorry, I need more steps."


class State(MessagesState):
    safety: str
    remaining_steps: RemainingSteps
    todos: TodoList  # new
    todo_loop: TodoLoop  # new
    todo_outcome: TodoOutcome  # new


def guard(state: State) -> dict[str, Any]:
    get_stream_writer()({"type": "task", "text": "I check this."})
    return {"safety": "unsafe" if "bomb" in state["messages"][-1].text else "safe"}


def route_guard(state: State) -> Literal["block", "model"]:
    return "model" if state["safety"] == "safe" else "block"


def route_model(state: State) -> Literal["tools", "__end__"]:
    return "tools" if getattr(state["messages"][-1], "tool_calls", []) else "__end__"


def block(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage("I cannot help with that.")]}


def build(model: Any, tools: list[Any]) -> Any:
    tools = [*tools, *create_todo_tools()]  # new

    async def call_model(state: State) -> dict[str, Any]:
        prompt = [SystemMessage("You search."), *state["messages"]]
        prompt = [SystemMessage(f"You search.\n\n{TODO_SYSTEM_PROMPT}"), *model_view(state)]  # new
        answer = await model.bind_tools(tools).ainvoke(prompt)
        if state["remaining_steps"] < 2 and answer.tool_calls:
            return {"messages": [AIMessage(SORRY, id=answer.id)]}
        return {"messages": [answer]}

    builder = StateGraph(State).add_node("guard", guard).add_node("block", block)
    builder.add_node("model", call_model).add_node("tools", ToolNode(tools))
    builder.add_edge(START, "guard").add_conditional_edges("guard", route_guard)
    builder.add_edge("block", END).add_edge("tools", "model")
    # old: builder.add_conditional_edges("model", route_model)  # noqa: ERA001
    add_auto_continue(builder, agent="model")  # new
    return builder.compile()


async def chat(graph: Any, given: Any) -> AsyncIterator[str]:
    """Show each custom event as a message of the chat."""
    async for event in graph.astream(given, stream_mode="custom"):
        if event["type"] in {"todos", "todo_loop"}:  # new
            continue  # new
        yield event["text"]
