"""The settings that the programs remember for a thread, its files, and its database."""

import asyncio
import os
import shlex
import stat
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from graphs.terminal.chat import changed
from graphs.terminal.checklist import main
from graphs.terminal.claim import claimed
from graphs.terminal.commands import Model, Plain
from graphs.terminal.options import Parser
from graphs.terminal.request import dropped_steps
from graphs.terminal.session import Session, choose_session, open_saver
from graphs.terminal.thread_views import diff_lines
from tests.support import ROOT, edit, items, plan, result_of, write_checklist
from tests.terminal.repositories import repository
from tests.waiting import LONG
from todo_tools.testing import ScriptedChatModel, call, turn

LAZY = ["Hm."] * 99


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in a new directory, because programs write to the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parent of temporary directories."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def answering(monkeypatch: pytest.MonkeyPatch, *script: Any) -> list[str]:
    """Replace real models by scripted ones; returns the names of the created models."""
    made: list[str] = []

    def make(name: str) -> ScriptedChatModel:
        made.append(name)
        return ScriptedChatModel(script=script)

    monkeypatch.setattr("graphs.model.init_chat_model", make)
    return made


def session_of(*argv: str) -> Session:
    options = Parser("python -m graphs", "").read(argv)
    return asyncio.run(choose_session(options, InMemorySaver()))


def stored_todos(thread: str) -> object:
    with SqliteSaver.from_conn_string("todo-threads.sqlite") as saver:
        saved = saver.get_tuple({"configurable": {"thread_id": thread}})
    assert saved is not None
    return saved.checkpoint["channel_values"]["todos"]


