"""`TodoMiddleware` in `create_agent`, together with other middleware."""

import copy
import importlib
import itertools
import pickle
import re
import sys
from itertools import chain, count, pairwise
from typing import Any
from uuid import uuid4

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
    after_model,
    before_model,
    hook_config,
    wrap_model_call,
)
from langchain.agents.middleware.model_call_limit import ModelCallLimitExceededError
from langchain.agents.middleware.tool_call_limit import ToolCallLimitExceededError
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from typing_extensions import override

from tests.prompt_reader import read_list
from tests.support import BEGIN, MIXED, Graph, edit, items, loop_of, plan, results_in
from todo_tools import (
    TODO_SYSTEM_PROMPT,
    AutoContinue,
    DeltaTodoState,
    TodoItem,
    TodoLimits,
    TodoState,
    format_status,
    format_todos,
    todos_from_messages,
)
from todo_tools._list.formats import TodosFormat
from todo_tools._list.todos import mark_of
from todo_tools._thread.channels import fold_todos
from todo_tools.middleware import TodoGateMiddleware, TodoMiddleware
from todo_tools.operations import abandon_items, append_items, insert_items
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_injected

PLAN = plan("a", "b")
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
        assert loop_of(graph, config)["outcome"] == "finished"
        assert {spec["function"]["name"] for spec in model.tools} == {
            "write_todos",
            "list_todos",
            "edit_todos",
        }
        assert model.prompts[0][0] == SystemMessage(TODO_SYSTEM_PROMPT)
        assert model.prompts[2][-1].text.endswith("on [0] in the same turn.")  # the continuation
        assert model.prompts[3][-1].text.startswith("Completed [0, 1]\nEvery item is finished.")

    async def test_it_works_asynchronously(self, config: RunnableConfig) -> None:
        graph = agent(scripted(PLAN, "Planned.", FINISH, "Done."), TodoMiddleware())
        final = await graph.ainvoke(BEGIN, config)
        assert final["messages"][-1].text == "Done."
        assert loop_of(graph, config)["outcome"] == "finished"

    def test_the_agents_own_prompt_comes_first(self, config: RunnableConfig) -> None:
        """The middleware's prompt follows it."""
        model = scripted("Hi.")
        agent(model, TodoMiddleware(), system_prompt="You are kind.").invoke(BEGIN, config)
        text = model.prompts[0][0].text
        assert text.startswith("You are kind.")
        assert text.endswith(TODO_SYSTEM_PROMPT)

    def test_the_agents_own_prompt_keeps_its_other_fields(self) -> None:
        """Providers read its name and other keys. A string stays a string, blocks stay blocks."""
        given: dict[str, Any] = {"id": "1", "name": "house", "additional_kwargs": {"key": "value"}}
        blocks: list[Any] = [{"type": "text", "text": "Own.", "cache_control": {"type": "x"}}]
        added = {"type": "text", "text": f"\n\n{TODO_SYSTEM_PROMPT}"}
        cases: list[tuple[Any, Any]] = [
            ("Own.", f"Own.\n\n{TODO_SYSTEM_PROMPT}"),
            ("", TODO_SYSTEM_PROMPT),
            (blocks, [*blocks, added]),
        ]
        for content, sent in cases:
            model = ScriptedChatModel(script=["Done."])
            own = SystemMessage(content, **given)
            graph: Any = create_agent(model, middleware=[TodoMiddleware()], system_prompt=own)
            graph.invoke(BEGIN)
            assert model.prompts[0][0] == SystemMessage(sent, **given)

    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_each_part_can_be_switched_off(self, config: RunnableConfig, form: str) -> None:
        """The prompt, the view and the loop are optional."""
        model = scripted(PLAN, "Planned.")
        graph = agent(model, TodoMiddleware(policy=None, system_prompt=None, view=None))
        final = (
            graph.invoke(BEGIN, config) if form == "sync" else await graph.ainvoke(BEGIN, config)
        )
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
        assert loop_of(graph, config)["outcome"] == "limit_in_a_row"

    @pytest.mark.parametrize("todos_format", ["todo_tools", "langchain"])
    def test_its_limits_do_not_bind_the_caller(
        self, config: RunnableConfig, todos_format: TodosFormat
    ) -> None:
        """The application may seed a longer list than the model may write."""
        middleware = TodoMiddleware(limits=TodoLimits(max_todos=5), todos_format=todos_format)
        final = agent(scripted(*["Hi."] * 30), middleware).invoke(
            {**BEGIN, "todos": items(*"a" * 150)}, config
        )
        assert len(final["todos"]) == 150

    def test_the_limits_of_a_subgraph_do_not_bind_its_parent(self, config: RunnableConfig) -> None:
        """Each list goes through the channel, but limits belong to the tools that write it."""
        texts = [f"step {number}" for number in range(150)]
        large = TodoMiddleware(limits=TodoLimits(max_todos=150), policy=None)
        planner = agent(scripted(plan(*texts), "Planned."), large)
        worker = agent(scripted(edit("complete", 149), "Done."), TodoMiddleware(policy=None))
        builder = StateGraph(TodoState)
        builder.add_sequence([("plan", planner), ("work", worker)])
        builder.add_edge(START, "plan")
        graph: Graph = builder.compile(checkpointer=InMemorySaver())
        final = graph.invoke(BEGIN, config)
        assert [todo["text"] for todo in final["todos"]] == texts
        assert final["todos"][149]["status"] == "completed"

    def test_the_gate_knows_the_limits_of_the_tools(self, config: RunnableConfig) -> None:
        """A refused plan does not open the gate for a later call of the same message."""
        plan = call("write_todos", mode="replace", todos=["a", "b"])
        start = call("edit_todos", action="start", indices=[0])
        model = scripted(turn("", plan, start, call("look")), *["I stop."] * 30)
        ran: list[str] = []

        @tool
        def look() -> str:
            """Look around."""
            ran.append("look")
            return "Nothing."

        middleware = [TodoGateMiddleware(), TodoMiddleware(limits=TodoLimits(max_todos=1))]
        agent(model, *middleware, tools=[look]).invoke(BEGIN, config)
        assert ran == []

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

    def test_the_loop_is_neither_input_nor_output(self, config: RunnableConfig) -> None:
        """So a parent and its subagent cannot mix their counters."""
        graph = agent(scripted("Hi."), TodoMiddleware())
        final = graph.invoke({**BEGIN, "todo_loop": {"in_turn": 99}}, config)
        assert "todo_loop" not in final
        assert loop_of(graph, config).get("in_turn", 0) == 0

    def test_a_person_can_be_asked(self, config: RunnableConfig) -> None:
        """The question interrupts the run, as in a hand-built graph."""
        middleware = TodoMiddleware(policy=AutoContinue(ask=True))
        graph = agent(scripted(PLAN, "Planned.", edit("start", 0), "Started."), middleware)
        assert graph.invoke(BEGIN, config)["__interrupt__"]
        assert graph.invoke(Command(resume="Only item a."), config)["__interrupt__"]
        final = graph.invoke(Command(resume="no"), config)
        said = [message.text for message in final["messages"]]
        assert said[said.index("Planned.") + 1] == "Only item a."
        assert loop_of(graph, config)["outcome"] == "declined"

    def test_a_delta_state_can_be_used(self, config: RunnableConfig) -> None:
        """The agent's `state_schema` wins over that of the middleware."""
        state: Any = DeltaTodoState
        graph = agent(scripted(PLAN, FINISH, "Done."), TodoMiddleware(), state_schema=state)
        assert graph.invoke(BEGIN, config)["messages"][-1].text == "Done."
        assert type(graph.channels["messages"]).__name__ == "DeltaChannel"


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_the_newest_event_streaming_has_the_events_of_the_list(config: RunnableConfig) -> None:
    """Without more than the middleware."""
    model = scripted(plan("a"), edit("complete", 0), "Done.")
    run = agent(model, TodoMiddleware()).stream_events(BEGIN, config, version="v3")
    events = [(event["type"], event.get("status")) for event in run.custom]
    assert events == [("todos", "📋 0/1"), ("todos", "✓ Done (1 items)"), ("todo_loop", None)]


