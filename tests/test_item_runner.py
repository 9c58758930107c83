"""Each item of a list as a run of its own: what runs, what is ticked, and what an item is told."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
from deepagents import create_deep_agent
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import RetryPolicy

from tests.support import BEGIN, Graph, items, plan
from todo_tools import (
    DeltaItemsState,
    ItemReport,
    ItemsState,
    TodoItem,
    TodoMiddleware,
    create_item_runner,
    item_prompt,
)
from todo_tools._list.todos import STATUSES, incomplete
from todo_tools._runner.jobs import next_jobs
from todo_tools.operations import append_items, set_status
from todo_tools.testing import ScriptedChatModel, call, turn

Answers = Sequence[AIMessage | str]
Run = Callable[..., Any]


@tool
def look(item: str) -> str:
    """Look at an item."""
    return f"saw {item}"


def looks(item: str) -> AIMessage:
    return turn("", call("look", item=item))


def item_of(prompt: Sequence[BaseMessage]) -> str:
    """The text of the item that a conversation is about."""
    first = next(each for each in prompt if isinstance(each, HumanMessage))
    return first.text.rpartition("Do only this item: ")[2].split("\n")[0].partition("] ")[2]


def crew(**scripts: Answers) -> ScriptedChatModel:
    """A model that looks at each item and reports, or answers by the script of the item."""

    def answer(prompt: list[BaseMessage]) -> AIMessage | str:
        item = item_of(prompt)
        script = scripts.get(item, [looks(item), f"report of {item}"])
        return script[sum(isinstance(each, AIMessage) for each in prompt)]

    return ScriptedChatModel(script=answer)


def asked(model: ScriptedChatModel) -> Counter[str]:
    """How often the model was called for each item; `crew` needs two calls."""
    return Counter(map(item_of, model.prompts))


def runner(
    model: Any, *tools: Any, hooks: Any = (), saver: Any = None, nested: Any = None, **settings: Any
) -> Graph:
    """A runner of LangChain's agent, perhaps as the only node of another graph."""
    agent = create_agent(model, [look, *tools], middleware=hooks)
    builder = create_item_runner(agent, **settings)
    if nested:
        builder = StateGraph(nested).add_node("items", builder.compile()).add_edge(START, "items")
    return builder.compile(checkpointer=saver)


def run_async(graph: Graph, given: Any, config: RunnableConfig | None = None) -> Any:
    return asyncio.run(graph.ainvoke(given, config))


BOTH = pytest.mark.parametrize("run", [Graph.invoke, run_async], ids=["sync", "async"])


def begin(*todos: str) -> dict[str, Any]:
    return {**BEGIN, "todos": [*todos]}


def reports(values: Mapping[str, Any]) -> list[ItemReport]:
    return [*values["reports"].values()]


def told(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["text"], each["status"], each["report"]) for each in reports(values)]


def done(*texts: str) -> list[tuple[str, str, str]]:
    """The reports of items that `crew` has done."""
    return [(text, "completed", f"report of {text}") for text in texts]


