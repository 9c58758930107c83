"""The chat models for users' own tests."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode

from tests.support import BEGIN, Graph, items, plan
from todo_tools import (
    AutoContinue,
    TodoItem,
    TodoMiddleware,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    has_worked,
    model_view,
)
from todo_tools.testing import ScriptedChatModel, call, checklist_model, read_checklist, turn


def test_a_tool_may_take_any_argument() -> None:
    """Also one that is called `name`, as in `get_user(name=...)`."""
    assert call("get_user", name="Ada", self="me")["args"] == {"name": "Ada", "self": "me"}


class TestScriptedChatModel:
    def test_it_answers_in_order(self) -> None:
        """A string in the script is an answer without calls; the script needs no name."""
        model = ScriptedChatModel([turn("", call("list_todos")), "Done."])
        assert model.invoke("a").tool_calls[0]["name"] == "list_todos"
        assert model.invoke("b").text == "Done."

    def test_it_records_its_prompts_and_tools(self) -> None:
        """Tests read them from `prompts` and `tools`."""
        model = ScriptedChatModel(["Hi."])
        model.bind_tools(create_todo_tools()).invoke([HumanMessage("Hello.")])
        assert model.prompts == [[HumanMessage("Hello.")]]
        assert model.tools[0]["function"]["name"] == "write_todos"

    def test_an_exhausted_script_says_so(self) -> None:
        """The error quotes the message that it has no answer to."""
        model = ScriptedChatModel(["Hi."])
        model.invoke("a")
        with pytest.raises(ValueError, match="no answer number 2, for 'b'"):
            model.invoke("b")

    async def test_it_answers_asynchronously_and_in_streams(self) -> None:
        """Tool calls work in both ways."""
        model = ScriptedChatModel([turn("", call("list_todos"))] * 2)
        assert (await model.ainvoke("a")).tool_calls
        assert [chunk.tool_calls[0]["name"] for chunk in model.stream("b")] == ["list_todos"]

    def test_the_script_is_not_changed(self) -> None:
        """The same answer can be used twice and gets a new id each time."""
        answer = AIMessage("Hi.")
        model = ScriptedChatModel([answer, answer])
        assert model.invoke("a").id != model.invoke("b").id
        assert answer.id is None


@pytest.mark.parametrize("mark", ["- [ ] ", "  * [ ]\t", "12. [ ] ", "3) [ ]  "])
def test_a_checklist_is_read_line_by_line(mark: str) -> None:
    """Ticked steps, steps without a text, and other lines are not read."""
    others = "# Plan\n- [x] Two\n- Five\n- [ ]\n- [ ] \n[ ] Six\n"
    assert read_checklist(f"{others}{mark}One: `make`  \n{others}") == ["One: `make`"]


def planned(request: Any) -> list[str]:
    """The items that the stand-in writes for a request."""
    answer = checklist_model().bind_tools(create_todo_tools()).invoke(request)
    return [todo["text"] for made in answer.tool_calls[:1] for todo in made["args"]["todos"]]


class TestRequests:
    """What the stand-in makes of the words of a person."""

    @pytest.mark.parametrize(
        ("request_", "steps"),
        [
            ("- [ ] One\n- [x] Two\nA, b and c.", ["One"]),
            ("Measure the wall. Cut the boards, then sand them!", ["Measure the wall", "CUT"]),
            ("measure it\ncut it", ["Measure it", "Cut it"]),
            ("1. measure it.\n2. cut `1. a`", ["Measure it", "Cut `1. a`"]),
            ("Measure, cut, and then sand it.", ["Measure", "Cut", "Sand it"]),
            ("Measure and cut, then sand", ["Measure", "Cut", "Sand"]),
            ("Run `a, b and c. D` and ship it", ["Run `a, b and c. D`", "Ship it"]),
            ("Hand the sandbox over, authentic", ["Hand the sandbox over", "Authentic"]),
        ],
    )
    def test_they_become_items(self, request_: str, steps: list[str]) -> None:
        """A checklist, or sentences, or the parts of the only sentence; never a part of code."""
        expected = ["Cut the boards, then sand them" if each == "CUT" else each for each in steps]
        assert planned(request_) == expected

    @pytest.mark.parametrize("request_", ["Hello.", "", "- [x] One, two", []])
    def test_less_than_two_steps_need_no_list(self, request_: Any) -> None:
        """It says what it is."""
        assert planned(request_) == []
        assert "stand-in for a model" in checklist_model().invoke(request_).text

    def test_what_is_no_step_of_a_list_is_no_error_without_the_tools(self) -> None:
        assert checklist_model().invoke("Thanks!").tool_calls == []


@tool
def shell(command: str) -> str:
    """Run a command."""
    return f"{command}\nexit code {command.count('false')}"


def agent_of(model: Any, *, view: Any = model_view, tools: Any = None) -> Graph:
    """A graph of one's own; without the tools, the model has none."""
    given: list[Any] = [*create_todo_tools(), shell] if tools is None else tools
    bound = model.bind_tools(given)

    def agent(state: TodoState) -> Any:
        return {"messages": [bound.invoke(view(state))]}

    builder = StateGraph(TodoState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode([*create_todo_tools(), shell]))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    return add_auto_continue(builder).compile(InMemorySaver())


