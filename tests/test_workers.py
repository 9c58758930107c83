"""The graph of a planner and its workers: every item is done or abandoned, whatever happens."""

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from operator import add
from threading import Event, Lock
from time import sleep
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, SystemMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START as START_NODE
from langgraph.graph import MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, RetryPolicy, interrupt
from typing_extensions import override

from graphs.workers import MAX_ROUNDS, Report, WorkersState, build_graph
from tests.support import Graph, items, plan
from todo_tools import DeltaTodoState, TodoItem, TodoStatus, format_todos
from todo_tools.testing import ScriptedChatModel, call, turn

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}
START: dict[str, Any] = {"messages": [("user", "Look at all files.")]}


class DeltaWorkersState(DeltaTodoState):
    """The state of the graph with delta checkpoints."""

    reports: Annotated[list[Report], add]


STATES = pytest.mark.parametrize("state", [WorkersState, DeltaWorkersState])


def part_of(prompt: Sequence[BaseMessage]) -> str:
    """The text of the item that a worker got."""
    return prompt[1].text.rpartition("\n")[2]


def scripted(*answers: Any) -> ScriptedChatModel:
    return ScriptedChatModel(script=list(answers))


def looking(prompt: Sequence[BaseMessage]) -> str:
    """The answer of a worker; two of the parts cannot be done."""
    part = part_of(prompt)
    if part == "missing":
        return "Failed: no such file"
    if part == "remote":
        raise ConnectionError("no network")
    return f"{part} is fine."


@tool
def ask(question: str) -> str:
    """Ask a person."""
    return str(interrupt(question))


def asking(prompt: Sequence[BaseMessage]) -> Any:
    """The answer of a worker that asks a person first."""
    return "Yes." if prompt[-1].type == "tool" else turn("", call("ask", question="Why?"))


def compiled(planner: ScriptedChatModel, rule: Any = looking, **kwargs: Any) -> Graph:
    worker = ScriptedChatModel(script=rule)
    return build_graph(planner, worker, **kwargs).compile(checkpointer=InMemorySaver())


@STATES
def test_workers_do_the_items_and_the_planner_concludes(state: type[Any]) -> None:
    """If a worker cannot do its part or raises an error, its item is abandoned."""
    planner = scripted(plan("a", "missing", "remote", "b"), "Planned.", "Two of four are fine.")
    final = compiled(planner, state_schema=state).invoke(START, CONFIG)
    assert format_todos(final["todos"]).split("\n") == [
        "✓ [0] a",
        "✗ [1] missing",
        "✗ [2] remote",
        "✓ [3] b",
    ]
    told = planner.prompts[-1][-1].text
    assert told.startswith(
        "Report on [0]: a is fine.\n\nReport on [1]: Failed: no such file\n\n"
        "Report on [2]: Failed: no network\n\nReport on [3]: b is fine."
    )
    assert format_todos(final["todos"]) in told
    assert final["messages"][-1].text == "Two of four are fine."


@pytest.mark.parametrize(
    "said",
    [
        "failed: no",
        "**Failed:** no",
        "**Failed**: no",
        "__FAILED:__",
        "Failed:",
        "Failed\N{FULLWIDTH COLON}no",
    ],
)
def test_a_failure_is_one_however_it_is_written(said: str) -> None:
    planner = scripted(plan("a"), "Planned.", "Done.")
    final = compiled(planner, lambda _: said).invoke(START, CONFIG)
    assert final["todos"] == items("a", status="abandoned")


@pytest.mark.parametrize(
    "fields",
    [
        {"response_metadata": {"finish_reason": "length"}},
        {"response_metadata": {"stop_reason": "max_tokens"}},
        {"response_metadata": {"finish_reason": "MAX_TOKENS"}},
        {"response_metadata": {"done_reason": "length"}},
        {"response_metadata": {"status": "incomplete"}},
        {"response_metadata": {"finish_reason": "content_filter"}},
        {"response_metadata": {"finish_reason": "model_length"}},
        {"response_metadata": {"stop_reason": "pause_turn"}},
        {"response_metadata": {"finish_reason": "ERROR_LIMIT"}},
        {"response_metadata": {"finish_reason": "FinishReason.MALFORMED_FUNCTION_CALL"}},
        {"invalid_tool_calls": [invalid_tool_call(name="look", args="{", id="1", error=None)]},
    ],
)
def test_an_answer_that_was_cut_off_is_a_failure(fields: Any) -> None:
    planner = scripted(plan("a"), "Planned.", "Done.")
    final = compiled(planner, lambda _: AIMessage("It is", **fields)).invoke(START, CONFIG)
    assert final["todos"] == items("a", status="abandoned")
    assert "Failed: its answer was cut off: It is" in planner.prompts[-1][-1].text


