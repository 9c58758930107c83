"""Runner: kills, lost connections, errors, answers and edits while items run, beside a log."""

import asyncio
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, RetryPolicy, StateSnapshot

from campaigns.agents import Durability, Saver, opened
from campaigns.cases import Case, Trial
from todo_tools import DeltaItemsState, ItemsState, TodoItem, create_item_runner
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, turn

Key = tuple[str, int, str]  # an item, the length of its conversation, and what happened
KINDS = ["plain", "together", "refused", "hopeless", "breaks", "asks"]
"""What a run is like; an item is named after it. `together` makes its calls in one turn."""
DURABILITY: Durability = "sync"
DEFECT: Callable[[], object] = int  # called first in each process, to plant one
_EARLY = {"asks": "Which way for {}?", "refused": "That was it.", "hopeless": "I cannot."}
_STOPPED = 3  # the exit code after an error that the caller of the graph got
_RETRY = RetryPolicy(initial_interval=0.01, retry_on=ConnectionError)
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__])


class Thread:
    """Items in a thread; the model, its calls and the check write to a log."""

    def __init__(self, case: Case, address: str, kinds: list[str]) -> None:
        self.random, self.log, self.address = case.random, case.folder / "log", address
        self.config: RunnableConfig = {"configurable": {"thread_id": str(case.folder)}}
        draw, is_sqlite = case.random.choice, not address.startswith("postgresql")
        self.is_async, self.is_hand_built = is_sqlite and draw([True, False]), draw([True, False])
        self.state, self.at_once = draw([ItemsState, DeltaItemsState]), draw([1, 3])
        self.retry, self.defect, self.counts = draw([(), _RETRY]), DEFECT, case.counts
        self.texts = self.items = self.edit = [f"{draw(kinds)}{number}" for number in range(5)]
        self.finished, self.answers = set[str](), set[tuple[str, str]]()
        self.ends: dict[int | None, float] = {}
        self.log.touch()

    def write(self, item: str, stage: int, what: str) -> None:
        """Append a line with one system call when the file is closed; no kill can cut it."""
        with self.log.open("a") as log:
            log.write(f"{os.getpid()} {time.time()} {item} {stage} {what}\n")

    def lines(self) -> list[tuple[int, float, Key]]:
        """The process, the time, and what was written."""
        found = [line.split(" ", 4) for line in self.log.read_text().splitlines()]
        return [(int(a), float(b), (item, int(c), what)) for a, b, item, c, what in found]

    def answer(self, prompt: list[BaseMessage]) -> AIMessage | str:
        """Make two calls and report, but first meet what the name of the item says."""
        item, stage, kind = prompt[0].text, len(prompt), prompt[0].text.rstrip("0123456789")
        done, people = (sum(each.type == name for each in prompt) for name in ("tool", "human"))
        broken = self.log.with_name(f"broken-{item}")
        if kind == "breaks" and done and not broken.exists():
            broken.touch()
            raise ConnectionError(item)
        self.write(item, stage, f"asked {prompt[-1].text if prompt[-1].type == 'human' else ''}")
        calls = [call("work", item=item, stage=stage + 1, number=number) for number in (0, 1)]
        if done == 1 and kind in _EARLY and (kind == "hopeless" or people == 1):
            return _EARLY[kind].format(item)
        if done == 2:
            return f"report of {item}"
        return turn("", *(calls if kind == "together" else calls[done : done + 1]))

    def check(self, item: TodoItem, result: Any) -> str | None:
        """Accept only a report."""
        is_done = result["messages"][-1].text == f"report of {item['text']}"
        self.write(item["text"], len(result["messages"]), "completed" if is_done else "abandoned")
        return None if is_done else "it is too early"

    def graph(self, saver: Saver) -> Any:
        """The runner of a hand-built agent or of LangChain's."""

        @tool
        def work(item: str, stage: int, number: int) -> str:
            """Do a part of an item."""
            self.write(item, stage, f"call {number}")
            time.sleep(0.005)
            return "done"

        model = ScriptedChatModel(script=self.answer)
        agent: Any = create_agent(model, [work])
        if self.is_hand_built:
            respond: Any = lambda state: {"messages": [model.invoke(state["messages"])]}  # noqa: E731
            made: Any = (
                StateGraph(MessagesState).add_node("model", respond).add_edge(START, "model")
            )
            made.add_node("tools", ToolNode([work])).add_edge("tools", "model")
            agent = made.add_conditional_edges("model", tools_condition).compile()
        given: Any = {"check": self.check, "state_schema": self.state, "retry_policy": self.retry}
        given["prompt"] = lambda state, index: todos_in(state)[index]["text"]
        runner = create_item_runner(agent, at_once=self.at_once, **given)
        return runner.compile(checkpointer=saver)

    def run(self, given: Any) -> None:
        """Run the graph in this process."""

        async def arun() -> None:
            async with AsyncSqliteSaver.from_conn_string(self.address) as saver:
                await self.graph(saver).ainvoke(given, self.config, durability=DURABILITY)

        self.defect()
        try:
            if self.is_async:
                return asyncio.run(arun())
            with opened(self.address) as saver:
                self.graph(saver).invoke(given, self.config, durability=DURABILITY)
        except (ConnectionError, psycopg.Error):
            sys.exit(_STOPPED)

    def start(self, given: Any, end: Callable[[Any], object] | None = None) -> Any:
        """Start a process; end it some time after a random line, if it still runs."""
        process = _processes.Process(target=self.run, args=(given,), daemon=True)
        process.start()
        if end:
            lines = len(self.lines()) + self.random.randrange(25)
            while process.is_alive() and len(self.lines()) < lines:
                process.join(0.002)
            process.join(self.random.uniform(0, 0.02))
            if process.is_alive():
                end(process)
                self.ends[process.pid] = time.time()
                self.counts["kills"] += 1
        return process

    def stored(self, *processes: Any) -> StateSnapshot:
        """Wait for processes; check what they ran, and what the thread says now."""
        for process in processes:
            process.join()
            self.ends.setdefault(process.pid, time.time())
            assert process.exitcode in (0, _STOPPED, -9), process.exitcode
        lines, pids = self.lines(), [process.pid for process in processes]
        again = self.finished & {key[0] for pid, _, key in lines if pid in pids}
        assert not again, f"finished, and run again: {again}"
        with opened(self.address) as saver:
            stored: StateSnapshot = self.graph(saver).get_state(self.config)
        statuses = {todo["text"]: todo["status"] for todo in todos_in(stored.values)}
        assert [*statuses] in ([], self.texts, self.edit), f"{statuses}, not {self.texts}"
        self.texts = [*statuses] or self.texts
        ticks = {text: status for text, status in statuses.items() if status[0] in "ca"}
        judged = {
            item: what for _, _, (item, _, what) in lines if what in ("completed", "abandoned")
        }
        assert ticks.items() <= judged.items(), f"ticked {ticks}, but judged {judged}"
        assert stored.tasks or ticks == statuses, f"not done: {statuses}"
        reports = [(task.result or {}).get("reports", {}) for task in stored.tasks]
        self.finished = {*ticks, *(each["text"] for run in reports for each in run.values())}
        return stored

    def reply(self, stored: StateSnapshot) -> Any:
        """Give the next process the request, nothing, or answers and perhaps an edited list."""
        random, todos = self.random, todos_in(stored.values)
        if not todos:
            return {"todos": [TodoItem(text=text, status="not_started") for text in self.texts]}
        if not stored.interrupts or random.random() < 0.2:
            return None
        resume, item = dict[str, str](), ""
        for each in random.sample(stored.interrupts, random.randint(1, len(stored.interrupts))):
            item = each.value["question"].removesuffix("?").split()[-1]
            assert each.value["item"]["text"] == item, f"{item} asked as {each.value['item']}"
            resume[each.id] = f"Way {len(self.ends)} for {item}."
            self.answers.add((item, f"asked {resume[each.id]}"))
        if self.texts != self.items or random.random() < 0.5:
            return Command(resume=resume)
        at, new = self.texts.index(item), TodoItem(text="plain9", status="in_progress")
        after = [*todos[:at], new, *todos[at + random.choice([0, 1]) :]]
        self.edit = [todo["text"] for todo in after]
        return Command(resume=resume, update={"todos": after})

    def check_end(self, stored: StateSnapshot) -> None:
        """Check the order of the log, the answers and the reports."""
        known, stages = dict[Key, tuple[int, float]](), Counter[str]()
        repeats, gaps = Counter[int](), [0.0]
        for pid, when, key in self.lines():
            item, stage, what = key
            assert stage >= stages[item], f"{key} went back from {stages[item]}"
            assert "Way" not in what or (item, what) in self.answers, f"{key}, not {self.answers}"
            if key in known and what.startswith("call"):
                before, began = known[key]
                assert before != pid, f"twice in one process: {key}"
                repeats[pid] += not item.startswith("together")
                gaps.append(self.ends[before] - began)
            stages[item], known[key] = stage, (pid, when)
        assert max(repeats.values(), default=0) <= self.at_once, f"not in flight: {repeats}"
        asked = Counter(item for item, _ in {key[:2] for key in known if "asked" in key[2]})
        reports = stored.values["reports"].values()
        assert asked == {each["text"]: each["calls"] for each in reports}, f"{reports}, not {asked}"
        assert len(reports) == len({*self.texts, *self.items}), f"reports are {reports}"
        self.counts.update({"runs": len(reports), "repeated calls": len(gaps) - 1})
        self.counts["longest gap in ms"] = round(max(gaps) * 1000)