class TestRuns:
    """The stand-in in a graph."""

    def test_a_natural_request_is_finished(self, config: RunnableConfig) -> None:
        final = agent_of(checklist_model()).invoke(
            {"messages": [("user", "Say `true`, then `false`, and think.")]}, config
        )
        assert [todo["status"] for todo in final["todos"]] == [
            "completed",
            "abandoned",
            "completed",
        ]
        assert [m.text.split("\n")[0] for m in final["messages"] if m.name == "shell"] == [
            "true",
            "false",
        ]
        assert final["messages"][-1].text == "2 of 3 steps are completed."

    @pytest.mark.parametrize(("rest_after", "sent_back"), [(1, 2), (2, 1), (3, 0)])
    def test_it_stops_early(self, rest_after: int, sent_back: int, config: RunnableConfig) -> None:
        """So the loop has to send it back."""
        model = checklist_model(rest_after=rest_after)
        agent_of(model).invoke({"messages": [("user", "- [ ] a\n- [ ] b\n- [ ] c")]}, config)
        early = [m for m in model.prompts if m[-1].type == "human"]
        assert len(early) == 1 + sent_back

    @pytest.mark.parametrize("door", [agent_of, "create_agent"])
    def test_it_reads_a_seeded_list_and_one_that_a_person_edits(
        self, door: Any, config: RunnableConfig
    ) -> None:
        """The prompt shows both as a list block; the stand-in needs nothing else."""
        model = checklist_model(rest_after=1)
        policy = AutoContinue(max_in_a_row=0)
        graph: Any = (
            create_agent(
                model,
                [shell],
                middleware=[TodoMiddleware(policy=policy)],
                checkpointer=InMemorySaver(),
            )
            if door == "create_agent"
            else agent_of(model)
        )
        seeded: list[TodoItem] = [*items("a", status="completed"), *items("b", "c")]
        graph.invoke({**BEGIN, "todos": seeded}, config)
        graph.update_state(config, {"todos": [*seeded, *items("Say: `echo d`")]})
        final = graph.invoke({"messages": [("user", "Go on.")]}, config)
        for _ in range(9):
            final = graph.invoke({"messages": [("user", "Go on.")]}, config)
        texts = [todo["text"] for todo in final["todos"]]
        assert texts == ["a", "b", "c", "Say: `echo d`"]
        assert all(todo["status"] in ("completed", "abandoned") for todo in final["todos"])

    def test_it_does_the_same_checklist_again(self, config: RunnableConfig) -> None:
        graph = agent_of(checklist_model())
        for _ in range(2):
            final = graph.invoke({"messages": [("user", "- [ ] a\n- [ ] b")]}, config)
            assert final["todos"] == items("a", "b", status="completed")
        assert sum(message.type == "ai" for message in final["messages"]) == 8

    def test_it_stops_where_its_plan_is_refused(self) -> None:
        """It would only make the same plan again."""
        answer = plan("One")
        error = ToolMessage(
            "Error: no",
            name="write_todos",
            tool_call_id=answer.tool_calls[0]["id"] or "",
            status="error",
        )
        prompt = [HumanMessage("- [ ] One"), answer, error]
        assert checklist_model().invoke(prompt).text == "My plan was not accepted; I stop here."

    def test_a_command_without_an_exit_code_is_abandoned(self) -> None:
        """Nothing says that it succeeded."""

        def shell(command: str) -> str:
            """Run a command."""
            return command

        agent: Any = create_agent(checklist_model(), [shell], middleware=[TodoMiddleware()])
        final = agent.invoke({"messages": [("user", "- [ ] One: `true`")]})
        assert final["todos"] == items("One: `true`", status="abandoned")
        assert "Step [0] was not run; I abandon it." in [m.text for m in final["messages"]]

    def test_a_step_that_a_check_refuses_is_abandoned(self) -> None:
        """A step without a command has no work that could satisfy a check."""
        middleware = TodoMiddleware(check=has_worked)
        agent: Any = create_agent(checklist_model(), [shell], middleware=[middleware])
        final = agent.invoke({"messages": [("user", "Measure, then cut: `true`.")]})
        statuses = [todo["status"] for todo in final["todos"]]
        assert statuses == ["abandoned", "completed"]

    def test_it_stops_when_the_user_says_so(self, config: RunnableConfig) -> None:
        graph = agent_of(checklist_model())
        seeded = {"messages": [("user", "Stop!")], "todos": ["Measure"]}
        final = graph.invoke(seeded, config)
        assert (final["todos"], final["todo_outcome"]) == (items("Measure"), "answered")