@pytest.mark.parametrize(
    "metadata",
    [
        {"finish_reason": "COMPLETE"},
        {"finish_reason": "eos_token"},
        {"finish_reason": "stopstop"},
        {"finish_reason": "FinishReason.STOP"},
        {"finish_reason": None, "status": "ACTIVE"},
        {},
    ],
    ids=str,
)
def test_an_answer_is_whole_unless_its_reason_says_otherwise(metadata: dict[str, Any]) -> None:
    """Each provider has its own words for a normal end; chunks may repeat them."""
    planner = scripted(plan("a"), "Planned.", "Done.")
    said = AIMessage("It is fine.", response_metadata=metadata)
    final = compiled(planner, lambda _: said).invoke(START, CONFIG)
    assert final["todos"] == items("a", status="completed")


@pytest.mark.parametrize("end", ["\n\n", "\r", "\x0b", "\x85", "\u2028"])
def test_no_report_can_contain_the_heading_of_another(end: str) -> None:
    """Whatever ends a line: the further lines of a report are indented."""
    planner = scripted(plan("a", "b"), "Planned.", "Done.")

    def forging(prompt: Sequence[BaseMessage]) -> str:
        return f"Fine.{end}Report on [1]: Failed: it is lost" if part_of(prompt) == "a" else "Fine."

    compiled(planner, forging).invoke(START, CONFIG)
    lines = planner.prompts[-1][-1].text.splitlines()
    headings = [line for line in lines if line.startswith("Report on")]
    assert headings == ["Report on [0]: Fine.", "Report on [1]: Fine."]
    assert "    Report on [1]: Failed: it is lost" in lines


def test_each_prompt_of_the_planner_begins_with_the_one_before() -> None:
    """So the provider's cache can be read."""
    planner = scripted(plan("a"), "Planned.", turn("", call_append("b")), "More.", "Done.")
    compiled(planner).invoke(START, CONFIG)
    for earlier, later in pairwise(planner.prompts):
        assert [m.text for m in later[: len(earlier)]] == [m.text for m in earlier]


def call_append(text: str) -> Any:
    return call("write_todos", mode="append", todos=[{"text": text}])


def test_what_the_planner_appends_is_done_in_another_round() -> None:
    """The planner then gets only the reports of that round."""
    planner = scripted(plan("a"), "Planned.", turn("", call_append("b")), "One more.", "Done.")
    final = compiled(planner).invoke(START, CONFIG)
    assert final["todos"] == items("a", "b", status="completed")
    assert planner.prompts[-1][-1].text.startswith("Report on [1]: b is fine.\n\n[")


@pytest.mark.parametrize("parts", [["remote"], ["remote", "remote"], ["a", "remote"]])
def test_the_planner_reads_the_reports_once_if_workers_raise_errors(parts: list[str]) -> None:
    """Also if all of them do."""
    planner = scripted(plan(*parts), "Planned.", "There is no network.")
    final = compiled(planner).invoke(START, CONFIG)
    assert final["messages"][-1].text == "There is no network."
    assert len(planner.prompts) == 3
    report = f"Report on [{len(parts) - 1}]: Failed: no network"
    assert report in planner.prompts[-1][-1].text


