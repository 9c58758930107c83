"""Commands: their environment, their output, and their end."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.coding_agent import build_coding_agent
from graphs.terminal.run_lines import messages_of
from graphs.terminal.tools.background import BackgroundTasks
from graphs.terminal.tools.guard import GUARD, Guard
from graphs.terminal.tools.output import Output
from graphs.terminal.tools.shell import LocalShell, shell_tool
from graphs.terminal.tools.workspace import Workspace
from graphs.until_done import build_graph
from tests.lifeline import BEGIN, Lifeline
from tests.waiting import LONG, wait_for_file
from todo_tools.rendering.lowlevel import Followed
from todo_tools.testing import ScriptedChatModel, call, turn

pytestmark = pytest.mark.slow  # every test runs commands

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[Lifeline]:
    lifeline = Lifeline(tmp_path)
    yield lifeline
    lifeline.close()


class TestEnvironment:
    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
        monkeypatch.setenv("BASH_ENV", "/dev/null")
        monkeypatch.setenv("LC_TIME", "C")
        monkeypatch.setenv("TMPDIR", "/tmp/elsewhere")

    @pytest.mark.parametrize("kind", [LocalShell, Workspace])
    def test_keys_of_the_program_do_not_reach_a_command(
        self, kind: type[LocalShell], tmp_path: Path
    ) -> None:
        """It gets only the variables for programs, the home directory and the language."""
        variables = environment_in(kind(tmp_path).execute("env").output)
        assert "ANTHROPIC_API_KEY" not in variables
        assert "BASH_ENV" not in variables
        assert variables["LC_TIME"] == "C"
        assert variables["TMPDIR"] == "/tmp/elsewhere"
        assert variables["PATH"] == os.environ["PATH"]
        assert variables["PWD"] == str(tmp_path)

    def test_the_guard_gets_no_variable_that_may_hold_a_key(self) -> None:
        guard = Guard()
        guard.start()
        assert guard._process is not None
        variables = psutil.Process(guard._process.pid).environ()
        guard.close()
        assert variables.keys() <= {"LD_LIBRARY_PATH"}


def environment_in(output: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in output.splitlines())


class TestWhichShell:
    def test_commands_are_run_by_bash(self, tmp_path: Path) -> None:
        """Models use bash's arrays and double brackets."""
        command = 'words=(a b); [[ ${words[1]} == b ]] && echo "${words[@]}"'
        assert LocalShell(tmp_path).execute(command).output == "a b"

    def test_without_bash_the_systems_shell_runs_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert LocalShell(tmp_path).execute("echo $0").output == "/bin/sh"


