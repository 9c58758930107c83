"""The graph and the program of this repository, run as a new user would."""

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

from graphs import each
from graphs.terminal.checklist import main
from tests.support import ROOT, items, plan, write_checklist
from tests.waiting import LONG, wait_for_file
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, turn


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in a new directory, because programs write to the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestEach:
    DATES = ("2026-12-24", "2027-05-01", "2027-10-03", "2027-12-31")

    def test_each_part_of_a_request_is_done_and_the_answer_tells_it(
        self, config: RunnableConfig
    ) -> None:
        """The planner wrote an item for each date, and the tool was called for each of them."""
        graph = each.build_graph(each.stand_in).compile(checkpointer=InMemorySaver())
        request: Any = {"messages": [("user", f"On which weekdays are {', '.join(self.DATES)}?")]}
        final = graph.invoke(request, config, durability="sync")
        assert final["todos"] == items(*self.DATES, status="completed")
        assert [report["calls"] for report in final["reports"].values()] == [2] * 4
        assert final["messages"][-1].text.splitlines() == [
            "2026-12-24 is a Thursday.",
            "2027-05-01 is a Saturday.",
            "2027-10-03 is a Sunday.",
            "2027-12-31 is a Friday.",
        ]

    def test_a_report_without_a_call_does_not_count(self) -> None:
        """The model claims to be done, twice."""
        script: list[Any] = [
            turn("", call("Plan", items=["Find a date"])),
            "Done.",
            "Done!",
            "Nothing.",
        ]
        graph = each.build_graph(ScriptedChatModel(script=script)).compile()
        request: Any = {"messages": [("user", "Find a date.")]}
        final = graph.invoke(request)
        assert final["todos"] == items("Find a date", status="abandoned")


USE = """
from until_done import build_graph

builder = build_graph(model, TOOLS)
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
RUN_EACH = """
import sys

for absent in ["deepagents", "graphs", "rich"]:
    sys.modules[absent] = None  # makes its import fail
from each import build_graph, stand_in

final = build_graph(stand_in).compile().invoke({"messages": [("user", "When is 2027-05-01?")]})
assert final["messages"][-1].text == "2027-05-01 is a Saturday."
"""
USE_CODING_AGENT = """
from pathlib import Path

from graphs.coding_agent import build_coding_agent

agent = build_coding_agent(model, Path.cwd())
"""


@pytest.mark.slow
class TestCopies:
    """The examples that a visitor copies, each copied into an empty directory and run."""

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

    @pytest.mark.parametrize("tools", ["()", "[__import__('notes').notes_tool()]"])
    def test_one_file_needs_only_the_library(self, tools: str, tmp_path: Path) -> None:
        """The agent, and the notes tool."""
        for name in ("until_done.py", "notes.py"):
            shutil.copy(ROOT / "graphs" / name, tmp_path)
        absent = str(["deepagents", "graphs", "langchain", "rich"])
        use = USE.replace("TOOLS", tools)
        self.run(RUN_COPY.replace("ABSENT", absent).replace("USE", use), tmp_path)

    def test_the_graph_with_the_item_runner_needs_only_langchain(self, tmp_path: Path) -> None:
        shutil.copy(ROOT / "graphs" / "each.py", tmp_path)
        self.run(RUN_EACH, tmp_path)

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
        assert served.each.checkpointer is None

    @pytest.mark.parametrize("name", ["until_done", "notes"])
    def test_an_agent_that_only_talks_is_not_sent_back(
        self, name: str, served: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A person reads its answer and can reply."""
        talking = ScriptedChatModel(script=lambda _: "Shall I begin?")
        monkeypatch.setattr("graphs.model.notes_stand_in", lambda: talking)
        monkeypatch.setattr("graphs.model.chat_model", lambda *_: talking)
        graph = getattr(importlib.reload(served), name)
        final = graph.invoke(self.BEGIN)
        assert final["todo_outcome"] == "answered"
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

    def test_the_items_of_each_have_the_format_of_clients(self, served: ModuleType) -> None:
        """It does the items all the same."""
        final = served.each.invoke({"messages": [("user", "When is 2027-05-01?")]})
        assert final["todos"] == [{"content": "2027-05-01", "status": "completed"}]

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
            "→ shell echo 0 >> log",
            "📋 3/4",
            "Sent back to work",
            "✓ Done (4 items)",
            "stopped because: finished",
            "The model is a stand-in with simple rules",
        ):
            assert expected in shown

    @pytest.mark.slow
    def test_an_abandoned_step_exits_with_1(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The model names the exit code of the step."""
        assert main([write_checklist("Fail: `exit 7`")]) == 1
        shown = capsys.readouterr().out
        assert "failed with exit code 7" in shown
        assert "✗ [0] Fail" in shown

    @pytest.mark.parametrize(
        ("argv", "reason"),
        [
            (["nowhere.md"], "cannot read nowhere.md: No such file or directory"),
            (["empty.md"], "empty.md has no open step, for example '- [ ] Build it: `make`'"),
            (["--thread", "new"], "there is no thread 'new' to resume; give a checklist"),
            (["--model", "groq:llama"], "langchain-groq"),
        ],
    )
    def test_unusable_input_exits_with_2_and_one_line(
        self, argv: list[str], reason: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Path("empty.md").touch()
        assert main(argv) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert reason in error
        assert error.count("\n") == 1


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
        advice = "\nstopped; resume with:\npython -m graphs --thread t\n"
        assert (advice in errors) == (kill == signal.SIGINT)
        (tmp_path / "work" / "go").touch()
        assert main(["--thread", "t"]) == 0
        log = (tmp_path / "work" / "log").read_text().split()
        assert log.count("one") == log.count("three") == 1
        assert "✓ Done (3 items)" in capsys.readouterr().out

    @pytest.mark.slow
    def test_a_finished_thread_is_only_reported(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The same command does no more work; another checklist is new work."""
        first = write_checklist("One: `echo one >> log`")
        arguments = ["--thread", "t", "--workdir", "work", "--create"]
        assert main([first, *arguments]) == main([first, *arguments]) == 0
        assert "nothing to do: the list of this thread is finished" in capsys.readouterr().out
        assert (tmp_path / "work" / "log").read_text() == "one\n"
        assert main([write_checklist("Two: `echo two >> log`"), *arguments]) == 0
        assert (tmp_path / "work" / "log").read_text() == "one\ntwo\n"
