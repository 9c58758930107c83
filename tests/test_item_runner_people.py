"""The item runner with checks, people and errors: how an item ends, and how a run goes on."""

from collections import Counter
from functools import partial
from itertools import permutations
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, RetryPolicy, interrupt

from tests.support import Graph, items
from tests.test_item_runner import (
    BOTH,
    Answers,
    Run,
    asked,
    begin,
    crew,
    done,
    item_of,
    looks,
    reports,
    run_async,
    runner,
    told,
)
from tests.waiting import wait_for
from todo_tools import ItemsState, TodoItem, has_worked
from todo_tools.operations import set_status
from todo_tools.testing import call, turn


def short_check(item: TodoItem, result: Any) -> str | None:
    """A check that is not content with a short answer."""
    assert item == {"text": "a", "status": "in_progress"}
    return None if len(result["messages"][-1].text) > 5 else "it is too short"


async def ashort_check(item: TodoItem, result: Any) -> str | None:
    """The same in async code."""
    return short_check(item, result)


def awaitable_check(*given: Any) -> Any:
    return ashort_check(*given)


class TestChecks:
    @pytest.mark.parametrize(
        ("run", "check"),
        [
            (Graph.invoke, short_check),
            (run_async, short_check),
            (run_async, ashort_check),
            (run_async, awaitable_check),
        ],
    )
    def test_a_refused_agent_reads_why_and_goes_on(self, run: Run, check: Any) -> None:
        """The reason comes in a tagged message of the same conversation."""
        model = crew(a=["Short", "Long enough."])
        (report,) = reports(run(runner(model, check=check), begin("a")))
        assert report["reasons"] == ["it is too short"]
        assert (report["report"], report["calls"]) == ("Long enough.", 2)
        _, answer, refusal = model.prompts[1]
        assert answer.text == "Short"
        assert refusal.text.startswith("This is not done: it is too short.")
        assert refusal.additional_kwargs == {"lc_source": "item_runner"}

    def test_an_async_check_needs_async_code(self) -> None:
        """The error says so."""
        with pytest.raises(TypeError, match="use ainvoke"):
            runner(crew(), check=ashort_check).invoke(begin("a"))

    def test_after_so_many_refused_answers_an_item_is_abandoned(self) -> None:
        """Later items read why; for `has_worked`, a promise is no work."""
        model = crew(a=["I would.", looks("a"), "Seen."], b=["I would.", "I really would."])
        values = runner(model, check=has_worked, attempts=2).invoke(begin("a", "b", "c"))
        ended = [("a", "completed", "Seen."), ("b", "abandoned", "I really would.")]
        assert told(values) == [*ended, *done("c")]
        reason = "no other tool has worked on it yet; do its work with your other tools first"
        assert [each["reasons"] for each in reports(values)] == [[reason], [reason] * 2, []]
        assert f"\n- a: Seen.\n- b: not done: {reason}\n" in model.prompts[-1][0].text

    @BOTH
    def test_a_wrong_verdict_is_not_stored(self, run: Run, config: RunnableConfig) -> None:
        """It is an error; when the check is mended, the agent is not asked again."""
        verdicts: list[Any] = [True, None]
        model = crew()
        graph = runner(model, check=lambda *_: verdicts.pop(0), saver=InMemorySaver())
        with pytest.raises(TypeError, match="must return None or the reason"):
            run(graph, begin("a"), config)
        assert told(run(graph, None, config)) == done("a")
        assert asked(model) == {"a": 2}


@tool
def deploy() -> str:
    """Deploy."""
    return "deployed"


@tool
def ask(question: str) -> str:
    """Ask a person."""
    return str(interrupt(question))


DEPLOY = turn("", call("deploy"))
APPROVED: Any = {"decisions": [{"type": "approve"}]}
GATE = HumanInTheLoopMiddleware({"deploy": True})
FIVE = ["a", "b", "c", "d", "quiet"]


def questions(graph: Graph, config: RunnableConfig) -> dict[str, Any]:
    """The open questions of a thread, by the texts of the items that ask."""
    return {each.value["item"]["text"]: each for each in graph.get_state(config).interrupts}