def result_of(answer: AIMessage) -> ToolMessage:
    made = answer.tool_calls[0]
    return ToolMessage("Done.", name=made["name"], tool_call_id=made["id"])


def pickled(middleware: TodoMiddleware) -> Any:
    return pickle.loads(pickle.dumps(middleware))


class TestHooks:
    """LangChain and other code may call and copy a middleware as they like."""

    @pytest.mark.parametrize("gate", [[], [TodoGateMiddleware()]])
    def test_only_a_gate_turns_off_the_check_for_unknown_tools(self, gate: list[Any]) -> None:
        """`create_agent` drops this check if a middleware wraps tool calls."""

        @tool
        def unknown() -> str:
            """Do nothing."""
            return ""

        class Offering(AgentMiddleware[Any, Any, Any]):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                return handler(request.override(tools=[*request.tools, unknown]))

        graph: Any = create_agent(scripted("Hi."), middleware=[Offering(), *gate, TodoMiddleware()])
        if gate:
            assert graph.invoke(BEGIN)["messages"][-1].text == "Hi."
        else:
            with pytest.raises(ValueError, match=r"Unknown tools: \['unknown'\]"):
                graph.invoke(BEGIN)

    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_they_use_the_runtime_that_they_are_given(self, form: str) -> None:
        """So they can be called outside a graph, as LangChain's own tests do."""
        events: list[Any] = []
        runtime = Runtime(stream_writer=events.append)
        middleware = TodoMiddleware()
        history = [HumanMessage("Begin."), PLAN, result_of(PLAN), AIMessage("Planned.", id="a1")]
        state: dict[str, Any] = {"messages": history, "todos": MIXED, "todo_answer": {"id": "a1"}}
        if form == "sync":
            update = middleware.after_agent(state, runtime)
        else:
            update = await middleware.aafter_agent(state, runtime)
        assert update is not None
        assert update["jump_to"] == "model"
        assert [event["outcome"] for event in events] == [None]
        assert middleware.after_agent(state, Runtime()) is not None

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

    def test_a_copy_keeps_the_tools_that_a_subclass_added(self) -> None:

        @tool
        def look() -> str:
            """Look around."""
            return "Nothing."

        class Looking(TodoMiddleware):
            def __init__(self) -> None:
                super().__init__()
                self.tools = [*self.tools, look]

        assert [each.name for each in copy.deepcopy(Looking()).tools][3:] == ["look"]