class TestLongOutput:
    """Both ends are kept, and a line between them says how much is missing."""

    COMMAND = "echo begun; head -c 300000 /dev/zero | tr '\\0' x; echo; echo failed; exit 3"

    def test_the_beginning_and_the_end_are_shown(self, tmp_path: Path) -> None:
        response = LocalShell(tmp_path, max_output_bytes=1_000).execute(self.COMMAND)
        first, note, last = response.output.split("\n", 1)[1].split("\n", 2)
        assert response.output.startswith("begun\nxxx")
        assert last.endswith("xxx\nfailed")
        missing = 300_000 - first.count("x") - last.count("x")
        assert note == f"[{missing:,} bytes are missing here]"
        assert 950 < len(response.output) <= 1_100
        assert response.truncated

    def test_shell_execute_and_background_tasks_show_the_same_output(self, tmp_path: Path) -> None:
        shown = shell_tool(tmp_path).invoke({"command": self.COMMAND})
        assert shown.endswith("\nfailed\nexit code 3")
        output = shown.removesuffix("\nexit code 3")
        with BackgroundTasks(LocalShell(tmp_path)) as tasks:
            started = tasks.start(self.COMMAND)
            task_id = started.split()[3].rstrip(".")
            while (fetched := tasks.fetch(task_id)).endswith("still running"):
                time.sleep(0.01)
        assert fetched == shown
        script: list[Any] = [turn("", call("execute", command=self.COMMAND)), "Done."]
        agent = build_coding_agent(ScriptedChatModel(script=script), tmp_path, ask=False)
        final = agent.invoke({"messages": [("user", "Begin.")]})
        executed = final["messages"][-2].text
        assert executed.startswith(f"{output}\n[Command failed with exit code 3]")

    def test_both_streams_are_in_one_output(self, tmp_path: Path) -> None:
        """In the order in which they came."""
        response = LocalShell(tmp_path).execute("echo one; echo two >&2; echo three")
        assert response.output == "one\ntwo\nthree"

    @given(st.lists(st.binary(max_size=50), max_size=9), st.integers(2, 300))
    def test_the_limit_holds_for_any_output(self, chunks: list[bytes], limit: int) -> None:
        """Output that fits is shown whole; otherwise the note says how many bytes are missing."""
        output, whole = Output(limit), b"".join(chunks)
        for chunk in chunks:
            output.add(chunk)
        assert output.missing == max(0, len(whole) - limit)
        if not output.missing:
            assert output.text() == whole.decode(errors="replace").rstrip("\n")
        else:
            assert f"\n[{output.missing:,} bytes are missing here]\n" in output.text()


