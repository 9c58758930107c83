"""A step is completed only if its command has succeeded, whatever the model says."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphs.checked import command_in, command_passed
from graphs.coding_agent import build_coding_agent
from graphs.terminal.tools.shell import shell_tool
from graphs.until_done import build_graph
from tests.support import BEGIN, edit, items, plan
from todo_tools import AutoContinue, TodoItem
from todo_tools.testing import ScriptedChatModel, call, turn

STEP: TodoItem = {"text": "Test: `make test`", "status": "in_progress"}
NO_LOOP = AutoContinue(max_in_turn=0)
NOT_RUN = "its command was not run to its end since the user's last message"


def reason(*messages: BaseMessage, item: TodoItem = STEP) -> str | None:
    return command_passed(item, {"messages": list(messages), "todos": [item]})


def ran(command: str, exit_code: int = 0, **fields: Any) -> ToolMessage:
    """The result of a command, whose text the check must not believe."""
    artifact = {"command": command, "exit_code": exit_code}
    return ToolMessage("exit code 0", **{"artifact": artifact, "tool_call_id": "1", **fields})


@pytest.mark.parametrize(
    ("step", "command"),
    [
        ("Test: `make test`", "make test"),
        ("Say `` echo `date` `` or `ls`", "echo `date`"),
        ("Think", None),
        ("An `open tick", None),
    ],
)
def test_the_command_of_a_step_is_its_first_text_in_backticks(
    step: str, command: str | None
) -> None:
    assert command_in(step) == command


def test_a_step_without_a_command_needs_none() -> None:
    assert reason(item=items("Think")[0]) is None


def test_a_command_must_have_run() -> None:
    """Another command does not count."""
    assert reason(HumanMessage("Go.")) == NOT_RUN
    assert reason(ran("echo make test")) == NOT_RUN
    assert reason(ran("make test\n")) is None


def test_the_last_run_counts() -> None:
    failed, passed = ran("make test", 1), ran("make test")
    assert reason(failed, passed) is None
    assert reason(passed, failed) == "its command ended with exit code 1"


def test_a_run_before_the_users_last_message_does_not_count() -> None:
    """A message of the loop is not the user's."""
    continuation = HumanMessage("Go on.", additional_kwargs={"lc_source": "todo_tools"})
    assert reason(ran("make test"), HumanMessage("Again.")) == NOT_RUN
    assert reason(HumanMessage("Go."), ran("make test"), continuation) is None


@pytest.mark.parametrize(
    "artifact", [None, {"exit_code": 0}, {"command": "make test"}, {"command": "x", "exit_code": 0}]
)
def test_only_an_artifact_with_both_counts(artifact: Any) -> None:
    """The call has the command of the step, and the text of the result says exit code 0."""
    made = AIMessage("", tool_calls=[{**call("shell", command="make test"), "id": "1"}])
    assert reason(made, ran("make test", artifact=artifact)) == NOT_RUN


@pytest.mark.slow
def test_a_model_that_lies_gets_no_step_past_the_list(tmp_path: Path) -> None:
    """It says three times that the failing step is done."""
    run = turn("", call("shell", command="exit 3"))
    model = ScriptedChatModel(script=[run, *[edit("complete", 0)] * 3, "", ""])
    graph = build_graph(model, [shell_tool(tmp_path)], policy=NO_LOOP, check=command_passed)
    todos = items("Test: `exit 3`")
    request: Any = {**BEGIN, "todos": todos}
    final = graph.compile().invoke(request)
    assert final["todos"] == todos
    refused = "item 0 is not done: its command ended with exit code 3"
    assert refused in "".join(message.text for message in final["messages"])


@pytest.mark.slow
@pytest.mark.parametrize(("run", "status"), [("true", "not_started"), ("exit 0", "completed")])
def test_a_command_that_a_person_edited_counts_as_what_it_became(
    run: str, status: str, tmp_path: Path
) -> None:
    """The history still has the model's own call."""
    made = turn("", call("execute", command="exit 0"))
    script: list[Any] = [plan("Test: `exit 0`"), made, edit("complete", 0), "Done."]
    agent: Any = build_coding_agent(
        ScriptedChatModel(script=script),
        tmp_path,
        policy=NO_LOOP,
        checkpointer=InMemorySaver(),
        check=command_passed,
    )
    config: Any = {"configurable": {"thread_id": "t"}}
    agent.invoke(BEGIN, config)
    action = {"name": "execute", "args": {"command": run}}
    decisions = [{"type": "edit", "edited_action": action}]
    final = agent.invoke(Command(resume={"decisions": decisions}), config)
    assert [todo["status"] for todo in final["todos"]] == [status]
