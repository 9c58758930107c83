"""The coding agent on LangGraph's server: its approvals, its directories, its token."""

import asyncio
import importlib
import re
import shutil
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk.errors import ConflictError

from tests.openai_api import model_server
from tests.server import ROOT, Server, serving, statuses, user
from tests.waiting import LONG, has_ended, wait_for, wait_for_line

pytestmark = pytest.mark.slow

APPROVE: Any = {"resume": {"decisions": [{"type": "approve"}]}}
REJECT: Any = {"resume": {"decisions": [{"type": "reject"}]}}
TOKEN = "open sesame"
CONFIG = "langgraph-coding.json"


def copy_configuration(directory: Path) -> Path:
    """Copy what serves the coding agent, and make a directory for its threads."""
    shutil.copy(ROOT / CONFIG, directory)
    (directory / "work").mkdir()
    return directory / "work"


@pytest.fixture(scope="module")
def coding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the coding agent; it must report no blocking call."""
    directory = tmp_path_factory.mktemp("coding")
    work = copy_configuration(directory)
    with serving(directory, config=CONFIG, TODO_TOKEN=TOKEN, TODO_WORKDIR=str(work)) as server:
        yield server
    assert server.blocking_calls == set()


@contextmanager
def serving_model(
    directory: Path, *commands: str, tool: str = "execute"
) -> Generator[Server, None, None]:
    """A server with the coding agent, whose model runs these commands."""
    work = copy_configuration(directory)
    variables = {"TODO_TOKEN": TOKEN, "TODO_WORKDIR": str(work), "TODO_MODEL": "openai:local"}
    with (
        model_server(commands, tool) as model,
        serving(directory, config=CONFIG, **variables, **model) as server,
    ):
        yield server


def work_of(server: Server, thread: str) -> Path:
    return server.directory / "work" / thread


def questions(server: Server, thread: str) -> list[str]:
    """The commands that wait for a person."""
    tasks = server.state_of(thread)["tasks"]
    asked = [each["value"] for task in tasks for each in task["interrupts"]]
    return [action["args"]["command"] for each in asked for action in each["action_requests"]]


def test_a_command_waits_for_a_person_and_runs_in_the_directory_of_its_thread(
    coding: Server,
) -> None:
    client, work = coding.client, coding.directory / "work"
    threads = [coding.new_thread() for _ in range(2)]
    for thread in threads:
        message = user("- [ ] Here: `pwd > here`")
        client.runs.wait(thread, "coding_agent", input=message)
        assert coding.status_of(thread) == "interrupted"
    assert list(work.rglob("here")) == []
    for thread in threads:
        client.runs.wait(thread, "coding_agent", command=APPROVE)
        assert statuses(coding.values_of(thread)["todos"]) == ["completed"]
        assert (work / thread / "here").read_text() == f"{work / thread}\n"


class TestApproval:
    """Nothing that a client writes takes the place of an approval."""

    def test_an_answer_that_is_sent_twice_answers_one_question(self, coding: Server) -> None:
        """As by a double click; the next question is one that nobody has seen."""
        client, thread = coding.client, coding.new_thread()
        steps = user("- [ ] One: `sleep 1; echo one >> log`\n- [ ] Two: `echo two >> log`")
        client.runs.wait(thread, "coding_agent", input=steps)
        client.runs.create(thread, "coding_agent", command=APPROVE)
        with pytest.raises(ConflictError):
            client.runs.create(thread, "coding_agent", command=APPROVE)
        wait_for(lambda: questions(coding, thread) == ["echo two >> log"], "the next question")
        assert (work_of(coding, thread) / "log").read_text() == "one\n"

    def test_an_answer_of_the_event_protocol_must_name_its_question(self, coding: Server) -> None:
        """LangGraph queues such answers, so a second one would reach a question nobody saw."""
        client, thread = coding.client, coding.new_thread()
        steps = user("- [ ] One: `echo one >> log`\n- [ ] Two: `echo two >> log`")
        client.runs.wait(thread, "coding_agent", input=steps)
        start = {"assistant_id": "coding_agent", "input": APPROVE["resume"]}
        for refused in told_by_http(coding, thread, *2 * [("run.start", start)]):
            assert "answers need 'input.respond'" in refused["message"]
        assert questions(coding, thread) == ["echo one >> log"]

        ((asked,),) = (task["interrupts"] for task in coding.state_of(thread)["tasks"])
        respond = {"interrupt_id": asked["id"], "response": APPROVE["resume"]}
        told_by_http(coding, thread, *2 * [("input.respond", respond)])
        wait_for(lambda: questions(coding, thread) == ["echo two >> log"], "the next question")
        assert (work_of(coding, thread) / "log").read_text() == "one\n"

    def test_an_answer_brings_no_call_to_the_tools(self, coding: Server) -> None:
        """It may update the state, but start no node."""
        client, thread = coding.client, coding.new_thread()
        client.runs.wait(thread, "coding_agent", input=user("- [ ] One: `touch one`"))
        ((asked,),) = (task["interrupts"] for task in coding.state_of(thread)["tasks"])
        made = {"name": "execute", "args": {"command": "touch made"}, "id": "1"}
        message = {"type": "ai", "content": "", "tool_calls": [made]}
        answer = {
            "interrupt_id": asked["id"],
            "response": REJECT["resume"],
            "update": {"messages": [message], "branch:to:tools": None},
        }
        (refused,) = told_by_http(coding, thread, ("input.respond", answer))
        assert "'branch:to:tools' is a channel of LangGraph itself" in refused["message"]
        assert questions(coding, thread) == ["touch one"]


def told_by_http(server: Server, thread: str, *sent: tuple[str, Any]) -> list[Any]:
    """Send methods of the event protocol with their parameters; returns the answers."""
    return [
        httpx.post(
            f"{server.url}/threads/{thread}/commands",
            json={"id": 1, "method": method, "params": params},
            headers={"X-Api-Key": TOKEN},
            timeout=LONG,
            trust_env=False,
        ).json()
        for method, params in sent
    ]


class TestDirectories:
    """They go when their threads go."""

    def started(self, coding: Server) -> str:
        """A thread with a file."""
        client, thread = coding.client, coding.new_thread()
        client.runs.wait(thread, "coding_agent", input=user("- [ ] One: `touch one`"))
        client.runs.wait(thread, "coding_agent", command=APPROVE)
        assert (work_of(coding, thread) / "one").exists()
        return thread

    def test_a_deleted_thread_leaves_none(self, coding: Server) -> None:
        thread = self.started(coding)
        coding.client.threads.delete(thread)
        assert not work_of(coding, thread).exists()

    def test_its_background_tasks_end(self, tmp_path: Path) -> None:
        command = "echo $$ > pid; exec sleep 600"
        with serving_model(tmp_path, command, tool="run_in_background") as server:
            thread, pid = server.new_thread(), tmp_path / "pid"
            server.client.runs.wait(thread, "coding_agent", input=user("Begin."))
            server.client.runs.wait(thread, "coding_agent", command=APPROVE)
            wait_for_line(work_of(server, thread) / "pid")
            shutil.copy(work_of(server, thread) / "pid", pid)
            assert not has_ended(pid)
            server.client.threads.delete(thread)
            wait_for(lambda: has_ended(pid), "the task to end")

    @pytest.mark.parametrize("step", ["Think", "One: `touch one`"])
    def test_a_stateless_run_leaves_none(self, step: str, coding: Server) -> None:
        """Its thread ends with it, even if it waits for a person."""
        before = set((coding.directory / "work").iterdir())
        coding.client.runs.wait(None, "coding_agent", input=user(f"- [ ] {step}"))
        wait_for(
            lambda: set((coding.directory / "work").iterdir()) == before, "the directory to go"
        )


class TestFactory:
    """What the server calls for each run, in the process of the tests."""

    @pytest.fixture
    def served(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
        """The module as the server imports it: once, with an environment."""
        monkeypatch.setenv("TODO_TOKEN", TOKEN)
        monkeypatch.setenv("TODO_WORKDIR", str(tmp_path))
        monkeypatch.delenv("TODO_MODEL", raising=False)
        for name in ("graphs.auth", "graphs.served_coding"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module("graphs.served_coding")

    async def agent_of(self, served: ModuleType, **configurable: object) -> Any:
        runtime = SimpleNamespace(access_context="threads.read")
        async with served.coding_agent({"configurable": configurable}, runtime) as agent:
            return agent

    async def test_a_thread_has_one_agent(self, served: ModuleType) -> None:
        """Its background tasks continue in its next run, and other threads do not see them."""
        threads = [str(uuid4()) for _ in range(2)]
        first, again, other = await asyncio.gather(
            *(self.agent_of(served, thread_id=thread) for thread in [threads[0], *threads])
        )
        assert first is again
        assert first is not other

    async def test_a_thread_cannot_name_a_directory_elsewhere(self, served: ModuleType) -> None:
        with pytest.raises(ValueError, match="badly formed"):
            await self.agent_of(served, thread_id="../elsewhere")


def test_without_the_token_nothing_can_be_read_or_run(coding: Server) -> None:
    answer = httpx.post(f"{coding.url}/threads/search", json={}, timeout=LONG, trust_env=False)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({}, "set TODO_TOKEN to serve it"),
        ({"TODO_TOKEN": TOKEN, "TODO_WORKDIR": "missing"}, "No such file or directory"),
    ],
)
def test_what_is_missing_is_an_error_at_start(
    variables: dict[str, str], reason: str, tmp_path: Path
) -> None:
    copy_configuration(tmp_path)
    with (
        pytest.raises(AssertionError, match=re.escape(reason)),
        serving(tmp_path, config=CONFIG, **variables),
    ):
        pass