def test_without_langchain_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the package does not need it."""
    monkeypatch.delitem(sys.modules, "todo_tools.middleware")
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    with pytest.raises(ImportError, match=re.escape("'langgraph-todo-tools[langchain]'")):
        importlib.import_module("todo_tools.middleware")


class TestGate:
    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_other_tools_wait_for_an_item_in_progress(
        self, config: RunnableConfig, form: str
    ) -> None:

        @tool
        def dig() -> str:
            """Dig a hole."""
            return "A hole."

        start = call("edit_todos", action="start", indices=[0])
        script = (turn("", call("dig")), PLAN, turn("", start, call("dig")), FINISH, "Done.")
        graph = agent(scripted(*script), TodoGateMiddleware(), TodoMiddleware(), tools=[dig])
        final = (
            graph.invoke(BEGIN, config) if form == "sync" else await graph.ainvoke(BEGIN, config)
        )
        dug = [m.text for m in final["messages"] if isinstance(m, ToolMessage) and m.name == "dig"]
        assert dug[0].startswith("Error: no todo is in progress")
        assert dug[1] == "A hole."


class TestStructuredResponse:
    @pytest.mark.parametrize("stops_early", [False, True])
    def test_with_a_tool_strategy_the_last_response_wins(
        self, config: RunnableConfig, stops_early: bool
    ) -> None:
        """This holds even if the agent must continue after a response."""
        early = [turn("", call("Report", summary="early"))] if stops_early else []
        script: list[AIMessage | str] = [
            PLAN,
            *early,
            FINISH,
            turn("", call("Report", summary="late")),
        ]
        graph = agent(scripted(*script), TodoMiddleware(), response_format=ToolStrategy(Report))
        final = graph.invoke(BEGIN, config)
        assert final["structured_response"] == Report(summary="late")
        assert sum(map(is_injected, final["messages"])) == len(early)
        assert loop_of(graph, config)["outcome"] == "finished"

    @pytest.mark.parametrize("stops_early", [False, True])
    async def test_with_a_provider_strategy_the_last_response_wins(
        self, config: RunnableConfig, stops_early: bool
    ) -> None:
        """This holds even if the agent must continue after a response."""
        early = ['{"summary": "early"}'] if stops_early else []
        script: list[AIMessage | str] = [PLAN, *early, FINISH, '{"summary": "late"}']
        graph = agent(scripted(*script), TodoMiddleware(), response_format=ProviderStrategy(Report))
        final = await graph.ainvoke(BEGIN, config)
        assert final["structured_response"] == Report(summary="late")
        assert sum(map(is_injected, final["messages"])) == len(early)

    def test_a_response_to_the_user_is_no_work(self, config: RunnableConfig) -> None:
        """LangChain stores it as the result of a tool, but it is the agent's answer."""
        model = scripted(turn("", call("Report", summary="I stop.")))
        graph = agent(model, TodoMiddleware(), response_format=ToolStrategy(Report))
        graph.invoke({"messages": [("user", "Stop.")], "todos": items("a")}, config)
        assert loop_of(graph, config)["outcome"] == "answered"

    def test_a_result_that_goes_to_the_user_is_no_work(self, config: RunnableConfig) -> None:

        @tool(return_direct=True)
        def look() -> str:
            """Look around, for the user."""
            return "Nothing."

        graph = agent(scripted(turn("", call("look"))), TodoMiddleware(), tools=[look])
        final = graph.invoke({"messages": [("user", "Look.")], "todos": items("a")}, config)
        assert final["messages"][-1].text == "Nothing."
        assert loop_of(graph, config)["outcome"] == "answered"

    @pytest.mark.parametrize("names", [["look", "dig"], ["no_such_tool"]])
    def test_a_run_that_others_ended_after_other_results_is_not_continued(
        self, config: RunnableConfig, names: list[str]
    ) -> None:
        """LangChain ends a run only if the results of all calls go to the user."""

        @tool(return_direct=True)
        def look() -> str:
            """Look around, for the user."""
            return "Nothing."

        @tool
        def dig() -> str:
            """Dig a hole."""
            return "A hole."

        class End(AgentMiddleware[Any, Any, Any]):
            @hook_config(can_jump_to=["end"])
            @override
            def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
                return {"jump_to": "end"} if state["messages"][-1].type == "tool" else None

        script = turn("", *map(call, names))
        graph = agent(scripted(script), End(), TodoMiddleware(), tools=[look, dig])
        final = graph.invoke({"messages": [("user", "Look.")], "todos": items("a")}, config)
        assert not any(map(is_injected, final["messages"]))
        assert loop_of(graph, config)["outcome"] == "ended_elsewhere"

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
        assert loop_of(graph, config)["outcome"] == "ended_elsewhere"


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
        assert loop_of(graph, config)["outcome"] == "ended_elsewhere"

    @pytest.mark.parametrize("order", [0, 1])
    def test_a_limit_on_model_calls_may_raise(self, config: RunnableConfig, order: int) -> None:
        limit = ModelCallLimitMiddleware(run_limit=4, exit_behavior="error")
        with pytest.raises(ModelCallLimitExceededError):
            agent(never_finished(), *both_orders(limit, UNLIMITED)[order]).invoke(BEGIN, config)

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
        assert loop_of(graph, config)["outcome"] == "ended_elsewhere"

    @pytest.mark.parametrize("order", [0, 1])
    def test_a_limit_on_tool_calls_may_raise(self, config: RunnableConfig, order: int) -> None:
        limit = ToolCallLimitMiddleware(run_limit=1, exit_behavior="error")
        model = scripted(PLAN, PLAN)
        with pytest.raises(ToolCallLimitExceededError):
            agent(model, *both_orders(limit)[order]).invoke(BEGIN, config)


