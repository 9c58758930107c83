"""An agent that is led through its list: the graph keeps the list, the model only works."""

import ast
import itertools
import threading
from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    SummarizationMiddleware,
    hook_config,
)
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from typing_extensions import override

from graphs.led import LedMiddleware
from tests.support import ROOT, items
from todo_tools.testing import ScriptedChatModel, call, turn

LOST = turn("", call("no_such_tool"))
TODOS = items("Wash the cups", "Dry the cups")
YES: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})


@tool
def work(what: str) -> str:
    """Do a piece of work."""
    return f"Did {what}."


@tool
def broken() -> str:
    """Fail."""
    raise ToolException("Error: broken.")


broken.handle_tool_error = True


@tool
def count() -> str:
    """Count on."""
    return str(next(_numbers))


_numbers = itertools.count(1)


@tool
def look(runtime: ToolRuntime[Any, Any]) -> Command[Any]:
    """See an image."""
    image = HumanMessage("An image.", additional_kwargs={"lc_source": "look"})
    seen = ToolMessage("See below.", tool_call_id=runtime.tool_call_id)
    return Command(update={"messages": [seen, image]})


TOOLS = [work, broken, count, look]


def led(model: ScriptedChatModel, *others: Any, **settings: Any) -> Any:
    middleware = [*others, LedMiddleware(**settings)]
    return create_agent(model, TOOLS, middleware=middleware, checkpointer=InMemorySaver())


def run(
    *script: AIMessage | str, todos: Any = TODOS, **settings: Any
) -> tuple[dict[str, Any], ScriptedChatModel]:
    """Run a scripted model to the end of its script."""
    model = ScriptedChatModel(script=list(script))
    config = {"configurable": {"thread_id": "1"}}
    final = led(model, **settings).invoke(
        {"messages": [("user", "Do the cups.")], "todos": todos}, config
    )
    assert len(model.prompts) == len(script)
    return final, model


def statuses(final: dict[str, Any]) -> list[str]:
    return [todo["status"] for todo in final["todos"]]


def changed_at_the_second_question(agent: Any) -> dict[str, Any]:
    """Run an agent that asks about each call; a person changes the item before the second one."""
    config = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
    agent.invoke(YES, config)
    agent.update_state(config, {"todos": items("Dry", status="in_progress")})
    final: dict[str, Any] = agent.invoke(YES, config)
    return final


def did(what: str) -> AIMessage:
    return turn("", call("work", what=what))


def told(model: ScriptedChatModel, at: int) -> str:
    """The last message of a prompt."""
    return str(model.prompts[at][-1].text)


