"""The prompts and schemas: their size, and the words that they avoid."""

import json

from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.utils.function_calling import convert_to_openai_tool

from todo_tools import TODO_LIGHT_PROMPT, TODO_SYSTEM_PROMPT, create_todo_tools


def tokens(text: str) -> int:
    return count_tokens_approximately([HumanMessage(text)])


SCHEMAS = tokens(json.dumps([convert_to_openai_tool(tool) for tool in create_todo_tools()]))


class TestSize:
    def test_schemas_and_system_prompt_stay_under_690_tokens(self) -> None:
        assert SCHEMAS + tokens(TODO_SYSTEM_PROMPT) < 690

    def test_with_the_light_prompt_they_stay_under_500_tokens(self) -> None:
        assert tokens(TODO_LIGHT_PROMPT) <= 120
        assert SCHEMAS + tokens(TODO_LIGHT_PROMPT) < 500

    def test_they_are_less_than_half_the_size_of_langchains(self) -> None:
        """LangChain describes its one tool twice: in the schema and in the system prompt."""
        stock = TodoListMiddleware()
        schema = json.dumps([convert_to_openai_tool(tool) for tool in stock.tools])
        assert (
            SCHEMAS + tokens(TODO_SYSTEM_PROMPT)
            < (tokens(schema) + tokens(stock.system_prompt)) / 2
        )


class TestLightPrompt:
    def test_it_does_not_oblige_the_model(self) -> None:
        """Words of obligation make strong models spend turns on the list alone."""
        words = TODO_LIGHT_PROMPT.lower().split()
        assert not {"always", "must", "verify", "every"} & set(words)

    def test_both_prompts_ask_for_todo_calls_beside_the_work(self) -> None:
        for prompt in (TODO_SYSTEM_PROMPT, TODO_LIGHT_PROMPT):
            assert "make them beside other calls" in prompt
            assert "if that call fails, start the item again" in prompt