def worker(rest_after: int) -> ScriptedChatModel:
    """A model that completes an item with each call, and stops after every `rest_after` calls."""
    asked = itertools.count(1)

    def answer(prompt: list[BaseMessage]) -> AIMessage | str:
        if next(asked) % (rest_after + 1) == 0:
            return "So far, so good."
        statuses = [status for _, status in read_list(prompt)]
        if "not_started" not in statuses:
            return "Done."
        return edit("complete", statuses.index("not_started"))

    return ScriptedChatModel(script=answer)


class TestRecursionLimit:
    """A run near LangGraph's recursion limit is not continued."""

    LIST = items(*"abcdefghijklmnopqrstuvwxyz")
    CALLS = ModelCallLimitMiddleware[Any, Any](thread_limit=1_000)
    APPROVAL = HumanInTheLoopMiddleware[Any, Any, Any]({"execute": True})

    @pytest.mark.parametrize("others", [[], [CALLS], [CALLS, APPROVAL]])
    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_it_ends_with_an_outcome_and_a_notice(
        self, config: RunnableConfig, others: list[Any], form: str
    ) -> None:
        """Each node of other middleware takes a step too; the next message continues the work."""
        graph = agent(worker(3), *others, TodoMiddleware())
        seeded: Any = {**BEGIN, "todos": self.LIST}
        near: RunnableConfig = {**config, "recursion_limit": 60}
        final = graph.invoke(seeded, near) if form == "sync" else await graph.ainvoke(seeded, near)
        assert "⚠ Stopped before the recursion limit of this run" in final["messages"][-1].text
        assert loop_of(graph, config)["outcome"] == "out_of_steps"
        graph.invoke(BEGIN, {**config, "recursion_limit": 500})
        assert loop_of(graph, config)["outcome"] == "finished"

    def test_a_model_that_only_calls_tools_reaches_it(self, config: RunnableConfig) -> None:
        """The loop decides at the end of an answer, so LangGraph raises its own error."""
        model = ScriptedChatModel(script=lambda _: turn("", call("list_todos")))
        graph = agent(model, TodoMiddleware())
        with pytest.raises(GraphRecursionError):
            graph.invoke({**BEGIN, "todos": self.LIST}, {**config, "recursion_limit": 60})

    def test_in_a_batch_it_is_low_unless_another_is_given(self, config: RunnableConfig) -> None:
        """LangChain's default is 25 steps there."""

        for limit, status in ((None, "📋 3/5"), (1_000, "✓ Done (5 items)")):
            given: RunnableConfig = {"recursion_limit": limit} if limit else {}
            graph = agent(worker(3), TodoMiddleware())
            (final,) = graph.batch([{**BEGIN, "todos": items(*"abcde")}], {**config, **given})
            assert format_status(final["todos"]) == status


