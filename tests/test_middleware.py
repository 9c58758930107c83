"""`TodoMiddleware` in `create_agent`, together with other middleware."""

import copy
import importlib
import pickle
import re
import sys
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    after_model,
    before_agent,
    before_model,
    wrap_model_call,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from tests.support import BEGIN, Graph, edit, items, loop_of, outcome_of, plan
from todo_tools import (
    TODO_SYSTEM_PROMPT,
    AutoContinue,
    TodoLimits,
    TodoMiddleware,
)
from todo_tools._thread.transcript import is_injected
from todo_tools.testing import ScriptedChatModel, call, turn

PLAN = plan("a", "b")
ADDED = {"type": "text", "text": f"\n\n{TODO_SYSTEM_PROMPT}"}
FINISH = edit("complete", 0, 1)


class Report(BaseModel):
    """A structured answer."""

    summary: str


def agent(model: ScriptedChatModel, *middleware: Any, **options: Any) -> Graph:
    return create_agent(
        model,
        options.pop("tools", []),
        middleware=middleware,
        checkpointer=InMemorySaver(),
        **options,
    )


def ended(graph: Graph, config: RunnableConfig) -> str | None:
    """Why the loop ended."""
    return outcome_of(graph.get_state(config).values)


def scripted(*script: AIMessage | str) -> ScriptedChatModel:
    return ScriptedChatModel(script=list(script))


def never_finished() -> ScriptedChatModel:
    """Plans, and then never works."""
    planned = iter([PLAN])
    return ScriptedChatModel(script=lambda _: next(planned, None) or "I am done, I think.")


class TestByItself:
    def test_one_line_gives_tools_state_prompt_view_and_loop(self, config: RunnableConfig) -> None:
        """The agent works until its list is finished."""
        model = scripted(PLAN, "Planned.", FINISH, "Done.")
        graph = agent(model, TodoMiddleware())
        final = graph.invoke(BEGIN, config)
        assert [todo["status"] for todo in final["todos"]] == ["completed", "completed"]
        assert final["messages"][-1].text == "Done."
        assert ended(graph, config) == "finished"
        names = {spec["function"]["name"] for spec in model.tools}
        assert names == {"write_todos", "list_todos", "edit_todos"}
        assert model.prompts[0][0] == SystemMessage(TODO_SYSTEM_PROMPT)
        assert "'start' on [0] in the same turn; abandon" in model.prompts[2][-1].text
        assert model.prompts[3][-1].text.startswith("Completed [0, 1]\nEvery item is finished.")

    @pytest.mark.parametrize(
        ("content", "sent"),
        [
            ("Own.", f"Own.\n\n{TODO_SYSTEM_PROMPT}"),
            ("", TODO_SYSTEM_PROMPT),
            ([{"type": "text", "text": "Own."}], [{"type": "text", "text": "Own."}, ADDED]),
        ],
    )
    def test_the_agents_own_prompt_comes_first_and_keeps_its_fields(
        self, content: Any, sent: Any, config: RunnableConfig
    ) -> None:
        """Providers read its name and other keys. A string stays a string, blocks stay blocks."""
        fields: dict[str, Any] = {"id": "1", "name": "house", "additional_kwargs": {"key": "value"}}
        model = scripted("Done.")
        own = SystemMessage(content, **fields)
        agent(model, TodoMiddleware(), system_prompt=own).invoke(BEGIN, config)
        assert model.prompts[0][0] == SystemMessage(sent, **fields)

    def test_each_part_can_be_switched_off(self, config: RunnableConfig) -> None:
        """The prompt, the view and the loop are optional."""
        model = scripted(PLAN, "Planned.")
        graph = agent(model, TodoMiddleware(policy=None, system_prompt=None, view=None))
        final = graph.invoke(BEGIN, config)
        assert [message.type for message in model.prompts[1]] == ["human", "ai", "tool"]
        assert model.prompts[1][-1].text.count("\n") == 3
        assert final["todos"] == items("a", "b")

    def test_each_part_can_be_replaced(self, config: RunnableConfig) -> None:
        """The limits, the policy, the prompt and the view are arguments."""
        model = scripted(PLAN, "No.", "No.")
        middleware = TodoMiddleware(
            limits=TodoLimits(max_todos=1),
            policy=AutoContinue(max_in_a_row=1, max_idle=None),
            system_prompt="Plan.",
            view=lambda state: state["messages"][-1:],
        )
        graph = agent(model, middleware)
        graph.invoke({**BEGIN, "todos": items("seeded")}, config)
        assert [len(prompt) for prompt in model.prompts] == [2, 2, 2]
        assert model.prompts[0][0].text == "Plan."
        assert "maximum of 1 todos" in model.prompts[1][-1].text
        assert ended(graph, config) == "limit_in_a_row"

    @pytest.mark.parametrize(
        "wrong",
        [
            {"policy": True},
            {"limits": 5},
            {"view": 5},
            {"system_prompt": 5},
        ],
    )
    def test_arguments_of_another_type_are_refused_at_build_time(self, wrong: Any) -> None:
        """The error names the value."""
        with pytest.raises(TypeError, match=r"got (True|5)"):
            TodoMiddleware(**wrong)


