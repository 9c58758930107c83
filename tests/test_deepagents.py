"""This package in deepagents: with subagents, and in the Codex profile."""

from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field, SecretStr

from tests.prompt_reader import read_list
from tests.support import BEGIN, edit, items, loop_of, outcome_of, plan
from todo_tools import AutoContinue, TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

TODO_TOOLS = {"write_todos", "list_todos", "edit_todos"}


def deep_agent(model: Any, **options: Any) -> Any:
    """An agent with a checkpointer and the middleware."""
    middleware = [TodoMiddleware()]
    return create_deep_agent(model, middleware=middleware, checkpointer=InMemorySaver(), **options)


class TestDeepAgent:
    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_parent_and_child_have_separate_lists(
        self, config: RunnableConfig, form: str
    ) -> None:
        """Lists and counters never mix, and the parent does not wait for the child's open items."""
        parent = ScriptedChatModel(
            script=[
                plan("parent 1", "parent 2"),
                turn("", call("task", description="Do it.", subagent_type="helper")),
                edit("complete", 0, 1),
                "Done.",
            ]
        )
        child = ScriptedChatModel(script=[plan("child"), "Early.", "Early.", "The child's answer."])
        helper: Any = {
            "name": "helper",
            "description": "Helps.",
            "system_prompt": "Help.",
            "model": child,
            "tools": [],
            "middleware": [TodoMiddleware(policy=AutoContinue(max_idle=None, max_in_a_row=2))],
        }
        graph = deep_agent(parent, subagents=[helper])
        final = (
            graph.invoke(BEGIN, config) if form == "sync" else await graph.ainvoke(BEGIN, config)
        )
        assert len(child.prompts) == 4
        assert read_list(child.prompts[-1]) == [("child", "not_started")]
        assert "parent" not in child.prompts[-1][-1].text
        assert all("child" not in prompt[-1].text for prompt in parent.prompts[:2])
        assert final["todos"] == items("parent 1", "parent 2", status="completed")
        assert outcome_of(graph.get_state(config).values) == "finished"
        assert loop_of(graph, config)["in_turn"] == 0


def delegate(to: str) -> AIMessage:
    """A model's answer that gives a task to a subagent."""
    return turn("", call("task", description="Do it.", subagent_type=to))


@pytest.mark.parametrize("form", ["sync", "async"])
async def test_after_the_work_of_a_subagent_the_model_is_reminded_of_its_list(
    config: RunnableConfig, form: str
) -> None:
    """The list was seeded, and the model has not touched it."""
    child, given_to = ScriptedChatModel(script=["Three."]), "general-purpose"
    parent = ScriptedChatModel(script=[delegate(given_to), edit("complete", 0, 1), "Done."])
    graph = deep_agent(parent, subagents=[{**GENERAL_PURPOSE_SUBAGENT, "model": child}])
    given = {**BEGIN, "todos": items("Count", "Report")}
    if form == "sync":
        graph.invoke(given, config)
    else:
        await graph.ainvoke(given, config)
    note = "[Automatic note: the todo list] 0/2 done. Next: [0] Count"
    assert parent.prompts[1][-1].text == f"Three.\n\n{note}"


@pytest.mark.filterwarnings("ignore:The feature `forked subagents` is in beta")
class TestFork:
    """A subagent with `"mode": "fork"` starts with a copy of its parent's state."""

    def test_its_list_is_its_own(self, config: RunnableConfig) -> None:
        """Both are sent back once, each to its own items; the parent's items are unchanged."""
        child = ScriptedChatModel(
            script=[edit("complete", 1), plan("child"), "Early.", edit("complete", 0), "Finished."]
        )
        parent = ScriptedChatModel(script=[plan("a", "b"), delegate("fork"), "I stop.", "I stop."])
        graph = deep_agent(parent, subagents=[fork(child)])
        final = graph.invoke(BEGIN, config)
        assert (len(parent.prompts), len(child.prompts)) == (4, 5)
        assert "no todos" in child.prompts[1][-1].text
        assert read_list(child.prompts[-1]) == [("child", "completed")]
        assert final["todos"] == items("a", "b")
        assert read_list(parent.prompts[-1]) == [("a", "not_started"), ("b", "not_started")]


def fork(model: Any) -> Any:
    """A subagent that continues its parent's conversation."""
    return {"name": "fork", "description": "Helps.", "mode": "fork", "model": model, "tools": []}


class CodexStandIn(ChatOpenAI):
    """A scripted chat model that deepagents takes for Codex."""

    scripted: ScriptedChatModel = Field(exclude=True)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self.scripted._generate(messages, stop, run_manager, **kwargs)


def test_in_the_codex_profile_it_replaces_the_stock_middleware(config: RunnableConfig) -> None:
    """The model gets each of the three tools once, and there is only one list."""
    finish = edit("complete", 0)
    scripted = ScriptedChatModel(script=[plan("a"), finish, "Done."])
    model = CodexStandIn(
        model="gpt-5.3-codex",
        api_key=SecretStr("none"),
        use_responses_api=False,
        scripted=scripted,
    )
    stock = create_deep_agent(model)
    assert "TodoListMiddleware.after_model" in stock.get_graph().nodes
    graph = deep_agent(model)
    assert "TodoListMiddleware.after_model" not in graph.get_graph().nodes
    assert "TodoListMiddleware.after_agent" in graph.get_graph().nodes
    final = graph.invoke(BEGIN, config)
    assert final["todos"] == items("a", status="completed")
    names = [tool["function"]["name"] for tool in scripted.tools]
    assert [names.count(name) for name in sorted(TODO_TOOLS)] == [1, 1, 1]
    schema = next(t for t in scripted.tools if t["function"]["name"] == "write_todos")
    assert "mode" in schema["function"]["parameters"]["properties"]
