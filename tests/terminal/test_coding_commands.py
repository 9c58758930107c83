"""The coding agent's commands, in the foreground and in the background."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.coding_agent import build_coding_agent
from tests.support import BEGIN, time_is_up_after
from tests.waiting import await_for, has_ended, wait_for, wait_for_line
from todo_tools.testing import ScriptedChatModel, call, turn

Execute = Callable[..., Awaitable[str]]


CHILD_TO_END = "the child of the command to end"
# A command whose child outlives the shell, unless the whole tree is killed.
WITH_CHILD = "echo begun; sh -c 'echo $$ > child; exec sleep 600' & wait"


@pytest.fixture(params=["sync", "async"])
def execute(request: pytest.FixtureRequest, tmp_path: Path) -> Execute:
    """Have the agent run a command, and return the result."""

    async def execute(command: str, *, limit: int = 120, **arguments: Any) -> str:
        script: list[Any] = [turn("", call("execute", command=command, **arguments)), "Done."]
        model = ScriptedChatModel(script=script)
        agent = build_coding_agent(model, tmp_path, ask=False, timeout=limit)
        final = agent.invoke(BEGIN) if request.param == "sync" else await agent.ainvoke(BEGIN)
        return str(final["messages"][-2].text)

    return execute


@pytest.mark.slow
class TestCommands:
    async def test_output_and_exit_code_are_reported(
        self, execute: Execute, tmp_path: Path
    ) -> None:
        """Success and failure are named, and errors are among the output."""
        assert await execute("pwd") == f"{tmp_path}\n[Command succeeded with exit code 0]"
        assert await execute("echo out; echo no >&2; exit 3") == (
            "out\nno\n[Command failed with exit code 3]"
        )

    @pytest.mark.parametrize(
        ("limit", "arguments"), [(1, {}), (60, {"timeout": 1})], ids=["set", "given by the model"]
    )
    async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(
        self,
        limit: int,
        arguments: dict[str, int],
        execute: Execute,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The result has the time limit and the output until then."""
        child = tmp_path / "child"
        time_is_up_after(lambda: child.exists() and child.read_text(), monkeypatch)
        answer = await execute(WITH_CHILD, limit=limit, **arguments)
        assert answer == "begun\n[Timed out after 1s]\n[Command failed with exit code 124]"
        wait_for(lambda: has_ended(tmp_path / "child"), CHILD_TO_END)

    async def test_a_cancelled_command_is_ended_with_all_it_started(self, tmp_path: Path) -> None:
        script = [turn("", call("execute", command=WITH_CHILD))]
        agent = build_coding_agent(ScriptedChatModel(script=script), tmp_path, ask=False)
        run = asyncio.create_task(agent.ainvoke(BEGIN))
        await asyncio.to_thread(wait_for_line, tmp_path / "child")
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await await_for(lambda: has_ended(tmp_path / "child"), CHILD_TO_END)