class TestBrokenGraphs:
    """A graph that works with the stand-in has what a real model needs."""

    @pytest.mark.parametrize("tools", [[], [shell]])
    def test_a_list_without_the_todo_tools_is_an_error(
        self, tools: list[Any], config: RunnableConfig
    ) -> None:
        """It says what was bound, and what to do."""
        graph = agent_of(checklist_model(), tools=tools)
        names = [each.name for each in tools]
        with pytest.raises(
            ValueError, match=r"its tools are .*bind create_todo_tools\(\)"
        ) as error:
            graph.invoke({"messages": [("user", "- [ ] One")]}, config)
        assert f"its tools are {names}" in str(error.value)

    def test_a_command_without_a_shell_is_an_error(self, config: RunnableConfig) -> None:
        """It says what it looked for, what was bound, and what to do."""
        graph = agent_of(checklist_model(shell="run"))
        with pytest.raises(ValueError, match=r"with the tool 'run', but its tools are .*'shell'\]"):
            graph.invoke({"messages": [("user", "- [ ] One: `true`")]}, config)

    @pytest.mark.parametrize("request_", ["- [ ] One", "Measure it, then cut it"])
    def test_a_graph_without_the_view_is_an_error(
        self, request_: str, config: RunnableConfig
    ) -> None:
        """Its results come whole although the model knows the list."""
        graph = agent_of(checklist_model(), view=lambda state: state["messages"])
        with pytest.raises(ValueError, match=r"'Started .*model_view\(state\)"):
            graph.invoke({"messages": [("user", request_)]}, config)

    @pytest.mark.parametrize("view", [model_view, None])
    async def test_an_agent_of_langchain_may_have_no_view(self, view: Any) -> None:
        """With `view=None` whole results are meant."""
        agent: Any = create_agent(checklist_model(), middleware=[TodoMiddleware(view=view)])
        for final in (
            agent.invoke({"messages": [("user", "- [ ] a\n- [ ] b")]}),
            await agent.ainvoke({"messages": [("user", "- [ ] a\n- [ ] b")]}),
        ):
            assert final["todos"] == items("a", "b", status="completed")
