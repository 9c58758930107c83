"""Many processes work on one thread and share only a PostgreSQL database."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from tests.server import Server, serving
from tests.support import ROOT, items, outcome_of
from tests.waiting import LONG, wait_for_file
from tests.worker import graph_on

pytestmark = pytest.mark.slow

FORMS = pytest.mark.parametrize("form", ["sync", "async"])
WAIT = "touch waiting; until test -e go; do sleep 0.05; done; echo two >> log"
CHECKLIST = f"- [ ] One: `echo one >> log`\n- [ ] Two: `{WAIT}`\n- [ ] Three: `echo three >> log`"


class Shared(NamedTuple):
    """The thread, database and directory that the processes of a test share."""

    uri: str
    thread: str
    workdir: Path
    form: str

    def start(self, request: object) -> subprocess.Popen[str]:
        """Start a process that works on a request."""
        arguments = [self.form, self.uri, self.thread, str(self.workdir)]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.worker", *arguments],
            cwd=ROOT,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        process.stdin = None
        return process

    def run(self, request: object) -> dict[str, Any]:
        """Run a request in a new process, and return its answer."""
        return finished(self.start(request))

    @property
    def log(self) -> list[str]:
        return (self.workdir / "log").read_text(encoding="utf-8").split()


@pytest.fixture
def shared(postgres: str, request: pytest.FixtureRequest, tmp_path: Path, form: str) -> Shared:
    """Create a thread for each test."""
    return Shared(postgres, request.node.name, tmp_path, form)


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    answer, errors = process.communicate(timeout=LONG)
    assert process.returncode == 0, errors
    return dict(json.loads(answer))


@FORMS
def test_a_thread_passes_from_process_to_process(shared: Shared) -> None:
    """One process is killed during a run, a second edits the list, a third finishes it."""
    first = shared.start({"messages": [("user", CHECKLIST)]})
    wait_for_file(shared.workdir / "waiting")
    first.kill()
    first.communicate()
    (shared.workdir / "go").touch()

    todos = read_list(shared)
    assert [todo["status"] for todo in todos] == ["completed", "in_progress", "not_started"]
    edited = shared.run({"edit": [*todos, *items("Four: `echo four >> log`")]})
    assert len(edited["todos"]) == 4

    final = shared.run(None)
    assert [todo["status"] for todo in final["todos"]] == ["completed"] * 4
    assert final["outcome"] == "finished"
    assert final["loop"]["in_turn"] == 3
    assert shared.log.count("one") == shared.log.count("three") == shared.log.count("four") == 1

    again = shared.run({"messages": [("user", "- [ ] More")], "todos": []})
    assert again["todos"] == items("More", status="completed")


@FORMS
def test_an_edit_during_a_run_is_a_separate_branch(shared: Shared) -> None:
    """A checkpointer takes no lock: the run continues with its own list, and neither is lost."""
    run = shared.start({"messages": [("user", CHECKLIST)]})
    wait_for_file(shared.workdir / "waiting")
    shared.run({"edit": items("Something else")})
    (shared.workdir / "go").touch()
    final = finished(run)
    assert [todo["status"] for todo in final["todos"]] == ["completed"] * 3
    assert shared.log == ["one", "two", "three"]
    with PostgresSaver.from_conn_string(shared.uri) as saver:
        graph = graph_on(saver, shared.workdir)
        history = list(graph.get_state_history({"configurable": {"thread_id": shared.thread}}))
    assert history[0].values["todos"] == final["todos"]
    assert items("Something else") in [past.values.get("todos") for past in history]


def test_two_servers_share_one_thread(postgres: str, tmp_path: Path) -> None:
    """One server asks and the other gets the answer, and the other way round."""
    asking, answering = tmp_path / "asking", tmp_path / "answering"
    with (
        serving_on(postgres, asking) as first,
        serving_on(postgres, answering) as second,
    ):
        thread = str(uuid4())
        for server in (first, second):  # each server keeps its own record of threads
            server.client.threads.create(thread_id=thread, graph_id="ask")
        message: Any = {"role": "user", "content": "- [ ] a\n- [ ] b"}
        first.client.runs.wait(thread, "ask", input={"messages": [message]})

        state = second.state_of(thread)
        assert [todo["status"] for todo in state["values"]["todos"]] == ["completed", "in_progress"]
        second.client.threads.update_state(thread, {"todos": items("c", "d")})
        second.client.runs.wait(thread, "ask", input=None)
        for server in (second, first):  # after the first item it asks again
            server.client.runs.wait(thread, "ask", command={"resume": "yes"})

        values = second.values_of(thread)
        assert values["todos"] == items("c", "d", status="completed")
        assert outcome_of(values) == "finished"
        assert first.blocking_calls == second.blocking_calls == set()


@contextmanager
def serving_on(postgres: str, directory: Path) -> Iterator[Server]:
    directory.mkdir()
    config = {
        "dependencies": ["."],
        "graphs": {"ask": "./tests/served.py:ask"},
        "checkpointer": {"path": "./tests/served.py:saver"},
    }
    (directory / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
    with serving(directory, SHARED_POSTGRES=postgres) as server:
        yield server


def read_list(shared: Shared) -> list[dict[str, str]]:
    """The list in the database, as this process reads it."""
    with PostgresSaver.from_conn_string(shared.uri) as saver:
        graph = graph_on(saver, shared.workdir)
        values = graph.get_state({"configurable": {"thread_id": shared.thread}}).values
    return list(values["todos"])
