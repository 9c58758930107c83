"""The coding agent in the program: the questions to a person, and the answers."""

import importlib
import os
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.types import Interrupt

from graphs.terminal.approval import Answer, Approval, question_lines, read_answer
from graphs.terminal.checklist import main
from tests.support import ROOT, write_checklist
from tests.waiting import LONG

pexpect: Any = importlib.import_module("pexpect")  # pexpect has no type stubs

CODING = ("--agent", "coding", "--workdir", "work", "--create", "--thread", "t", "--grace", "0")


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in a new directory, because programs write to the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestAnswers:
    @pytest.mark.parametrize(
        ("word", "answer"),
        [
            *((word, Answer(approved=True)) for word in ("yes", "Y", " ok. ", "Okay!")),
            *((word, Answer(approved=True, always=True)) for word in ("a", "Always!")),
            *((word, Answer(approved=False)) for word in ("no", "N.")),
            (" \n", None),
        ],
    )
    def test_a_word_approves_or_rejects(self, word: str, answer: Answer | None) -> None:
        assert read_answer(word) == answer

    @pytest.mark.parametrize("text", ["yes, but not there", "ok?", "don't!"])
    def test_anything_else_is_the_reason_for_a_rejection(self, text: str) -> None:
        answer = read_answer(f" {text} ")
        assert answer is not None
        assert answer.decision == {"type": "reject", "message": text}
        assert str(answer.line) == f"rejected: {text}"


class TestDecisions:
    WAITING = (
        Interrupt({"action_requests": [{"name": "a", "args": {}}]}, id="1"),
        Interrupt({"action_requests": [{"name": name, "args": {}} for name in "ab"]}, id="2"),
    )

    def test_each_call_is_decided_in_order(self) -> None:
        """One command resumes all questions."""
        approval = Approval().of(self.WAITING)
        for approved in (True, False, True):
            assert approval.next_call is not None
            approval = approval.decided(Answer(approved))
        assert approval.next_call is None
        assert approval.command.resume == {
            "1": {"decisions": [{"type": "approve"}]},
            "2": {"decisions": [{"type": "reject"}, {"type": "approve"}]},
        }

    def test_always_passes_later_calls_of_the_same_tool(self) -> None:
        """Also those of later questions."""
        approval = Approval().of(self.WAITING).decided(Answer(approved=True, always=True))
        assert approval.next_call == {"name": "b", "args": {}}
        assert approval.of(self.WAITING[:1]).next_call is None


class TestQuestion:
    def test_a_person_sees_all_of_a_call(self) -> None:
        content = "\n".join(f"line {n}" for n in range(500))
        call = {"name": "write_file", "args": {"file_path": "a", "content": content}}
        shown = [str(line) for line in question_lines(call)]
        assert shown[:4] == [
            "? write_file",
            "    file_path: a",
            "    content: line 0",
            "    │ line 1",
        ]
        assert shown[-2:] == ["    │ line 499", "write_file: yes, no, always, or your reason"]

    def test_an_edit_is_shown_as_a_difference(self) -> None:
        args = {"file_path": "a.py", "old_string": "a\nb", "new_string": "c"}
        lines = [str(line) for line in question_lines({"name": "edit_file", "args": args})]
        assert lines[1:-1] == ["    file_path: a.py", "    - a", "    - b", "    + c"]

    @given(name=st.text(), value=st.text())
    def test_no_part_of_a_call_can_forge_a_question(self, name: str, value: str) -> None:
        """All lines between the first and the question are indented, and none acts."""
        _, *lines, _ = question_lines({"name": "execute", "args": {name: value, "command": value}})
        assert all(str(line).startswith("    ") for line in lines)
        kinds = {unicodedata.category(each) for line in lines for each in str(line)}
        assert not kinds & {"Cc", "Cf", "Cs", "Zl", "Zp"}


class TestProgram:
    @pytest.mark.slow
    def test_yes_approves_everything(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        steps = write_checklist("One: `echo 1 >> log`", "Two: `echo 2 >> log`")
        assert main([steps, *CODING, "--yes"]) == 0
        assert (tmp_path / "work" / "log").read_text() == "1\n2\n"
        assert "→ execute echo 1 >> log" in capsys.readouterr().out

    def test_without_a_terminal_nothing_is_done(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """The model reads the reason."""
        assert main([write_checklist("One: `touch one`"), *CODING]) == 1
        assert list((tmp_path / "work").iterdir()) == []
        shown = capsys.readouterr().out
        assert "nobody could be asked: there is no terminal, and --yes was not given" in shown

    def test_a_thread_remembers_its_agent(self, capsys: pytest.CaptureFixture[str]) -> None:
        """So a resumed thread asks, too; another agent is refused."""
        assert main([write_checklist("One: `touch one`"), *CODING]) == 1
        assert main(["--thread", "t", "--agent", "until_done"]) == 2
        assert "thread 't' belongs to --agent coding" in capsys.readouterr().err


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
                env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb"},
                encoding="utf-8",
                dimensions=(40, 200),  # so that no line is broken
                timeout=LONG,
            )
            children.append(child)
            return child

        yield started
        for child in children:
            child.close(force=True)

    def answer(self, child: Any, text: str) -> None:
        child.expect_exact("yes, no, always, or your reason")
        child.expect_exact("> ")
        child.send(text)

    def ended(self, child: Any) -> int:
        child.expect(pexpect.EOF)
        child.wait()
        return int(child.exitstatus)

    def test_yes_and_a_reason(self, started: Any, tmp_path: Path) -> None:
        """A step that was not allowed is abandoned, and the model reads the reason."""
        child = started(write_checklist("One: `touch one`", "Two: `touch two`"), *CODING)
        self.answer(child, "yes\r")
        child.expect_exact("approved")
        self.answer(child, "not this one\r")
        child.expect_exact("rejected: not this one")
        child.expect_exact("with reason: not this one")
        assert self.ended(child) == 1
        assert [file.name for file in (tmp_path / "work").iterdir()] == ["one"]

    def test_what_was_typed_before_a_question_is_not_an_answer(
        self, started: Any, tmp_path: Path
    ) -> None:
        child = started(write_checklist("One: `touch one`"), *CODING)
        child.send("yes\nyes\n")
        self.answer(child, "no\r")
        assert self.ended(child) == 1
        assert list((tmp_path / "work").iterdir()) == []

    @pytest.mark.parametrize("key", ["\3", "\4"])
    def test_a_question_is_asked_again_after_an_interruption(
        self, key: str, started: Any, tmp_path: Path
    ) -> None:
        """Nothing was done, and nothing is lost."""
        child = started(write_checklist("One: `touch one`"), *CODING)
        self.answer(child, key)
        child.expect_exact("--thread t ")
        assert self.ended(child) == 130
        again = started("--thread", "t")
        self.answer(again, "yes\r")
        assert self.ended(again) == 0
        assert (tmp_path / "work" / "one").exists()