def pickled(middleware: TodoMiddleware) -> Any:
    return pickle.loads(pickle.dumps(middleware))


class TestHooks:
    """LangChain and other code may call and copy a middleware as they like."""

    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
    def test_a_copy_works_as_the_original(self, config: RunnableConfig, copied: Any) -> None:
        """The todo tools are created again, with the same settings."""
        limits = TodoLimits(max_todos=1)
        middleware = copied(TodoMiddleware(limits=limits, descriptions={"write_todos": "Plan."}))
        assert type(middleware) is TodoMiddleware
        assert middleware.policy == AutoContinue()
        model = scripted(PLAN, "No.")
        agent(model, middleware).invoke(BEGIN, config)
        assert "maximum of 1 todos" in model.prompts[1][-1].text
        described = {
            each["function"]["name"]: each["function"]["description"] for each in model.tools
        }
        assert list(described) == ["write_todos", "list_todos", "edit_todos"]
        assert described["write_todos"] == "Plan."


def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of this package does not need it."""
    parts = ("todo_tools.middleware", "todo_tools._agent")
    for name in [each for each in sys.modules if each.startswith(parts)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    with pytest.raises(ImportError, match=re.escape("'langgraph-todo-tools[langchain]'")):
        importlib.import_module("todo_tools.middleware")


class TestStructuredResponse:
    @pytest.mark.parametrize("stops_early", [False, True])
    @pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy])
    async def test_the_last_response_wins(
        self, config: RunnableConfig, strategy: Any, stops_early: bool
    ) -> None:
        """This holds even if the agent must continue after a response."""

        def response(summary: str) -> AIMessage:
            if strategy is ToolStrategy:
                return turn("", call("Report", summary=summary))
            return turn(f'{{"summary": "{summary}"}}')

        early = [response("early")] if stops_early else []
        model = scripted(PLAN, *early, FINISH, response("late"))
        graph = agent(model, TodoMiddleware(), response_format=strategy(Report))
        final = await graph.ainvoke(BEGIN, config)
        assert final["structured_response"] == Report(summary="late")
        assert sum(map(is_injected, final["messages"])) == len(early)
        assert ended(graph, config) == "finished"

    def test_a_result_that_goes_to_the_user_is_no_work(self, config: RunnableConfig) -> None:

        @tool(return_direct=True)
        def look() -> str:
            """Look around, for the user."""
            return "Nothing."

        graph = agent(scripted(turn("", call("look"))), TodoMiddleware(), tools=[look])
        final = graph.invoke({"messages": [("user", "Look.")], "todos": items("a")}, config)
        assert final["messages"][-1].text == "Nothing."
        assert ended(graph, config) == "answered"

    @pytest.mark.parametrize("policy", [AutoContinue(max_idle=None), AutoContinue(ask=True)])
    @pytest.mark.parametrize("new", [{}, {"messages": [AIMessage("I may not say it.", id="1")]}])
    async def test_a_run_that_a_hook_ended_after_an_answer_is_not_continued(
        self, new: dict[str, Any], policy: AutoContinue, config: RunnableConfig
    ) -> None:
        """A guard may end it, also after it replaced the answer, or a budget of the application."""

        @after_model(can_jump_to=["end"])
        def guard(state: Any, runtime: Any) -> dict[str, Any] | None:
            return {**new, "jump_to": "end"} if state["messages"][-1].id == "1" else None

        model = scripted(PLAN, AIMessage("The secret is 42.", id="1"), "Not asked.")
        graph = agent(model, guard, TodoMiddleware(policy=policy))
        assert "__interrupt__" not in await graph.ainvoke(BEGIN, config)
        assert len(model.prompts) == 2
        assert ended(graph, config) == "ended_elsewhere"


UNLIMITED = AutoContinue(max_idle=None)
"""Sends an agent back to work that only talks."""


def both_orders(
    other: AgentMiddleware[Any, Any, Any], policy: AutoContinue = AutoContinue()
) -> Any:
    """The other middleware before this one and after it."""
    todos = TodoMiddleware(policy=policy)
    return [(other, todos), (todos, other)]


class TestLimitsOfOthers:
    """If another middleware's limit ends the run, the loop does not continue it."""

    @pytest.mark.parametrize("order", [0, 1])
    def test_a_limit_on_model_calls_ends_the_run(self, config: RunnableConfig, order: int) -> None:
        """The model is called exactly as often as it allows."""
        limit = ModelCallLimitMiddleware(run_limit=4, exit_behavior="end")
        model = never_finished()
        graph = agent(model, *both_orders(limit, UNLIMITED)[order])
        final = graph.invoke(BEGIN, config)
        assert len(model.prompts) == 4
        assert "Model call limits exceeded" in final["messages"][-1].text
        assert ended(graph, config) == "ended_elsewhere"

    @pytest.mark.parametrize("order", [0, 1])
    async def test_a_limit_on_tool_calls_ends_the_run(
        self, config: RunnableConfig, order: int
    ) -> None:
        """The run ends although items remain."""
        limit = ToolCallLimitMiddleware(run_limit=2, exit_behavior="end")
        more = edit("start", 0)
        model = scripted(PLAN, more, more, "Not asked.")
        graph = agent(model, *both_orders(limit)[order])
        final = await graph.ainvoke(BEGIN, config)
        assert len(model.prompts) == 3
        assert "limit" in final["messages"][-1].text
        assert ended(graph, config) == "ended_elsewhere"