class TestWork:
    def test_items_are_handed_out_one_by_one_and_completed(self) -> None:
        """After the last item the model answers the user."""
        final, _ = run(did("a"), "Washed.", did("b"), "Dried.", "All is done.")
        assert statuses(final) == ["completed", "completed"]
        assert final["messages"][-1].text == "All is done."

    def test_the_model_is_sent_one_item_at_a_time(self) -> None:
        """It sees neither the request, which names all of them, nor the list."""
        _, model = run(did("a"), "Washed.", did("b"), "Dried.", "All is done.")
        assert texts(model.prompts[1]) == ["Step 1 of 2: Wash the cups", "", "Did a."]
        assert texts(model.prompts[2])[3:] == ["Step 2 of 2: Dry the cups"]

    def test_at_the_end_it_reads_everything(self) -> None:
        _, model = run(did("a"), "Washed.", did("b"), "Dried.", "All is done.")
        assert texts(model.prompts[4])[:2] == ["Do the cups.", "Step 1 of 2: Wash the cups"]
        assert told(model, 4).endswith("✓ [0] Wash the cups\n✓ [1] Dry the cups")

    def test_no_copies_of_the_list_are_stored(self) -> None:
        """The prompts do not show it, so a thread of many items stays small."""
        model = ScriptedChatModel(script=[did("a"), "Ok.", did("b"), "Ok.", "Ready."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": TODOS}, config)
        assert agent.get_state(config).values["todo_blocks"] == {}

    def test_the_model_has_no_todo_tools(self) -> None:
        _, model = run(did("a"), "Washed.", did("b"), "Dried.", "All is done.")
        assert [each["function"]["name"] for each in model.tools] == [each.name for each in TOOLS]

    def test_each_prompt_begins_with_the_one_before(self) -> None:
        """So the provider's cache keeps it; this ends with the list."""
        _, model = run(did("a"), "Washed.", did("b"), "Dried.", "All is done.")
        for shorter, longer in pairwise(model.prompts[:4]):
            assert texts(longer)[: len(shorter)] == texts(shorter)

    def test_what_failed_is_left_out(self) -> None:
        """A weak model would do the same again."""
        script = (did("a"), "Washed.", "Sorry.", "No.", did("c"), "Put away.", "Two of three.")
        todos = items("Wash the cups", "Dry the cups", "Put them away")
        _, model = run(*script, todos=todos)
        assert texts(model.prompts[3])[3:] == [
            "Step 2 of 3: Dry the cups",
            "This step is still open. Call the tools that do its work now.",
        ]
        assert texts(model.prompts[4])[3:] == ["Step 3 of 3: Put them away"]

    def test_what_the_user_says_stays(self) -> None:
        model = ScriptedChatModel(script=["Which?", did("a"), "Done.", did("b"), "Dry.", "End."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": TODOS}, config)
        agent.invoke({"messages": [("user", "The blue ones.")]}, config)
        assert "The blue ones." in texts(model.prompts[3])

    def test_what_was_said_before_the_request_is_left_out_with_what_was_done_for_it(self) -> None:
        """An order that looks as if nobody has followed it may be followed again."""
        model = ScriptedChatModel(script=[did("pay"), "Paid.", did("a"), "Washed.", "Ready."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Pay Bob.")]}, config)
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        assert texts(model.prompts[2]) == ["Step 1 of 1: Wash"]

    def test_in_a_list_both_stay(self) -> None:
        """Also if the item was abandoned."""
        model = ScriptedChatModel(
            script=["Which?", did("pay"), "Paid.", "No.", did("b"), "Dry.", "Ready."]
        )
        agent = led(model, check=lambda *given: "dirty" if "Wash" in given[0]["text"] else None)
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash", "Dry")}, config)
        agent.invoke({"messages": [("user", "Pay Bob.")]}, config)
        assert texts(model.prompts[4])[:3] == ["Pay Bob.", "", "Did pay."]

    def test_also_if_the_message_came_with_the_list(self) -> None:
        """Something of it is done already, and the item that was handed out is abandoned."""
        model = ScriptedChatModel(script=[did("pay"), "Paid.", "No.", did("c"), "Put.", "Ready."])
        agent = led(model, check=lambda *given: "dirty" if "Dry" in given[0]["text"] else None)
        todos = [*items("Wash", status="completed"), *items("Dry", "Put away")]
        start = {"messages": [("user", "Pay Bob, and do the rest.")], "todos": todos}
        agent.invoke(start, {"configurable": {"thread_id": "1"}})
        order, _, *done = texts(model.prompts[3])[:4]
        assert (order, done) == ("Pay Bob, and do the rest.", ["", "Did pay."])

    def test_what_was_said_in_one_list_leaves_the_prompts_of_the_next_with_its_work(self) -> None:
        """The agent may do at the end of a list what the user asked for in its middle."""
        script = "Which?", did("a"), "Washed.", did("pay"), "Paid.", did("b"), "Dry.", "Ready."
        model = ScriptedChatModel(script=script)
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        agent.invoke({"messages": [("user", "Blue. Then pay Bob.")]}, config)
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Dry")}, config)
        assert texts(model.prompts[5]) == ["Step 1 of 1: Dry"]

    def test_a_list_that_goes_on_after_its_end_keeps_what_the_user_said(self) -> None:
        """They open an abandoned item again, or add one. The note about the end is left out."""
        script = "Which?", did("a"), "Washed.", "Bye.", did("b"), "Dry.", "Ready."
        model = ScriptedChatModel(script=script)
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        agent.invoke({"messages": [("user", "Only the blue ones.")]}, config)
        todos = [*items("Wash", status="completed"), *items("Dry")]
        agent.invoke({"messages": [("user", "And this.")], "todos": todos}, config)
        prompt = texts(model.prompts[4])
        assert prompt[:5] == ["Step 1 of 1: Wash", "Which?", "Only the blue ones.", "", "Did a."]
        assert not any("list ends here" in text for text in prompt)

    @pytest.mark.parametrize("first", [SystemMessage("Be brief."), AIMessage("Hello!")])
    def test_the_request_is_left_out_whatever_the_history_begins_with(self, first: Any) -> None:
        model = ScriptedChatModel(script=[did("a"), "Washed.", "Ready."])
        start = {"messages": [first, ("user", "Do it.")], "todos": items("Wash")}
        led(model).invoke(start, {"configurable": {"thread_id": "1"}})
        assert texts(model.prompts[0]) == ["Step 1 of 1: Wash"]

    def test_a_result_is_left_out_with_its_call(self) -> None:
        """The user spoke while the call waited, and abandoned its item later."""
        model = ScriptedChatModel(script=[did("a"), "Ok.", "I go on."])
        approval = HumanInTheLoopMiddleware[Any, Any, Any]({"work": True})
        agent, config = led(model, approval), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": TODOS}, config)
        agent.update_state(config, {"messages": [HumanMessage("Stop.")]}, as_node="model")
        agent.invoke(YES, config)
        todos = [{**TODOS[0], "status": "abandoned"}, TODOS[1]]
        agent.invoke({"messages": [("user", "Go on.")], "todos": todos}, config)
        assert texts(model.prompts[2]) == ["Stop.", "Ok.", "Go on.", "Step 2 of 2: Dry the cups"]

    def test_an_agent_that_repeats_itself_gets_the_next_item(self) -> None:
        """The same calls with the same results are no work."""
        final, model = run(did("a"), did("a"), did("b"), "Dried.", "All is done.")
        assert told(model, 2) == "Step 2 of 2: Dry the cups"
        assert statuses(final) == ["completed", "completed"]

    def test_equal_calls_with_other_results_are_no_repetition(self) -> None:
        final, _ = run(
            turn("", call("count")),
            turn("", call("count")),
            "Two.",
            "All is done.",
            todos=items("Count"),
        )
        assert statuses(final) == ["completed"]

    def test_other_middleware_may_add_messages_as_dicts(self) -> None:
        """LangChain accepts them, too."""

        class Context(AgentMiddleware[Any, Any, Any]):
            @override
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                said = {"role": "user", "content": "Files: a.txt"}
                return handler(request.override(messages=[*request.messages, said]))

        model = ScriptedChatModel(script=[did("a"), "Washed.", "Ready."])
        config = {"configurable": {"thread_id": "1"}}
        start = {"messages": [("user", "Do it.")], "todos": items("Wash")}
        assert statuses(led(model, Context()).invoke(start, config)) == ["completed"]
        assert texts(model.prompts[0]) == ["Step 1 of 1: Wash", "Files: a.txt"]

    async def test_it_runs_asynchronously(self) -> None:
        model = ScriptedChatModel(script=[did("a"), "Washed.", "Done."])
        config = {"configurable": {"thread_id": "1"}}
        start = {"messages": [("user", "Do it.")], "todos": items("Wash")}
        assert statuses(await led(model).ainvoke(start, config)) == ["completed"]

    def test_a_message_that_a_tool_adds_is_not_the_users(self) -> None:
        """For example an image: the work before it counts."""
        looking = turn("", call("look"))
        final, _ = run(looking, "A cup.", "All is done.", todos=items("Look"))
        assert statuses(final) == ["completed"]

    def test_the_first_list_leaves_the_prompts_of_the_second(self) -> None:
        """Also in a thread that begins with another message than the user's."""
        model = ScriptedChatModel(script=["No.", "No.", "Not done.", did("b"), "Dry.", "Ready."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        hello = AIMessage("Hello!")
        agent.invoke({"messages": [hello, ("user", "Do it.")], "todos": items("Wash")}, config)
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Dry")}, config)
        assert texts(model.prompts[3]) == ["Step 1 of 1: Dry"]

    def test_a_copy_has_no_todo_tools_either(self) -> None:
        assert deepcopy(LedMiddleware()).tools == []


class TestNoWork:
    def test_an_agent_that_only_talks_is_told_once_more(self) -> None:
        final, model = run(did("a"), "Washed.", "Dried.", did("b"), "Now really.", "All is done.")
        assert "still open. Call the tools" in told(model, 3)
        assert statuses(final) == ["completed", "completed"]

    def test_also_if_it_only_talks_about_the_first_request(self) -> None:
        """A weak model says that it has done the work."""
        final, model = run("Washed.", did("a"), "Washed.", "Done.", todos=items("Wash"))
        assert "still open. Call the tools" in told(model, 1)
        assert statuses(final) == ["completed"]

    def test_then_the_item_is_abandoned(self) -> None:
        final, _ = run(did("a"), "Washed.", "Dried.", "I said so.", "Half is done.")
        assert statuses(final) == ["completed", "abandoned"]

    def test_a_call_that_failed_is_no_work(self) -> None:
        fails = turn("", call("broken"))
        final, _ = run(did("a"), "Washed.", fails, "Dried.", fails, "Dried.", "Half is done.")
        assert statuses(final) == ["completed", "abandoned"]

    def test_a_call_that_was_no_json_is_no_end(self) -> None:
        """The agent wanted to go on."""
        cut = AIMessage(
            "", invalid_tool_calls=[invalid_tool_call(name="work", args="{", id="1", error=None)]
        )
        final, _ = run(did("a"), cut, cut, "Not done.", todos=items("Wash"))
        assert statuses(final) == ["abandoned"]

    def test_a_call_that_failed_is_tried_once_more(self) -> None:
        """Also right after the user's message, where an answer without a call ends the run."""
        fails = turn("", call("broken"))
        final, model = run(fails, "No water.", did("a"), "Washed.", "Half.", todos=items("Wash"))
        assert "still open. Call the tools" in told(model, 2)
        assert statuses(final) == ["completed"]


class TestThePersonHasTheLastWord:
    def test_a_question_about_a_later_item_ends_the_run(self) -> None:
        final, _ = run(did("a"), "Washed.", "Which towel?")
        assert statuses(final) == ["completed", "in_progress"]

    def test_a_stop_ends_the_run_also_when_the_first_message_was_summarized(self) -> None:
        """It is then the only message of the user that is left."""
        summary = HumanMessage("Earlier ...", additional_kwargs={"lc_source": "summarization"})
        model = ScriptedChatModel(script=["I stop."])
        todos = [*items("Wash the cups", status="in_progress"), *items("Dry the cups")]
        start = {"messages": [summary, ("user", "Stop.")], "todos": todos}
        final = led(model).invoke(start, {"configurable": {"thread_id": "1"}})
        assert statuses(final) == ["in_progress", "not_started"]

    @pytest.mark.parametrize(
        "change",
        [
            [*items("Wash one", status="in_progress"), *items("Dry")],
            [*items("Wash", status="completed"), *items("Dry")],
        ],
    )
    def test_a_stop_after_a_change_of_the_list_ends_the_run(self, change: Any) -> None:
        model = ScriptedChatModel(script=["Which cups?", "I stop."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash", "Dry")}, config)
        agent.update_state(config, {"todos": change})
        final = agent.invoke({"messages": [("user", "Stop.")]}, config)
        assert "Stop." in [message.text for message in model.prompts[-1]]
        assert final["messages"][-1].text == "I stop."

    def test_a_stop_after_a_change_of_a_list_whose_notes_were_summarized_is_read(self) -> None:
        """The list was begun, so the user's message is no request for it."""
        summary = HumanMessage("Earlier ...", additional_kwargs={"lc_source": "summarization"})
        model = ScriptedChatModel(script=["I stop."])
        todos = [*items("Wash", status="completed"), *items("Dry")]
        start = {"messages": [summary, ("user", "Stop.")], "todos": todos}
        final = led(model).invoke(start, {"configurable": {"thread_id": "1"}})
        assert "Stop." in [message.text for message in model.prompts[0]]
        assert final["messages"][-1].text == "I stop."

    @pytest.mark.parametrize("todo", ["Wash the cups", "Dry the cups"])
    def test_a_stop_with_a_change_of_the_list_in_the_middle_of_a_run_ends_it(
        self, todo: str
    ) -> None:
        """Also if the item in progress is changed to another one."""
        model = ScriptedChatModel(script=[did("a"), "I stop."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        start = {"messages": [("user", "Do it.")], "todos": items("Wash the cups")}
        agent.invoke(start, config, interrupt_after=["tools"])
        change = {"messages": [("user", "Stop.")], "todos": items(todo, status="in_progress")}
        agent.update_state(config, change)
        final = agent.invoke(None, config)
        assert "Stop." in texts(model.prompts[1])
        assert (final["messages"][-1].text, statuses(final)) == ("I stop.", ["in_progress"])

    @pytest.mark.parametrize(
        "change",
        [
            items("Wash", status="in_progress"),
            [*items("Wash", status="abandoned"), *items("Paint")],
        ],
    )
    def test_a_message_with_a_list_that_goes_on_after_its_end_is_read(self, change: Any) -> None:
        model = ScriptedChatModel(script=["No key.", "No.", "Not done.", "I wait."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        agent.invoke({"messages": [("user", "Wait for the key.")], "todos": change}, config)
        assert "Wait for the key." in texts(model.prompts[-1])
        assert len(model.prompts) == 4

    @pytest.mark.parametrize("change", [{}, {"todos": items("Dry", status="in_progress")}])
    def test_a_stop_beside_an_approval_ends_the_run(self, change: Any) -> None:
        """The call was made before the message, so its result is no answer to it."""
        model = ScriptedChatModel(script=[did("a"), "I stop."])
        agent = led(model, HumanInTheLoopMiddleware[Any, Any, Any]({"work": True}))
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        update = {"messages": [("user", "Stop.")], **change}
        final = agent.invoke(Command(resume=YES.resume, update=update), config)
        assert (final["messages"][-1].text, statuses(final)) == ("I stop.", ["in_progress"])

    @pytest.mark.parametrize("script", [[turn("", call("broken")), "I stop."], [LOST, LOST]])
    def test_calls_that_fail_after_a_stop_are_no_work(self, script: Any) -> None:
        """Also if the agent repeats them; nothing is said before it has answered."""
        model = ScriptedChatModel(script=["Which cups?", *script])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        final = agent.invoke({"messages": [("user", "Stop.")]}, config)
        assert final["messages"][-1].type == ("ai" if "I stop." in script else "tool")
        assert statuses(final) == ["in_progress"]

    def test_a_call_that_fails_after_a_rejection_is_no_work(self) -> None:
        model = ScriptedChatModel(script=[did("a"), turn("", call("broken")), "I stop."])
        agent = led(model, HumanInTheLoopMiddleware[Any, Any, Any]({"work": True}))
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        final = agent.invoke(Command(resume={"decisions": [{"type": "reject"}]}), config)
        assert (final["messages"][-1].text, statuses(final)) == ("I stop.", ["in_progress"])

    def test_a_person_may_repeat_what_they_said(self) -> None:
        """It is answered, and no repetition of the agent."""
        model = ScriptedChatModel(script=["Now?", "Now?", did("a"), "Washed.", "Ready."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        for _ in range(2):
            final = agent.invoke({"messages": [("user", "Yes.")]}, config)
        assert statuses(final) == ["completed"]

    def test_a_message_in_the_middle_of_a_list_is_none_to_the_next_list(self) -> None:
        """The next list begins with a request, and an agent that only talks is told once more."""
        script = did("a"), did("b"), "Washed.", "Ready.", "I begin.", did("c"), "Dried.", "Ready."
        model = ScriptedChatModel(script=script)
        agent = led(model, HumanInTheLoopMiddleware[Any, Any, Any]({"work": True}))
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        also = {"messages": [("user", "The plates, too.")]}
        agent.invoke(Command(resume=YES.resume, update=also), config)
        agent.invoke(YES, config)
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Dry")}, config)
        assert statuses(agent.invoke(YES, config)) == ["completed"]

    def test_a_failure_whose_item_was_summarized_is_told_once_more(self) -> None:
        """Nobody has spoken since then, as far as the history says."""
        model = ScriptedChatModel(script=[turn("", call("broken")), "No.", "No.", "Not done."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        start = {"messages": [("user", "Do it.")], "todos": items("Wash")}
        state = agent.invoke(start, config, interrupt_after=["tools"])
        gone = [RemoveMessage(each.id) for each in state["messages"][:2]]
        agent.update_state(config, {"messages": gone})
        assert statuses(agent.invoke(None, config)) == ["abandoned"]

    def test_the_request_is_no_answer_to_the_talk_before_it(self) -> None:
        """The model does not read it, and an agent that only talks is told once more."""
        model = ScriptedChatModel(script=["Hello.", "I will.", did("a"), "Washed.", "Ready."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Hi.")]}, config)
        start = {"messages": [("user", "Do it.")], "todos": items("Wash")}
        assert statuses(agent.invoke(start, config)) == ["completed"]
        assert "Do it." not in texts(model.prompts[1])

    def test_a_message_after_a_run_that_ended_before_the_list_is_read(self) -> None:
        """It is not the request, which came with the list."""
        model = ScriptedChatModel(script=["I wait."])
        agent, config = led(model, Guard("Do it.")), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": TODOS}, config)
        agent.invoke({"messages": [("user", "Wait for the key.")]}, config)
        assert "Wait for the key." in texts(model.prompts[-1])

    def test_a_rejection_after_a_change_of_the_list_ends_the_run(self) -> None:
        """The model reads it; the changed item comes after the user's next message."""
        model = ScriptedChatModel(script=[did("a"), "I stop."])
        agent = led(model, HumanInTheLoopMiddleware[Any, Any, Any]({"work": True}))
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        no = {"decisions": [{"type": "reject", "message": "Stop."}]}
        changed = {"todos": items("Wash one", status="in_progress")}
        final = agent.invoke(Command(resume=no, update=changed), config)
        assert "Stop." in told(model, 1)
        assert final["messages"][-1].text == "I stop."

    def test_a_new_list_is_no_list_that_a_person_changed(self) -> None:
        """An agent that only talks about it is told once more."""
        script = did("a"), "Washed.", "Ready.", "I begin.", did("b"), "Dried.", "Ready."
        agent, config = led(ScriptedChatModel(script=script)), {"configurable": {"thread_id": "1"}}
        for text in ("Wash", "Dry"):
            start = {"messages": [("user", "Do it.")], "todos": items(text)}
            final = agent.invoke(start, config)
        assert statuses(final) == ["completed"]

    def test_a_list_that_a_person_finished_is_none_that_goes_on(self) -> None:
        """The next list begins with a request, and an agent that only talks is told once more."""
        script = did("a"), "I see.", "I begin.", did("b"), "Dried.", "Ready."
        model = ScriptedChatModel(script=script)
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        start = {"messages": [("user", "Do it.")], "todos": items("Wash")}
        agent.invoke(start, config, interrupt_after=["tools"])
        agent.update_state(config, {"todos": items("Wash", status="completed")})
        agent.invoke(None, config)
        final = agent.invoke({"messages": [("user", "Do it.")], "todos": items("Dry")}, config)
        assert statuses(final) == ["completed"]

    def test_an_empty_input_is_answered(self) -> None:
        final = led(ScriptedChatModel(script=["Hello."])).invoke(
            {"messages": []}, {"configurable": {"thread_id": "1"}}
        )
        assert final["messages"][-1].text == "Hello."

    def test_a_limit_of_another_middleware_ends_the_run(self) -> None:
        limit = ModelCallLimitMiddleware[Any, Any](run_limit=1, exit_behavior="end")
        agent = led(ScriptedChatModel(script=[did("half")]), limit)
        final = agent.invoke(
            {"messages": [("user", "Do it.")], "todos": TODOS}, {"configurable": {"thread_id": "1"}}
        )
        assert statuses(final) == ["in_progress", "not_started"]

    def test_a_guard_may_end_a_run_without_a_message(self) -> None:
        """Nobody has said anything to it."""
        model = ScriptedChatModel(script=[])
        final = led(model, Guard(None)).invoke(
            {"messages": []}, {"configurable": {"thread_id": "1"}}
        )
        assert final["messages"] == []

    @pytest.mark.parametrize("worked", [[], [did("a")]])
    def test_a_guard_that_refuses_a_call_ends_the_run(self, worked: list[AIMessage]) -> None:
        model = ScriptedChatModel(script=[*worked, did("harm")])
        final = led(model, Guard("harm")).invoke(
            {"messages": [("user", "Do it.")], "todos": TODOS}, {"configurable": {"thread_id": "1"}}
        )
        assert statuses(final) == ["in_progress", "not_started"]


class Guard(AgentMiddleware[Any, Any, Any]):
    """End the run at a message of a person or without one, or at a call."""

    def __init__(self, refused: str | None) -> None:
        self.refused = refused

    @hook_config(can_jump_to=["end"])
    @override
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        if not state["messages"]:
            return {"jump_to": "end"}
        refused = state["messages"][-1].text == self.refused
        return {"messages": [AIMessage("No.")], "jump_to": "end"} if refused else None

    @hook_config(can_jump_to=["end"])
    @override
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        made = state["messages"][-1].tool_calls
        refused = any(each["args"].get("what") == self.refused for each in made)
        return {"jump_to": "end"} if refused else None


class TestItemsOfOthers:
    """Items in progress that this middleware did not hand out: what was done was not for them."""

    def test_one_of_another_thread_is_handed_out(self) -> None:
        final, model = run(did("a"), "Washed.", "Ready.", todos=items("Wash", status="in_progress"))
        assert texts(model.prompts[0]) == ["Do the cups.", "Step 1 of 1: Wash"]
        assert statuses(final) == ["completed"]

    def test_one_that_a_person_changed_is_handed_out_again(self) -> None:
        model = ScriptedChatModel(script=["Which cups?", did("a"), "Washed.", "All is done."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash all")}, config)
        agent.update_state(config, {"todos": items("Wash one", status="in_progress")})
        final = agent.invoke({"messages": [("user", "Go on.")]}, config)
        assert told(model, 1) == "Step 1 of 1: Wash one"
        assert final["todos"] == items("Wash one", status="completed")

    def test_repeated_work_does_not_count_for_one_that_a_person_changed(self) -> None:
        """They change the list when they are asked about the repetition."""
        model = ScriptedChatModel(script=[did("a"), did("a"), "No.", "No.", "Not done."])
        agent = led(model, HumanInTheLoopMiddleware[Any, Any, Any]({"work": True}))
        final = changed_at_the_second_question(agent)
        assert final["todos"] == items("Dry", status="abandoned")

    def test_one_that_a_person_ticked_is_followed_by_the_next(self) -> None:
        """They tick it when they are asked about a call."""
        model = ScriptedChatModel(script=[did("a"), did("b"), "Dried.", "Ready."])
        agent = led(model, HumanInTheLoopMiddleware[Any, Any, Any]({"work": True}))
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": TODOS}, config)
        ticked = [*items("Wash the cups", status="completed"), *items("Dry the cups")]
        agent.update_state(config, {"todos": ticked})
        agent.invoke(YES, config)
        assert told(model, 1) == "Step 2 of 2: Dry the cups"
        assert statuses(agent.invoke(YES, config)) == ["completed", "completed"]

    def test_the_work_for_one_does_not_count_for_another_with_the_same_text(self) -> None:
        model = ScriptedChatModel(script=[did("a"), "Tested.", "No.", "Half is done."])
        agent = led(model, HumanInTheLoopMiddleware[Any, Any, Any]({"work": True}))
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Test", "Test")}, config)
        later = [*items("Test", status="completed"), *items("Test", status="in_progress")]
        agent.update_state(config, {"todos": later})
        assert statuses(agent.invoke(YES, config)) == ["completed", "abandoned"]

    def test_a_forked_subagent_does_not_get_the_list_of_its_parent(self) -> None:
        """deepagents gives it a copy of the state."""
        state = {"messages": [HumanMessage("Measure.")], "todos": TODOS}
        update = LedMiddleware().before_agent({**state, "_deepagents_forked_context": True}, None)
        assert update is not None
        assert update["todos"] == []
        assert "messages" not in update


class TestBesideASummarizer:
    """A summary removes what was handed out, and maybe the user's request."""

    def agent(
        self, *script: AIMessage | str, at: int, keep: int = 2, **settings: Any
    ) -> tuple[Any, Any]:
        """Create an agent whose history is summarized when it has a number of messages."""
        model = ScriptedChatModel(script=list(script))
        writer = ScriptedChatModel(script=lambda prompt: "Earlier ...")
        summary = SummarizationMiddleware(writer, trigger=("messages", at), keep=("messages", keep))
        asks = HumanInTheLoopMiddleware[Any, Any, Any](settings)
        middleware: list[Any] = [asks, summary, LedMiddleware()]
        agent = create_agent(model, TOOLS, middleware=middleware, checkpointer=InMemorySaver())
        return agent, model

    def test_the_model_still_reads_its_item_and_the_work_that_is_left(self) -> None:
        agent, model = self.agent(did("a"), did("b"), "Washed.", "Ready.", at=6)
        config = {"configurable": {"thread_id": "1"}}
        final = agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        step, summary, *rest = texts(model.prompts[2])
        assert (step, "Earlier ..." in summary) == ("Step 1 of 1: Wash", True)
        assert rest == ["", "Did b."]
        assert statuses(final) == ["completed"]

    def test_the_summary_stays_before_an_item(self) -> None:
        """It may say what the user said."""
        script = did("a"), "Washed.", did("b"), "Dried.", "Ready."
        agent, model = self.agent(*script, at=8, keep=3)
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": TODOS}, config)
        summary, step, *_ = texts(model.prompts[3])
        assert ("Earlier ..." in summary, step) == (True, "Step 2 of 2: Dry the cups")

    def test_also_of_a_history_that_is_cut_off_at_the_users_message(self) -> None:
        """Other middleware keeps it in the state and shows the model less."""

        class Cut(AgentMiddleware[Any, Any, Any]):
            @override
            def wrap_model_call(self, request: Any, handler: Any) -> Any:
                read = texts(request.messages)
                at = read.index("The blue ones.") if "The blue ones." in read else 0
                return handler(request.override(messages=request.messages[at:]))

        script = "Which cups?", did("a"), "Washed.", "Ready."
        model, config = ScriptedChatModel(script=script), {"configurable": {"thread_id": "1"}}
        agent = led(model, Cut())
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        agent.invoke({"messages": [("user", "The blue ones.")]}, config)
        assert texts(model.prompts[2]) == ["Step 1 of 1: Wash", "The blue ones.", "", "Did a."]

    def test_the_work_after_an_answer_of_the_user_counts(self) -> None:
        """It is the work of the item that the summary removed."""
        agent, model = self.agent("Which cups?", did("a"), "Washed.", "Ready.", at=4)
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        final = agent.invoke({"messages": [("user", "The blue ones.")]}, config)
        assert len(model.prompts) == 4
        assert statuses(final) == ["completed"]

    def test_the_work_before_a_change_of_the_list_does_not_count(self) -> None:
        """A person changes the item at the step that is summarized."""
        script = did("a"), did("b"), "Done.", "No.", "No."
        agent, _ = self.agent(*script, at=6, work=True)
        final = changed_at_the_second_question(agent)
        assert final["todos"] == items("Dry", status="abandoned")

    def test_a_stop_beside_a_change_of_the_list_ends_the_run(self) -> None:
        """Also if none of the new items is begun."""
        agent, model = self.agent("Which cups?", "I stop.", at=4)
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        start = {"messages": [("user", "I washed them. Stop.")], "todos": items("Dry")}
        final = agent.invoke(start, config)
        assert "I washed them. Stop." in texts(model.prompts[1])
        assert final["messages"][-1].text == "I stop."


class TestCheck:
    def test_an_empty_reason_refuses_too(self) -> None:
        """For example what a program that failed wrote as its error."""
        final, _ = run(did("a"), "Done.", "No.", "End.", todos=items("A"), check=lambda *_: "")
        assert statuses(final) == ["abandoned"]

    async def test_in_an_async_run_it_is_called_in_a_thread(self) -> None:
        """It may run a command. The first item is checked after an answer, the second in a loop."""
        threads: list[threading.Thread] = []
        model = ScriptedChatModel(script=[did("a"), "Washed.", did("b"), did("b"), "Done."])
        agent = led(model, check=lambda *_: threads.append(threading.current_thread()))
        start: Any = {"messages": [("user", "Do it.")], "todos": items("Wash", "Dry")}
        final = await agent.ainvoke(start, {"configurable": {"thread_id": "1"}})
        assert statuses(final) == ["completed", "completed"]
        assert len(threads) == 2
        assert threading.main_thread() not in threads

    def test_a_check_decides_after_work(self) -> None:
        """The model reads the reason."""
        reasons = iter(["a cup is dirty", None])
        final, model = run(
            did("a"),
            "Washed.",
            did("more"),
            "Washed again.",
            "Done.",
            todos=items("Wash"),
            check=lambda item, state: next(reasons),
        )
        assert "not done: a cup is dirty." in told(model, 2)
        assert statuses(final) == ["completed"]

    def test_a_tool_that_speaks_like_the_user_does_not_keep_an_item_open(self) -> None:
        """It adds an image without a tag in each round, and the check never agrees."""

        @tool
        def see(runtime: ToolRuntime[Any, Any]) -> Command[Any]:
            """See an image."""
            said = ToolMessage("See below.", tool_call_id=runtime.tool_call_id)
            return Command(update={"messages": [said, HumanMessage("An image.")]})

        rounds: list[AIMessage | str] = [turn("", call("see")), did("a"), "Done."]
        model = ScriptedChatModel(script=[*rounds, *rounds, "Not done."])
        middleware = LedMiddleware(check=lambda *_: "dirty")
        agent: Any = create_agent(model, [see, work], middleware=[middleware])
        final = agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")})
        assert statuses(final) == ["abandoned"]

    def test_an_item_that_is_refused_twice_is_abandoned(self) -> None:
        final, _ = run(
            did("a"),
            "Washed.",
            did("more"),
            "Washed again.",
            "Not done.",
            todos=items("Wash"),
            check=lambda item, state: "still dirty",
        )
        assert statuses(final) == ["abandoned"]


class TestUser:
    @pytest.mark.parametrize("before", [[], [did("a")]])
    def test_a_question_ends_the_run(self, before: list[AIMessage]) -> None:
        """Also after work. The item stays in progress."""
        final, _ = run(*before, "Which cups?")
        assert statuses(final) == ["in_progress", "not_started"]

    def test_a_question_beside_a_repeated_call_does_not_hide_the_repetition(self) -> None:
        asking = turn("Shall I?", call("work", what="a"))
        final, model = run(asking, asking, did("b"), "Dried.", "All is done.")
        assert told(model, 2) == "Step 2 of 2: Dry the cups"
        assert statuses(final) == ["completed", "completed"]

    def test_an_answer_to_a_later_message_without_work_ends_the_run(self) -> None:
        """The user may have said "stop"."""
        model = ScriptedChatModel(script=["Which cups?", "I stop."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": TODOS}, config)
        final = agent.invoke({"messages": [("user", "Stop.")]}, config)
        assert statuses(final) == ["in_progress", "not_started"]

    def test_the_users_next_message_goes_on_with_the_item(self) -> None:
        model = ScriptedChatModel(script=["Which cups?", did("a"), "Washed.", "All is done."])
        agent, config = led(model), {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        final = agent.invoke({"messages": [("user", "The blue ones.")]}, config)
        assert statuses(final) == ["completed"]

    def test_an_answer_after_a_rejected_call_ends_the_run(self) -> None:
        """The person who rejected it may want the agent to stop; their next message goes on."""
        asks = HumanInTheLoopMiddleware[Any, Any, Any]({"work": True})
        script: list[AIMessage | str] = [did("a"), "I stop.", did("a"), "Washed.", "Done."]
        agent = led(ScriptedChatModel(script=script), asks)
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        final = agent.invoke(Command(resume={"decisions": [{"type": "reject"}]}), config)
        assert (final["messages"][-1].text, statuses(final)) == ("I stop.", ["in_progress"])
        agent.invoke({"messages": [("user", "Go on.")]}, config)
        final = agent.invoke(YES, config)
        assert statuses(final) == ["completed"]

    def test_rejected_calls_are_no_repetition(self) -> None:
        """A person may give the same reason twice."""
        model = ScriptedChatModel(script=[did("a"), did("a"), "I stop."])
        agent = led(model, HumanInTheLoopMiddleware[Any, Any, Any]({"work": True}))
        config = {"configurable": {"thread_id": "1"}}
        final = agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        no = {"type": "reject", "message": "Not today."}
        for _ in range(2):
            final = agent.invoke(Command(resume={"decisions": [no]}), config)
        assert "Not today." in told(model, 2)
        assert (final["messages"][-1].text, statuses(final)) == ("I stop.", ["in_progress"])

    def test_a_rejected_call_stays_before_its_result(self) -> None:
        """Models refuse a result without its call."""
        model = ScriptedChatModel(script=[did("a"), "I stop."])
        agent = led(model, HumanInTheLoopMiddleware[Any, Any, Any]({"work": True}))
        config = {"configurable": {"thread_id": "1"}}
        agent.invoke({"messages": [("user", "Do it.")], "todos": items("Wash")}, config)
        agent.invoke(Command(resume={"decisions": [{"type": "reject"}]}), config)
        assert [message.type for message in model.prompts[1]] == ["human", "ai", "tool"]

    @pytest.mark.parametrize("todos", [[], items("Wash", status="completed")])
    def test_without_open_items_the_agent_only_answers(self, todos: Any) -> None:
        final, _ = run("Hello.", todos=todos)
        assert final["todos"] == todos

    def test_without_open_items_it_may_repeat_itself(self) -> None:
        final, _ = run(did("a"), did("a"), "Hello.", todos=[])
        assert final["messages"][-1].text == "Hello."

    def test_the_graphs_messages_are_not_the_users(self) -> None:
        final, _ = run(did("a"), "Washed.", "Done.", todos=items("Wash"))
        people = [each for each in final["messages"] if isinstance(each, HumanMessage)]
        assert [each.additional_kwargs.get("lc_source") for each in people] == [None, "led", "led"]


def test_the_file_can_be_copied_alone() -> None:
    """It imports no private module and nothing else of this repository."""
    source = (ROOT / "graphs" / "led.py").read_text(encoding="utf-8")
    imported = [
        n.module or "" for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ImportFrom)
    ]
    assert not [name for name in imported if name.startswith("graphs") or "._" in name]


def texts(prompt: list[BaseMessage]) -> list[str]:
    return [str(message.text) for message in prompt]
