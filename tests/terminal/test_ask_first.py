"""No change is made without the approval of exactly this call, whatever way a run comes to it."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Send

from graphs.coding_agent import build_coding_agent
from tests.support import BEGIN, ROOT, Graph, results_in
from tests.waiting import LONG, await_for, wait_for_line
from todo_tools.testing import ScriptedChatModel, call, turn

pytestmark = pytest.mark.slow

QUESTION = "HumanInTheLoopMiddleware.after_model"
"""The node that asks before the tools."""

APPROVE: Any = Command(resume={"decisions": [{"type": "approve"}]})
REJECT: Any = Command(resume={"decisions": [{"type": "reject"}]})
ONE = call("execute", command="echo one >> log")
TWO = call("execute", command="echo two >> log")
FORGED = call("execute", command="echo forged >> log")


class Work:
    """An agent in a directory, and what its commands have written there."""

    def __init__(self, directory: Path, config: RunnableConfig, *script: AIMessage) -> None:
        self.directory = directory
        self.config = config
        self.saver = InMemorySaver()
        self.restart(*script)

    def restart(self, *script: AIMessage) -> None:
        """Build the agent anew, as another program with the same threads would."""
        model = ScriptedChatModel(script=[*script, *["Done."] * 9])
        self.agent: Graph = build_coding_agent(model, self.directory, checkpointer=self.saver)

    def run(self, request: Any = None, config: Any = None, **settings: Any) -> dict[str, Any]:
        final: dict[str, Any] = self.agent.invoke(request, config or self.config, **settings)
        self.questions = final.get("__interrupt__", [])
        return final

    @property
    def asked(self) -> list[list[str]]:
        """The commands in each question with which the last run ended; they come in any order."""
        return sorted(
            [action["args"]["command"] for action in each.value["action_requests"]]
            for each in self.questions
        )

    def answers(self, **decisions: Any) -> Any:
        """A command that answers the questions, each named by what its command writes."""
        asked = {
            each.value["action_requests"][0]["args"]["command"].split()[1]: each.id
            for each in self.questions
        }
        return Command(resume={asked[name]: answer for name, answer in decisions.items()})

    @property
    def log(self) -> list[str]:
        written = self.directory / "log"
        return written.read_text().split() if written.exists() else []

    def past(self, node: str) -> Any:
        """The first checkpoint at which this node was next."""
        history = list(self.agent.get_state_history(self.config))
        return next(each.config for each in reversed(history) if node in each.next)


@pytest.fixture
def work(tmp_path: Path, config: RunnableConfig) -> Callable[..., Work]:
    return lambda *script: Work(tmp_path, config, *script)


def with_id(made: Any, identifier: str) -> Any:
    return {**made, "id": identifier}


class TestRepeatedIds:
    """Some model servers begin with the same id in each answer."""

    @pytest.mark.parametrize(("decision", "ran"), [(APPROVE, ["one"]), (REJECT, [])])
    def test_the_second_command_is_asked_about_too(
        self, decision: Any, ran: list[str], work: Callable[..., Work]
    ) -> None:
        """It does not run, neither after an approval of the first nor after its rejection."""
        turns = [turn("", with_id(made, "call_0")) for made in (ONE, TWO)]
        done = work(*turns)
        done.run(BEGIN)
        done.run(decision)
        assert done.asked == [["echo two >> log"]]
        assert done.log == ran

    def test_calls_of_one_message_with_one_id_are_asked_about_one_by_one(
        self, work: Callable[..., Work]
    ) -> None:
        """An approval could not say which of them it means."""
        done = work(turn("", *(with_id(made, "call_0") for made in (ONE, TWO))))
        done.run(BEGIN)
        done.run(Command(resume={"decisions": [{"type": "approve"}] * 2}))
        assert (done.asked, done.log) == ([["echo one >> log"], ["echo two >> log"]], [])


class TestOtherWays:
    """Ways to the tools that do not pass the question before them."""

    def test_a_jump_to_the_tools_is_asked_about(self, work: Callable[..., Work]) -> None:
        done = work()
        done.run(BEGIN)
        done.run(Command(goto=Send("tools", [FORGED])))
        assert (done.asked, done.log) == ([["echo forged >> log"]], [])
        done.run(APPROVE)
        assert done.log == ["forged"]

    def test_a_jump_with_several_calls_asks_about_one(self, work: Callable[..., Work]) -> None:
        """The others are refused, because the answer could reach any of them."""
        done = work()
        done.run(BEGIN)
        done.run(Command(goto=Send("tools", [ONE, FORGED])))
        assert len(done.asked) == 1
        (asked,) = done.asked[0]
        final = done.run(APPROVE)
        assert [f"echo {ran} >> log" for ran in done.log] == [asked]
        assert sorted(each.status for each in results_in(final)) == ["error", "success"]

    def test_writing_in_the_name_of_the_question_approves_nothing(
        self, work: Callable[..., Work]
    ) -> None:
        done = work()
        done.run(BEGIN)
        done.agent.update_state(done.config, {"messages": [turn("", FORGED)]}, as_node=QUESTION)
        assert done.agent.get_state(done.config).next == ("tools",)
        done.run()
        assert (done.asked, done.log) == ([["echo forged >> log"]], [])

    def test_a_call_that_was_changed_after_its_approval_is_asked_about(
        self, work: Callable[..., Work]
    ) -> None:
        done = work(turn("", ONE))
        done.run(BEGIN)
        message = done.run(APPROVE, interrupt_before=["tools"])["messages"][-1]
        changed = message.model_copy(update={"tool_calls": [{**FORGED, "id": ONE["id"]}]})
        done.agent.update_state(done.config, {"messages": [changed]}, as_node=QUESTION)
        done.run()
        assert (done.asked, done.log) == ([["echo forged >> log"]], [])

    def test_a_stored_edit_that_no_person_made_is_ignored(self, work: Callable[..., Work]) -> None:
        """LangChain's middleware would replace any call by it, also one that needs no approval."""
        done = work(turn("", call("ls", path="/")))
        done.run(BEGIN, interrupt_before=["tools"])
        (made,) = done.agent.get_state(done.config).values["messages"][-1].tool_calls
        edits = {made["id"]: {"name": "execute", "args": FORGED["args"]}}
        done.agent.update_state(done.config, {"hitl_edited_tool_calls": edits}, as_node=QUESTION)
        (result,) = results_in(done.run())
        assert (result.name, done.log) == ("ls", [])