class TestQuestions:
    @BOTH
    @pytest.mark.parametrize("order", [*permutations("abc")])
    def test_an_answer_reaches_the_item_that_asked(
        self, run: Run, order: tuple[str, ...], config: RunnableConfig
    ) -> None:
        """Three are open at once and answered one by one; siblings do not run again."""
        checks = list[str]()
        model = crew(**{each: [f"Which {each}?", f"report of {each}"] for each in "abc"})
        graph = runner(
            model,
            at_once=4,
            saver=InMemorySaver(),
            check=lambda item, _: checks.append(item["text"]),
        )
        values = run(graph, begin("a", "quiet", "b", "c", "d"), config)
        assert checks == ["quiet"]
        for text in order:
            asks = questions(graph, config)[text]
            assert asks in values["__interrupt__"]
            item = {**asks.value["item"], "index": ["a", "quiet", "b", "c"].index(text)}
            question = f"Which {text}?"
            assert asks.value == {"type": "todo_question", "question": question, "item": item}
            values = run(graph, Command(resume={asks.id: f"This {text}."}), config)
        assert sorted(told(values)) == done(*FIVE)
        assert (asked(model), Counter(checks)) == (dict.fromkeys(FIVE, 2), dict.fromkeys(FIVE, 1))
        heard = [each[-1] for each in model.prompts if each[-1].text.startswith("This ")]
        assert [each.text for each in heard] == [f"This {text}." for text in order]
        assert all(each.additional_kwargs == {} for each in heard)  # a person wrote it
        assert all(item_of(each) in each[-1].text for each in model.prompts if each[-1] in heard)

    @BOTH
    @pytest.mark.parametrize("by_id", [True, False])
    @pytest.mark.parametrize("nested", [None, ItemsState])
    @pytest.mark.parametrize(
        "script",
        [
            ["Which?", "And the size?", "Done."],
            ["Which?", DEPLOY, "Done."],
            [DEPLOY, "Which?", turn("", call("deploy")), "Size?", "Done."],
        ],
    )
    def test_one_item_asks_again_in_any_way(
        self, run: Run, script: Answers, by_id: bool, nested: Any, config: RunnableConfig
    ) -> None:
        """Questions of the agent and of its middleware; no earlier verdict is asked for again."""
        verdicts, expected = list[str](), list[str]()
        model = crew(a=["Too early.", *script])

        def check(_: TodoItem, result: Any) -> str | None:
            verdicts.append(result["messages"][-1].text)
            return "not yet" if verdicts[-1] == "Too early." else None

        graph = runner(
            model, deploy, hooks=[GATE], check=check, nested=nested, saver=InMemorySaver()
        )
        values = run(graph, begin("a"), config)
        for each in script[:-1]:
            (asks,) = values["__interrupt__"]
            assert questions(graph, config) == {"a": asks}
            is_text = isinstance(each, str)
            assert (asks.value.get("type") == "todo_question") == is_text
            expected.append(f"Answer {len(expected)}." if is_text else "deployed")
            reply = expected[-1] if is_text else APPROVED
            values = run(graph, Command(resume={asks.id: reply} if by_id else reply), config)
        assert told(values) == [("a", "completed", "Done.")]
        heard = [each.text for each in model.prompts[-1][3:] if each.type in ("human", "tool")]
        assert heard == expected
        assert verdicts == ["Too early.", "Done."]
        assert len(model.prompts) == len(script) + 1

    def test_an_interrupt_without_a_dict_stays_as_it_is(self, config: RunnableConfig) -> None:
        """Its answer reaches the tool."""
        model = crew(a=[turn("", call("ask", question="Which")), "Done."])
        graph = runner(model, ask, saver=InMemorySaver())
        assert graph.invoke(begin("a"), config)["__interrupt__"][0].value == "Which"
        graph.invoke(Command(resume="This."), config)
        assert model.prompts[-1][-1].text == "This."

    @pytest.mark.parametrize("thread", [{}, {"thread_id": "1"}])
    def test_nobody_can_answer_without_a_checkpointer(self, thread: Any) -> None:
        """The question is refused, and the agent reads why; the id of a thread changes nothing."""
        model = crew(a=["Which?", "This."])
        values = runner(model).invoke(begin("a"), {"configurable": thread})
        assert told(values) == [("a", "completed", "This.")]
        assert "nobody can answer a question here" in model.prompts[-1][-1].text

    def test_a_question_before_the_result_of_a_tool_is_none(self, config: RunnableConfig) -> None:
        """A tool with `return_direct` has the last word."""
        direct = deploy.model_copy(update={"return_direct": True})
        graph = runner(crew(a=[turn("Shall I?", call("deploy"))]), direct, saver=InMemorySaver())
        assert told(graph.invoke(begin("a"), config)) == [("a", "completed", "deployed")]


def running(*texts: str) -> list[TodoItem]:
    return items(*texts, status="in_progress")


AB, CD = running("a", "b"), items("c", "d")
EDITS: dict[str, tuple[list[TodoItem], str]] = {
    "reorder": ([*CD[::-1], *AB[::-1]], "abcd"),
    "insert": ([*items("x"), *AB, *CD], "abcdx"),
    "remove": ([AB[1], *CD], "abcd"),
    "new text": ([*running("x"), AB[1], *CD], "abcdx"),
    "reopen": ([AB[0], *items("b"), *CD], "abcdb"),
    "new list": (items("x", "y"), "abxy"),
    "empty": ([], "ab"),
    "equal texts": ([*running("x", "x"), *CD], "abcdxx"),
    "ticked by hand": ([*items("a", status="completed"), AB[1], *CD], "abcd"),
    "duplicate": ([AB[0], *AB, *CD], "abcda"),
}
"""Edits of a list while `a` and `b` run, and what runs in all."""


