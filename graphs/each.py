"""Each item of a list as a run of its own: a planner, three items at once, and an answer.

To copy: this file; it needs only this package and LangChain. Its limit: no item may need another.
"""

import re
from datetime import date
from typing import Any

from langchain import agents
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph.state import CompiledStateGraph, StateGraph
from pydantic import BaseModel

from todo_tools import ItemsState, create_item_runner, has_worked
from todo_tools.testing import ScriptedChatModel, call, turn

NOTE = "[Automatic note] Answer the user from these reports:\n"
Graph = StateGraph[Any, Any, Any, Any]


class Plan(BaseModel):
    """The independent parts of the user's last request, each as a task that stands alone."""

    items: list[str]


def weekday(day: date) -> str:  # or your own tools
    """Say on which day of the week a date falls."""
    return f"{day} is a {day:%A}."


def build_graph(model: BaseChatModel, state_schema: type[Any] = ItemsState) -> Graph:
    """Build the graph for a model, such as `init_chat_model("openai:gpt-5")`."""

    def plan(state: Any) -> dict[str, list[str]]:
        made: Any = model.with_structured_output(Plan).invoke(state["messages"])
        return {"todos": made.items}

    def answer(state: Any) -> dict[str, list[BaseMessage]]:
        reports = "\n".join(each["report"] for each in state.get("reports", {}).values())
        return {"messages": [model.invoke([*state["messages"], HumanMessage(NOTE + reports)])]}

    agent: CompiledStateGraph[Any, Any, Any, Any] = agents.create_agent(model, [weekday])
    return create_item_runner(
        agent, check=has_worked, at_once=3, planner=plan, answer=answer, state_schema=state_schema
    )


def _answer(prompt: list[BaseMessage]) -> AIMessage:
    text, dates = prompt[-1].text, re.findall(r"\d{4}-\d\d-\d\d", prompt[-1].text)
    if "Do only this item:" in text:
        return turn("", call("weekday", day=dates[-1]))
    is_request = prompt[-1].type == "human" and not text.startswith(NOTE)
    return turn("", call("Plan", items=dates)) if is_request else turn(text.removeprefix(NOTE))


stand_in = ScriptedChatModel(script=_answer)  # needs no key: an item for each date
