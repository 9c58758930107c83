"""Databases: two runs at once, a lost connection, a full disk."""

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psycopg
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver

from campaigns.agents import DURABILITIES, VARIANTS, Job, Saver, agent, check_replay, opened
from campaigns.cases import LONGEST_CASE, Case, Trial
from tests.support import edit, plan
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel

MIXED = {"DeltaTodoState"}
"""If a run begins in the middle of another one's step, LangGraph's `DeltaChannel` later reads the
writes of that step in both branches. So only what the runs themselves see is checked there."""


def two_runs_at_once(case: Case) -> None:
    """Two runs on one thread do not mix: each has the list of its own history."""
    address = case.random.choice([case.place.postgres, str(case.folder / "threads.sqlite")])
    variant, durability = case.random.choice(VARIANTS), case.random.choice(DURABILITIES)
    config: RunnableConfig = {"configurable": {"thread_id": str(case.folder)}}
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
        assert isinstance(saver, SqliteSaver)
        with saver.lock:  # SQLite raises it to the current number of pages
            saver.conn.execute("PRAGMA max_page_count = 1")

    _accident(case, str(case.folder / "threads.sqlite"), fill, sqlite3.Error)


TRIALS: tuple[Trial, ...] = (two_runs_at_once, lost_connection, full_disk)


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
        finished = stored.get("todo_outcome") == "finished"
        assert finished, f"the error did not reach the caller ({job})"
    replace(job, moment=None).check_finish()