class TestCancelledStep:
    """LangGraph keeps the finished results of a step that was cancelled, for a resume only."""

    @pytest.mark.parametrize("form", ["resumed", "sent along", "only a message"])
    def test_its_changes_of_the_list_are_kept_if_it_is_resumed_or_if_they_are_sent_along(
        self, form: str, config: RunnableConfig
    ) -> None:
        cancelled = iter([True])

        @tool
        def saw() -> str:
            """Saw the board."""
            if next(cancelled, False):
                raise KeyboardInterrupt
            return "Sawn."

        model = ScriptedChatModel(
            script=[turn("", *plan("Saw").tool_calls, call("saw")), "I wait.", "Yes."]
        )
        graph = agent(model, TodoMiddleware(), tools=[saw])
        with pytest.raises(KeyboardInterrupt):
            graph.invoke(BEGIN, config)
        todos = graph.get_state(config).values["todos"]
        assert todos == items("Saw")
        message: Any = {"messages": [("user", "Wait.")]}
        requests = {"resumed": None, "sent along": {**message, "todos": todos}}
        final = graph.invoke(requests.get(form, message), config)
        assert final["todos"] == ([] if form == "only a message" else todos)


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
    def test_a_rewritten_answer_still_counts_as_the_models(
        self, config: RunnableConfig, order: int
    ) -> None:
        """Other middleware may replace the answer; the new message has its id."""

        class Shouting(AgentMiddleware[Any, Any, Any]):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                answer = handler(request).result[0]
                return answer.model_copy(update={"content": answer.text.upper()})

        graph = agent(scripted(PLAN, "Early.", FINISH, "Done."), *both_orders(Shouting())[order])
        assert graph.invoke(BEGIN, config)["messages"][-1].text == "DONE."
        assert loop_of(graph, config)["outcome"] == "finished"

    def test_an_answer_with_another_id_ends_the_run(self, config: RunnableConfig) -> None:
        """It may be the word of a middleware that ends the run, so the loop does not continue."""

        class Replacing(AgentMiddleware[Any, Any, Any]):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                answer = handler(request).result[0]
                return AIMessage(answer.text, tool_calls=answer.tool_calls, id=str(uuid4()))

        graph = agent(scripted(PLAN, "Early."), Replacing(), TodoMiddleware())
        graph.invoke(BEGIN, config)
        assert loop_of(graph, config)["outcome"] == "ended_elsewhere"

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
        assert loop_of(graph, config)["outcome"] == "ended_elsewhere"

    @pytest.mark.parametrize("order", [0, 1])
    @pytest.mark.parametrize("hook", ["before_model", "after_model"])
    def test_a_run_that_ends_between_the_calls_of_the_model_is_not_continued(
        self, config: RunnableConfig, order: int, hook: str
    ) -> None:
        """Another middleware may end it without a message, such as a button to stop it."""

        def stop(state: Any, runtime: Any) -> dict[str, Any] | None:
            return {"jump_to": "end"} if len(state["messages"]) > 4 else None

        button = {"before_model": before_model, "after_model": after_model}[hook]
        ended = button(can_jump_to=["end"])(stop)
        model = ScriptedChatModel(script=lambda _: turn("", call("list_todos")))
        middleware = [ended, TodoMiddleware()] if order else [TodoMiddleware(), ended]
        graph = agent(model, *middleware)
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        assert len(model.prompts) <= 3
        assert loop_of(graph, config)["outcome"] == "ended_elsewhere"

    @pytest.mark.parametrize("order", [0, 1])
    @pytest.mark.parametrize("store", [True, False])
    def test_a_run_that_ends_before_the_model_is_called_is_not_continued(
        self, config: RunnableConfig, order: int, store: bool
    ) -> None:
        """Another middleware may end it without a message, such as a guard on the user's words."""

        class Guard(AgentMiddleware[Any, Any, Any]):
            @hook_config(can_jump_to=["end"])
            def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
                return {"jump_to": "end"} if state["messages"][-1].text == "Evil." else None

            @hook_config(can_jump_to=["end"])
            def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
                return {"jump_to": "end"} if len(state["messages"]) > 4 else None

        model = ScriptedChatModel(script=lambda _: "Later.")
        loop = TodoMiddleware(policy=AutoContinue(max_idle=1, store=store))
        middleware = [Guard(), loop] if order else [loop, Guard()]
        graph = agent(model, *middleware)
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        assert len(model.prompts) == 2
        assert loop_of(graph, config)["outcome"] == "stalled"
        for words in ("Evil.", "Good."):
            graph.invoke({"messages": [("user", words)]}, config)
            assert len(model.prompts) == 2
            assert loop_of(graph, config)["outcome"] == "ended_elsewhere"

    def test_pictures_from_tools_reset_nothing(self, config: RunnableConfig) -> None:
        """A tool result does not count as the user."""

        @tool
        def look(runtime: ToolRuntime) -> Command[Any]:
            """Look at a picture."""
            result = ToolMessage("A picture:", tool_call_id=str(runtime.tool_call_id))
            return Command(update={"messages": [result, HumanMessage("<image>")]})

        turns = itertools.cycle([turn("", call("look")), turn("Later.")])
        model = ScriptedChatModel(script=lambda _: next(turns))
        policy = AutoContinue(max_in_turn=7, max_idle=None)
        graph = agent(model, TodoMiddleware(policy=policy), tools=[look])
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        assert loop_of(graph, config)["in_turn"] == 7
        graph.invoke({"messages": []}, config)
        assert loop_of(graph, config)["in_turn"] == 7


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

    def test_the_list_survives_summarization(self, config: RunnableConfig) -> None:
        """The model still sees the list, and the counters stay."""
        summary = SummarizationMiddleware(
            scripted(*["In short: nothing was done."] * 99),
            trigger=("messages", 6),
            keep=("messages", 2),
        )
        model = never_finished()
        graph = agent(
            model, TodoMiddleware(policy=AutoContinue(max_in_turn=12, max_idle=None)), summary
        )
        final = graph.invoke(BEGIN, config)
        assert not [m for m in final["messages"] if m.text == "Begin."]  # it was summarized away
        assert "– [0] a\n– [1] b" in model.prompts[-1][-1].text  # noqa: RUF001  specified icon
        assert final["todos"] == items("a", "b")
        assert loop_of(graph, config)["outcome"] == "limit_in_turn"
        assert loop_of(graph, config)["in_turn"] == 12

    def test_a_long_run_does_not_collect_the_lists_of_removed_messages(
        self, config: RunnableConfig
    ) -> None:
        """Each summary removes the list from the history, and the next prompt shows it again."""
        summary = SummarizationMiddleware(
            ScriptedChatModel(script=lambda _: "In short: nothing was done."),
            trigger=("messages", 6),
            keep=("messages", 2),
        )
        model = never_finished()
        policy = AutoContinue(max_in_turn=20, max_idle=None)
        graph = agent(model, summary, TodoMiddleware(policy=policy))
        graph.invoke(BEGIN, config)
        values = graph.get_state(config).values
        assert values["todo_loop"]["in_turn"] == 20
        assert "– [0] a\n– [1] b" in "".join(m.text for m in model.prompts[-1])  # noqa: RUF001
        assert len(values["todo_blocks"]) == 1

    @pytest.mark.parametrize("order", [0, 1])
    def test_an_agent_whose_old_messages_are_deleted_is_sent_back(
        self, config: RunnableConfig, order: int
    ) -> None:
        """The answer is still the model's own, though there are fewer answers than before."""

        class Forgetting(AgentMiddleware[Any, Any, Any]):
            def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
                old = state["messages"][:-4]
                return {"messages": [RemoveMessage(id=message.id) for message in old]}

        model = scripted(PLAN, "One.", "Two.", FINISH, "Done.")
        graph = agent(model, *both_orders(Forgetting(), UNLIMITED)[order])
        graph.invoke({"messages": [("user", "Hi."), ("ai", "Hello."), ("user", "Go.")]}, config)
        assert loop_of(graph, config)["outcome"] == "finished"

    def test_cleared_tool_results_stay_cleared(self, config: RunnableConfig) -> None:
        """A block with the list replaces them, if the middleware is listed last."""
        clearing = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=0)])
        model = scripted(PLAN, FINISH, "Done.")
        agent(model, clearing, TodoMiddleware()).invoke(BEGIN, config)
        (result,) = [m.text for m in model.prompts[1] if isinstance(m, ToolMessage)]
        assert result.startswith("[cleared]\n\n[Automatic note: the todo list]\n")

    def test_a_prompt_begins_with_the_one_before(self, config: RunnableConfig) -> None:
        """So the provider's prompt cache works from call to call."""
        model = scripted(PLAN, "Planned.", turn("", call("list_todos")), FINISH, "Done.", "Hi.")
        graph = agent(model, TodoMiddleware(), system_prompt="You are kind.")
        graph.invoke(BEGIN, config)
        graph.invoke({"messages": [("user", "Hello again.")]}, config)
        for earlier, later in pairwise(model.prompts):
            assert later[: len(earlier)] == earlier