class TestTheEndOfACommand:
    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_its_background_processes_end_with_it(
        self, form: str, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        """This holds even if their output is closed, so that the command looks finished."""
        command = f"{BEGIN}; (sleep 600 >/dev/null 2>&1 &); echo done"
        shell = LocalShell(tmp_path)
        response = shell.execute(command) if form == "sync" else await shell.aexecute(command)
        assert (response.output, response.exit_code) == ("done", 0)
        assert lifeline.begins()
        assert lifeline.ends()

    async def test_a_detached_child_does_not_hold_up_a_cancellation(
        self, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        """The child keeps running, because it cannot be found, but nobody waits for its output."""
        command = f"setsid sh -c 'echo $$ > pid; {BEGIN}; exec sleep 600' & wait"
        run = asyncio.create_task(LocalShell(tmp_path).aexecute(command))
        assert await asyncio.to_thread(lifeline.begins)
        before = time.monotonic()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await asyncio.get_running_loop().shutdown_default_executor()
        assert time.monotonic() - before < LONG
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


PROGRAM = """
import asyncio, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored
from pathlib import Path
from graphs.coding_agent import build_coding_agent
from todo_tools.testing import ScriptedChatModel, call, turn
form, *commands = sys.argv[1:]
script = [turn("", *(call("execute", command=command) for command in commands)), "Done."]
agent = build_coding_agent(ScriptedChatModel(script=script), Path("."), ask=False)
begin = {"messages": [("user", "Begin.")]}
if form == "sync":
    agent.invoke(begin)
else:
    asyncio.run(agent.ainvoke(begin))
"""
IN_FRONT = f"{BEGIN}; sleep 600"
BEHIND = f"{BEGIN}; (sleep 600 >/dev/null 2>&1 &); sleep 600"


@pytest.mark.slow
class TestTheEndOfTheProgram:
    @contextmanager
    def program(self, folder: Path, form: str, *commands: str) -> Iterator[subprocess.Popen[bytes]]:
        """A program that runs commands."""
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, form, *commands],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.DEVNULL,
        ) as program:
            try:
                yield program
            finally:
                program.kill()

    @pytest.mark.parametrize(
        ("name", "form", "command"),
        [
            ("SIGHUP", "sync", IN_FRONT),
            ("SIGQUIT", "async", IN_FRONT),
            ("SIGTERM", "sync", BEHIND),
            ("SIGTERM", "async", IN_FRONT),
            ("SIGKILL", "sync", IN_FRONT),
            ("SIGKILL", "async", BEHIND),
        ],
    )
    def test_a_signal_ends_commands_too(
        self, name: str, form: str, command: str, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        """This holds for signals that the program can handle and for SIGKILL."""
        with self.program(tmp_path, form, command) as program:
            assert lifeline.begins()
            program.send_signal(signal.Signals[name])
            program.wait(LONG)
            assert lifeline.ends()

    @pytest.mark.parametrize("form", ["sync", "async"])
    def test_ctrl_c_ends_commands_and_the_program_at_once(
        self, form: str, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        """This holds even if the program waits for two of them in threads."""
        with self.program(tmp_path, form, IN_FRONT, "touch second; sleep 600") as program:
            assert lifeline.begins()
            wait_for_file(tmp_path / "second")
            program.send_signal(signal.SIGINT)
            assert lifeline.ends()
            assert program.wait(LONG) != 0

    def test_a_guard_that_was_killed_is_started_again(
        self, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        """It kills its groups after the program that started it was killed."""
        program = (
            "import signal; from pathlib import Path\n"
            "from graphs.terminal.tools.guard import GUARD\n"
            "from graphs.terminal.tools.shell import LocalShell\n"
            "shell = LocalShell(Path('.'))\n"
            f"run = shell.run({IN_FRONT!r}).start()\n"
            "GUARD._process.kill(); GUARD._process.wait(); shell.execute('true')\n"
            "print('ready', flush=True)\n"
            "signal.pause()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            assert lifeline.begins()
            process.kill()
            assert lifeline.ends()


def test_an_earlier_ctrl_c_ends_no_command(tmp_path: Path) -> None:
    """A program may run an agent while it handles a KeyboardInterrupt."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert LocalShell(tmp_path).execute("sleep 0.5; echo done").output == "done"


def test_a_run_can_be_ended_while_the_guard_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Garbage collection may end it in a thread that the guard waits for."""
    remove, removing, free = GUARD.remove, threading.Event(), threading.Event()

    def busy(group: int) -> None:
        removing.set()
        free.wait(LONG)
        remove(group)

    monkeypatch.setattr(GUARD, "remove", busy)
    run = LocalShell(tmp_path).run("true").start()
    assert removing.wait(LONG)
    ending = threading.Thread(target=run.end, daemon=True)
    ending.start()
    ending.join(LONG)
    free.set()
    assert not ending.is_alive()


class TestWhileItRuns:
    @pytest.mark.parametrize("agent", ["until_done", "coding"])
    async def test_output_is_sent_to_the_custom_stream_as_it_arrives(
        self, agent: str, tmp_path: Path
    ) -> None:
        """The command waits until its first line was seen; stream and model get all of it."""
        command = "echo one; until test -e go; do sleep 0.05; done; echo two >&2"
        name = "execute" if agent == "coding" else "shell"
        model = ScriptedChatModel(script=[turn("", call(name, command=command)), "Done."])
        if agent == "coding":
            graph = build_coding_agent(model, tmp_path, ask=False)
        else:
            graph = build_graph(model, [shell_tool(tmp_path)]).compile()
        followed, seen = Followed(), ""
        request: Any = {"messages": [("user", "Begin.")]}
        modes: Any = ["updates", "custom"]
        stream: Any = graph.astream(request, stream_mode=modes)
        async for chunk in stream:
            followed = followed.after(chunk)
            if followed.outputs:
                seen = followed.outputs[0][1]
                (tmp_path / "go").touch()
            if chunk[0] != "updates":
                continue
            for message in messages_of(chunk[1]):
                if message.type == "tool":
                    assert "one" in message.text
                    assert "two" in message.text
        assert seen == "one\ntwo\n"

    def test_output_that_is_not_fetched_is_bounded(self) -> None:
        """Its end is kept."""
        output = Output(1_000_000)
        output.add("é".encode() * 5_000)
        new = output.take_new()
        assert 900 < len(new) <= 2_000
        assert new.endswith("éé")
        assert output.take_new() == ""
