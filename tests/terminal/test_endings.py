"""A command that has ended is not run again if its result was lost with the program."""

from pathlib import Path
from threading import Event
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphs.coding_agent import build_coding_agent
from graphs.terminal.tools import endings
from graphs.terminal.tools.shell import shell_tool
from graphs.until_done import build_graph
from tests.support import BEGIN, Graph, results_in
from todo_tools.testing import ScriptedChatModel, call, turn

pytestmark = pytest.mark.slow

LOST = "[The command ended before the program that ran it was killed."


class KilledError(Exception):
    """Ends a run just before a result is stored."""


class LosingSaver(InMemorySaver):
    """A store whose program is killed before the result of a tool is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.is_resumed = Event()  # LangGraph copies a saver, but not its content

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        messages = [value for channel, value in writes if channel == "messages"]
        self._lose_if(any(isinstance(each, ToolMessage) for each in _flat(messages)))
        super().put_writes(config, writes, task_id, task_path)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        stored = checkpoint["channel_values"].get("messages", [])
        self._lose_if(any(isinstance(each, ToolMessage) for each in stored))
        return super().put(config, checkpoint, metadata, new_versions)

    def _lose_if(self, has_result: bool) -> None:
        if has_result and not self.is_resumed.is_set():
            raise KilledError


def _flat(values: list[Any]) -> list[Any]:
    return [each for value in values for each in (value if isinstance(value, list) else [value])]


def until_done(command: str, folder: Path, saver: LosingSaver) -> Graph:
    model = ScriptedChatModel(script=[turn("", call("shell", command=command)), "Done."])
    return build_graph(model, [shell_tool(folder)]).compile(checkpointer=saver)


def coding(command: str, folder: Path, saver: LosingSaver) -> Graph:
    model = ScriptedChatModel(script=[turn("", call("execute", command=command)), "Done."])
    return build_coding_agent(model, folder, ask=False, checkpointer=saver)


@pytest.fixture(params=[until_done, coding])
def build(request: pytest.FixtureRequest) -> Any:
    """Each of the two agents that run commands."""
    return request.param


def config_of(folder: Path) -> Any:
    return {"configurable": {"thread_id": "t", endings.FOLDER: str(folder / "endings")}}


def killed_and_resumed(graph: Graph, saver: LosingSaver, config: Any) -> str:
    """Lose the result of a command, resume as another program, and return the new result."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(endings, "_THIS_PROGRAM", "another")
        with pytest.raises(KilledError):
            graph.invoke(BEGIN, config, durability="sync")
    saver.is_resumed.set()
    (result,) = results_in(graph.invoke(None, config))
    return str(result.text)


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("true", 0), ("(exit 4)", 4)])
def test_a_command_that_has_ended_is_not_run_again(
    command: str, code: int, build: Any, tmp_path: Path
) -> None:
    """The result has its exit code and says that the output is lost."""
    saver = LosingSaver()
    graph = build(f"echo once >> log; {command}", tmp_path, saver)
    answer = killed_and_resumed(graph, saver, config_of(tmp_path))
    assert LOST in answer
    assert f"exit code {code}" in answer
    assert (tmp_path / "log").read_text() == "once\n"


def test_without_a_folder_nothing_is_kept(build: Any, tmp_path: Path) -> None:
    """An agent in a user's own program runs the command again, like any tool."""
    saver = LosingSaver()
    graph = build("echo twice >> log", tmp_path, saver)
    answer = killed_and_resumed(graph, saver, {"configurable": {"thread_id": "t"}})
    assert LOST not in answer
    assert (tmp_path / "log").read_text() == "twice\ntwice\n"


def test_a_command_that_was_killed_is_run_again(build: Any, tmp_path: Path) -> None:
    """It stored no exit code."""
    saver = LosingSaver()
    graph = build("echo began >> log; test -e go || { touch go; kill -9 $$; }", tmp_path, saver)
    answer = killed_and_resumed(graph, saver, config_of(tmp_path))
    assert "exit code 0" in answer
    assert (tmp_path / "log").read_text() == "began\nbegan\n"


def test_the_same_command_twice_in_one_turn_runs_twice(tmp_path: Path) -> None:
    """The second command does not use the exit code of the first."""
    same = [call("shell", command="echo run >> log") for _ in range(2)]
    model = ScriptedChatModel(script=[turn("", *same), "Done."])
    graph = build_graph(model, [shell_tool(tmp_path)]).compile(checkpointer=InMemorySaver())
    graph.invoke(BEGIN, config_of(tmp_path))
    assert (tmp_path / "log").read_text() == "run\nrun\n"


def test_a_quote_in_the_folders_name_is_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "it's; touch bad"
    config: Any = {"configurable": {"thread_id": "t", endings.FOLDER: str(folder)}}
    graph = until_done('echo "it\'s"', tmp_path, LosingSaver())
    with pytest.raises(KilledError):
        graph.invoke(BEGIN, config, durability="sync")
    assert len(list(folder.iterdir())) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder.name]
