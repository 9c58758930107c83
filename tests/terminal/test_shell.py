"""Commands: their environment, their output, and their end."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import psutil  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.coding_agent import build_coding_agent
from graphs.terminal.run_lines import messages_of
from graphs.terminal.tools.background import BackgroundTasks
from graphs.terminal.tools.guard import GUARD, Guard
from graphs.terminal.tools.output import Excerpt, Output, WholeOutput, both, saved_outputs
from graphs.terminal.tools.shell import LocalShell, _interrupt, _of_main_thread, shell_tool
from graphs.terminal.tools.workspace import Workspace
from graphs.until_done import build_graph
from tests.lifeline import BEGIN, Lifeline
from tests.waiting import LONG, wait_for
from todo_tools.rendering.lowlevel import Followed, advance
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

    @pytest.mark.parametrize("kind", [LocalShell, Workspace])
    def test_given_variables_are_added(self, kind: type[LocalShell], tmp_path: Path) -> None:
        """They take precedence over the program's own."""
        shell = kind(tmp_path, env={"TOKEN": "given", "LC_TIME": "given"})
        variables = environment_in(shell.execute("env").output)
        assert (variables["TOKEN"], variables["LC_TIME"]) == ("given", "given")
        assert variables["PATH"] == os.environ["PATH"]

    def test_the_guard_gets_no_variable_that_may_hold_a_key(self) -> None:
        guard = Guard()
        guard.start()
        assert guard._process is not None
        variables = psutil.Process(guard._process.pid).environ()
        guard.close()
        assert variables.keys() <= {"LD_LIBRARY_PATH"}

    def test_the_tool_accepts_variables_too(self, tmp_path: Path) -> None:
        tool = shell_tool(tmp_path, env={"TOKEN": "given"})
        answer = tool.invoke({"command": "echo $TOKEN$ANTHROPIC_API_KEY"})
        assert answer == "given\nexit code 0"

    def test_background_tasks_get_them_too(self, tmp_path: Path) -> None:
        """They get the variables from their shell."""
        shell = LocalShell(tmp_path, env={"TOKEN": "given"})
        run = shell.run("echo $TOKEN$ANTHROPIC_API_KEY").start()
        assert run.wait(LONG)
        assert run.response().output == "given"


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


_PLACE = re.compile(r"\n\[the whole output is in (.+) until the program ends\]")


def without_place(output: str) -> str:
    """An output that was cut, without the line that says where all of it is."""
    return _PLACE.sub("", output)


