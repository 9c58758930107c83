"""Nothing is left of a command after an error."""

import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from graphs.coding_agent import build_coding_agent
from graphs.terminal.tools.run import ShellRun
from tests.support import BEGIN, Graph
from tests.waiting import has_ended, wait_for, wait_for_line
from todo_tools.testing import ScriptedChatModel, call, turn

pytestmark = pytest.mark.slow

COMMAND = "echo $$ > pid; exec sleep 600"


def agent(folder: Path, tool: str) -> Graph:
    model = ScriptedChatModel(script=[turn("", call(tool, command=COMMAND)), "Done."])
    return build_coding_agent(model, folder, ask=False, checkpointer=InMemorySaver())


@pytest.mark.parametrize("form", ["sync", "async"])
async def test_after_an_error_nothing_is_left(
    form: str, tmp_path: Path, config: RunnableConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error happens while the command runs."""

    def fail(*_: Any) -> bool:
        wait_for_line(tmp_path / "pid")
        raise RuntimeError("the machine is tired")

    monkeypatch.setattr(ShellRun, "wait", fail)
    graph = agent(tmp_path, "execute")
    with pytest.raises(RuntimeError, match="tired"):
        graph.invoke(BEGIN, config) if form == "sync" else await graph.ainvoke(BEGIN, config)
    wait_for(lambda: has_ended(tmp_path / "pid"), "the command to be ended")


@pytest.mark.parametrize("tool", ["execute", "run_in_background"])
def test_a_command_that_fails_to_start_is_ended(
    tool: str, tmp_path: Path, config: RunnableConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process exists already when the error happens."""
    processes: list[int] = []

    def fail(pid: int) -> None:
        processes.append(pid)
        raise OSError("the guard is gone")

    monkeypatch.setattr("graphs.terminal.tools.run.GUARD.add", fail)
    final = agent(tmp_path, tool).invoke(BEGIN, config)
    assert "cannot be started: the guard is gone" in final["messages"][-2].text
    (pid,) = processes
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
