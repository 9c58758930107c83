"""Databases: many processes, two runs at once, a lost connection, a full disk, a read-only file."""

import multiprocessing
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psycopg
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from campaigns.agents import DURABILITIES, VARIANTS, Job, Saver, agent, check_replay, opened
from campaigns.cases import LONGEST_CASE, Case, Trial
from tests.support import edit, plan
from todo_tools._thread.state import loop_in
from todo_tools.state import messages_in, todos_in
from todo_tools.testing import ScriptedChatModel, call, turn

THREADS = 50
PROCESSES = 3
TURNS = 3

MIXED = {"DeltaTodoState"}
"""If a run begins in the middle of another one's step, LangGraph's `DeltaChannel` later reads the
writes of that step in both branches. So only what the runs themselves see is checked there."""

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__])


def many_processes(case: Case) -> None:
    """Three processes work on 50 threads at the same time, on other threads in each turn."""
    address, prefix = case.place.postgres, str(case.folder)
    variant = case.random.choice(VARIANTS)
    with opened(address) as saver:
        for number in range(TURNS):
            workers = [
                _processes.Process(target=_turns, args=(address, prefix, variant, number, share))
                for share in range(PROCESSES)
            ]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
                assert worker.exitcode == 0, f"exit code {worker.exitcode}, {variant}"
        for thread in range(THREADS):
            graph = agent(variant, ScriptedChatModel(script=[]), saver)
            values = graph.get_state(_thread(prefix, thread)).values
            check_replay(values)
            texts = [todo["text"] for todo in todos_in(values)]
            assert texts == [f"{thread} {number}" for number in range(TURNS)], (variant, texts)
            said = [m.text for m in messages_in(values) if isinstance(m, HumanMessage)]
            assert said == [f"turn {number}" for number in range(TURNS)], (variant, said)
    case.tried = THREADS * TURNS


def _turns(address: str, prefix: str, variant: str, number: int, share: int) -> None:
    """Run one turn of every third thread in a new process, all at the same time."""
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: Any = ConnectionPool(address, min_size=1, max_size=8, kwargs=options)

    def take_turn(thread: int) -> None:
        text = f"{thread} {number}"
        added = call("write_todos", mode="append", todos=[text])
        model = ScriptedChatModel(script=[turn("", added), edit("complete", number), "Done."])
        graph = agent(variant, model, PostgresSaver(pool))
        graph.invoke({"messages": [("user", f"turn {number}")]}, _thread(prefix, thread))

    own = [thread for thread in range(THREADS) if (thread + number) % PROCESSES == share]
    with pool, ThreadPoolExecutor(len(own)) as executor:
        list(executor.map(take_turn, own))


def _thread(prefix: str, thread: int) -> RunnableConfig:
    return {"configurable": {"thread_id": f"{prefix}/{thread}"}}


def two_runs_at_once(case: Case) -> None:
    """Two runs on one thread do not mix: each has the list of its own history."""
    address = case.random.choice([case.place.postgres, str(case.folder / "threads.sqlite")])
    variant, durability = case.random.choice(VARIANTS), case.random.choice(DURABILITIES)
    config = _thread(str(case.folder), 0)
    both = threading.Barrier(2)
    errors: list[Exception] = []

    def run(name: str) -> list[str]:
        asked = iter(range(100))

        def rule(prompt: list[BaseMessage]) -> Any:
            number = next(asked)
            if number == 1:
                both.wait(LONGEST_CASE)  # both have begun
            answers = [plan(name, f"{name} too"), edit("complete", 0, 1)]
            return answers[number] if number < len(answers) else "Done."

        with opened(address) as saver:
            graph = agent(variant, ScriptedChatModel(script=rule), saver)
            request: Any = {"messages": [("user", name)]}
            try:
                values = graph.invoke(request, config, durability=durability)
            except Exception as error:
                errors.append(error)
                both.abort()  # the other one may wait for this one
                raise
        return [todo["text"] for todo in todos_in(values)]

    with opened(address), ThreadPoolExecutor(2) as executor:
        runs = [executor.submit(run, name) for name in ("one", "two")]
    if errors:
        raise errors[0]
    lists = [each.result() for each in runs]
    assert lists == [["one", "one too"], ["two", "two too"]], (variant, durability, lists)
    with opened(address) as saver:
        graph = agent(variant, ScriptedChatModel(script=["Still here."]), saver)
        graph.invoke({"messages": [("user", "Go on.")]}, config)
        if variant in MIXED:
            return
        for snapshot in graph.get_state_history(config):
            check_replay(snapshot.values)


def lost_connection(case: Case) -> None:
    """PostgreSQL ends the connection during a run."""

    def lose(saver: Saver) -> None:
        connection: Any = getattr(saver, "conn", None)
        with psycopg.connect(case.place.postgres, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])

    _accident(case, case.place.postgres, lose, psycopg.Error)


def full_disk(case: Case) -> None:
    """The database cannot grow after a certain moment."""

    def fill(saver: Saver) -> None:
        _pragma(saver, "max_page_count = 1")  # SQLite raises it to the current number of pages

    _accident(case, str(case.folder / "threads.sqlite"), fill, sqlite3.Error)


def read_only(case: Case) -> None:
    """The database cannot be written after a certain moment."""

    def forbid(saver: Saver) -> None:
        _pragma(saver, "query_only = 1")

    _accident(case, str(case.folder / "threads.sqlite"), forbid, sqlite3.Error)


TRIALS: dict[Trial, int] = {
    many_processes: 1,
    two_runs_at_once: 1,
    lost_connection: 1,
    full_disk: 1,
    read_only: 1,
}


def _pragma(saver: Saver, setting: str) -> None:
    assert isinstance(saver, SqliteSaver)
    with saver.lock:
        saver.conn.execute(f"PRAGMA {setting}")


def _accident(
    case: Case, address: str, happen: Callable[[Saver], None], error: type[Exception]
) -> None:
    """Check that the error reaches the caller, and that the thread continues afterwards."""
    fatal = case.random.randrange(3)
    steps = iter(range(100))

    def moment(saver: Saver) -> None:
        if next(steps) == fatal:
            happen(saver)

    variant, durability = case.random.choice(VARIANTS), case.random.choice(DURABILITIES)
    job = Job(variant, durability, address, case.folder, steps=3, moment=moment)
    try:
        with opened(address) as saver:
            job.run(saver, job.request)
    except error:
        pass
    else:  # the last writes may fit on a nearly full disk
        with opened(address) as saver:
            stored = job.graph(saver).get_state(job.config).values
        outcome = loop_in(stored).get("outcome")
        assert outcome == "finished", f"the error did not reach the caller ({job})"
    replace(job, moment=None).check_finish()