class TestRecursionLimit:
    """A run near LangGraph's recursion limit is not continued."""

    CALLS = ModelCallLimitMiddleware[Any, Any](thread_limit=1_000)

    @pytest.mark.parametrize("others", [[], [CALLS]])
    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_it_ends_with_an_outcome_and_a_notice(
        self, config: RunnableConfig, others: list[Any], form: str
    ) -> None:
        """Each node of other middleware takes a step too."""
        graph = agent(never_finished(), *others, TodoMiddleware(policy=UNLIMITED))
        near: RunnableConfig = {**config, "recursion_limit": 60}
        final = graph.invoke(BEGIN, near) if form == "sync" else await graph.ainvoke(BEGIN, near)
        assert "⚠ Stopped before the recursion limit of this run" in final["messages"][-1].text
        assert ended(graph, config) == "out_of_steps"


class TestOrder:
    """The middleware works at any position in the list."""

    def test_if_it_is_last_the_end_hooks_of_others_run_once(self, config: RunnableConfig) -> None:
        """Other `after_agent` hooks run once, when the run really ends."""
        ended: list[int] = []

        class Closing(AgentMiddleware[Any, Any, Any]):
            def after_agent(self, state: Any, runtime: Any) -> None:
                ended.append(len(state["messages"]))

        graph = agent(never_finished(), Closing(), TodoMiddleware())
        final = graph.invoke(BEGIN, config)
        assert ended == [len(final["messages"])]
        assert loop_of(graph, config)["in_turn"] == 1

    @pytest.mark.parametrize("order", [0, 1])
    def test_a_provider_that_is_down_is_not_asked_again_and_again(
        self, config: RunnableConfig, order: int
    ) -> None:
        """After the last retry a message replaces the answer; it does not count as an answer."""
        retry = ModelRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)

        def down(_: Any) -> str:
            raise OSError("down")

        model = ScriptedChatModel(script=down)
        graph = agent(model, *both_orders(retry)[order])
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        assert len(model.prompts) == 3
        assert ended(graph, config) == "ended_elsewhere"

    @pytest.mark.parametrize("order", [0, 1])
    @pytest.mark.parametrize("hook", [before_model, after_model])
    def test_a_run_that_ends_between_the_calls_of_the_model_is_not_continued(
        self, config: RunnableConfig, order: int, hook: Any
    ) -> None:
        """Another middleware may end it without a message, such as a button to stop it."""

        @hook(can_jump_to=["end"])  # type: ignore[untyped-decorator]  # one of two
        def stop(state: Any, runtime: Any) -> dict[str, Any] | None:
            return {"jump_to": "end"} if len(state["messages"]) > 4 else None

        model = ScriptedChatModel(script=lambda _: turn("", call("list_todos")))
        graph = agent(model, *both_orders(stop)[order])
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        assert len(model.prompts) <= 3
        assert ended(graph, config) == "ended_elsewhere"

    @pytest.mark.parametrize("order", [0, 1])
    def test_a_run_that_ends_before_the_model_is_called_is_not_continued(
        self, config: RunnableConfig, order: int
    ) -> None:
        """The last answer is that of an earlier run."""

        @before_agent(can_jump_to=["end"])
        def guard(state: Any, runtime: Any) -> dict[str, Any] | None:
            return {"jump_to": "end"} if state["messages"][-1].text == "Evil." else None

        model = ScriptedChatModel(script=lambda _: "Later.")
        graph = agent(model, *both_orders(guard, UNLIMITED)[order])
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        calls = len(model.prompts)
        graph.invoke({"messages": [("user", "Evil.")]}, config)
        assert len(model.prompts) == calls
        assert ended(graph, config) == "ended_elsewhere"