class TestToolsOfOthers:
    def test_a_failing_tool_is_retried_without_the_todo_tools(self, config: RunnableConfig) -> None:
        """Todo calls of the same message are not run again."""
        tries: list[str] = []

        @tool
        def dig() -> str:
            """Dig a hole."""
            tries.append("try")
            if len(tries) == 1:
                raise OSError("busy")
            return "A hole."

        retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
        script = (PLAN, turn("", call("dig"), *FINISH.tool_calls), "Done.")
        final = agent(scripted(*script), TodoMiddleware(), retry, tools=[dig]).invoke(BEGIN, config)
        assert [m.text for m in final["messages"] if m.type == "tool" and m.name == "dig"] == [
            "A hole."
        ]
        assert [todo["status"] for todo in final["todos"]] == ["completed", "completed"]

    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_a_person_may_approve_edit_and_reject_todo_calls(
        self, config: RunnableConfig, form: str
    ) -> None:
        """Later calls add to the list after those decisions; indices do not count on it."""
        calls = [
            call("write_todos", mode="append", todos=["first"]),
            call("write_todos", mode="append", todos=["second"]),
            call("write_todos", mode="append", todos=["third"]),
            call("edit_todos", action="complete", indices=[0]),
            call("write_todos", mode="append", todos=["fourth"]),
        ]
        approval = HumanInTheLoopMiddleware({"write_todos": True})
        graph = agent(scripted(turn("", *calls), "Done."), TodoMiddleware(), approval)
        decisions = [
            {"type": "approve"},
            {"type": "reject", "message": "Not that."},
            {
                "type": "edit",
                "edited_action": {
                    "name": "write_todos",
                    "args": {"mode": "insert", "index": 0, "todos": ["edited"]},
                },
            },
            {"type": "approve"},
        ]
        resume: Any = Command(resume={"decisions": decisions})
        if form == "sync":
            graph.invoke(BEGIN, config)
            final = graph.invoke(resume, config)
        else:
            await graph.ainvoke(BEGIN, config)
            final = await graph.ainvoke(resume, config)
        assert final["todos"] == items("edited", "first", "fourth")
        assert final["todos"] == todos_from_messages(final["messages"])
        tick = next(
            m for m in final["messages"] if getattr(m, "tool_call_id", "") == calls[3]["id"]
        )
        assert tick.text.startswith("Error: an earlier write_todos call of this turn")

    def test_a_tick_that_the_person_edited_too_is_made(self, config: RunnableConfig) -> None:
        """It is what they want."""
        calls = (
            call("write_todos", mode="append", todos=["b"]),
            call("edit_todos", action="start", indices=[0]),
        )
        approval = HumanInTheLoopMiddleware({"write_todos": True, "edit_todos": True})
        graph = agent(scripted(turn("", *calls), "Done."), TodoMiddleware(policy=None), approval)
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        wanted = [
            {"name": "write_todos", "args": {"mode": "insert", "index": 0, "todos": ["c"]}},
            {"name": "edit_todos", "args": {"action": "complete", "indices": [1]}},
        ]
        decisions = [{"type": "edit", "edited_action": action} for action in wanted]
        final = graph.invoke(Command(resume={"decisions": decisions}), config)
        assert final["todos"] == [*items("c"), *items("a", status="completed")]

    def test_a_refused_tick_before_the_same_list_is_no_progress(
        self, config: RunnableConfig
    ) -> None:
        """The list seems to change, but every message leaves it as it was."""
        again = call("write_todos", mode="replace", todos=["a"])
        turns = (turn("", call("look", place=str(n)), COMPLETE, again) for n in count())
        script = chain.from_iterable((each, AIMessage("I stop.")) for each in turns)
        policy = AutoContinue(max_in_a_row=2, max_in_turn=9)
        todos = TodoMiddleware(policy=policy, check=lambda *_: "the tests fail")
        graph = agent(ScriptedChatModel(script=lambda _: next(script)), todos, tools=[look])
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        assert loop_of(graph, config)["outcome"] == "limit_in_a_row"

    def test_a_tick_does_not_depend_on_a_rejected_start(self, config: RunnableConfig) -> None:
        """Its index names the same item, whatever the status is."""
        start = call("edit_todos", action="start", indices=[0])
        tick = call("edit_todos", action="complete", indices=[0])
        approval = HumanInTheLoopMiddleware({"edit_todos": True})
        graph = agent(scripted(turn("", start, tick), "Done."), TodoMiddleware(), approval)
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        decisions = [{"type": "reject"}, {"type": "approve"}]
        final = graph.invoke(Command(resume={"decisions": decisions}), config)
        assert final["todos"] == items("a", status="completed")