def _ended(case: Case, address: str, end: Callable[[Any], object]) -> None:
    """End one to three processes at random moments, and go on each time."""
    thread = Thread(case, address, KINDS)
    stored, ends = thread.stored(), [end] * case.random.randint(1, 3)
    while not stored.values or stored.tasks:
        given = thread.reply(stored)
        stored = thread.stored(thread.start(given, ends.pop() if ends else None))
    thread.check_end(stored)


def killed_sqlite(case: Case) -> None:
    """Kill runs on SQLite, sync or async."""
    _ended(case, str(case.folder / "db"), _processes.Process.kill)


def killed_postgres(case: Case) -> None:
    """Kill runs on PostgreSQL."""
    _ended(case, case.place.postgres, _processes.Process.kill)


def lost_backend(case: Case) -> None:
    """PostgreSQL ends the connection of a run."""
    others = "pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(case.place.postgres, autocommit=True) as other:
        lose = f"SELECT pg_terminate_backend(pid) FROM {others}"
        _ended(case, case.place.postgres, lambda _: other.execute(lose))


def two_resumes(case: Case) -> None:
    """Two processes resume a thread at once; what they repeat and report is only counted."""
    address = case.random.choice([case.place.postgres, str(case.folder / "db")])
    thread = Thread(case, address, ["plain", "together", "refused"])
    stored = thread.stored(thread.start(thread.reply(thread.stored()), _processes.Process.kill))
    while not stored.values or stored.tasks:
        stored = thread.stored(*[thread.start(thread.reply(stored)) for _ in range(2)])
    calls = Counter(key for *_, key in thread.lines() if key[2].startswith("call"))
    reported = sorted(report["text"] for report in stored.values["reports"].values())
    repeated, is_wrong = calls.total() - len(calls), reported != sorted(thread.texts)
    case.counts.update({"calls": len(calls), "repeated calls": repeated, "wrong reports": is_wrong})


TRIALS: tuple[Trial, ...] = (killed_sqlite, killed_postgres, lost_backend, two_resumes)