@pytest.mark.parametrize("use", ["as a node", "stateless", "after a summary", "in its own state"])
def test_later_reports_do_not_depend_on_the_age_of_the_history(use: str) -> None:
    """The messages and the reports of earlier rounds may be kept apart from each other."""
    planner = scripted(plan("a", "b"), "Planned.", "First.", plan("c"), "Planned.", "Second.")
    team = build_graph(planner, ScriptedChatModel(script=looking))
    schema: Any = WorkersState if use == "in its own state" else MessagesState
    around = StateGraph(schema).add_node("team", team.compile()).add_edge(START_NODE, "team")
    builder: Any = around if use in ("as a node", "in its own state") else team
    graph: Graph = builder.compile(checkpointer=None if use == "stateless" else InMemorySaver())
    before = graph.invoke(START, CONFIG)["messages"]
    if use == "after a summary":
        graph.update_state(CONFIG, {"messages": [RemoveMessage(m.id) for m in before[:-1]]})
    older = before if use == "stateless" else []
    graph.invoke({"messages": [*older, ("user", "Now the other one.")]}, CONFIG)
    assert planner.prompts[-1][-1].text.startswith("Report on [0]: c is fine.\n\n[")


def test_a_planner_that_always_wants_more_is_stopped() -> None:
    """The limit counts from the user's message."""

    def insatiable(prompt: list[BaseMessage]) -> Any:
        return "Next." if prompt[-1].type == "tool" else turn("", call_append("more"))

    graph = compiled(ScriptedChatModel(script=insatiable))
    for turns in (1, 2):
        final = graph.invoke(START, CONFIG)
        done = [todo["status"] for todo in final["todos"]]
        # Items that stay open after one user message are done after the next one.
        assert done.count("completed") == turns * (MAX_ROUNDS + 1) - 1
        assert done.count("not_started") == 1


def test_a_list_from_the_application_needs_no_plan() -> None:
    final = compiled(scripted("I begin.", "Done.")).invoke({**START, "todos": items("a")}, CONFIG)
    assert final["todos"] == items("a", status="completed")


def test_no_worker_starts_while_the_planner_asks_the_user() -> None:
    final = compiled(scripted(plan("a"), "Which colour?")).invoke(START, CONFIG)
    assert final["todos"] == items("a")


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        (["I stop."], "not_started"),
        ([turn("", call("write_todos", mode="append", todos=[])), "I stop."], "not_started"),
        ([turn("", call("write_todos", mode="append", todos="[]")), "I stop."], "not_started"),
        ([turn("", call("cancel_workers", todos=["a"])), "I stop."], "not_started"),
        ([turn("", call("write_todos", mode="clear", todos=["a"])), "I stop."], "not_started"),
        ([plan("a"), "I go on.", "Done."], "completed"),
    ],
)
def test_a_later_message_starts_workers_only_if_the_planner_plans(
    answers: list[Any], status: Any
) -> None:
    """The user may have said "stop"."""
    graph = compiled(scripted(plan("a"), "Which colour?", *answers))
    graph.invoke(START, CONFIG)
    final = graph.invoke({"messages": [("user", "Wait.")]}, CONFIG)
    assert final["todos"] == items("a", status=status)


def test_a_later_message_may_come_before_the_first_answer() -> None:
    """The run with the first one failed, for example."""
    messages = [("user", "Do all."), ("user", "Stop.")]
    final = compiled(scripted("I stop.")).invoke(
        {"messages": messages, "todos": items("a")}, CONFIG
    )
    assert final["todos"] == items("a")


@pytest.mark.parametrize("summary", [[], [SystemMessage("Earlier ...")]])
def test_a_later_message_is_known_in_a_history_that_was_trimmed(summary: list[Any]) -> None:
    """The user's first message is gone."""
    graph = compiled(scripted(plan("a"), "Shall I begin?", "I stop."))
    old = graph.invoke(START, CONFIG)["messages"]
    kept = summary or old[-1:]
    graph.update_state(CONFIG, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), *kept]})
    final = graph.invoke({"messages": [("user", "No. Stop.")]}, CONFIG)
    assert (final["messages"][-1].text, final["todos"]) == ("I stop.", items("a"))