class TestHistoryOfOthers:
    @pytest.mark.parametrize("create", [create_agent, create_deep_agent])
    def test_a_message_of_a_request_may_be_a_dict(self, create: Any) -> None:
        """Middleware adds one as LangChain's documentation does."""

        @wrap_model_call
        def add(request: Any, handler: Any) -> Any:
            added = {"role": "user", "content": "Files: a.txt"}
            return handler(request.override(messages=[*request.messages, added]))

        model = scripted(PLAN, "Planned.")
        create(model, middleware=[add, TodoMiddleware(policy=None)]).invoke(BEGIN)
        assert [prompt[-1].text for prompt in model.prompts] == ["Files: a.txt"] * 2

    def test_a_list_may_be_shown_at_a_message_of_a_request_alone(self) -> None:
        """Middleware that adds one to the request does not store it."""

        @wrap_model_call
        def replace(request: Any, handler: Any) -> Any:
            return handler(request.override(messages=[HumanMessage("Short.", id="new")]))

        model = scripted("Not yet.")
        middleware = [replace, TodoMiddleware(policy=None)]
        agent: Any = create_agent(model, middleware=middleware)
        agent.invoke({**BEGIN, "todos": ["Measure"]})
        assert "[0] Measure" in model.prompts[0][-1].text


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is empty."


class TestToolsTakenAway:
    """LangChain's tool selector may leave out the todo tools of a call."""

    @staticmethod
    def run(policy: AutoContinue) -> tuple[ScriptedChatModel, ScriptedChatModel]:
        """An agent works, stops, is sent back and stops again; its model and the selector's."""
        model = scripted(turn("", call("look", place="here")), "I stop.", "I stop again.")
        chosen = turn("", call("ToolSelectionResponse", tools=["look"]))
        reads = ScriptedChatModel(script=lambda _: chosen)
        selector = LLMToolSelectorMiddleware[Any, Any](model=reads)
        graph: Any = create_agent(
            model, [look], middleware=[selector, TodoMiddleware(policy=policy)]
        )
        graph.invoke({**BEGIN, "todos": items("a")})
        return model, reads

    @pytest.mark.parametrize("store", [True, False])
    def test_the_loop_does_not_ask_for_them(self, store: bool) -> None:
        """It asks for the work alone; the selector reads the newest message of the history."""
        model, reads = self.run(AutoContinue(store=store))
        assert [spec["function"]["name"] for spec in model.tools] == ["look"]
        assert "do the work of [0] now with your other tools." in model.prompts[2][-1].text
        assert "edit_todos" not in model.prompts[2][-1].text
        assert is_injected(reads.prompts[-1][-1]) == store


class TestStockMiddleware:
    @pytest.mark.parametrize("order", [0, 1])
    def test_an_agent_with_langchains_own_middleware_too_is_refused(self, order: int) -> None:
        """Otherwise two formats would meet in one channel."""
        with pytest.raises(AssertionError, match="remove duplicate middleware"):
            agent(scripted("Hi."), *both_orders(TodoListMiddleware())[order])