class TestEdits:
    @BOTH
    @pytest.mark.parametrize("is_open", [True, False], ids=["in a wave", "between waves"])
    @pytest.mark.parametrize(("edited", "runs"), EDITS.values(), ids=EDITS)
    def test_nothing_is_ticked_that_was_not_done(
        self, run: Run, is_open: bool, edited: list[TodoItem], runs: str, config: RunnableConfig
    ) -> None:
        """What the list has at the end was done, nothing is open, and nothing ran in vain."""
        model = crew(a=["Which?", "report of a"] if is_open else [looks("a"), "report of a"])
        graph = runner(model, at_once=2, saver=InMemorySaver())
        graph.interrupt_before_nodes = [] if is_open else ["hand_out"]
        values = run(graph, begin("a", "b", "c", "d"), config)
        if is_open:
            values = run(graph, Command(resume="This.", update={"todos": edited}), config)
            while values.get("__interrupt__"):  # the item that was duplicated asks again
                values = run(graph, Command(resume="That."), config)
        else:
            run(graph, None, config)
            graph.update_state(config, {"todos": edited})
            graph.interrupt_before_nodes = []
            values = run(graph, None, config)
        assert values["todos"] == items(*[each["text"] for each in edited], status="completed")
        assert Counter(each["text"] for each in reports(values)) == Counter(runs)
        assert asked(model) == Counter(runs * 2)


def has_report(graph: Graph, config: RunnableConfig) -> bool:
    """Whether an item of the open wave has ended."""
    return any(task.result for task in graph.get_state(config).tasks)


class Network:
    """A tool whose first calls fail, each after something has happened."""

    def __init__(self, failures: int = 1, *, after: Any = bool) -> None:
        self.left, self.after, self.calls = failures, after, 0
        self.tool = tool("connect", description="Connect.")(self.connect)
        self.model = crew(a=[turn("", call("connect")), "report of a"])

    def connect(self) -> str:
        self.calls += 1
        if self.calls <= self.left:
            self.after()
            raise ConnectionError("no network")
        return "connected"


class TestErrors:
    @BOTH
    def test_a_run_goes_on_after_an_error(self, run: Run, config: RunnableConfig) -> None:
        """The item goes on where it was, and the sibling that has ended does not run again."""
        net = Network(after=lambda: wait_for(partial(has_report, graph, config), "a report"))
        graph: Graph = runner(net.model, net.tool, at_once=2, saver=InMemorySaver())
        with pytest.raises(ConnectionError):
            run(graph, begin("b", "a", "c"), config)
        open_now = [*running("b", "a"), *items("c")]
        assert graph.get_state(config).values["todos"] == open_now
        assert sorted(told(run(graph, None, config))) == done("a", "b", "c")
        assert asked(net.model) == dict.fromkeys("abc", 2)
        assert net.calls == 2

    @BOTH
    def test_an_error_may_cost_one_item_only(self, run: Run) -> None:
        """The report has the error; the others go on."""
        net = Network()
        graph = runner(net.model, net.tool, on_error="abandon", at_once=2)
        values = run(graph, begin("a", "b", "c"))
        assert sorted(told(values)) == [("a", "abandoned", ""), *done("b", "c")]
        reasons = [each["reasons"] for each in reports(values) if each["text"] == "a"]
        assert reasons == [["ConnectionError: no network"]]

    @BOTH
    def test_the_steps_of_an_attempt_have_a_limit(self, run: Run) -> None:
        """There the item is abandoned, although errors are raised: more steps would not help."""
        model = crew(a=["Short", *[looks("a")] * 9])
        values = run(runner(model, max_steps=5, check=short_check), begin("a"))
        assert told(values) == [("a", "abandoned", "Short")]
        _, reason = reports(values)[0]["reasons"]
        assert reason == "it reached max_steps"
        assert asked(model) == {"a": 4}

    @BOTH
    @pytest.mark.parametrize("in_list", [False, True])
    def test_a_retry_repeats_only_the_step_that_failed(self, run: Run, in_list: bool) -> None:
        """It uses `Pregel.copy`, which LangGraph does not document: a change fails here."""
        policy = RetryPolicy(
            initial_interval=0, jitter=False, max_attempts=3, retry_on=ConnectionError
        )
        net = Network(2)
        graph = runner(net.model, net.tool, retry_policy=[policy] if in_list else policy)
        assert told(run(graph, begin("a"))) == done("a")
        assert (asked(net.model), net.calls) == ({"a": 2}, 3)

    @BOTH
    def test_a_person_can_give_a_poisoned_item_up(self, run: Run, config: RunnableConfig) -> None:
        """Two updates end the wave and abandon the item; finished siblings keep their reports."""
        net = Network(99, after=lambda: wait_for(partial(has_report, graph, config), "a report"))
        graph: Graph = runner(net.model, net.tool, at_once=2, saver=InMemorySaver())
        for given in (begin("a", "b", "c"), None, None):
            with pytest.raises(ConnectionError):
                run(graph, given, config)
        graph.update_state(config, None, as_node="__end__")
        graph.update_state(config, {"todos": set_status("abandoned", 0)}, as_node="item")
        values = run(graph, None, config)
        assert [each["status"] for each in values["todos"]] == ["abandoned", *["completed"] * 2]
        assert told(values) == done("b", "c")
        assert asked(net.model) == {"a": 1, "b": 2, "c": 2}