class TestModel:
    def test_a_resumed_thread_uses_its_own_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = answering(monkeypatch, *LAZY)
        lazy = ["--thread", "t", "--grace", "0"]
        assert main([write_checklist("a"), *lazy, "--model", "some:model"]) == 1
        assert main(lazy) == 1
        assert made == ["some:model", "some:model"]

    def test_a_model_that_cannot_be_created_again_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The stand-in must not replace it: it would complete the other model's items undone."""
        lazy = ["--thread", "t", "--grace", "0"]
        with monkeypatch.context() as patched:
            answering(patched, *LAZY)
            assert main([write_checklist("a"), *lazy, "--model", "openai:m"]) == 1
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        capsys.readouterr()
        assert main(lazy) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: model 'openai:m': ")
        assert error.count("\n") == 1

    def test_the_stand_in_is_chosen_by_its_name(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        answering(monkeypatch, *LAZY)
        lazy = ["--thread", "t", "--grace", "0"]
        assert main([write_checklist("a"), *lazy, "--model", "some:model"]) == 1
        assert main([*lazy, "--model", "stand-in"]) == 0
        assert "model stand-in" in capsys.readouterr().out


class TestResumeCommand:
    @pytest.mark.parametrize("thread", ["t", "it's mine; rm *", "-x", "ж"])
    async def test_it_is_complete_and_quoted(
        self, thread: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A shell and the program read it as the same thread of the same database."""
        monkeypatch.setenv("TOKEN", "1")
        parser = Parser("python -m graphs", "")
        argv = [f"--thread={thread}", "--db", "my threads.sqlite", "--env", "TOKEN", "--grace", "0"]
        options = parser.parse_args(argv)
        session = await choose_session(options, InMemorySaver())
        words = shlex.split(session.resume_command)
        assert words[:3] == ["python", "-m", "graphs"]
        again = parser.parse_args(words[3:])
        kept = ("thread", "db", "env", "grace")
        assert [getattr(again, name) for name in kept] == [getattr(options, name) for name in kept]
        assert (again.agent, again.model) == (session.agent, session.model)
        assert session.workdir.leave() == ""

    async def test_it_names_all_settings(self, tmp_path: Path) -> None:
        """The thread may not have kept them; and a default in the environment may differ."""
        parser = Parser("python -m graphs chat", "")
        argv = ["--agent", "coding", "--model", "openai:x", "--ask-plan", "--checked"]
        argv += ["--workdir", str(tmp_path / "my work"), "--create", "--thread", "t"]
        session = await choose_session(parser.parse_args(argv), InMemorySaver())
        words = shlex.split(session.resume_command)
        again = await choose_session(parser.parse_args(words[4:]), InMemorySaver())
        assert again == session

    def test_an_unprintable_thread_is_refused(self, capsys: pytest.CaptureFixture[str]) -> None:
        """It could not be shown in a command."""
        assert main([write_checklist("a"), "--thread", "a\x1b[2J"]) == 2
        assert "must be printable" in capsys.readouterr().err


class TestFailedRun:
    """The last line of the output says how to resume, and the error is one line."""

    def run(self, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
        code = main([write_checklist("a"), "--thread", "t", "--model", "some:model"])
        shown = capsys.readouterr()
        (error,) = shown.err.splitlines()
        return code, shown.out.splitlines()[-1], error

    def test_a_model_that_does_not_answer_is_unusable_input(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def fail(_: object) -> str:
            raise OSError("no\nconnection")

        model = ScriptedChatModel(script=fail)
        monkeypatch.setattr("graphs.model.init_chat_model", lambda _: model)
        code, resume, error = self.run(capsys)
        assert code == 2
        assert resume.startswith("stopped; resume with: python -m graphs --db todo-threads.sqlite")
        assert error == "error: model 'some:model': no connection"

    def test_an_answer_that_cannot_be_stored_leaves_the_list_incomplete(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The error has its type: a mistake in the program comes out here, too."""
        answering(monkeypatch, turn("", call("shell", command="true", extra=2**70)))
        code, resume, error = self.run(capsys)
        assert code == 1
        assert resume.endswith(" --model some:model")
        assert error.startswith("error: TypeError: ")


class TestNewestThread:
    def test_continue_resumes_the_thread_that_was_used_last(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It has the settings of that thread; an error says if there is none."""
        assert main(["-c"]) == 2
        assert "--continue: there is no thread in todo-threads.sqlite" in capsys.readouterr().err
        answering(monkeypatch, *LAZY)
        plan = write_checklist("One")
        for thread in ("first", "second"):
            assert main([plan, "--thread", thread, "--model", "lazy", "--grace", "0"]) == 1
        capsys.readouterr()
        assert main(["--continue", "--grace", "0"]) == 1
        assert "thread second in todo-threads.sqlite, agent until_done, model lazy" in (
            capsys.readouterr().out
        )


class TestOptions:
    def test_options_of_the_environment_come_before_the_command_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """So the command line wins."""
        monkeypatch.setenv("TODO_OPTIONS", "--db 'my threads' --thread a --grace 0")
        assert main([write_checklist("One"), "--thread", "b"]) == 0
        assert "thread b in my threads" in capsys.readouterr().out

    def test_options_that_cannot_be_read_are_an_error_of_one_line(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("TODO_OPTIONS", "--db 'my threads")
        assert main([write_checklist("One")]) == 2
        assert "error: $TODO_OPTIONS cannot be read: No closing quotation" in (
            capsys.readouterr().err
        )


class TestEnvironment:
    @pytest.mark.slow
    @pytest.mark.parametrize("agent", ["until_done", "coding"])
    def test_commands_get_the_variables_that_are_named(
        self, agent: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """They get no other variables."""
        monkeypatch.setenv("FIRST", "1")
        monkeypatch.setenv("SECOND", "2")
        monkeypatch.setenv("THIRD", "3")
        steps = write_checklist('Show: `echo "$FIRST-$SECOND-$THIRD" | tee shown`')
        argv = ["--env", "FIRST", "--env", "SECOND", "--agent", agent, "--yes"]
        assert main([steps, *argv, "--workdir", "."]) == 0
        assert Path("shown").read_text() == "1-2-\n"

    def test_a_variable_that_is_not_set_is_an_error(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("NOT_SET", raising=False)
        assert main([write_checklist("a"), "--env", "NOT_SET"]) == 2
        error = capsys.readouterr().err
        assert error == "error: --env NOT_SET: there is no such environment variable\n"


class TestWorkdir:
    def test_a_directory_that_does_not_exist_is_an_error(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A misspelt name creates no directory, unless the user asks for it."""
        assert main([write_checklist("a"), "--workdir", "wrok"]) == 2
        assert capsys.readouterr().err == (
            "error: --workdir wrok does not exist; --create makes it\n"
        )
        assert not Path("wrok").exists()
        assert main([write_checklist("a"), "--workdir", "wrok/below", "--create"]) == 0
        assert Path("wrok/below").is_dir()

    def test_a_threads_directory_that_is_gone_is_an_error(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([write_checklist("a"), "--workdir", "w", "--create", "--thread", "t"]) == 0
        Path("w").rmdir()
        assert main(["--thread", "t"]) == 2
        assert "w, does not exist; --create makes it again" in capsys.readouterr().err
        assert main(["--thread", "t", "--create"]) == 0
        assert Path("w").is_dir()

    def test_an_empty_temporary_directory_is_removed(self, temporary: Path) -> None:
        """The thread gets another one when it is resumed."""
        assert main([write_checklist("a"), "--thread", "t"]) == 0
        assert list(temporary.iterdir()) == []
        assert main(["--thread", "t"]) == 0
        assert list(temporary.iterdir()) == []

    @pytest.mark.slow
    def test_a_temporary_directory_with_files_is_named(
        self, temporary: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([write_checklist("Make: `touch made`")]) == 0
        (left,) = temporary.iterdir()
        assert [path.name for path in left.iterdir()] == ["made"]
        assert capsys.readouterr().out.endswith(f"files are left in {left}\n")

    @pytest.mark.usefixtures("temporary")
    @pytest.mark.parametrize("change", [Plain("clear"), Model("stand-in")])
    def test_an_empty_thread_or_another_model_keeps_a_temporary_directory(
        self, change: Plain | Model
    ) -> None:
        """So the chat names the files that are left in it when it ends."""
        options = Parser("python -m graphs chat", "").read([])
        first = asyncio.run(choose_session(options, InMemorySaver()))
        after = Namespace(**{**vars(options), **changed(first, change)})
        second = asyncio.run(choose_session(after, InMemorySaver()))
        assert second.workdir == first.workdir
        assert second.workdir.temporary

    def test_unusable_input_leaves_no_directory(self, temporary: Path) -> None:
        assert main(["--thread", "new"]) == 2
        assert list(temporary.iterdir()) == []


@pytest.mark.slow
class TestDiff:
    @pytest.fixture
    def work(self, tmp_path: Path) -> Path:
        return repository(tmp_path / "work", committed="one\n")

    @pytest.mark.parametrize(
        "name", ["core.fsmonitor", "diff.external", "diff.x.textconv", "diff.x.command"]
    )
    def test_it_runs_nothing_that_the_repository_names(self, name: str, work: Path) -> None:
        """The agent may have written the repository."""
        (work / "file").write_text("two\n")
        (work / ".git" / "info" / "attributes").write_text("file diff=x\n")
        subprocess.run(["git", "config", name, "touch ran; false"], cwd=work, check=True)
        assert session_of("--workdir", "work").diff().endswith("-one\n+two\n")
        assert not (work / "ran").exists()

    def test_it_ignores_a_repository_that_the_agent_made_of_plain_files(self, work: Path) -> None:
        """git would take a directory with such files for a bare repository."""
        subprocess.run(["git", "config", "core.worktree", str(work)], cwd=work, check=True)
        for path in (work / ".git").iterdir():
            path.rename(work / path.name)
        (work / ".git").rmdir()
        assert session_of("--workdir", "work").diff().startswith("fatal: ")

    def test_git_gets_the_variables_of_commands(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """So no program that it starts sees the keys."""
        monkeypatch.setattr("graphs.terminal.session._DIFF", "env")
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        assert "secret" not in session_of("--workdir", ".").diff()

    def test_it_starts_no_program_of_a_submodule(self, work: Path) -> None:
        """With `diff.submodule=diff`, git starts another git there."""
        inner = repository(work / "sub", committed="one\n")
        git = ["git", "-c", "user.name=a", "-c", "user.email=a", "-c", "protocol.file.allow=always"]
        for command in (["submodule", "add", "./sub"], ["commit", "-qm", "Add it"]):
            subprocess.run([*git, *command], cwd=work, check=True, capture_output=True)
        (inner / "file").write_text("two\n")
        subprocess.run([*git, "commit", "-qam", "Go on"], cwd=inner, check=True)
        for place, name, value in (
            (work, "diff.submodule", "diff"),
            (inner, "diff.external", "touch ran"),
        ):
            subprocess.run(["git", "config", name, value], cwd=place, check=True)
        assert "Subproject commit" in session_of("--workdir", "work").diff()
        assert not (inner / "ran").exists()

    def test_it_shows_what_is_staged(self, work: Path) -> None:
        """Otherwise `git add` would hide a change."""
        (work / "file").write_text("two\n")
        subprocess.run(["git", "add", "file"], cwd=work, check=True)
        assert session_of("--workdir", "work").diff().endswith("-one\n+two\n")

    def test_it_says_that_git_was_stopped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("graphs.terminal.session._DIFF", "kill $$")
        assert "exit code -15" in session_of("--workdir", ".").diff()

    def test_only_the_first_lines_of_a_long_one_are_drawn(self) -> None:
        """The chat waits for the drawing."""
        *lines, last = diff_lines("+x\n" * 3_000)
        assert len(lines) == 2_000
        assert "1,000 more lines; !git diff shows all" in str(last)

    @pytest.mark.usefixtures("work")
    def test_it_says_that_nothing_has_changed(self) -> None:
        assert session_of("--workdir", "work").diff() == "Nothing has changed."


class TestSteps:
    def test_each_step_is_a_todo_whatever_the_model_does(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A model that writes no list works on the list of the checklist."""
        answering(monkeypatch, edit("complete", 0), edit("complete", 1), "Done.")
        assert main([write_checklist("a", "b"), "--thread", "t", "--model", "some:model"]) == 0
        assert stored_todos("t") == items("a", "b", status="completed")

    def test_the_model_may_add_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        append = turn("", call("write_todos", mode="append", todos=["c"]))
        answering(monkeypatch, append, edit("complete", 0, 1, 2), "Done.")
        assert main([write_checklist("a", "b"), "--thread", "t", "--model", "some:model"]) == 0
        assert stored_todos("t") == items("a", "b", "c", status="completed")

    @pytest.mark.parametrize("agent", ["until_done", "coding", "notes"])
    def test_the_model_cannot_drop_a_step(
        self, agent: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It can abandon one, and then the person sees it at the end."""
        drop = edit("abandon", 0, 1)
        answering(monkeypatch, plan("c"), drop, "I stop.")
        argv = ["--agent", agent, "--thread", "t", "--model", "some:model"]
        assert main([write_checklist("a", "b"), *argv]) == 1
        assert stored_todos("t") == items("a", "b", status="abandoned")

    @pytest.mark.parametrize(("action", "code"), [("abandon", 1), ("complete", 0)])
    def test_a_step_that_left_the_list_counts_as_it_was(
        self,
        action: str,
        code: int,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """The model may leave out what is finished, and the person still sees what was not done."""
        answering(monkeypatch, edit(action, 0), plan("b"), edit("complete", 0), "Done.")
        argv = ["--thread", "t", "--model", "some:model"]
        assert main([write_checklist("a", "b"), *argv]) == code
        assert stored_todos("t") == items("b", status="completed")
        assert ("abandoned, and left out of the list: a" in capsys.readouterr().out) == bool(code)

    def test_of_two_equal_steps_each_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answering(monkeypatch, edit("abandon", 1), plan("a"), edit("complete", 0), "Done.")
        argv = ["--thread", "t", "--model", "some:model"]
        assert main([write_checklist("a", "a"), *argv]) == 1

    def test_what_a_person_leaves_out_is_not_missed(self) -> None:
        """They change the list of the thread in the chat, for example."""
        abandon = {"action": "abandon", "indices": [0]}
        given_up = [*items("a", status="abandoned"), *items("b")]
        results = [
            result_of("edit_todos", abandon, items("a", "b")),
            result_of("edit_todos", {"action": "start", "indices": [1]}, given_up),
        ]
        request = HumanMessage("- [ ] a\n- [ ] b")
        state: dict[str, Any] = {"messages": [request, *results], "todos": items("b")}
        assert dropped_steps(state) == []

    def test_a_step_that_comes_back_is_judged_as_it_ends(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        again = turn("", call("write_todos", mode="append", todos=["a"]))
        answering(monkeypatch, edit("abandon", 0), plan("b"), again, edit("complete", 0, 1), "Ok.")
        assert main([write_checklist("a", "b"), "--thread", "t", "--model", "some:model"]) == 0


def modes(*paths: Path) -> dict[str, int]:
    """Who may do what with files."""
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}


class TestFiles:
    async def test_only_the_user_can_read_a_new_database(self, tmp_path: Path) -> None:
        """The same holds for the files that SQLite puts next to it."""
        async with open_saver("new.sqlite") as saver, saver.conn.execute("create table a (b)"):
            names = [f"new.sqlite{end}" for end in ("", "-shm", "-wal")]
            found = modes(*map(tmp_path.joinpath, names))
        assert found == dict.fromkeys(names, 0o600)

    async def test_a_database_that_exists_keeps_its_mode(self, tmp_path: Path) -> None:
        """Its owner may share it."""
        shared = tmp_path / "shared.sqlite"
        os.close(os.open(shared, os.O_CREAT | os.O_WRONLY, 0o640))
        async with open_saver("shared.sqlite"):
            assert modes(shared) == {"shared.sqlite": 0o640}

    def test_only_the_user_can_read_the_locks(self) -> None:
        with claimed("new.sqlite", "t"):
            folder = Path("new.sqlite-locks")
            (lock,) = folder.iterdir()
            assert modes(folder, lock) == {folder.name: 0o700, lock.name: 0o600}


HOLD = """
import sys
from graphs.terminal.claim import claimed

with claimed("todo-threads.sqlite", "t"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
class TestTwoPrograms:
    @pytest.fixture
    def holder(self) -> Iterator[subprocess.Popen[str]]:
        """Another program with the thread `t` open."""
        with subprocess.Popen(
            [sys.executable, "-c", HOLD],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
            process.kill()

    @pytest.fixture
    def terminals(self) -> Iterator[list[Any]]:
        """The terminals that a test opens; they are closed afterwards."""
        opened = list[Any]()
        yield opened
        for terminal in opened:
            terminal.close(force=True)

    def test_the_second_program_on_a_thread_stops(
        self, holder: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Without a terminal nobody can be asked; other threads can be used."""
        assert main([write_checklist("a"), "--thread", "t"]) == 2
        assert capsys.readouterr().err == "error: thread 't' is open in another program\n"
        assert main([write_checklist("a"), "--thread", "other"]) == 0

    @pytest.mark.parametrize(
        ("answer", "code"), [("yes\n", 0), ("no\n", 2), ("\4", 2), ("\3", 130)]
    )
    def test_a_person_decides(
        self, answer: str, code: int, holder: subprocess.Popen[str], terminals: list[Any]
    ) -> None:
        """What was typed before the question is not the answer. Ctrl-D means no, Ctrl-C ends."""
        argv, environment = program(write_checklist("a"), "--thread", "t", "--grace", "0")
        terminal = pexpect.spawn(argv[0], argv[1:], env=environment, encoding="utf-8", timeout=LONG)
        terminals.append(terminal)
        terminal.send("no\n" if code == 0 else "yes\n")
        terminal.expect_exact("Thread 't' is open in another program. Use it here too? yes or no: ")
        terminal.send(answer)
        terminal.expect(pexpect.EOF)
        terminal.wait()
        assert terminal.exitstatus == code

    def test_a_thread_is_free_after_the_program_was_killed(
        self, holder: subprocess.Popen[str]
    ) -> None:
        holder.kill()
        holder.wait()
        assert main([write_checklist("a"), "--thread", "t"]) == 0


def program(*argv: str, **variables: str) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of the program."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return [sys.executable, "-m", "graphs", *argv], environment


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("-", "cannot read standard input: it is closed"),
        ("chat", "the chat needs a terminal for its input and output"),
    ],
)
def test_a_closed_standard_input_is_unusable(given: str, reason: str) -> None:
    """The error is one line, without a traceback."""
    argv, environment = program(given)
    closed = f"exec {shlex.join(argv)} <&-"
    ran = subprocess.run(
        ["/bin/sh", "-c", closed], env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (2, f"error: {reason}\n")


@pytest.mark.slow
class TestOutput:
    def test_a_pipe_that_is_closed_ends_the_program_quietly(self) -> None:
        """Its command waits until the pipe is closed."""
        wait = write_checklist("Wait: `until test -e closed; do sleep 0.05; done`")
        argv, environment = program(wait, "--workdir", ".")
        with subprocess.Popen(
            argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline().startswith("thread ")
            process.stdout.close()
            Path("closed").touch()
            assert process.stderr.read() == ""
        assert process.returncode == 141

    def test_an_output_that_is_not_utf_8_gets_ascii_signs(self) -> None:
        argv, environment = program(
            write_checklist("Say: `echo ja`", "Fail: `exit 1`"), PYTHONIOENCODING="ascii"
        )
        ran = subprocess.run(argv, env=environment, capture_output=True, check=False)
        assert ran.returncode == 1, ran.stderr
        shown = ran.stdout.decode("ascii")
        assert "  [x] [0] Say: `echo ja`" in shown
        assert "  | exit code 0" in shown
        assert "1 completed, 1 abandoned; stopped because: finished" in shown
        assert "\\u" not in shown