class TestOrdinaryRuns:
    @BOTH
    @pytest.mark.parametrize("at_once", [1, 2, 9])
    def test_each_item_is_a_conversation_of_its_own(self, run: Run, at_once: int) -> None:
        """It begins with a tagged message, which has the reports of earlier waves only."""
        model = crew()
        values = run(runner(model, at_once=at_once), begin("a", "b", "c"))
        assert values["todos"] == items("a", "b", "c", status="completed")
        assert sorted(told(values)) == done("a", "b", "c")
        assert [each.text for each in values["messages"]] == ["Begin."]
        first = {item_of(each): each[0] for each in model.prompts if len(each) == 1}
        assert {each.additional_kwargs["lc_source"] for each in first.values()} == {"item_runner"}
        known = {item: "\n- a: report of a\n" in each.text for item, each in first.items()}
        assert known == {"a": False, "b": at_once < 2, "c": at_once < 3}

    def test_a_report_counts_answers_tokens_and_seconds(self) -> None:
        """Tokens are those that answers report; lists without open items start no run."""
        usage: Any = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
        graph = runner(crew(a=[looks("a").model_copy(update={"usage_metadata": usage}), "Seen."]))
        (report,) = reports(graph.invoke(begin("a")))
        assert (report["reasons"], report["calls"], report["tokens"]) == ([], 2, 7)
        assert 0 < report["seconds"] < 600
        for todos in ([], items("a", status="completed"), items("a", status="abandoned")):
            values = graph.invoke({**BEGIN, "todos": todos})
            assert (values["todos"], values["reports"]) == (todos, {})

    def test_one_item_is_done_again_by_an_operation(self, config: RunnableConfig) -> None:
        """Exactly this item runs again, with the new message; its first report stays."""
        model = crew()
        graph = runner(model, saver=InMemorySaver())
        graph.invoke(begin("a", "b", "c"), config)
        again = {"messages": [("user", "In inches.")], "todos": set_status("not_started", 1)}
        assert told(graph.invoke(again, config)) == done("a", "b", "c", "b")
        assert asked(model) == {"a": 2, "b": 4, "c": 2}
        assert "\nBegin.\nIn inches.\n" in model.prompts[-1][0].text

    def test_events_follow_each_item_and_the_list(self) -> None:
        """`ns` is the start of the path of what the agent streams for this item."""
        paths, events = set[str](), list[Any]()
        for path, mode, data in runner(crew(), at_once=2).stream(
            begin("a", "b"), stream_mode=["custom", "messages"], subgraphs=True
        ):
            paths |= {"|".join(path)} if mode == "messages" and path else set()
            events += [data] if mode == "custom" else []
        lists = [each["todos"] for each in events if each["type"] == "todos"]
        assert lists == [items("a", "b", status=at) for at in ("in_progress", "completed")]
        for index, text in enumerate("ab"):
            begun, ended = (each for each in events if each.get("text") == text)
            assert begun == {**ended, "status": "in_progress"}
            assert (ended["type"], ended["index"]) == ("todo_item", index)
            assert ended["status"] == "completed"
        runs = [each for each in events if each["type"] == "todo_item"]
        assert paths == {each["ns"] for each in runs}
        assert len(paths) == len({each["id"] for each in runs}) == 2


def say(state: Any) -> dict[str, Any]:
    return {"messages": [("ai", f"report of {item_of(state['messages'])}")]}


def say_nothing(_: Any) -> dict[str, Any]:
    return {"messages": []}


def hand_built(node: Any, **schemas: Any) -> Graph:
    return (
        StateGraph(MessagesState, **schemas).add_node("say", node).add_edge(START, "say").compile()
    )


class TestAgents:
    @BOTH
    @pytest.mark.parametrize("agent", [hand_built(say), RunnableLambda(say), say])
    def test_any_runnable_is_an_agent(self, agent: Any, run: Run) -> None:
        """Also a plain function; it may give its answer in any form of a message."""
        values = run(create_item_runner(agent, at_once=2).compile(), begin("a", "b"))
        assert sorted(told(values)) == done("a", "b")

    @pytest.mark.parametrize("silent", [say_nothing, hand_built(lambda _: {}, output_schema=dict)])
    def test_an_agent_without_an_answer_has_no_report(self, silent: Any) -> None:
        """The message that it was sent is not its answer."""
        (report,) = reports(create_item_runner(silent).compile().invoke(begin("a")))
        assert (report["status"], report["report"]) == ("abandoned", "")
        assert report["reasons"] == ["the report is empty"] * 2

    def test_files_of_deepagents_belong_to_one_item(self) -> None:
        """The check sees them; the next item begins without them."""
        seen = list[list[str]]()
        writes = [turn("", call("write_file", file_path=f"/{n}.md", content=n)) for n in "ab"]
        agent = create_deep_agent(crew(a=[writes[0], "Written."], b=[writes[1], "Written."]))
        graph = create_item_runner(agent, check=lambda _, result: seen.append([*result["files"]]))
        graph.compile().invoke(begin("a", "b"))
        assert seen == [["/a.md"], ["/b.md"]]

    def test_an_agent_with_todos_keeps_its_list_to_itself(self) -> None:
        """Neither list changes the other; the next attempt keeps the agent's list."""
        lists = list[list[TodoItem]]()

        def check(_: TodoItem, result: Any) -> str | None:
            lists.append(result["todos"])
            return "one more" if len(lists) == 1 else None

        more = turn("", call("write_todos", mode="append", todos=["y"]))
        model = crew(a=[plan("x"), "Planned.", more, "Done."], b=["Done."])
        values = runner(model, hooks=[TodoMiddleware(policy=None)], check=check).invoke(
            begin("a", "b")
        )
        assert values["todos"] == items("a", "b", status="completed")
        assert lists == [items("x"), items("x", "y"), []]


