"""Custom texts for the model: tool descriptions and the instruction of the loop."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs.until_done import build_graph
from tests.support import BEGIN, plan
from todo_tools import AutoContinue, TodoMiddleware, create_todo_tools
from todo_tools.testing import ScriptedChatModel


class TestDescriptions:
    def test_a_named_tool_has_the_given_description(self) -> None:
        """The other tools keep their descriptions."""
        stock = create_todo_tools()
        other = create_todo_tools(descriptions={"edit_todos": "Tick."})
        assert [tool.description for tool in other] == [
            stock[0].description,
            stock[1].description,
            "Tick.",
        ]

    def test_the_middleware_accepts_them_too(self) -> None:
        model = ScriptedChatModel(script=["Hello."])
        middleware = TodoMiddleware(descriptions={"list_todos": "Look."})
        agent: Any = create_agent(model, middleware=[middleware])
        agent.invoke(BEGIN)
        assert model.tools[1]["function"]["description"] == "Look."

    def test_an_unknown_tool_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"unknown tool 'edit'; the tools are write_todos"):
            create_todo_tools(descriptions={"edit": "Tick."})


class TestInstruction:
    def test_a_continuation_begins_with_the_given_instruction(self, config: RunnableConfig) -> None:
        """The next call follows it, and no text of an item."""
        model = ScriptedChatModel(script=[plan("a"), "I stop.", "I stop again."])
        policy = AutoContinue(prompt="Weiter so.", max_in_turn=1)
        graph = build_graph(model, policy=policy).compile(checkpointer=InMemorySaver())
        stored = graph.invoke(BEGIN, config)["messages"][-2].text
        assert stored.startswith("Weiter so. Otherwise go on: do the work of [0]")
        assert model.prompts[-1][-1].text == stored

    @pytest.mark.parametrize("prompt", ["  ", 5, None])
    def test_an_empty_instruction_is_refused(self, prompt: Any) -> None:
        with pytest.raises(ValueError, match=r"AutoContinue\nprompt"):
            AutoContinue(prompt=prompt)
