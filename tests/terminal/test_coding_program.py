"""The coding agent in the program, with a person at its terminal."""

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphs.terminal.approval import Answer, Approved, read_answer
from graphs.terminal.checklist import main
from graphs.terminal.question import call_rows
from tests.support import ROOT, write_checklist
from tests.waiting import LONG, has_ended, wait_for, wait_for_line
from todo_tools.testing import ScriptedChatModel, call, turn

pexpect: Any = importlib.import_module("pexpect")  # pexpect has no type stubs

QUESTION = "Do it\\? yes, no, always, or why not:\r\n> "


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in a new directory, because programs write to the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scripted(monkeypatch: pytest.MonkeyPatch, *turns: Any) -> None:
    model = ScriptedChatModel(script=turns)
    monkeypatch.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: model)


CODING = ("--agent", "coding", "--workdir", "work", "--create", "--thread", "t", "--grace", "0")


class TestProgram:
    @pytest.mark.slow
    def test_yes_approves_everything(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        assert (
            main(
                [write_checklist("One: `echo 1 >> log`", "Two: `echo 2 >> log`"), *CODING, "--yes"]
            )
            == 0
        )
        assert (tmp_path / "work" / "log").read_text() == "1\n2\n"
        shown = capsys.readouterr().out
        assert "→ Execute echo 1 >> log" in shown
        assert "  │ [Command succeeded with exit code 0]" in shown
        assert "✓ Done (2 items)" in shown

    def test_without_a_terminal_nothing_is_done(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """The model reads the reason."""
        assert main([write_checklist("One: `touch one`"), *CODING]) == 1
        assert list((tmp_path / "work").iterdir()) == []
        shown = capsys.readouterr().out
        assert "nobody could be asked: there is no terminal, and --yes was not given" in shown
        assert "Step [0] was not run; I abandon it." in shown

    @pytest.mark.slow
    def test_a_thread_remembers_its_agent(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The agent's name is not needed to resume it, and another name is refused."""
        assert main([write_checklist("One: `true`"), *CODING, "--yes"]) == 0
        assert main(["--thread", "t"]) == 0
        assert main(["--thread", "t", "--agent", "until_done"]) == 2
        assert "thread 't' belongs to --agent coding" in capsys.readouterr().err

    def test_an_unknown_agent_is_unusable_input(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main([write_checklist("One"), "--agent", "nobody"]) == 2
        assert "nobody" in capsys.readouterr().err

    @pytest.mark.slow
    def test_background_tasks_end_with_the_program(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        scripted(
            monkeypatch,
            turn("", call("write_todos", mode="replace", todos=["Serve"])),
            turn("", call("run_in_background", command="echo $$ > pid; exec sleep 600")),
            turn("", call("execute", command="until test -s pid; do sleep 0.05; done")),
            turn("", call("edit_todos", action="complete", indices=[0])),
            "Done.",
        )
        assert main([write_checklist("Serve"), *CODING, "--yes"]) == 0
        wait_for(lambda: has_ended(tmp_path / "work" / "pid"), "the task to end")


class TestAnswers:
    @pytest.mark.parametrize(
        "word",
        [
            "yes",
            "y",
            "ok",
            "okay",
            "sure",
            "yes please",
            "yep",
            "go",
            "do it",
            "YES",
            " Ok ",
            "yes.",
            "Do it!",
            "sure!!",
            "Yes  please.",
        ],
    )
    def test_every_form_of_yes_approves(self, word: str) -> None:
        answer = read_answer(word)
        assert answer == Answer(approved=True)
        assert answer.decision == {"type": "approve"}
        assert str(answer.line) == "approved"

    @pytest.mark.parametrize("word", ["no", "n", "nope", "stop", "No.", "STOP!"])
    def test_every_form_of_no_rejects(self, word: str) -> None:
        answer = read_answer(word)
        assert answer == Answer(approved=False)
        assert answer.decision == {"type": "reject"}
        assert str(answer.line) == "rejected"

    @pytest.mark.parametrize("word", ["a", "always", "Always!"])
    def test_always_approves_the_tool_until_the_program_ends(self, word: str) -> None:
        """A line says so and how to undo it; the program still asks about other tools."""
        answer = read_answer(word)
        assert answer == Answer(approved=True, always=True)
        approved = Approved()
        lines = [str(line) for line in approved.after(answer, "execute", "/ask asks again")]
        assert lines == [
            "approved",
            "execute is approved without asking until the program ends; /ask asks again",
        ]
        assert "execute" in approved
        assert "write_file" not in approved

    @pytest.mark.parametrize(
        "text", ["yes, but not there", "go away", "ok?", "use the other one.", "don't!"]
    )
    def test_anything_else_is_the_reason_for_a_rejection(self, text: str) -> None:
        answer = read_answer(f" {text} ")
        assert answer == Answer(approved=False, reason=text)
        assert answer.decision == {"type": "reject", "message": text}
        assert str(answer.line) == f"rejected: {text}"

    def test_an_empty_line_is_no_answer(self) -> None:
        assert read_answer(" \n") is None


class TestQuestion:
    def test_an_edit_is_shown_as_a_coloured_difference(self) -> None:
        """The unchanged lines are shown too, and no line is left out."""
        args = {"file_path": "a.py", "old_string": "a\nb\nc", "new_string": "a\nB\nc\n"}
        lines = list(call_rows({"name": "edit_file", "args": args}))
        assert [str(line) for line in lines[2:]] == [
            "    file_path: a.py",
            "      a",
            "    - b",
            "    + B",
            "      c",
            "    + ",
        ]
        colours = [line.body[0].token for line in lines[3:]]
        assert colours == ["dim", "error", "success", "dim", "success"]

    def test_a_command_is_shown_in_full_and_bright(self) -> None:
        command = "echo " + "x" * 5_000
        action = {"name": "execute", "args": {"command": command, "timeout": 5}}
        _, _, line, _ = call_rows(action)
        assert str(line) == f"    command: {command}"
        assert line.body[0].bold

    def test_an_edit_that_changes_nothing_says_so(self) -> None:
        args = {"file_path": "a", "old_string": "b", "new_string": "b"}
        lines = list(call_rows({"name": "edit_file", "args": args}))
        assert str(lines[-1]) == "    (the two texts are the same)"

    def test_a_person_sees_all_of_a_call(self) -> None:
        content = "\n".join(f"line {n}" for n in range(500))
        action = {"name": "write_file", "args": {"file_path": "a", "content": content}}
        shown = [str(line) for line in call_rows(action)]
        assert shown[:5] == [
            "",
            "? write_file",
            "    file_path: a",
            "    content: line 0",
            "    │ line 1",
        ]
        assert shown[-1] == "    │ line 499"

    def test_no_part_of_a_call_acts_on_the_terminal(self) -> None:
        """No command can hide itself or forge an answer."""
        action = {"name": "execute", "args": {"command": "rm -rf ~ \x1b[2K\rls\u202e"}}
        shown = [str(line) for line in call_rows(action)]
        assert shown[2] == "    command: rm -rf ~ ␛[2K␍ls<U+202E>"


@pytest.mark.slow
class TestTerminal:
    """Tests in a pseudo-terminal."""

    @pytest.fixture
    def started(self) -> Any:
        children: list[Any] = []

        def started(*argv: str) -> Any:
            child = pexpect.spawn(
                sys.executable,
                ["-m", "graphs", *argv],
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "PYTHONUTF8": "1",
                    "TERM": "dumb",
                    "COLUMNS": "200",
                    "LINES": "40",  # rich takes the width of a dumb terminal only with the height
                },
                encoding="utf-8",
                dimensions=(40, 200),  # so that no line is broken
                timeout=LONG,
            )
            children.append(child)
            return child

        yield started
        for child in children:
            child.close(force=True)

    def ended(self, child: Any) -> int:
        child.expect(pexpect.EOF)
        child.wait()
        return int(child.exitstatus)

    def test_a_byte_of_a_reason_that_is_not_utf_8_is_replaced(self, started: Any) -> None:
        """No model would take it."""
        child = started(write_checklist("One: `touch one`"), *CODING)
        child.expect(QUESTION)
        child.setecho(False)
        os.write(child.child_fd, b"no, use caf\xe9\n")
        child.expect_exact("rejected: no, use caf\ufffd")

    @pytest.mark.parametrize("keys", ["\4", "y\4", "y\3"])
    def test_a_line_without_enter_is_no_answer(
        self, keys: str, started: Any, tmp_path: Path
    ) -> None:
        """Ctrl-D and Ctrl-C leave the program."""
        child = started(write_checklist("One: `touch one`"), *CODING)
        child.expect(QUESTION)
        child.send(keys)
        assert self.ended(child) == 130
        assert not list(tmp_path.rglob("one"))

    def test_yes_and_no_and_a_reason(self, started: Any, tmp_path: Path) -> None:
        """A step that was not allowed is abandoned, and the model reads the reason."""
        steps = write_checklist("One: `touch one`", "Two: `touch two`", "Three: `touch three`")
        child = started(steps, *CODING)
        child.expect_exact("? execute\r\n    command: touch one\r\n")
        child.expect(QUESTION)
        assert not (tmp_path / "work" / "one").exists()
        child.sendline("")  # not an answer
        child.expect(QUESTION)
        child.sendline("y")
        child.expect_exact("command: touch two")
        child.expect(QUESTION)
        child.sendline("no")
        child.expect_exact("rejected\r\n")
        child.expect_exact("command: touch three")
        child.expect(QUESTION)
        child.sendline("three is a crowd")
        child.expect_exact("rejected: three is a crowd")
        assert "with reason" not in child.before
        child.expect_exact("✓ 1 completed, ✗ 2 abandoned")
        assert self.ended(child) == 1
        assert [path.name for path in (tmp_path / "work").iterdir()] == ["one"]

    def test_what_was_typed_before_a_question_is_shown_is_not_an_answer(
        self, started: Any, tmp_path: Path
    ) -> None:
        """Two lines wait before the first question, and one more before the second."""
        steps = write_checklist("One: `touch one`", "Two: `touch two`", "Three: `touch three`")
        child = started(steps, *CODING)
        child.send("yes\nyes\n")
        child.expect_exact("command: touch one")
        child.expect(QUESTION)
        child.send("no\nyes\n")
        child.expect_exact("rejected\r\n")
        child.expect_exact("command: touch two")
        child.expect(QUESTION)
        child.send("show\nyes\n")  # it is shown again
        child.expect(QUESTION)
        child.send("not this one\n")
        child.expect_exact("rejected: not this one")
        child.expect(QUESTION)
        child.send("yes\n")
        assert self.ended(child) == 1
        assert [path.name for path in (tmp_path / "work").iterdir()] == ["three"]

    def test_always_approves_later_calls_of_a_tool(self, started: Any, tmp_path: Path) -> None:
        """The program shows how it understood the answer, and how to be asked again."""
        child = started(write_checklist("One: `touch one`", "Two: `touch two`"), *CODING)
        child.expect(QUESTION)
        child.sendline("always")
        child.expect_exact("approved\r\nexecute is approved without asking until the program ends")
        child.expect_exact("to be asked again, press Ctrl-C and resume")
        child.expect_exact("✓ Done (2 items)")
        assert "Do it?" not in child.before
        assert self.ended(child) == 0
        assert (tmp_path / "work" / "two").exists()

    @pytest.mark.parametrize("way", ["Ctrl-C", "Ctrl-D", "SIGTERM", "SIGKILL"])
    def test_a_question_is_asked_again_after_an_interruption(
        self, way: str, started: Any, tmp_path: Path
    ) -> None:
        """Nothing was done, and nothing is lost."""
        child = started(write_checklist("One: `echo one >> log`"), *CODING)
        child.expect(QUESTION)
        if way.startswith("Ctrl"):
            child.sendcontrol(way[-1].lower())
            child.expect_exact("--thread t")
        else:
            child.kill(getattr(signal, way))
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == (None if way == "SIGKILL" else 130)
        assert not (tmp_path / "work" / "log").exists()
        again = started("--thread", "t")
        again.expect_exact("command: echo one >> log")
        again.expect(QUESTION)
        again.sendline("yes")
        again.expect_exact("✓ Done (1 item)")
        assert self.ended(again) == 0
        assert (tmp_path / "work" / "log").read_text() == "one\n"

    def test_a_question_can_be_answered_by_resuming_with_yes(
        self, started: Any, tmp_path: Path
    ) -> None:
        """This needs no terminal."""
        child = started(write_checklist("One: `touch one`"), *CODING)
        child.expect(QUESTION)
        child.kill(signal.SIGKILL)
        child.expect(pexpect.EOF)
        child.wait()  # it closes the terminal before it releases the thread
        assert main(["--thread", "t", "--yes"]) == 0
        assert (tmp_path / "work" / "one").exists()


@pytest.mark.slow
class TestStopping:
    @pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM])
    def test_a_stopped_program_ends_its_running_command(
        self, way: signal.Signals, tmp_path: Path
    ) -> None:
        """Ctrl-C and SIGTERM have the same effect."""
        steps = write_checklist("Wait: `echo $$ > pid; exec sleep 600`")
        program = subprocess.Popen(
            [sys.executable, "-m", "graphs", steps, *CODING, "--yes"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        pid_file = tmp_path / "work" / "pid"
        wait_for_line(pid_file)
        program.send_signal(way)
        _, errors = program.communicate(timeout=LONG)
        assert program.returncode == 130
        assert "--thread t" in errors
        wait_for(lambda: has_ended(pid_file), "the command to end")