class TestComposing:
    @BOTH
    @pytest.mark.parametrize("schema", [ItemsState, DeltaItemsState])
    @pytest.mark.parametrize("at_once", [1, 3])
    @pytest.mark.parametrize("is_nested", [False, True])
    def test_each_state_class_and_graph_keeps_the_reports(
        self, run: Run, schema: Any, at_once: int, is_nested: bool, config: RunnableConfig
    ) -> None:
        """Over two turns, in each checkpoint, also as a node of another graph."""
        model = crew(b=["", ""])
        graph = runner(
            model,
            saver=InMemorySaver(),
            nested=schema if is_nested else None,
            at_once=at_once,
            state_schema=schema,
        )
        run(graph, begin("a", "b", "c"), config)
        more = {"messages": [("user", "More.")], "todos": append_items("d")}
        values = run(graph, more, config)
        assert sorted(told(values)) == sorted([*done("a", "c", "d"), ("b", "abandoned", "")])
        assert told(values)[-1:] == done("d")
        assert graph.get_state(config).values["reports"] == values["reports"]
        assert asked(model) == dict.fromkeys("abcd", 2)
        assert [each["status"][:2] for each in values["todos"]] == ["co", "ab", "co", "co"]

    @BOTH
    def test_a_planner_and_an_answer_serve_each_turn(
        self, run: Run, config: RunnableConfig
    ) -> None:
        """The planner may add to its list; the answer reads all reports."""
        more = turn("", call("write_todos", mode="append", todos=["c"]))
        planning = ScriptedChatModel([plan("a", "b"), "Planned.", more, "Added."])
        planner = create_agent(planning, middleware=[TodoMiddleware(policy=None)])

        def answer(state: Any) -> Any:
            return {"messages": [AIMessage(" ".join(each[0] for each in told(state)))]}

        model = crew()
        graph = runner(model, planner=planner, answer=answer, saver=InMemorySaver())
        assert run(graph, BEGIN, config)["messages"][-1].text == "a b"
        values = run(graph, {"messages": [("user", "And c.")]}, config)
        assert values["messages"][-1].text == "a b c"
        assert asked(model) == dict.fromkeys("abc", 2)

    def test_a_prompt_of_your_own(self) -> None:
        """It gets the state and the index of the item."""
        model = crew()
        graph = runner(model, prompt=lambda state, at: f"{at} inches. {item_prompt(state, at)}")
        graph.invoke(begin("a", "b"))
        assert model.prompts[-1][0].text.startswith("1 inches. The whole request:\nBegin.")


STORED = "build it without a checkpointer"


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"at_once": 0}, ValueError, "at_once must be 1 or more"),
        ({"attempts": True}, TypeError, "attempts must be a whole number"),
        ({"max_steps": 2.5}, TypeError, "max_steps must be a whole number"),
        ({"check": "has_worked"}, TypeError, "check must be a function"),
        ({"on_error": "ignore"}, ValueError, "on_error must be 'raise' or 'abandon'"),
        ({"agent": 1}, TypeError, "Expected a Runnable"),
        ({"agent": say, "retry_policy": RetryPolicy()}, ValueError, "retry in the agent"),
        ({"agent": create_agent(crew(), checkpointer=InMemorySaver())}, ValueError, STORED),
        ({"agent": create_agent(crew(), checkpointer=True)}, ValueError, STORED),
    ],
)
def test_wrong_settings_are_refused_at_once(settings: Any, error: Any, words: str) -> None:
    """The error says what to give instead."""
    with pytest.raises(error, match=words):
        create_item_runner(**{"agent": create_agent(crew()), **settings})


TEXTS = st.sampled_from("abc")
LISTS = st.lists(st.builds(TodoItem, text=TEXTS, status=st.sampled_from([*STATUSES])), max_size=6)


def reported(text: str, status: Any, report: str = "") -> ItemReport:
    """The report of a run."""
    told: Any = {"text": text, "status": status, "report": report, "reasons": ["No."]}
    told.update(calls=1, tokens=1, seconds=1.0)
    return cast("ItemReport", told)


