"""A step is completed only if its command has succeeded, whatever the model says."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from graphs.checked import command_passed
from graphs.terminal.checklist import main
from graphs.terminal.tools.shell import shell_tool
from graphs.until_done import build_graph
from tests.support import write_checklist
from todo_tools import TodoItem
from todo_tools.testing import ScriptedChatModel, call, turn

STEP: TodoItem = {"text": "Test: `make test`", "status": "in_progress"}


def reason(*messages: BaseMessage) -> str | None:
    return command_passed(STEP, {"messages": list(messages)})


def ran(command: str, output: str) -> list[BaseMessage]:
    """One run of a command; like some model servers, with the same id each time."""
    made = {**call("shell", command=command), "id": "call_0"}
    return [AIMessage("", tool_calls=[made]), ToolMessage(output, tool_call_id="call_0")]


class TestReason:
    def test_a_step_without_a_command_needs_none(self) -> None:
        assert command_passed({"text": "Think", "status": "in_progress"}, {"messages": []}) is None

    def test_a_command_that_was_not_run(self) -> None:
        assert reason(HumanMessage("Go.")) == "its command was not run"

    def test_another_command_does_not_count(self) -> None:
        assert reason(*ran("echo make test", "exit code 0")) == "its command was not run"

    def test_a_command_that_failed(self) -> None:
        assert reason(*ran("make test", "2 failed\nexit code 1")) == (
            "its command ended with exit code 1"
        )

    def test_the_last_run_counts(self) -> None:
        failed, passed = ran("make test", "exit code 1"), ran("make test", "exit code 0")
        assert reason(*failed, *passed) is None
        assert reason(*passed, *failed) == "its command ended with exit code 1"

    def test_what_a_command_prints_is_not_its_exit_code(self) -> None:
        assert reason(*ran("make test", "exit code 0\nexit code 2")) == (
            "its command ended with exit code 2"
        )

    def test_a_command_without_an_exit_code(self) -> None:
        assert reason(*ran("make test", "rejected by the user")) == "its command did not end"


@pytest.mark.slow
class TestAgents:
    def test_a_model_that_lies_gets_no_step_past_the_list(self, tmp_path: Path) -> None:
        """It says three times that the failing step is done."""

        def rule(prompt: list[BaseMessage]) -> AIMessage | str:
            said = sum(isinstance(message, AIMessage) for message in prompt)
            if said == 0:
                return turn("", call("shell", command="exit 3"))
            return turn("", call("edit_todos", action="complete", indices=[0])) if said < 4 else ""

        graph = build_graph(
            ScriptedChatModel(script=rule), [shell_tool(tmp_path)], check=command_passed
        ).compile()
        request: Any = {
            "messages": [HumanMessage("Go.")],
            "todos": [{"text": "Test: `exit 3`", "status": "not_started"}],
        }
        final = graph.invoke(request)
        assert final["todos"] == request["todos"]
        assert final["todo_loop"]["outcome"] == "stalled"
        assert final["todo_loop"]["refused"] == (
            "item 0 is not done: its command ended with exit code 3"
        )

    def test_the_program_has_it_as_an_option_and_remembers_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """And `--costs` shows at the end what each step took."""
        monkeypatch.chdir(tmp_path)
        plan = write_checklist("Say: `echo ja`", "Think")
        assert main([plan, "--checked", "--costs", "--grace", "0", "--thread", "t"]) == 0
        shown = capsys.readouterr().out
        assert "[0] Say: `echo ja`" in shown.split("bookkeeping", maxsplit=1)[0].splitlines()[-5]
        with SqliteSaver.from_conn_string("todo-threads.sqlite") as saver:
            saved = saver.get_tuple({"configurable": {"thread_id": "t"}})
        assert saved is not None
        assert saved.metadata["checked"] is True  # type: ignore[typeddict-item]  # ours

    def test_the_notes_agent_runs_no_commands_to_check(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert main([write_checklist("a"), "--agent", "notes", "--checked"]) == 2
        assert "--checked is for agents that run commands" in capsys.readouterr().err
