"""A command that has ended is not run again if its program was killed before storing the result."""

import stat
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from deepagents.backends.protocol import ExecuteResponse
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from graphs.coding_agent import build_coding_agent
from graphs.terminal.tools import endings
from graphs.terminal.tools.shell import shell_tool
from graphs.until_done import build_graph
from tests.support import BEGIN, Graph, results_in
from todo_tools.testing import ScriptedChatModel, call, turn

pytestmark = pytest.mark.slow


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


def until_done(command: str, folder: Path, saver: LosingSaver, calls: int = 1) -> Graph:
    made = [call("shell", command=command) for _ in range(calls)]
    model = ScriptedChatModel(script=[turn("", *made), "Done."])
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
    """Lose the results of a step, resume as another program, and return the last new result."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(endings, "_THIS_PROGRAM", "another")
        with pytest.raises(KilledError):
            graph.invoke(BEGIN, config, durability="sync")
    saver.is_resumed.set()
    return str(results_in(graph.invoke(None, config))[-1].text)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("exit 3", 3),
        ("true", 0),
        ("(exit 4)", 4),
        ("exec true", 0),
        ("exit 128", 128),
        ("exit 255", 255),
        ("trap 'exit 5' EXIT", 5),
        ("sh -c 'kill -TERM $$' || true", 0),
    ],
)
def test_a_command_that_has_ended_is_not_run_again(
    command: str, code: int, build: Any, tmp_path: Path
) -> None:
    """The resumed program has its output and its exit code."""
    saver = LosingSaver()
    graph = build(f"echo once | tee -a log; {command}", tmp_path, saver)
    answer = killed_and_resumed(graph, saver, config_of(tmp_path))
    assert answer.startswith("once\n")
    assert f"exit code {code}" in answer
    assert (tmp_path / "log").read_text() == "once\n"


def test_without_a_folder_nothing_is_kept(build: Any, tmp_path: Path) -> None:
    """An agent in a user's own program runs the command again, like any tool."""
    saver = LosingSaver()
    graph = build("echo twice >> log", tmp_path, saver)
    killed_and_resumed(graph, saver, {"configurable": {"thread_id": "t"}})
    assert (tmp_path / "log").read_text() == "twice\ntwice\n"


@pytest.mark.parametrize("name", ["HUP", "INT", "KILL", "TERM"])
def test_a_command_that_a_signal_ended_is_run_again(name: str, build: Any, tmp_path: Path) -> None:
    """The part of it that succeeded before the signal proves nothing. (bash ignores SIGQUIT.)"""
    saver = LosingSaver()
    graph = build(
        f"echo began >> log; test -e go || {{ touch go; kill -{name} $$; }}; echo ended >> log",
        tmp_path,
        saver,
    )
    answer = killed_and_resumed(graph, saver, config_of(tmp_path))
    assert "exit code 0" in answer
    assert (tmp_path / "log").read_text() == "began\nbegan\nended\n"


def test_a_command_whose_last_part_was_ended_by_a_signal_is_run_again(
    build: Any, tmp_path: Path
) -> None:
    """The shell itself ends normally, and its exit code names the signal."""
    saver = LosingSaver()
    graph = build(
        "echo began >> log; test -e go || { touch go; sh -c 'kill -TERM $$'; }", tmp_path, saver
    )
    answer = killed_and_resumed(graph, saver, config_of(tmp_path))
    assert "exit code 0" in answer
    assert (tmp_path / "log").read_text() == "began\nbegan\n"


def test_a_command_with_half_an_emoji_is_no_obstacle(tmp_path: Path) -> None:
    """A model that is cut off may write one."""
    response = ExecuteResponse("ok", exit_code=0)
    endings.Ending(tmp_path / "kept", "step", "echo \ud83d", "first").keep(response)
    assert endings.Ending(tmp_path / "kept", "step", "echo \ud83d", "second").take() == response


@pytest.mark.parametrize("left", ["", '{"output": "o', "\0\0\0"])
def test_a_result_that_cannot_be_read_does_not_count(left: str, tmp_path: Path) -> None:
    """A power loss may leave an empty file, or a part of one; the command runs again."""
    endings.Ending(tmp_path, "step", "make", "first").keep(ExecuteResponse("ok", exit_code=0))
    (kept,) = tmp_path.iterdir()
    kept.write_text(left)
    assert endings.Ending(tmp_path, "step", "make", "second").take() is None


def test_the_same_command_twice_in_one_turn_runs_twice(tmp_path: Path) -> None:
    """The second call does not use the result of the first, and each result is kept."""
    saver = LosingSaver()
    graph = until_done("echo run >> log", tmp_path, saver, calls=2)
    killed_and_resumed(graph, saver, config_of(tmp_path))
    assert (tmp_path / "log").read_text() == "run\nrun\n"


def test_only_the_user_can_read_what_is_kept(tmp_path: Path) -> None:
    """An output may hold secrets."""
    with pytest.raises(KilledError):
        until_done("true", tmp_path, LosingSaver()).invoke(
            BEGIN, config_of(tmp_path / "new"), durability="sync"
        )
    folder = tmp_path / "new" / "endings"
    (kept,) = folder.iterdir()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, kept)]
    assert modes == [0o700, 0o700, 0o600]


def test_a_full_disk_does_not_take_the_result_from_the_agent(tmp_path: Path) -> None:
    """A file is in the place of the folder."""
    (tmp_path / "endings").write_text("")
    saver = LosingSaver()
    saver.is_resumed.set()
    final = until_done("echo ran", tmp_path, saver).invoke(BEGIN, config_of(tmp_path))
    assert results_in(final)[-1].text == "ran\nexit code 0"
