"""The option `--ask-plan`: a person sees, changes or rejects the plan before anything is done."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]
import pytest
from langgraph.types import Interrupt

from graphs.terminal.approval import Answer, Approval, answer_about, question_about
from graphs.terminal.checklist import main
from graphs.terminal.plan import NotEditedError, plan_of
from graphs.terminal.question import call_rows
from tests.support import ROOT, edit, items, plan, write_checklist
from tests.waiting import LONG
from todo_tools.testing import ScriptedChatModel

QUESTION = "Do it? yes, no, always, edit, or why not:"
ARGUMENTS = ("--agent", "coding", "--workdir", "work", "--create", "--thread", "t", "--grace", "0")
ASKED = (*ARGUMENTS, "--ask-plan")
NOBODY = "rejected: nobody could be asked: there is no terminal, and --yes was not given"


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in a new directory, because programs write to the current one."""
    monkeypatch.chdir(tmp_path)


def proposed(*texts: str, mode: str = "replace") -> dict[str, Any]:
    todos = [{"text": text} for text in texts]
    return {"name": "write_todos", "args": {"mode": mode, "todos": todos}}


def editor(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", command)


class TestQuestion:
    def test_the_whole_list_is_shown_as_it_would_be(self) -> None:
        """A plan that only adds items is shown together with the existing items."""
        lines = call_rows(proposed("b\x1b[2J", mode="append"), items("a"))
        assert [str(line) for line in lines] == [
            "",
            "? write_todos",
            "    – [0] a",  # noqa: RUF001
            "    – [1] b␛[2J",  # noqa: RUF001
        ]

    @pytest.mark.parametrize(
        ("answer", "shown"),
        [
            (Answer(approved=True), ["b", "c"]),
            (Answer(approved=True, edited=proposed("x")), ["x", "c"]),
            (Answer(approved=False), ["a", "c"]),
        ],
        ids=["approved", "edited", "rejected"],
    )
    def test_the_list_of_a_later_plan_depends_on_the_answer_about_the_earlier_one(
        self, answer: Answer, shown: list[str]
    ) -> None:
        plans = [proposed("b"), proposed("c", mode="append")]
        approval = Approval().of([Interrupt({"action_requests": plans}, id="q")]).decided(answer)
        before = approval.list_before_next(items("a"))
        assert plan_of(approval.next_call, before) == items(*shown)

    def test_a_plan_that_the_tool_would_refuse_is_shown_unchanged(self) -> None:
        action = {"name": "write_todos", "args": {"mode": "replace", "todos": 7}}
        shown = [str(line) for line in call_rows(action)]
        assert shown[2:] == ["    mode: replace", "    todos: 7"]

    def test_only_a_plan_can_be_edited(self) -> None:
        """For other calls, `edit` is the reason for a rejection."""
        command = {"name": "execute", "args": {"command": "ls"}}
        assert "edit" not in str(question_about(command))
        assert answer_about(command, "edit") == Answer(approved=False, reason="edit")
        assert str(question_about(proposed("a"))) == f"write_todos, 1 item. {QUESTION}"


@pytest.mark.slow
class TestEditing:
    def test_the_lines_of_the_editor_become_the_items(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The decision keeps the other arguments; the answer says that it was edited."""
        editor(monkeypatch, "sed -i -e s/b/c/ -e '$a d' -e 's/$/\\n/'")
        answer = answer_about(proposed("a", "b", mode="append"), " Edit \n")
        assert answer
        assert answer.decision == {
            "type": "edit",
            "edited_action": proposed("a", "c", "d", mode="append"),
        }
        assert str(answer.line) == "approved as edited"

    def test_an_item_of_several_lines_is_kept_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        editor(monkeypatch, "sed -i s/old/new/")
        answer = answer_about(proposed("a\nb", "old"), "edit")
        assert answer
        assert answer.edited == proposed("a\nb", "new")

    def test_visual_comes_before_editor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        editor(monkeypatch, "false")
        monkeypatch.setenv("VISUAL", "sed -i s/a/b/")
        answer = answer_about(proposed("a"), "edit")
        assert answer
        assert answer.edited == proposed("b")

    @pytest.mark.parametrize(
        ("command", "reason"),
        [
            ("", "no editor is set"),
            ("no-such-editor", "No such file"),
            ("false", "exit status 1"),
            ("true", "the plan was not changed"),
            ("truncate -s 0", "the plan was not changed"),
            ("'", "No closing quotation"),
        ],
    )
    def test_an_edit_that_fails_is_reported_in_one_line(
        self, command: str, reason: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        editor(monkeypatch, command)
        with pytest.raises(NotEditedError, match=f"^Not edited: .*{reason}[^\n]*$"):
            answer_about(proposed("a"), "edit")

    def test_a_plan_that_the_tool_would_refuse_cannot_be_edited(self) -> None:
        with pytest.raises(NotEditedError, match="'todos' is required"):
            answer_about({"name": "write_todos", "args": {}}, "edit")


class TestProgram:
    def test_another_agent_has_no_plan_to_ask_about(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main([write_checklist("One"), "--ask-plan"]) == 2
        error = capsys.readouterr().err
        assert error == "error: --ask-plan is for --agent coding, not until_done\n"

    def test_without_a_terminal_the_plan_is_rejected(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """The list is not written, and no work is done."""
        assert main([write_checklist("One: `touch one`"), *ASKED]) == 1
        shown = capsys.readouterr().out
        assert NOBODY in shown
        assert "My plan was not accepted; I stop here." in shown
        assert "No todos; stopped because: no_todos" in shown
        assert list((tmp_path / "work").iterdir()) == []

    def test_a_thread_remembers_that_plans_are_asked_about(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = ScriptedChatModel(script=[plan("a"), "Stopped.", plan("b"), "Stopped again."])
        monkeypatch.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: model)
        assert main([write_checklist("One"), *ASKED]) == 1
        assert NOBODY in capsys.readouterr().out
        assert main(["--thread", "t"]) == 1
        assert NOBODY in capsys.readouterr().out

    def test_an_approved_plan_may_drop_open_items(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The person who gave the checklist has agreed to it."""
        plans = plan("a", "b"), plan("c")
        model = ScriptedChatModel(script=[*plans, edit("complete", 0), "Done."])
        monkeypatch.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: model)
        assert main([write_checklist("One"), *ASKED, "--yes"]) == 0

    @pytest.mark.slow
    def test_yes_approves_the_plan_too(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        assert main([write_checklist("One: `touch one`"), *ASKED, "--yes"]) == 0
        assert "✓ Done (1 item)" in capsys.readouterr().out
        assert (tmp_path / "work" / "one").exists()


@pytest.mark.slow
class TestTerminal:
    """Tests in a pseudo-terminal."""

    @pytest.fixture
    def children(self) -> Iterator[list[Any]]:
        started: list[Any] = []
        yield started
        for child in started:
            child.close(force=True)

    def start(self, children: list[Any], *argv: str) -> Any:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
            "TERM": "dumb",
            "COLUMNS": "200",
            "VISUAL": "sed -i s/two/three/",
        }
        child = pexpect.spawn(
            sys.executable,
            ["-m", "graphs", *argv],
            env=environment,
            encoding="utf-8",
            dimensions=(40, 200),  # so that no line is broken
            timeout=LONG,
        )
        children.append(child)
        return child

    def test_the_edited_plan_is_carried_out(self, children: list[Any], tmp_path: Path) -> None:
        """The program also asks about the plan's calls."""
        child = self.start(children, write_checklist("One: `touch two`"), *ASKED)
        child.expect_exact("? write_todos\r\n    – [0] One: `touch two`\r\n")  # noqa: RUF001
        child.expect_exact(QUESTION)
        child.sendline("edit")
        child.expect_exact("approved as edited")
        child.expect_exact("? execute\r\n    command: touch three\r\n")
        child.expect_exact("Do it? yes, no, always, or why not:")
        child.sendline("yes")
        child.expect_exact("✓ Done (1 item)")
        child.expect(pexpect.EOF)
        assert [path.name for path in (tmp_path / "work").iterdir()] == ["three"]

    def test_an_approved_plan_is_not_shown_again(self, children: list[Any]) -> None:
        """An edit that changes nothing asks again."""
        child = self.start(children, write_checklist("One", "Again"), *ASKED)
        child.expect_exact("– [1] Again")  # noqa: RUF001
        child.expect_exact(QUESTION)
        child.sendline("edit")
        child.expect_exact("Not edited: the plan was not changed")
        child.expect_exact(QUESTION)
        child.sendline("ok")
        child.expect_exact("✓ Done (2 items)")
        assert "– [1] Again" not in child.before  # noqa: RUF001

    def test_words_reject_the_plan(self, children: list[Any]) -> None:
        child = self.start(children, write_checklist("One"), *ASKED)
        child.expect_exact(QUESTION)
        child.sendline("measure first")
        child.expect_exact("rejected: measure first")
        child.expect_exact("My plan was not accepted; I stop here.")
        child.expect(pexpect.EOF)
        child.wait()
        assert child.exitstatus == 1