class TestLongOutput:
    """Both ends are kept, and a line between them says how much is missing."""

    COMMAND = "echo begun; head -c 300000 /dev/zero | tr '\\0' x; echo; echo failed; exit 3"

    def test_the_beginning_and_the_end_are_shown(self, tmp_path: Path) -> None:
        response = LocalShell(tmp_path, max_output_bytes=1_000).execute(self.COMMAND)
        first, note, last = without_place(response.output).split("\n", 1)[1].split("\n", 2)
        assert response.output.startswith("begun\nxxx")
        assert last.endswith("xxx\nfailed")
        missing = 300_000 - first.count("x") - last.count("x")
        assert note == f"[{missing:,} bytes are missing here]"
        assert 950 < len(response.output) <= 1_000
        assert response.truncated

    def test_shell_execute_and_background_tasks_show_the_same_output(self, tmp_path: Path) -> None:
        shown = without_place(shell_tool(tmp_path).invoke({"command": self.COMMAND}))
        assert shown.endswith("\nfailed\nexit code 3")
        output = shown.removesuffix("\nexit code 3")
        with BackgroundTasks(LocalShell(tmp_path)) as tasks:
            started = tasks.start(self.COMMAND)
            task_id = started.split()[3].rstrip(".")
            while (fetched := tasks.fetch(task_id)).endswith("still running"):
                time.sleep(0.01)
        assert without_place(fetched) == shown
        script: list[Any] = [turn("", call("execute", command=self.COMMAND)), "Done."]
        agent = build_coding_agent(ScriptedChatModel(script=script), tmp_path, ask=False)
        final = agent.invoke({"messages": [("user", "Begin.")]})
        executed = without_place(final["messages"][-2].text)
        assert executed.startswith(f"{output}\n[Command failed with exit code 3]")

    def test_neither_stream_displaces_the_other(self, tmp_path: Path) -> None:
        """The last lines of both are shown."""
        many = "for n in $(seq 3000); do echo line $n; done"
        response = LocalShell(tmp_path, max_output_bytes=2_000).execute(
            f"{many}; {{ {many}; }} >&2"
        )
        out, _, err = response.output.partition("\n[stderr] ")
        assert out.startswith("line 1\nline 2\n")
        assert out.endswith("\nline 3000")
        assert err.startswith("line 1\n[stderr] line 2\n")
        assert without_place(err).endswith("\n[stderr] line 3000")
        assert len(response.output) <= 2_000
        assert response.output.count("bytes are missing here") == 2

    def test_a_short_stream_leaves_its_space_to_the_other(self, tmp_path: Path) -> None:
        command = "head -c 950 /dev/zero | tr '\\0' x; echo failed >&2"
        response = LocalShell(tmp_path, max_output_bytes=1_000).execute(command)
        assert response.output == "x" * 950 + "\n[stderr] failed"
        assert not response.truncated

    def test_a_cut_breaks_no_utf_8_character(self, tmp_path: Path) -> None:
        """This holds for a cut at any place."""
        for limit in range(200, 208):
            shell = LocalShell(tmp_path, max_output_bytes=limit)
            output = shell.execute("for n in $(seq 300); do printf '€'; done").output
            assert set(without_place(output)) <= set("€\n[0123456789, bytes are missing here]")

    def test_all_of_it_is_in_a_file_that_the_agent_can_read(self, tmp_path: Path) -> None:
        """Both streams are in it, in order; the folder can be read by the user alone."""
        command = "seq 3000; sleep 0.1; echo failed >&2; sleep 0.1; seq 3001 6000"
        response = LocalShell(tmp_path, max_output_bytes=1_000).execute(command)
        place = Path(_PLACE.findall(response.output)[0])
        lines = [*map(str, range(1, 3001)), "failed", *map(str, range(3001, 6001))]
        assert place.read_text(encoding="utf-8").splitlines() == lines
        assert place.parent.stat().st_mode & 0o077 == 0
        read = Workspace(tmp_path).read(str(place), offset=2999, limit=3)
        assert read.file_data
        assert read.file_data["content"] == "3000\nfailed\n3001\n"

    def test_a_link_in_the_folder_of_outputs_leads_nowhere(self, tmp_path: Path) -> None:
        """Otherwise a command could make other files readable to the file tools."""
        secret, link = tmp_path / "secret", saved_outputs() / "output-link.txt"
        secret.write_text("secret", encoding="utf-8")
        link.symlink_to(secret)
        read = Workspace(tmp_path / "work").read(str(link))
        assert read.error
        assert "secret" not in (read.file_data or {}).values()

    def test_a_running_command_has_a_file_too(self, tmp_path: Path) -> None:
        """It has all that was put out so far."""
        with LocalShell(tmp_path, max_output_bytes=200).run("seq 99; sleep 60") as run:
            run.start()
            wait_for(lambda: run.response().truncated, "a long output")
            place = Path(_PLACE.findall(run.response().output)[0])
            assert place.read_text(encoding="utf-8").endswith("99\n")

    def test_a_short_output_has_no_file(self, tmp_path: Path) -> None:
        files = set(saved_outputs().iterdir())
        assert LocalShell(tmp_path).execute("seq 99").output.endswith("99")
        assert set(saved_outputs().iterdir()) == files

    def test_the_file_has_a_limit_and_the_note_says_so(self) -> None:
        whole = WholeOutput(4, max_saved=10)
        for _ in range(4):
            whole.add(b"abc")
        (place,) = re.findall(r"\[the beginning of the output is in (.+) until", whole.note())
        assert Path(place).read_bytes() == b"abcabcabca"

    def test_without_room_on_the_disk_there_is_no_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The result is cut as before."""
        monkeypatch.setattr(tempfile, "mkstemp", MagicMock(side_effect=OSError("disk full")))
        response = LocalShell(tmp_path, max_output_bytes=1_000).execute(self.COMMAND)
        assert response.truncated
        assert "until the program ends" not in response.output

    @given(st.binary(max_size=400), st.binary(max_size=400), st.integers(60, 900))
    def test_the_limit_holds_for_any_output(self, out: bytes, err: bytes, limit: int) -> None:
        """Output that fits is shown whole."""
        text, cut = both(Excerpt(out), Excerpt(err), limit)
        assert len(text) <= limit
        whole, _ = both(Excerpt(out), Excerpt(err), 100_000)
        assert cut == (text != whole)


class TestTheEndOfACommand:
    def test_its_background_processes_end_with_it(self, lifeline: Lifeline, tmp_path: Path) -> None:
        """This holds even if their output is closed, so that the command looks finished."""
        command = f"{BEGIN}; (sleep 600 >/dev/null 2>&1 &); echo done"
        response = LocalShell(tmp_path).execute(command)
        assert (response.output, response.exit_code) == ("done", 0)
        assert lifeline.begins()
        assert lifeline.ends()

    async def test_its_background_processes_end_when_it_is_awaited(
        self, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        await LocalShell(tmp_path).aexecute(f"{BEGIN}; (sleep 600 >/dev/null 2>&1 &)")
        assert lifeline.begins()
        assert lifeline.ends()

    @pytest.mark.slow
    async def test_a_detached_child_does_not_hold_up_a_cancellation(self, tmp_path: Path) -> None:
        """The child keeps running, because it cannot be found, but nobody waits for its output."""
        with detached(tmp_path) as command:
            lifeline = Lifeline(tmp_path)
            run = asyncio.create_task(LocalShell(tmp_path).aexecute(command))
            assert await asyncio.to_thread(lifeline.begins)
            before = time.monotonic()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            await asyncio.get_running_loop().shutdown_default_executor()
            assert time.monotonic() - before < LONG
            lifeline.close()


@contextmanager
def detached(folder: Path) -> Iterator[str]:
    """A command whose child is in a new session; the child ends with the test."""
    yield f"setsid sh -c 'echo $$ > pid; {BEGIN}; exec sleep 600' & wait"
    with suppress(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), signal.SIGKILL)


PROGRAM = """
import asyncio, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored
from pathlib import Path
from graphs.coding_agent import build_coding_agent
from todo_tools.rendering.lowlevel import Followed, advance
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
FORMS = pytest.mark.parametrize("form", ["sync", "async"])
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

    @FORMS
    @pytest.mark.parametrize("command", [IN_FRONT, BEHIND], ids=["in front", "in the background"])
    @pytest.mark.parametrize("name", ["SIGHUP", "SIGQUIT", "SIGTERM", "SIGKILL"])
    def test_a_signal_ends_commands_too(
        self, name: str, command: str, form: str, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        """This holds for signals that the program can handle and for SIGKILL."""
        with self.program(tmp_path, form, command) as program:
            assert lifeline.begins()
            program.send_signal(signal.Signals[name])
            program.wait(LONG)
            assert lifeline.ends()

    @FORMS
    @pytest.mark.parametrize(
        "commands", [[IN_FRONT], [IN_FRONT, "sleep 600"]], ids=["one", "two at a time"]
    )
    def test_ctrl_c_ends_commands_and_the_program_at_once(
        self, commands: list[str], form: str, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        """This holds even if the program waits for them in a thread."""
        with self.program(tmp_path, form, *commands) as program:
            assert lifeline.begins()
            program.send_signal(signal.SIGINT)
            assert lifeline.ends()
            assert program.wait(LONG) != 0

    @FORMS
    def test_ctrl_c_does_not_wait_for_a_detached_child(
        self, form: str, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        with (
            detached(tmp_path) as command,
            self.program(tmp_path, form, command) as program,
        ):
            assert lifeline.begins()
            program.send_signal(signal.SIGINT)
            assert program.wait(LONG) != 0

    @pytest.mark.parametrize(
        "meanwhile",
        [
            "os.fork() or signal.pause()",
            "GUARD._process.kill(); GUARD._process.wait(); shell.execute('true')",
        ],
        ids=["a fork of the program lives on", "the guard was killed and started again"],
    )
    def test_the_guard_is_reliable(
        self, meanwhile: str, lifeline: Lifeline, tmp_path: Path
    ) -> None:
        """It kills its groups after the program that started it was killed."""
        program = (
            "import os, signal; from pathlib import Path\n"
            "from graphs.terminal.tools.guard import GUARD\n"
            "from graphs.terminal.tools.shell import LocalShell\n"
            "shell = LocalShell(Path('.'))\n"
            f"run = shell.run({IN_FRONT!r}).start()\n"
            f"{meanwhile}\n"
            "print('ready', flush=True)\n"
            "signal.pause()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            assert lifeline.begins()
            process.kill()
            assert lifeline.ends()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the fork


def test_an_earlier_ctrl_c_ends_no_command(tmp_path: Path) -> None:
    """A program may run an agent while it handles a KeyboardInterrupt."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert LocalShell(tmp_path).execute("sleep 0.5; echo done").output == "done"


LOOKING = """
import gc, threading, time
from graphs.terminal.tools.shell import _earlier_interrupt, _interrupt

def start():
    while True:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()

class Garbage:
    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0)  # lets other threads run

threading.Thread(target=start, daemon=True).start()
gc.set_threshold(1)
for _ in range(300):
    Garbage()
    _interrupt(), _earlier_interrupt()
"""


@pytest.mark.slow
def test_a_look_for_ctrl_c_never_hangs() -> None:
    """Not even if Python collects garbage at that moment and another thread starts."""
    subprocess.run([sys.executable, "-c", LOOKING], cwd=ROOT, check=True, timeout=LONG)


def main_thread_waits() -> bool:
    """Whether it waits for threads that it has started."""
    frame = _of_main_thread(sys._current_frames)
    names = {each.f_code.co_name for each, _ in traceback.walk_stack(frame)}
    return "wait" in names and names.isdisjoint({"start", "submit"})


@pytest.fixture
def is_interrupted() -> Iterator[Callable[[], bool]]:
    """A function that wakes the main thread and tells whether it handles a Ctrl-C.

    Python does not notice a signal that comes in the moment before its main thread begins to wait.
    """

    def look() -> bool:
        os.kill(os.getpid(), signal.SIGUSR1)
        return _interrupt() is not None

    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    yield look
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("count", [1, 2])
def test_ctrl_c_ends_a_command_that_has_just_begun(
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_interrupted: Callable[[], bool],
) -> None:
    """The main thread may handle it before the thread of the command looks for it."""
    finish, answers = LocalShell._finish, list[str]()
    keys = iter([signal.SIGINT])  # only one of the threads presses them

    def late(*args: Any) -> Any:
        for key in keys:
            wait_for(main_thread_waits, "the main thread to wait for its tools")
            os.kill(os.getpid(), key)
        wait_for(is_interrupted, "Ctrl-C")
        response = finish(*args)
        answers.append(response.output)
        return response

    monkeypatch.setattr(LocalShell, "_finish", late)
    calls = [call("execute", command="sleep 600") for _ in range(count)]
    agent = build_coding_agent(ScriptedChatModel(script=[turn("", *calls)]), tmp_path, ask=False)
    with pytest.raises(KeyboardInterrupt):
        agent.invoke({"messages": [("user", "Begin.")]})
    assert set(answers) == {"[Interrupted]"}


def test_an_agent_can_run_while_the_program_handles_ctrl_c(tmp_path: Path) -> None:
    """Its commands are not ended, in a thread of their own."""
    calls = [call("execute", command="sleep 0.5; echo done") for _ in range(2)]
    script: list[Any] = [turn("", *calls), "Ok."]
    agent = build_coding_agent(ScriptedChatModel(script=script), tmp_path, ask=False)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        final = agent.invoke({"messages": [("user", "Begin.")]})
    assert final["messages"][-2].text.startswith("done")


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
            followed = advance(followed, chunk)
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
        with open_pipe("é" * 5_000) as stream:
            while output.read(stream):
                pass
        new = output.take_new()
        assert 900 < len(new) <= 2_000
        assert new.endswith("éé")
        assert output.take_new() == ""


@contextmanager
def open_pipe(text: str) -> Iterator[Any]:
    """A stream that contains a text."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        yield stream