COMPLETE = call("edit_todos", action="complete", indices=[0])
TODO_TOOLS = ["write_todos", "list_todos", "edit_todos"]


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is empty."


@pytest.mark.parametrize("create", [create_agent, create_deep_agent])
@pytest.mark.parametrize("form", ["sync", "async"])
class TestToolsTakenAway:
    """LangChain's tool selector may leave out the todo tools of a call."""

    @staticmethod
    async def run(create: Any, form: str, selector: Any, policy: AutoContinue) -> ScriptedChatModel:
        """Run an agent that works, stops, is sent back, and stops again."""
        model = scripted(turn("", call("look", place="here")), "I stop.", "I stop again.")
        middleware = [selector, TodoMiddleware(policy=policy)]
        graph = create(model, [look], middleware=middleware, checkpointer=InMemorySaver())
        given: Any = {**BEGIN, "todos": items("a")}
        if form == "sync":
            graph.invoke(given, {"configurable": {"thread_id": "1"}})
        else:
            await graph.ainvoke(given, {"configurable": {"thread_id": "1"}})
        return model

    @staticmethod
    def selector(**options: Any) -> tuple[LLMToolSelectorMiddleware[Any, Any], ScriptedChatModel]:
        """A selector whose model always chooses the tool `look`, and that model."""
        chosen = turn("", call("ToolSelectionResponse", tools=["look"]))
        model = ScriptedChatModel(script=lambda _: chosen)
        return LLMToolSelectorMiddleware(model=model, **options), model

    async def test_the_loop_does_not_ask_for_them(self, create: Any, form: str) -> None:
        """It asks for the work alone."""
        model = await self.run(create, form, self.selector()[0], AutoContinue())
        assert [spec["function"]["name"] for spec in model.tools] == ["look"]
        note = model.prompts[2][-1]
        assert is_injected(note)
        assert note.text.endswith("\n\nNext: do the work of [0] with your other tools.")

    async def test_they_can_be_kept(self, create: Any, form: str) -> None:
        selector, _ = self.selector(always_include=TODO_TOOLS)
        model = await self.run(create, form, selector, AutoContinue())
        assert {spec["function"]["name"] for spec in model.tools} == {"look", *TODO_TOOLS}
        assert "Call edit_todos with action 'start' on [0]" in model.prompts[2][-1].text

    @pytest.mark.parametrize("store", [True, False])
    async def test_the_selector_reads_the_newest_message_of_the_history(
        self, create: Any, form: str, *, store: bool
    ) -> None:
        """That is a continuation, or, if these are not stored, the user's message."""
        selector, reads = self.selector()
        await self.run(create, form, selector, AutoContinue(store=store))
        assert is_injected(reads.prompts[-1][-1]) == store


class TestStockMiddleware:
    @pytest.mark.parametrize("order", [0, 1])
    def test_an_agent_with_langchains_own_middleware_too_is_refused(self, order: int) -> None:
        """Otherwise two formats would meet in one channel."""
        with pytest.raises(AssertionError, match="remove duplicate middleware"):
            agent(scripted("Hi."), *both_orders(TodoListMiddleware())[order])