class TestJobs:
    @given(LISTS, st.integers(1, 4), st.data())
    def test_only_what_ended_is_ticked_whatever_a_person_does(
        self, todos: list[TodoItem], at_once: int, data: st.DataObject
    ) -> None:
        """Some runs of a wave end, a person edits the list in any way, and the next wave begins."""
        before, jobs = next_jobs({"todos": todos}, at_once, 1.0)
        endings = st.sampled_from(["completed", "abandoned", None])
        ended = {
            job["id"]: reported(job["item"]["text"], status)
            for job in jobs
            if (status := data.draw(endings))
        }
        edited = data.draw(st.permutations(before) | LISTS)
        state = {"todos": edited, "running": jobs, "reports": ended}
        after, following = next_jobs(state, at_once, 2.0)
        changed = [(old, new) for old, new in zip(edited, after, strict=True) if old != new]
        assert all(old["text"] == new["text"] for old, new in changed)
        ticks = [new for old, new in changed if old["status"] == "in_progress"]
        begun = [new["status"] for old, new in changed if old["status"] != "in_progress"]
        assert {*begun} <= {"in_progress"}
        got = Counter((each["text"], each["status"]) for each in ticks)
        assert got <= Counter((each["text"], each["status"]) for each in ended.values())
        if sorted(map(str, edited)) == sorted(map(str, before)):  # a moved item is found again
            assert got.total() == len(ended)
        # Those in progress come first.
        ticked = [new if new in ticks else old for old, new in zip(edited, after, strict=True)]
        first = sorted(incomplete(ticked), key=lambda each: each[1]["status"] != "in_progress")
        assert [job["index"] for job in following] == [at for at, _ in first[:at_once]]
        assert all(after[job["index"]] == job["item"] for job in following)
        assert {job["item"]["status"] for job in following} <= {"in_progress"}
        assert len({job["id"] for job in [*jobs, *following]}) == len(jobs) + len(following)


def state_with(texts: Sequence[str], *told: ItemReport, requests: Sequence[str] = ()) -> Any:
    """A state as a prompt gets it."""
    messages = [*map(HumanMessage, requests)]
    return {"messages": messages, "todos": items(*texts), "reports": dict(enumerate(told))}


class TestPrompt:
    def test_its_size_does_not_grow(self) -> None:
        """Neither with the list, nor with the number of reports, their size and the messages."""

        def size(number: int) -> int:
            told = [reported("an item", "completed", "line\n" * number)] * number
            state = state_with(["an item"] * number, *told, requests=["message"] * number)
            return len(item_prompt(state, 99))

        assert size(9000) - size(1000) < 10

    @given(st.lists(st.integers(0, 2500), max_size=3), st.text("x ", max_size=20))
    def test_a_long_report_is_cut_at_a_line(self, lines: list[int], end: str) -> None:
        """The newest three come whole up to 2,000 characters; a long line is cut itself."""
        text = "\n".join([*("x" * size for size in lines), end])
        told, other = reported("i", "completed", text), reported("i", "abandoned")
        for size, after in ((2000, [other] * 2), (400, [other] * 3)):
            prompt = item_prompt(state_with(["a"], told, *after), 0)
            shown = prompt.partition("- i: ")[2].partition("\n- i: not done: No.")[0]
            cut = shown.removesuffix(" …")
            assert text.startswith(cut)
            assert (shown == cut == text) == (len(text) <= size)
            if shown != text:
                assert size // 2 <= len(cut) <= size
                assert text[len(cut)] == "\n" or "\n" not in text[size // 2 : size]

    def test_it_has_the_requests_of_the_user_and_the_items_around(self) -> None:
        """Five messages, 20 items on each side, 20 reports."""
        told = [reported("i", "completed", f"r{number}") for number in range(30)]
        requests = [f"m{number}" for number in range(7)]
        state = state_with([f"i{number}" for number in range(100)], *told, requests=requests)
        tagged = HumanMessage("Go on.", additional_kwargs={"lc_source": "todo_tools"})
        state["messages"] += [AIMessage("Hello."), tagged]
        assert item_prompt(state, 50).split("\n") == [
            *("The whole request:", "m2", "m3", "m4", "m5", "m6", ""),
            "Its 100 items; the first is [0]:",
            *(f"– [{number}] i{number}" for number in range(30, 71)),  # noqa: RUF001
            *("", "What earlier items reported:"),
            *(f"- i: r{number}" for number in range(10, 30)),
            *("", "Do only this item: – [50] i50"),  # noqa: RUF001
            "End with a short report of what later items need. Ask only if you cannot go on.",
        ]
