"""The shape of LangChain's react-agent template: dataclass, context, guard at the last step."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.managed import IsLastStep
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime

from todo_tools import TODO_SYSTEM_PROMPT, add_auto_continue, create_todo_tools, model_view  # new
from todo_tools.state import TodoList, TodoLoop, TodoOutcome  # new

SORRY = "I could not find an answer in the given number of steps."


@dataclass
class Context:
    system_prompt: str = "You help people."


@dataclass
class InputState:
    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)


@dataclass
class State(InputState):
    is_last_step: IsLastStep = field(default=False)
    todos: TodoList = field(default_factory=list)  # new
    todo_loop: TodoLoop = field(default_factory=dict)  # type: ignore[assignment]  # new
    todo_outcome: TodoOutcome = None  # new


def route_model_output(state: State) -> Literal["tools", "__end__"]:
    last = state.messages[-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else "__end__"


def build(model: Any, tools: list[Any]) -> Any:
    tools = [*tools, *create_todo_tools()]  # new

    async def call_model(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
        system = runtime.context.system_prompt
        messages: Any = state.messages
        system, messages = f"{system}\n\n{TODO_SYSTEM_PROMPT}", model_view(state)  # new
        answer = await model.bind_tools(tools).ainvoke([SystemMessage(system), *messages])
        if state.is_last_step and answer.tool_calls:
            return {"messages": [AIMessage(SORRY, id=answer.id)]}
        return {"messages": [answer]}

    builder = StateGraph(State, input_schema=InputState, context_schema=Context)
    builder.add_node("call_model", call_model).add_node("tools", ToolNode(tools))
    builder.add_edge(START, "call_model").add_edge("tools", "call_model")
    # old: builder.add_conditional_edges("call_model", route_model_output)  # noqa: ERA001
    add_auto_continue(builder, agent="call_model")  # new
    return builder.compile()
