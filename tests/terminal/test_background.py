"""Background tasks: their threads, their limit, and their end."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException

from graphs.coding_agent import build_coding_agent
from graphs.terminal.tools.background import BackgroundTasks
from graphs.terminal.tools.shell import LocalShell
from tests.lifeline import BEGIN, Lifeline
from tests.waiting import LONG, await_for, wait_for_file
from todo_tools import AutoContinue
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_from_user

pytestmark = pytest.mark.slow  # every test runs commands

ROOT = Path(__file__).parent.parent.parent
STOPS = AutoContinue(max_in_turn=0)


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[BackgroundTasks]:
    with BackgroundTasks(LocalShell(tmp_path)) as tasks:
        yield tasks


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[Lifeline]:
    lifeline = Lifeline(tmp_path)
    yield lifeline
    lifeline.close()


def id_in(started: str) -> str:
    return started.split()[3].rstrip(".")


class TestThreads:
    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_a_thread_sees_only_its_own_tasks(
        self, form: str, tasks: BackgroundTasks, tmp_path: Path
    ) -> None:
        """It cannot list the tasks of another thread or fetch their output."""

        async def use(thread: str, made: Any) -> str:
            model = ScriptedChatModel(script=[turn("", made), "Done."])
            agent = build_coding_agent(model, tmp_path, ask=False, tasks=tasks)
            config: Any = {"configurable": {"thread_id": thread}}
            begin: Any = {"messages": [("user", "Begin.")]}
            if form == "sync":
                final = agent.invoke(begin, config)
            else:
                final = await agent.ainvoke(begin, config)
            return str(final["messages"][-2].text)

        task_id = id_in(await use("one", call("run_in_background", command="pwd; sleep 600")))
        await await_for(lambda: str(tmp_path) in tasks.fetch(task_id, "one"), "the output")
        fetch, show = call("get_background_task", task_id=task_id), call("list_background_tasks")
        assert await use("two", show) == "No background tasks"
        assert "no background task" in await use("two", fetch)
        assert (await use("one", show)).startswith(f"{task_id} running: pwd")
        assert await use("one", fetch) == f"{tmp_path}\nstill running"


class TestTheLimit:
    def test_parallel_starts_do_not_exceed_it(self, tmp_path: Path) -> None:
        """Exactly as many tasks run as are allowed, and the others are refused."""
        together = threading.Barrier(8)

        def start(few: BackgroundTasks) -> str:
            together.wait()
            try:
                return few.start("sleep 600")
            except ToolException as refusal:
                return str(refusal)

        with (
            BackgroundTasks(LocalShell(tmp_path), max_running=3) as few,
            ThreadPoolExecutor(8) as threads,
        ):
            answers = list(threads.map(start, [few] * 8))
            assert len(few.show().splitlines()) == 3
        assert sum(answer.startswith("Started") for answer in answers) == 3
        assert sum("which is the limit" in answer for answer in answers) == 5


class TestTheirEnd:
    def test_they_continue_after_the_call(
        self, tasks: BackgroundTasks, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        """They also continue after the run that started them."""
        command = f"{BEGIN}; sleep 600"
        script: list[Any] = [turn("", call("run_in_background", command=command)), "Done."]
        agent = build_coding_agent(
            ScriptedChatModel(script=script), tmp_path, ask=False, tasks=tasks
        )
        agent.invoke({"messages": [("user", "Begin.")]})
        assert lifeline.begins()
        assert not lifeline.ends(within=0.3)
        tasks.close()
        assert lifeline.ends()

    def test_what_a_task_left_in_the_background_ends_with_it(
        self, tasks: BackgroundTasks, lifeline: Lifeline
    ) -> None:
        """This works even if the child has closed its output."""
        tasks.start(f"{BEGIN}; (sleep 600 >/dev/null 2>&1 &)")
        assert lifeline.begins()
        assert lifeline.ends()

    def test_nothing_waits_for_a_task_after_its_end(
        self, tasks: BackgroundTasks, tmp_path: Path
    ) -> None:
        """Not even if a process that has left its group holds its output open."""
        task = id_in(tasks.start("setsid sleep 30 & touch begun"))
        waiting = threading.Thread(target=tasks.fetch, args=(task,), kwargs={"wait": 600})
        waiting.start()
        wait_for_file(tmp_path / "begun")
        tasks.close()
        waiting.join(15)
        assert not waiting.is_alive()

    async def test_waiting_takes_no_thread(self, tasks: BackgroundTasks) -> None:
        """Many waits would leave none for what a run needs to end, for example after Ctrl-C."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(max_workers=1))
        task = id_in(tasks.start("sleep 600"))
        (get,) = (tool for tool in tasks.tools if tool.name == "get_background_task")
        waits = [asyncio.ensure_future(get.ainvoke({"task_id": task, "wait": 2})) for _ in "12"]
        await asyncio.sleep(0.2)
        await asyncio.to_thread(int)
        assert not any(wait.done() for wait in waits)
        for wait in waits:
            wait.cancel()
        assert await asyncio.gather(*waits, return_exceptions=True)
        assert all(wait.cancelled() for wait in waits)

    @pytest.mark.parametrize("wait", [0, LONG])
    async def test_it_is_fetched_after_the_time_or_at_its_end(
        self, wait: int, tasks: BackgroundTasks, tmp_path: Path
    ) -> None:
        task = id_in(tasks.start("echo one; until test -e go; do sleep 0.02; done"))
        fetched = asyncio.create_task(tasks.afetch(task, wait=wait))
        if wait:
            await asyncio.sleep(0.2)
            assert not fetched.done()
            (tmp_path / "go").touch()
        assert (await fetched).splitlines()[-1] == ("exit code 0" if wait else "still running")

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
    def test_they_end_with_the_program(self, name: str, lifeline: Lifeline, tmp_path: Path) -> None:
        """Whether it can handle the signal or not; `test_shell.py` has the other signals."""
        program = (
            "import signal; from pathlib import Path\n"
            "from graphs.terminal.tools.background import BackgroundTasks\n"
            "from graphs.terminal.tools.shell import LocalShell\n"
            "tasks = BackgroundTasks(LocalShell(Path('.')))\n"
            f"tasks.start({f'{BEGIN}; sleep 600'!r})\n"
            "signal.pause()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                assert lifeline.begins()
                process.send_signal(signal.Signals[name])
                assert process.wait(LONG) != 0
                assert lifeline.ends()
            finally:
                process.kill()


class TestTheEnd:
    """The agent is told when a task has ended."""

    def ran(self, tasks: BackgroundTasks, tmp_path: Path, script: Any) -> ScriptedChatModel:
        """Run the agent; it stops when it only talks."""
        model = ScriptedChatModel(script=script)
        agent = build_coding_agent(model, tmp_path, ask=False, tasks=tasks, policy=STOPS)
        agent.invoke({"messages": [("user", "Begin.")]})
        return model

    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_the_next_prompt_says_it_once(
        self, form: str, tasks: BackgroundTasks, tmp_path: Path
    ) -> None:
        """Each prompt begins with the one before."""
        task_id = id_in(tasks.start("exit 3"))
        assert tasks._tasks[task_id].run.wait(LONG)
        model = ScriptedChatModel(script=[turn("", call("list_todos")), "Done."])
        agent = build_coding_agent(model, tmp_path, ask=False, tasks=tasks)
        begin: Any = {"messages": [("user", "Begin.")]}
        final = agent.invoke(begin) if form == "sync" else await agent.ainvoke(begin)
        first, second = ([message.text for message in each] for each in model.prompts)
        said = f"Background task {task_id} has ended with exit code 3: exit 3"
        assert [text.partition("\n")[0] for text in first].count(said) == 1
        assert second[: len(first)] == first
        assert [text.partition("\n")[0] for text in second].count(said) == 1
        assert [message.type for message in final["messages"]] == [
            *("human", "human", "ai", "tool", "ai"),
        ]
        assert not is_from_user(final["messages"][1])

    def test_what_the_agent_has_fetched_is_not_said(
        self, tasks: BackgroundTasks, tmp_path: Path
    ) -> None:
        """A branch from before is told what its history lacks, also after a fetch elsewhere."""

        release = tmp_path / "release"
        command = f"until [ -e {release} ]; do sleep 0.01; done"

        def rule(prompt: list[BaseMessage]) -> Any:
            match prompt[-1]:
                case ToolMessage(name="run_in_background") as started:
                    release.touch()
                    task_id = id_in(started.text)
                    return turn("", call("get_background_task", task_id=task_id, wait=LONG))
                case ToolMessage():
                    return "Done."
                case _:
                    return turn("", call("run_in_background", command=command))

        prompts = self.ran(tasks, tmp_path, rule).prompts
        assert prompts[-1][-1].text.endswith("exit code 0")
        assert not [each for each in prompts[-1] if "has ended" in each.text]
        assert "has ended" in self.ran(tasks, tmp_path, ["Done."]).prompts[0][-1].text
        assert "has ended" in self.ran(tasks, tmp_path, ["Done."]).prompts[0][-1].text

    @pytest.mark.parametrize("is_fetched", [False, True])
    def test_a_task_that_ended_with_an_earlier_program_is_said_to_be_gone(
        self, tasks: BackgroundTasks, tmp_path: Path, is_fetched: bool
    ) -> None:
        """Once, and not if the agent had fetched its result."""

        def rule(prompt: list[BaseMessage]) -> Any:
            if prompt[-1].type == "human":
                return turn("", call("run_in_background", command="sleep 0.2"))
            if is_fetched and prompt[-1].text.startswith("Started"):
                task_id = id_in(prompt[-1].text)
                return turn("", call("get_background_task", task_id=task_id, wait=LONG))
            return "Done."

        with BackgroundTasks(LocalShell(tmp_path)) as earlier:
            model = ScriptedChatModel(script=rule)
            agent = build_coding_agent(model, tmp_path, ask=False, tasks=earlier, policy=STOPS)
            history = agent.invoke({"messages": [("user", "Begin.")]})["messages"]
        model = ScriptedChatModel(script=[turn("", call("list_todos")), "Done."])
        agent = build_coding_agent(model, tmp_path, tasks=tasks, policy=STOPS)
        agent.invoke({"messages": [*history, HumanMessage("Go on.")]})
        said = [message.text for message in model.prompts[-1] if "is gone" in message.text]
        assert len(said) == (not is_fetched)
