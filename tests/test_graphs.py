"""The graph and the program of this repository, run as a new user would."""

import asyncio
import importlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphs.terminal.checklist import main
from graphs.terminal.thread import Thread
from graphs.terminal.tools.shell import shell_tool
from graphs.until_done import build_graph
from tests.lifeline import BEGIN, Lifeline
from tests.support import ROOT, items, plan, time_is_up_after, write_checklist
from tests.waiting import LONG, wait_for_file
from todo_tools import AutoContinue, TodoLimits
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, checklist_model, turn


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in a new directory, because programs write to the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
class TestShell:
    def test_output_and_exit_code_are_reported(self, tmp_path: Path) -> None:
        """The exit code is on the last line, also after success."""
        shell = shell_tool(tmp_path)
        assert shell.invoke({"command": "pwd"}) == f"{tmp_path}\nexit code 0"
        assert shell.invoke({"command": "echo no >&2; exit 3"}) == "[stderr] no\nexit code 3"

    async def test_it_works_asynchronously(self, tmp_path: Path) -> None:
        assert await shell_tool(tmp_path).ainvoke({"command": "echo hi"}) == "hi\nexit code 0"

    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(
        self, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It ends with the usual exit code, 124."""
        time_is_up_after((tmp_path / "begun").exists, monkeypatch)
        shell = shell_tool(tmp_path, timeout=1)
        lifeline = Lifeline(tmp_path)
        arguments = {"command": f"{BEGIN}; touch begun; sleep 600 & sleep 600"}
        if form == "sync":
            answer = await asyncio.to_thread(shell.invoke, arguments)
        else:
            answer = await shell.ainvoke(arguments)
        assert answer.endswith("exit code 124")
        assert lifeline.begins()
        assert lifeline.ends()
        lifeline.close()

    async def test_a_cancelled_command_is_ended_at_once(self, tmp_path: Path) -> None:
        lifeline = Lifeline(tmp_path)
        command = f"{BEGIN}; sleep 600"
        task = asyncio.create_task(shell_tool(tmp_path).ainvoke({"command": command}))
        assert await asyncio.to_thread(lifeline.begins)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(lifeline.ends)
        lifeline.close()


@pytest.mark.slow
class TestUntilDone:
    def test_the_agent_works_through_a_checklist(
        self, tmp_path: Path, config: RunnableConfig
    ) -> None:
        """The commands are real, and the stand-in is sent back to work when it stops early."""
        builder = build_graph(checklist_model(rest_after=1), [shell_tool(tmp_path)])
        graph = builder.compile(checkpointer=InMemorySaver())
        markdown = "- [ ] Make: `touch made`\n- [ ] Fail: `exit 4`\n- [ ] Think"
        final = graph.invoke({"messages": [("user", markdown)]}, config)
        assert (tmp_path / "made").exists()
        assert [todo["status"] for todo in final["todos"]] == [
            "completed",
            "abandoned",
            "completed",
        ]
        assert final["todo_loop"] == {
            "in_a_row": 0,
            "in_turn": 2,
            "idle": 0,
            "outcome": "finished",
            "user_message": final["messages"][0].id,
            "refused": None,
        }

    async def test_it_runs_asynchronously(self, tmp_path: Path) -> None:
        graph = build_graph(checklist_model(), [shell_tool(tmp_path)]).compile()
        final = await graph.ainvoke({"messages": [("user", "- [ ] Make: `touch made`")]})
        assert final["todo_loop"]["outcome"] == "finished"

    def test_limits_reach_the_tools(self) -> None:
        model = ScriptedChatModel(
            script=[turn("", call("write_todos", mode="replace", todos=["a", "b"])), "No."]
        )
        final = (
            build_graph(model, limits=TodoLimits(max_todos=1))
            .compile()
            .invoke({"messages": [("user", "Begin.")]})
        )
        assert final["todos"] == []


USE_UNTIL_DONE = """
from until_done import build_graph

builder = build_graph(model)
"""
USE_NOTES = """
from notes import build_graph

builder = build_graph(model)
"""
RUN_COPY = """
import sys

for absent in ABSENT:
    sys.modules[absent] = None  # makes its import fail
from todo_tools.testing import ScriptedChatModel, call, turn

model = ScriptedChatModel(script=[
    turn("", call("write_todos", mode="replace", todos=["a"])),
    turn("", call("edit_todos", action="complete", indices=[0])),
    "Done.",
])
USE
final = builder.compile().invoke({"messages": [("user", "Begin.")]})
assert final["todos"] == [{"text": "a", "status": "completed"}]
"""
USE_CODING_AGENT = """
from pathlib import Path

from graphs.coding_agent import build_coding_agent

agent = build_coding_agent(model, Path.cwd())
"""


@pytest.mark.slow
class TestCopies:
    """The three examples that a visitor copies, each copied into an empty directory and run."""

    def run(self, program: str, directory: Path) -> None:
        (directory / "program.py").write_text(program, encoding="utf-8")
        path = os.pathsep.join([str(directory), str(ROOT)])
        run = subprocess.run(
            [sys.executable, "program.py"],
            cwd=directory,
            env={**os.environ, "PYTHONPATH": path},
            text=True,
            check=False,
            capture_output=True,
        )
        assert run.returncode == 0, run.stderr

    @pytest.mark.parametrize(
        ("name", "use"), [("until_done.py", USE_UNTIL_DONE), ("notes.py", USE_NOTES)]
    )
    def test_one_file_needs_only_the_library(self, name: str, use: str, tmp_path: Path) -> None:
        shutil.copy(ROOT / "graphs" / name, tmp_path)
        absent = ["deepagents", "graphs", "langchain", "rich"]
        self.run(RUN_COPY.replace("ABSENT", str(absent)).replace("USE", use), tmp_path)

    def test_the_coding_agent_needs_its_tools(self, tmp_path: Path) -> None:
        copy = tmp_path / "graphs"
        shutil.copytree(ROOT / "graphs" / "terminal" / "tools", copy / "terminal" / "tools")
        for name in ("__init__.py", "coding_agent.py"):
            shutil.copy(ROOT / "graphs" / name, copy)
        program = RUN_COPY.replace("ABSENT", "['rich']").replace("USE", USE_CODING_AGENT)
        self.run(program.replace("builder.compile()", "agent"), tmp_path)


class TestServed:
    BEGIN: ClassVar[Any] = {
        "messages": [("user", "Begin.")],
        "todos": [{"content": "a", "status": "pending"}],
    }

    @pytest.fixture
    def served(self, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
        """The module that the server imports, which reads the environment."""
        monkeypatch.delenv("TODO_MODEL", raising=False)
        return importlib.reload(importlib.import_module("graphs.served"))

    def test_no_graph_has_its_own_checkpointer(self, served: ModuleType) -> None:
        """The server has its own checkpointer and refuses any other."""
        assert served.notes.checkpointer is None
        assert served.until_done.checkpointer is None

    def test_each_has_its_own_name(self, served: ModuleType) -> None:
        """Traces and graph pictures show the name."""
        assert [served.notes.name, served.until_done.name] == ["notes", "until_done"]

    @pytest.mark.parametrize("name", ["until_done", "notes"])
    def test_an_agent_that_only_talks_is_not_sent_back(
        self, name: str, served: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A person reads its answer and can reply."""
        talking = ScriptedChatModel(script=lambda _: "Shall I begin?")
        monkeypatch.setattr("graphs.notes.notes_model", lambda: talking)
        monkeypatch.setattr("graphs.model.chat_model", lambda *_: talking)
        graph = getattr(importlib.reload(served), name)
        final = graph.invoke(self.BEGIN)
        assert final["todo_loop"]["outcome"] == "answered"
        assert len(talking.prompts) == 1

    def test_the_model_of_until_done_cannot_drop_a_step(
        self, served: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The list is a checklist that a person gave."""
        model = ScriptedChatModel(script=[plan("b"), "No.", "No."])
        monkeypatch.setattr("graphs.model.chat_model", lambda *_: model)
        graph = importlib.reload(served).until_done
        final = graph.invoke(self.BEGIN)
        assert todos_in(final) == items("a")

    def test_until_done_runs_no_command(self, served: ModuleType, tmp_path: Path) -> None:
        """It has no shell, so the stand-in abandons a step that needs one."""
        checklist = f"- [ ] Touch: `touch {tmp_path}/touched`\n- [ ] Think"
        final = served.until_done.invoke({"messages": [("user", checklist)]})
        statuses = [todo["status"] for todo in todos_in(final)]
        assert statuses == ["abandoned", "completed"]
        assert not (tmp_path / "touched").exists()

    def test_the_notes_agents_stand_in_keeps_notes(self, served: ModuleType) -> None:
        """A message that begins with `note: ` adds a note; any other message lists the notes."""
        kept = served.notes.invoke({"messages": [("user", "note: the key is blue")]})
        assert kept["messages"][-1].text == 'Note #1 saved: "the key is blue"'
        listed = served.notes.invoke({**kept, "messages": [("user", "What is there?")]})
        assert listed["messages"][-1].text.endswith("]: the key is blue")


class TestProgram:
    @pytest.mark.slow
    def test_a_completed_checklist_exits_with_0(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """The program shows each call, the list, the status, the loop and why it stopped."""
        steps = [f"Step {n}: `echo {n} >> log`" for n in range(4)]
        assert main([write_checklist(*steps), "--workdir", "work", "--create", "--grace", "1"]) == 0
        assert (tmp_path / "work" / "log").read_text() == "0\n1\n2\n3\n"
        shown = capsys.readouterr().out
        for expected in (
            "The model is a stand-in",
            "→ Shell echo 0 >> log",
            "  │ exit code 0",
            "  ● [1] Step 1: `echo 1 >> log`",
            "  📋 3/4",
            "⏳ Auto-continuing in 1s... (Ctrl-C to interrupt)",
            "↻ not finished: sent back to work (continuation 1)",
            "✓ Done (4 items); stopped because: finished",
        ):
            assert expected in shown

    @pytest.mark.slow
    def test_the_demonstration_works(self, capsys: pytest.CaptureFixture[str]) -> None:
        """It runs if no checklist is given."""
        assert main(["--grace", "0"]) == 0
        assert "site/index.html" in capsys.readouterr().out

    def test_an_agent_that_only_talks_is_sent_back_three_times(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody is there to answer it, so it gets more patience than the default."""
        talking = ScriptedChatModel(script=lambda _: "Shall I begin?")
        monkeypatch.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: talking)
        assert main([write_checklist("a"), "--grace", "0"]) == 1
        assert len(talking.prompts) == 4
        assert "1 todo(s) remain" in capsys.readouterr().out

    @pytest.mark.slow
    def test_an_abandoned_step_exits_with_1(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The model names the exit code of the step."""
        assert main([write_checklist("Fail: `exit 7`")]) == 1
        shown = capsys.readouterr().out
        assert "failed with exit code 7" in shown
        assert "✗ [0] Fail" in shown

    @pytest.mark.slow
    def test_a_checklist_comes_from_standard_input(self) -> None:
        run = subprocess.run(
            [sys.executable, "-m", "graphs", "-"],
            input="- [ ] Here: `pwd`",
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
            check=False,
            capture_output=True,
        )
        assert run.returncode == 0, run.stderr

    @pytest.mark.slow
    @pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
    def test_standard_input_that_is_not_utf_8_is_refused_in_any_locale(self, locale: str) -> None:
        run = subprocess.run(
            [sys.executable, "-m", "graphs", "-"],
            input=b"- [ ] Caf\xe9s",
            env={**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": locale},
            check=False,
            capture_output=True,
        )
        assert run.stderr == b"error: cannot read standard input: it is not UTF-8 text\n"

    @pytest.mark.parametrize(
        ("argv", "reason"),
        [
            (["nowhere.md"], "cannot read nowhere.md: No such file or directory"),
            (["."], "cannot read .: Is a directory"),
            (["binary.md"], "cannot read binary.md: it is not UTF-8 text"),
            (["empty.md"], "empty.md has no open step, for example '- [ ] Build it: `make`'"),
            (["long.md"], "long.md has 101 steps, at most 100 fit"),
            (["wide.md"], "wide.md has a step of more than 1000 characters"),
            (["--thread", "new"], "there is no thread 'new' to resume; give a checklist"),
            (["--db", "no/where.sqlite"], "--db no/where.sqlite cannot be used: unable to open"),
            (["--db", "empty.md", "--workdir", "empty.md"], "--workdir empty.md cannot be used"),
            (["--db", "long.md"], "--db long.md cannot be used: file is not a database"),
            (["--grace", "-1"], "0 to 60, got '-1'"),
            (["--colour"], "unrecognized arguments: --colour; see python -m graphs --help"),
            (["--model", "openai:gpt-5"], "OPENAI_API_KEY"),
            (["--model", "groq:llama"], "langchain-groq"),
        ],
    )
    def test_unusable_input_exits_with_2_and_one_line(
        self,
        argv: list[str],
        reason: str,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        Path("binary.md").write_bytes(b"- [ ] \xff")
        Path("empty.md").touch()
        Path("long.md").write_text("- [ ] a\n" * 101)
        Path("wide.md").write_text("- [ ] " + "a" * 1001)
        assert main(argv) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert reason in error
        assert error.count("\n") == 1

    def test_a_model_that_does_not_answer_is_one_line_too(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Only a bug of the program gives a traceback."""

        def unreachable(_: object) -> str:
            raise RuntimeError("no route\nto the model")

        model = ScriptedChatModel(script=unreachable)
        monkeypatch.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: model)
        assert main([write_checklist("Think"), "--model", "some:model"]) == 2
        assert capsys.readouterr().err == "error: model 'some:model': no route to the model\n"

    def test_the_text_of_a_provider_cannot_act_in_the_terminal(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def hostile(_: object) -> str:
            raise RuntimeError("401 \x1b[2J\x1b]0;title\x07 [red]\u202eno")

        model = ScriptedChatModel(script=hostile)
        monkeypatch.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: model)
        assert main([write_checklist("Think"), "--model", "some:model"]) == 2
        error = capsys.readouterr().err
        assert error == "error: model 'some:model': 401 ␛[2J␛]0;title␇ [red]<U+202E>no\n"


class TestResuming:
    def started(self, *argv: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-u", "-m", "graphs", *argv],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @pytest.mark.slow
    @pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
    def test_a_killed_run_can_be_resumed(
        self, kill: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It resumes in the same directory and repeats no finished step."""
        steps = write_checklist(
            "One: `echo one >> log`",
            "Two: `touch waiting; until test -e go; do sleep 0.1; done; echo two >> log`",
            "Three: `echo three >> log`",
        )
        process = self.started(steps, "--thread", "t", "--workdir", "work", "--create")
        wait_for_file(tmp_path / "work" / "waiting")
        process.send_signal(kill)
        _, errors = process.communicate(timeout=LONG)
        assert process.returncode == (130 if kill == signal.SIGINT else -kill)
        resume = "interrupted; resume with: python -m graphs --db todo-threads.sqlite --thread t "
        assert (resume in errors) == (kill == signal.SIGINT)
        (tmp_path / "work" / "go").touch()
        assert main(["--thread", "t"]) == 0
        log = (tmp_path / "work" / "log").read_text().split()
        assert log.count("one") == log.count("three") == 1
        shown = capsys.readouterr().out
        assert "⚠ cut off, runs again unless it had ended: Shell touch waiting; until" in shown
        assert "ended: shell echo" not in shown
        assert "✓ Done (3 items)" in shown

    @pytest.mark.slow
    def test_a_result_that_is_stored_before_its_checkpoint_is_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """If a kill comes between the two, the command is not run again."""
        store = AsyncSqliteSaver.aput

        async def killed(saver: Any, config: Any, checkpoint: Any, *rest: Any) -> Any:
            messages = checkpoint["channel_values"].get("messages", [])
            if messages and messages[-1].name == "shell":
                raise InterruptedError
            return await store(saver, config, checkpoint, *rest)

        steps = write_checklist("One: `echo one >> log`")
        with monkeypatch.context() as patched:
            patched.setattr(AsyncSqliteSaver, "aput", killed)
            assert main([steps, "--thread", "t", "--workdir", "."]) == 1
        assert main(["--thread", "t"]) == 0
        assert (tmp_path / "log").read_text() == "one\n"

    @pytest.mark.slow
    def test_a_finished_thread_is_only_reported(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The same command does no more work; another checklist is new work."""
        first = write_checklist("One: `echo one >> log`")
        arguments = ["--thread", "t", "--workdir", "work", "--create"]
        assert main([first, *arguments]) == 0
        assert "nothing to do" not in capsys.readouterr().out
        assert main([first, *arguments]) == 0
        assert "nothing to do: the list of this thread is finished" in capsys.readouterr().out
        assert (tmp_path / "work" / "log").read_text() == "one\n"
        assert main([write_checklist("Two: `echo two >> log`"), *arguments]) == 0
        assert (tmp_path / "work" / "log").read_text() == "one\ntwo\n"

    @pytest.mark.slow
    @pytest.mark.parametrize("again", [True, False])
    async def test_an_item_that_a_person_opened_again_is_done_again(
        self, again: bool, tmp_path: Path
    ) -> None:
        """The outcome of the last run says that the list was finished."""
        plan = write_checklist("One: `echo one >> log`", "Two: `echo two >> log`")
        arguments = ["--thread", "t", "--workdir", "work", "--create"]
        assert await asyncio.to_thread(main, [plan, *arguments]) == 0
        async with AsyncSqliteSaver.from_conn_string("todo-threads.sqlite") as saver:
            graph = build_graph(checklist_model()).compile(checkpointer=saver)
            kept = {"workdir": str(tmp_path / "work")}
            thread = Thread(graph, {"configurable": {"thread_id": "t"}, "metadata": kept})
            todos = todos_in((await thread.now()).values)
            await thread.replace_todos([{**todos[0], "status": "not_started"}, todos[1]])
        given = [plan, *arguments] if again else ["--thread", "t"]
        assert await asyncio.to_thread(main, given) == 0
        assert (tmp_path / "work" / "log").read_text() == "one\ntwo\none\n"

    async def test_a_list_that_a_person_made_in_an_empty_thread_is_done(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With `/edit add` in the chat; a checklist does not replace it."""
        async with AsyncSqliteSaver.from_conn_string("todo-threads.sqlite") as saver:
            graph = build_graph(checklist_model()).compile(checkpointer=saver)
            thread = Thread(graph, {"configurable": {"thread_id": "t"}})
            await thread.replace_todos(items("a"))
        done = turn("", call("edit_todos", action="complete", indices=[0]))
        model = ScriptedChatModel(script=[done, "Done."])
        monkeypatch.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: model)
        assert await asyncio.to_thread(main, [write_checklist("b"), "--thread", "t"]) == 2
        assert "still working on another list" in capsys.readouterr().err
        assert await asyncio.to_thread(main, ["--thread", "t"]) == 0
        assert "[0] a" in model.prompts[0][-1].text

    @pytest.mark.parametrize(
        ("plan", "code"),
        [
            ("Go.\n- [x] a\n- [ ] b\n- [x] z\n", 0),
            ("Go.\n- [x] a\n- [x] b\n- [x] z\n- [ ] c\n", 2),
            ("Go.\n- [ ] a\n- [x] b\n- [x] z\n", 2),
            ("Go.\n- [ ] a\n- [ ] b\n- [ ] z\n", 2),
            ("Go.\n- [ ] b\n- [x] z\n", 2),
            ("Go slowly.\n- [ ] a\n- [ ] b\n- [x] z\n", 2),
        ],
    )
    def test_a_thread_takes_its_checklist_again_with_marks_of_finished_items(
        self, plan: str, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """Any other change might be a word of the person, which the model would not read."""
        given = tmp_path / "PLAN.md"
        given.write_text("Go.\n- [ ] a\n- [ ] b\n- [x] z\n")
        done = turn("", call("edit_todos", action="complete", indices=[0]))
        lazy = ScriptedChatModel(script=[done, *["Hm."] * 99])
        arguments = [str(given), "--thread", "t", "--grace", "0"]
        with monkeypatch.context() as patched:
            patched.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: lazy)
            assert main(arguments) == 1
        given.write_text(plan)
        assert main(arguments) == code

    @pytest.mark.parametrize(("script", "code"), [(["Hi."], 0), ([plan("b"), "Hi."], 2)])
    def test_a_thread_without_a_checklist_takes_one_unless_it_has_open_items(
        self, script: list[Any], code: int
    ) -> None:
        """It was used for a chat, for example."""
        with SqliteSaver.from_conn_string("todo-threads.sqlite") as saver:
            policy = AutoContinue(stop_when=lambda _: True)
            builder = build_graph(ScriptedChatModel(script=script), policy=policy)
            graph = builder.compile(checkpointer=saver)
            graph.invoke({"messages": [("user", "Hello.")]}, {"configurable": {"thread_id": "t"}})
        assert main([write_checklist("a"), "--thread", "t", "--grace", "0"]) == code

    def test_an_unfinished_thread_takes_no_other_checklist(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its own checklist must be finished first."""
        lazy = ScriptedChatModel(
            script=[turn("", call("write_todos", mode="replace", todos=["a"])), *["Hm."] * 99]
        )
        monkeypatch.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: lazy)
        assert main([write_checklist("a"), "--thread", "t", "--grace", "0"]) == 1
        assert "⚠ Stopped because the agent got no new tool result" in capsys.readouterr().out
        assert main([write_checklist("b"), "--thread", "t"]) == 2
        assert "still working on another list" in capsys.readouterr().err
        monkeypatch.undo()

    def test_a_thread_that_a_limit_stopped_can_be_resumed(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Resuming it counts as a user message, which resets the limit."""
        lazy = ScriptedChatModel(
            script=[turn("", call("write_todos", mode="replace", todos=["a"])), *["Hm."] * 21]
        )
        with monkeypatch.context() as patched:
            patched.setattr("graphs.terminal.agents.chat_model", lambda *_, **__: lazy)
            assert main([write_checklist("a"), "--thread", "t", "--grace", "0"]) == 1
        assert main(["--thread", "t"]) == 0
        with SqliteSaver.from_conn_string("todo-threads.sqlite") as saver:
            saved = saver.get_tuple({"configurable": {"thread_id": "t"}})
        assert saved is not None
        assert "✓ Done (1 item)" in capsys.readouterr().out