class TestListsThatPeopleChange:
    """At an interrupt, a person changes the list; then the waiting calls of the answer run."""

    TICK = call("edit_todos", action="complete", indices=[0])

    def run(
        self, config: RunnableConfig, *calls: ToolCall, change: Any, **options: Any
    ) -> list[ToolMessage]:
        model = ScriptedChatModel(script=[turn("", *calls), "Done."])
        graph = agent(model, TodoMiddleware(policy=None), interrupt_before=["tools"], **options)
        graph.invoke({**BEGIN, "todos": items("a", "b")}, config)
        graph.update_state(config, {"todos": change})
        self.todos = graph.invoke(None, config)["todos"]
        return results_in(graph.get_state(config).values)

    @pytest.mark.parametrize(
        "change",
        [
            insert_items(0, "x"),
            items("x", "a"),
            items("b"),
            append_items("x"),
            abandon_items(0),
            [],
        ],
    )
    @pytest.mark.parametrize(
        "waiting",
        [
            TICK,
            call("write_todos", mode="replace", todos=["y"]),
            call("write_todos", mode="insert", index=0, todos=["y"]),
            call("write_todos", mode="append", todos=["y"]),
        ],
    )
    def test_a_call_that_would_change_the_new_list_is_refused(
        self, config: RunnableConfig, waiting: ToolCall, change: Any
    ) -> None:
        """The model has not read it: an index may be another item, and a plan may lack one."""
        (result,) = self.run(config, waiting, change=change)
        assert result.status == "error"
        assert self.todos == fold_todos(items("a", "b"), change)

    def test_the_model_is_told_what_to_do(self, config: RunnableConfig) -> None:
        (result,) = self.run(config, self.TICK, change=insert_items(0, "x"))
        assert result.text == (
            "Error: the list was changed after you read it, so this call changed nothing; read the "
            "new list and call again if it still fits"
        )

    @pytest.mark.parametrize("replaced", ["by an earlier answer", "by a copy without an id"])
    def test_an_answer_that_other_middleware_replaces_is_known_by_its_place(
        self, config: RunnableConfig, replaced: str
    ) -> None:
        """Its id is not the one that the model gave last."""

        class Replace(AgentMiddleware[Any, Any, Any]):
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                first = handler(request)
                if replaced == "by an earlier answer":
                    handler(request)
                    return first
                (answer,) = first.result
                return AIMessage(answer.text, tool_calls=answer.tool_calls)

        model = ScriptedChatModel(script=[turn("", self.TICK), turn("", self.TICK), "Done.", "."])
        middleware = [Replace(), TodoMiddleware(policy=None)]
        graph = agent(model, *middleware, interrupt_before=["tools"])
        graph.invoke({**BEGIN, "todos": items("a", "b")}, config)
        graph.update_state(config, {"todos": items("x", "a")})
        graph.invoke(None, config)
        assert graph.get_state(config).values["todos"] == items("x", "a")

    @pytest.mark.parametrize("change", [None, items("a", "b")])
    def test_the_same_list_refuses_nothing(self, config: RunnableConfig, change: Any) -> None:
        (result,) = self.run(config, self.TICK, change=change)
        assert result.text.startswith("Completed [0]")

    def test_a_refused_call_opens_no_gate(self, config: RunnableConfig) -> None:
        """A later call of the message is judged by the list as it is."""
        start, dig = call("edit_todos", action="start", indices=[0]), call("look", place="here")
        middleware = [TodoGateMiddleware(), TodoMiddleware(policy=None)]
        model = ScriptedChatModel(script=[turn("", start, dig), "Done."])
        graph: Any = create_agent(
            model,
            [look],
            middleware=middleware,
            interrupt_before=["tools"],
            checkpointer=InMemorySaver(),
        )
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        graph.update_state(config, {"todos": append_items("x")})
        graph.invoke(None, config)
        results = results_in(graph.get_state(config).values)
        assert [result.status for result in results] == ["error", "error"]

    def test_the_answer_to_one_question_completes_no_other_item(
        self, config: RunnableConfig
    ) -> None:
        """A check asks about the first item; the person completes it and starts the second one."""

        def check(item: TodoItem, _: object) -> str | None:
            return None if interrupt(item["text"]) == "yes" else "no"

        tick = turn("", call("edit_todos", action="complete", indices=[0, 1]))
        graph = agent(scripted(tick, "Done."), TodoMiddleware(policy=None, check=check))
        graph.invoke({**BEGIN, "todos": items("a", "b")}, config)
        edited = [*items("a", status="completed"), *items("b", status="in_progress")]
        done = graph.invoke(Command(resume="yes", update={"todos": edited}), config)
        assert done["todos"] == edited

    def test_half_an_emoji_is_no_change(self) -> None:
        """Checkpointers store a question mark for it."""
        assert mark_of(items("a\ud83d")) == mark_of(items("a?"))

    def test_a_waiting_listing_shows_the_new_list(self, config: RunnableConfig) -> None:
        """The call before it was refused, and changed nothing."""
        addition = call("write_todos", mode="append", todos=["z"])
        added, listed = self.run(config, addition, call("list_todos"), change=insert_items(0, "x"))
        assert added.status == "error"
        assert listed.text == format_todos(items("x", "a", "b"))

    def test_the_next_call_is_for_the_list_as_it_is_now(self, config: RunnableConfig) -> None:
        model = ScriptedChatModel(
            script=[turn("", self.TICK), turn("", edit("complete", 1).tool_calls[0]), "Done."]
        )
        graph = agent(model, TodoMiddleware(policy=None), interrupt_before=["tools"])
        graph.invoke({**BEGIN, "todos": items("a")}, config)
        graph.update_state(config, {"todos": insert_items(0, "x")})
        graph.invoke(None, config)
        assert graph.invoke(None, config)["todos"] == [
            *items("x"),
            *items("a", status="completed"),
        ]


class SendNewestTurn(AgentMiddleware[Any, Any, Any]):
    """Send only the newest answer or message and what follows; the history stays whole."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        sent = request.messages
        at = max(at for at, each in enumerate(sent) if not isinstance(each, ToolMessage))
        return handler(request.override(messages=sent[at:]))


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("others", [[], [SendNewestTurn()]])
def test_a_shortened_request_makes_no_repeated_result_new(
    config: RunnableConfig, others: list[Any], store: bool
) -> None:
    """The loop reads its own continuations in the history, whatever the model is sent."""
    looks = itertools.cycle([True, False])

    def rule(_: Any) -> AIMessage:
        return turn("", call("look", place="here")) if next(looks) else turn("Hm.")

    model = ScriptedChatModel(script=rule)
    todos = TodoMiddleware(policy=AutoContinue(max_idle=1, store=store))
    graph = agent(model, *others, todos, tools=[look])
    graph.invoke({**BEGIN, "todos": items("a")}, config)
    assert graph.get_state(config).values["todo_loop"]["outcome"] == "stalled"
