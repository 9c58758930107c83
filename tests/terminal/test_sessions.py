"""The settings of a thread, the files of the programs, and unusable input."""

import asyncio
import shlex
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import StateSnapshot

from graphs.terminal.chat import main as chat_main
from graphs.terminal.checklist import main, request_of
from graphs.terminal.options import Parser, UnusableInputError
from graphs.terminal.session import choose_session, open_saver
from tests.support import checklist, items, plan, write_checklist
from todo_tools import TodoItem
from todo_tools.testing import ScriptedChatModel, checklist_model


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in a new directory, which has the temporary directories too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def scripted(monkeypatch: pytest.MonkeyPatch, *turns: Any) -> ScriptedChatModel:
    model = ScriptedChatModel(script=list(turns))
    monkeypatch.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: model)
    return model


async def session_of(*argv: str) -> Any:
    async with open_saver("todo-threads.sqlite") as saver:
        return await choose_session(Parser("python -m graphs", "").parse_args(argv), saver)


class TestResuming:
    def test_a_thread_remembers_its_model_and_its_directory(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        created = list[str]()

        def create(name: str, **_: Any) -> Any:
            created.append(name)
            return checklist_model()

        monkeypatch.setattr("graphs.terminal.agents.chat_model", create)
        Path("work").mkdir()
        started = ["--thread", "t", "--model", "some:model", "--workdir", "work"]
        assert main([write_checklist("Think"), *started]) == 0
        assert main(["-c"]) == 0
        assert created == ["some:model", "some:model"]
        assert asyncio.run(session_of("-c")).workdir == Path("work").resolve()

    def test_continue_without_a_thread_is_unusable_input(self) -> None:
        assert main(["-c"]) == 2

    @pytest.mark.parametrize("thread", ["t", "-t", "it's mine", "a" * 90])
    def test_the_command_is_complete_and_quoted(self, thread: str) -> None:
        """A shell and the program read it as the same thread, with the agent that asks."""
        given = [f"--thread={thread}", "--agent", "coding", "--grace", "7"]
        session = asyncio.run(session_of(*given))
        words = shlex.split(session.resume_command.replace("\\\n", ""))
        again = Parser("", "").parse_args(words[3:])
        assert (again.thread, again.agent, again.grace) == (thread, "coding", 7)

    def test_a_long_command_is_broken_between_options(self) -> None:
        """A terminal of 80 columns would break it inside a word."""
        session = asyncio.run(session_of("--thread", "t" * 60, "--agent", "coding"))
        rows = session.resume_command.split("\n")
        assert rows == ["python -m graphs \\", f"    --thread {'t' * 60} \\", "    --agent coding"]


def snapshot(*texts: str, todos: list[TodoItem], tasks: tuple[Any, ...] = ()) -> StateSnapshot:
    values = {"messages": [HumanMessage(text, id=text) for text in texts], "todos": todos}
    return StateSnapshot(values, (), {}, None, None, None, tasks, ())


class TestRequests:
    """What the program sends to its thread."""

    def test_a_checklist_becomes_the_list(self) -> None:
        request = request_of(snapshot(todos=[]), checklist("a", "b"), "t")
        assert request is not None
        assert request["todos"] == items("a", "b")

    def test_a_thread_that_was_cut_off_is_resumed_where_it_was(self) -> None:
        cut_off = snapshot(checklist("a"), todos=items("a"), tasks=("tools",))
        assert request_of(cut_off, checklist("a"), "t") is None
        assert request_of(cut_off, None, "t") is None

    def test_a_thread_that_stopped_with_open_items_is_told_to_go_on(self) -> None:
        stopped = snapshot(checklist("a"), todos=items("a"))
        assert request_of(stopped, None, "t") == {"messages": [("user", "Go on.")]}

    def test_a_finished_thread_takes_another_checklist(self) -> None:
        finished = snapshot(checklist("a"), todos=items("a", status="completed"))
        assert request_of(finished, checklist("a"), "t") is None
        assert request_of(finished, checklist("b"), "t") is not None

    @pytest.mark.parametrize(
        ("thread", "given", "reason"),
        [
            (snapshot(todos=[]), None, "there is no thread"),
            (snapshot(checklist("a"), todos=items("a")), checklist("b"), "working on another"),
        ],
    )
    def test_what_cannot_be_sent_is_unusable(
        self, thread: StateSnapshot, given: str | None, reason: str
    ) -> None:
        with pytest.raises(UnusableInputError, match=reason):
            request_of(thread, given, "t")

    def test_the_model_cannot_drop_a_step(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """So it is still open at the end."""
        model = scripted(monkeypatch, plan("b"), *["Hm."] * 9)
        assert main([write_checklist("a"), "--grace", "0"]) == 1
        assert "[0] a" in model.prompts[0][-1].text


class TestFailing:
    def test_a_model_that_does_not_answer_is_a_failed_run(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The error is one line that cannot act, after the command that resumes the thread."""

        def hostile(_: object) -> str:
            raise RuntimeError("401 \x1b[2J\nno")

        scripted(monkeypatch)
        monkeypatch.setattr(
            "graphs.terminal.agents.chat_model",
            lambda *_, **__: ScriptedChatModel(script=hostile),
        )
        assert main([write_checklist("Think"), "--thread", "t"]) == 1
        assert capsys.readouterr().err.splitlines()[1:] == [
            "stopped; resume with:",
            "python -m graphs --thread t",
            "error: RuntimeError: 401 ␛[2J no",
        ]

    def test_a_chat_without_a_terminal_says_that_it_needs_one(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert chat_main([]) == 2
        assert "the chat needs a terminal" in capsys.readouterr().err


def modes_in(folder: Path) -> set[int]:
    return {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


class TestFiles:
    async def test_only_the_user_can_read_a_new_database(self, tmp_path: Path) -> None:
        """The same holds for the files that SQLite puts next to it."""
        async with open_saver("db") as saver:
            await saver.aget_tuple({"configurable": {"thread_id": "t"}})
            assert modes_in(tmp_path) == {0o600}

    @pytest.mark.parametrize(
        ("argv", "reason"),
        [
            (["--workdir", "work"], "--workdir work does not exist; --create makes it"),
            (["--db", "PLAN.md"], "--db PLAN.md cannot be used: file is not a database"),
            (["--db", ":memory:"], "must be a name, got ':memory:'"),
            (["--thread", ""], "must be a name, got ''"),
            (["--grace", "61"], "must be a whole number from 0 to 60, got '61'"),
        ],
    )
    def test_what_cannot_be_used_is_named(
        self, argv: list[str], reason: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("PLAN.md").write_text("- [ ] a\n" * 100)
        assert main(["PLAN.md", *argv]) == 2
        assert reason in capsys.readouterr().err

    @pytest.mark.slow
    def test_an_empty_temporary_directory_is_removed(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """One with files is named."""
        assert main([write_checklist("Think")]) == 0
        assert list(tmp_path.glob("todo-????????")) == []
        assert main([write_checklist("Touch: `touch it`")]) == 0
        (left,) = tmp_path.glob("todo-????????")
        assert f"files are left in {left}" in capsys.readouterr().out