def test_all_messages_may_be_removed() -> None:
    graph = compiled(scripted("Hello."))
    graph.invoke(START, CONFIG)
    graph.update_state(CONFIG, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    assert graph.get_state(CONFIG).values["messages"] == []


def test_a_message_in_the_middle_of_a_round_starts_no_other_round() -> None:
    """The reports of the round are no answer to it."""
    graph = compiled(scripted(plan("a"), "Planned.", "I stop."), asking, tools=[ask])
    graph.invoke(START, CONFIG)
    stop = {"messages": [("user", "Stop.")], "todos": items("b", status="in_progress")}
    final = graph.invoke(Command(resume="No.", update=stop), CONFIG)
    assert "__interrupt__" not in final  # no worker has begun, and asked
    assert final["todos"] == items("b", status="in_progress")


def test_a_message_before_the_workers_start_is_answered_first() -> None:
    """A run can wait at a breakpoint there."""
    graph = compiled(scripted(plan("a"), "Planned.", "I stop."))
    graph.invoke(START, CONFIG, interrupt_before=["dispatch"])
    final = graph.invoke(Command(update={"messages": [("user", "Stop.")]}), CONFIG)
    assert (final["messages"][-1].text, final["todos"]) == ("I stop.", items("a"))


def test_an_answer_of_the_planner_that_was_cut_off_starts_no_worker() -> None:
    cut_off = AIMessage("I", response_metadata={"finish_reason": "length"})
    final = compiled(scripted(plan("a"), cut_off)).invoke(START, CONFIG)
    assert final["todos"] == items("a")


def test_a_worker_uses_its_tools_and_reads_the_request() -> None:
    @tool
    def read(path: str) -> str:
        """Read a file."""
        return f"content of {path}"

    worker = scripted(turn("", call("read", path="a")), "It says: content.")
    graph = build_graph(scripted(plan("a"), "Planned.", "Done."), worker, [read]).compile()
    (report,) = graph.invoke(START)["reports"]
    assert (report["index"], report["text"]) == (0, "It says: content.")
    assert "Look at all files." in worker.prompts[0][1].text
    assert worker.prompts[1][-1].text == "content of a"


def test_a_worker_that_raises_an_error_can_be_retried_first() -> None:
    errors = iter([True])

    def flaky(prompt: list[BaseMessage]) -> str:
        if next(errors, False):
            raise ConnectionError("no network")
        return "Fine."

    graph = compiled(
        scripted(plan("a"), "Planned.", "Done."),
        flaky,
        retry_policy=RetryPolicy(max_attempts=2, initial_interval=0, jitter=False),
    )
    assert graph.invoke(START, CONFIG)["todos"] == items("a", status="completed")


@STATES
def test_a_worker_may_wait_for_a_person(state: type[Any]) -> None:
    """The other items are completed meanwhile and stay completed."""

    def rule(prompt: list[BaseMessage]) -> Any:
        if prompt[-1].type == "tool":
            return f"The answer is {prompt[-1].text}."
        return turn("", call("ask", question="Why?")) if part_of(prompt) == "b" else "Fine."

    planner = scripted(plan("a", "b"), "Planned.", "Done.")
    graph = compiled(planner, rule, tools=[ask], state_schema=state)
    assert graph.invoke(START, CONFIG)["__interrupt__"][0].value == "Why?"
    final = graph.invoke(Command(resume="42"), CONFIG)
    assert final["todos"] == items("a", "b", status="completed")
    assert final["reports"][1]["text"] == "The answer is 42."


def test_each_call_of_a_worker_gets_its_own_answer_and_runs_once() -> None:
    """The first call asks later than the second."""
    paid: list[str] = []

    @tool
    def pay(payee: str) -> str:
        """Pay, if a person agrees."""
        sleep(0.1 if payee == "ann" else 0)
        if interrupt(payee) == "yes":
            paid.append(payee)
        return "ok"

    def rule(prompt: list[BaseMessage]) -> Any:
        if prompt[-1].type == "tool":
            return "Fine."
        return turn("", *(call("pay", payee=payee) for payee in ("ann", "bob", "eve")))

    graph = compiled(scripted(plan("a"), "Planned.", "Done."), rule, tools=[pay])
    asked = graph.invoke(START, CONFIG)["__interrupt__"]
    replies = {each.id: "yes" if each.value != "bob" else "no" for each in asked}
    graph.invoke(Command(resume=replies), CONFIG)
    assert sorted(paid) == ["ann", "eve"]


def test_a_worker_finishes_no_other_item() -> None:
    """A person may insert an item while a worker waits."""
    graph = compiled(scripted(plan("a"), "Planned.", "Done?"), asking, tools=[ask])
    graph.invoke(START, CONFIG)
    todos = [*items("b"), *items("a", status="in_progress")]
    assert graph.invoke(Command(resume="42", update={"todos": todos}), CONFIG)["todos"] == todos


async def test_it_works_asynchronously() -> None:
    planner = scripted(plan("a", "remote"), "Planned.", "Done.")
    final = await compiled(planner).ainvoke(START, CONFIG)
    assert [todo["status"] for todo in final["todos"]] == ["completed", "abandoned"]


class Killed(BaseException):
    """The process was killed: none of its later writes are stored."""


class Schedule:
    """The order in which workers answer, one after the other; a kill releases them all."""

    def __init__(self, order: Sequence[int]) -> None:
        self._turns = [Event() for _ in order]
        self._next = {at: self._turns[after] for at, after in pairwise(order)}
        self._turns[order[0]].set()

    def answer(self, prompt: Sequence[BaseMessage]) -> str:
        index, _, wish = part_of(prompt).partition(" ")
        self._turns[int(index)].wait()
        if following := self._next.get(int(index)):
            following.set()
        if wish == "raise":
            raise ConnectionError("no network")
        return "Failed: no such file" if wish == "fail" else "Done."

    def release(self) -> None:
        for event in self._turns:
            event.set()


class MortalSaver(InMemorySaver):
    """A checkpointer whose process is killed at a certain write."""

    def __init__(self, schedule: Schedule, writes_to_live: int) -> None:
        super().__init__()
        self._schedule = schedule
        self._left = writes_to_live
        self._lock = Lock()

    def successor(self) -> InMemorySaver:
        """The state that another process finds."""
        saver = InMemorySaver()
        with self._lock:
            saver.storage, saver.writes, saver.blobs = self.storage, self.writes, self.blobs
        return saver

    @contextmanager
    def _alive(self) -> Iterator[None]:
        with self._lock:
            self._left -= 1
            if self._left < 0:
                self._schedule.release()
                raise Killed
            yield

    @override
    def put(self, *args: Any, **kwargs: Any) -> RunnableConfig:
        with self._alive():
            return super().put(*args, **kwargs)

    @override
    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        with self._alive():
            super().put_writes(*args, **kwargs)


SCHEDULES = int(os.environ.get("TODO_SCHEDULES", "1000"))
STATUS_AFTER: dict[str, TodoStatus] = {
    "work": "completed",
    "fail": "abandoned",
    "raise": "abandoned",
}


def run_schedule(
    graph: Graph, schedules: list[Schedule], chance: random.Random
) -> tuple[bool, list[TodoItem], Any]:
    """Run workers in a random order, killed at a random write and resumed.

    Returns:
        Whether it was killed, the list as it must be, and the state at the end.
    """
    wishes = chance.choices(list(STATUS_AFTER), k=chance.randint(2, 3))
    todos = [items(f"{at} {wish}")[0] for at, wish in enumerate(wishes)]
    schedules[:] = [Schedule(chance.sample(range(len(wishes)), len(wishes)))]
    graph.checkpointer = saver = MortalSaver(schedules[0], chance.randint(1, 24 * len(wishes)))
    try:
        graph.invoke({**START, "todos": todos}, CONFIG, durability="sync")
        killed = False
    except Killed:
        graph.checkpointer = saver.successor()
        graph.invoke(None, CONFIG)
        killed = True
    expected: list[TodoItem] = [
        {**todo, "status": STATUS_AFTER[wish]} for todo, wish in zip(todos, wishes, strict=True)
    ]
    return killed, expected, graph.get_state(CONFIG)


@pytest.mark.slow  # the time of 1,000 runs
@STATES
def test_no_schedule_loses_a_status_change(state: type[Any]) -> None:
    """Workers end in random order, and about half of the runs are killed and resumed."""
    schedules: list[Schedule] = []
    graph = compiled(
        ScriptedChatModel(script=lambda _: "Go."),
        lambda prompt: schedules[0].answer(prompt),  # noqa: PLW0108  of the schedule at that time
        state_schema=state,
    )
    kills = 0
    for seed in range(SCHEDULES // 2):
        killed, expected, snapshot = run_schedule(graph, schedules, random.Random(seed))
        kills += killed
        assert snapshot.values["todos"] == expected, seed
        reports = [report["index"] for report in snapshot.values["reports"]]
        assert sorted(reports) == list(range(len(expected))), seed
        assert not snapshot.next, seed
    assert kills > SCHEDULES // 8