class TestTimeTravel:
    """An approval is used up when the tool has run."""

    @pytest.mark.parametrize("node", [QUESTION, "tools", "model", "fork"])
    def test_a_replayed_command_is_asked_about_again(
        self, node: str, work: Callable[..., Work]
    ) -> None:
        done = work(turn("", ONE), turn("Done."), turn("", ONE))
        done.run(BEGIN)
        done.run(APPROVE)
        past = done.past("tools" if node == "fork" else node)
        if node == "fork":
            past = done.agent.update_state(past, None)
        done.run(None, past)
        assert (done.asked, done.log) == ([["echo one >> log"]], ["one"])


class TestRestart:
    """Another program resumes a thread between an approval and the end of the command."""

    @pytest.fixture
    def resumed(self, work: Callable[..., Work]) -> Work:
        done = work(turn("", ONE, TWO))
        done.run(BEGIN)
        both: Any = Command(resume={"decisions": [{"type": "approve"}] * 2})
        done.run(both, interrupt_before=["tools"])
        done.restart()
        done.run()
        return done

    def test_each_command_is_asked_about_where_it_runs(self, resumed: Work) -> None:
        assert (resumed.asked, resumed.log) == ([["echo one >> log"], ["echo two >> log"]], [])

    def test_the_answers_are_independent(self, resumed: Work) -> None:
        final = resumed.run(resumed.answers(one=REJECT.resume, two=APPROVE.resume))
        assert resumed.log == ["two"]
        assert [each.status for each in results_in(final)] == ["error", "success"]
        assert final["messages"][-1].text == "Done."

    def test_a_command_can_be_edited_there(self, resumed: Work) -> None:
        """The model reads that it was replaced."""
        action = {"name": "execute", "args": {"command": "echo edited >> log"}}
        edit = {"decisions": [{"type": "edit", "edited_action": action}]}
        final = resumed.run(resumed.answers(one=edit, two=REJECT.resume))
        assert resumed.log == ["edited"]
        assert "a human reviewer replaced this tool call" in results_in(final)[0].text


class TestStopped:
    """An approved command is stopped while it runs."""

    @pytest.fixture
    async def stopped(self, work: Callable[..., Work]) -> Work:
        waits = "touch begun; until test -e go; do sleep 0.02; done; echo one >> log"
        done = work(turn("", call("execute", command=waits)))
        await done.agent.ainvoke(BEGIN, done.config)
        running = asyncio.create_task(done.agent.ainvoke(APPROVE, done.config))
        await await_for((done.directory / "begun").exists, "the command to begin")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        (done.directory / "go").touch()
        return done

    @pytest.mark.parametrize("resume", [None, REJECT, APPROVE])
    async def test_it_is_asked_about_again(self, resume: Any, stopped: Work) -> None:
        """An answer that comes before the question is none: it may be about the stopped run."""
        final = await stopped.agent.ainvoke(resume, stopped.config)
        assert ("__interrupt__" in final, stopped.log) == (True, [])
        await stopped.agent.ainvoke(APPROVE, stopped.config)
        assert stopped.log == ["one"]


PROGRAM = """
import sys
from pathlib import Path
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from graphs.coding_agent import build_coding_agent
from todo_tools.testing import ScriptedChatModel, call, turn

waits = "echo begun >> log; test -e go || sleep 600"
first = turn("", call("execute", command=waits))
model = ScriptedChatModel(script=lambda prompt: "Done." if prompt[-1].type == "tool" else first)
requests = {
    "begin": {"messages": [("user", "Begin.")]},
    "approve": Command(resume={"decisions": [{"type": "approve"}]}),
    "resume": None,
}
with SqliteSaver.from_conn_string("threads.sqlite") as saver:
    agent = build_coding_agent(model, Path("."), checkpointer=saver)
    for word in sys.argv[1:]:
        config = {"configurable": {"thread_id": "t"}}
        final = agent.invoke(requests[word], config, durability="sync")
        print("asked" if "__interrupt__" in final else "done", flush=True)
"""


def test_a_killed_program_asks_again_when_it_is_resumed(tmp_path: Path) -> None:
    """The command that was cut off runs only after another approval."""
    log = tmp_path / "log"

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )

    with start("begin", "approve") as first:
        wait_for_line(log)
        first.kill()
    (tmp_path / "go").touch()
    with start("resume") as second:
        assert second.communicate(timeout=LONG)[0] == "asked\n"
    assert log.read_text() == "begun\n"
    with start("resume", "approve") as third:
        assert third.communicate(timeout=LONG)[0] == "asked\ndone\n"
    assert log.read_text() == "begun\nbegun\n"
