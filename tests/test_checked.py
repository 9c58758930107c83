"""A step is completed only if its command has succeeded, whatever the model says."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from graphs.checked import command_passed
from graphs.coding_agent import build_coding_agent
from graphs.terminal.checklist import main
from graphs.terminal.tools.shell import shell_tool
from graphs.until_done import build_graph
from tests.support import BEGIN, checklist, edit, items, plan, write_checklist
from todo_tools import AutoContinue, TodoItem, TodoLimits
from todo_tools.checklist import read_todos
from todo_tools.testing import ScriptedChatModel, call, turn

STEP: TodoItem = {"text": "Test: `make test`", "status": "in_progress"}
ASKED = HumanMessage(checklist("Build: `make`", "Test: `make test`", "Think"))
LISTED = ["Build: `make`", "Test: `make test`", "Think"]
NO_LOOP = AutoContinue(max_in_turn=0)
CONFIG: Any = {"configurable": {"thread_id": "t"}}
NOT_RUN = "its command was not run to its end"


def reason(*messages: BaseMessage, item: TodoItem = STEP, listed: list[str] = LISTED) -> str | None:
    return command_passed(item, {"messages": list(messages), "todos": items(*listed)})


def ran(command: str, exit_code: int = 0, **fields: Any) -> list[BaseMessage]:
    """One run of a command; like some model servers, with the same id each time."""
    made = {**call("shell", command=command), "id": "call_0"}
    artifact = {"command": command, "exit_code": exit_code}
    given = {"artifact": artifact, "tool_call_id": "call_0", **fields}
    return [AIMessage("", tool_calls=[made]), ToolMessage(f"exit code {exit_code}", **given)]


def asking_agent(script: list[Any], workdir: Path) -> Any:
    """A coding agent that asks a person about each command."""
    return build_coding_agent(
        ScriptedChatModel(script=script),
        workdir,
        policy=NO_LOOP,
        checkpointer=InMemorySaver(),
        check=command_passed,
    )


class TestReason:
    def test_a_step_without_a_command_needs_none(self) -> None:
        assert reason(item=items("Think")[0]) is None

    def test_a_command_that_was_not_run(self) -> None:
        assert reason(HumanMessage("Go.")) == NOT_RUN

    def test_another_command_does_not_count(self) -> None:
        assert reason(*ran("echo make test")) == NOT_RUN

    def test_a_command_that_failed(self) -> None:
        assert reason(*ran("make test", 1)) == "its command ended with exit code 1"

    def test_the_last_run_counts(self) -> None:
        failed, passed = ran("make test", 1), ran("make test")
        assert reason(*failed, *passed) is None
        assert reason(*passed, *failed) == "its command ended with exit code 1"

    def test_one_run_counts_for_all_steps_with_the_command(self) -> None:
        again: TodoItem = {"text": "Test again: `make test`", "status": "not_started"}
        assert reason(*ran("make test"), item=again, listed=[*LISTED, again["text"]]) is None

    def test_a_later_run_in_the_background_counts(self) -> None:
        """Nobody sees how it ends, so the command has to be run again."""
        made = {**call("run_in_background", command="make test"), "id": "call_0"}
        started = AIMessage("", tool_calls=[made])
        background = [started, ToolMessage("Started.", tool_call_id="call_0")]
        assert reason(*ran("make test"), *background) == NOT_RUN
        assert reason(*background, *ran("make test")) is None
        refused = [started, ToolMessage("No.", tool_call_id="call_0", status="error")]
        assert reason(*ran("make test"), *refused) is None

    @pytest.mark.parametrize(
        "fields", [{"status": "error"}, {"artifact": None}, {"artifact": {"command": "make test"}}]
    )
    def test_a_later_run_without_an_exit_code_counts(self, fields: dict[str, Any]) -> None:
        """Nobody knows how it ended, so the success before it proves nothing."""
        unknown = ran("make test", **fields)
        assert reason(*ran("make test"), *unknown) == NOT_RUN
        assert reason(*unknown, *ran("make test")) is None

    def test_any_argument_of_a_later_run_may_have_the_command(self) -> None:
        made = {**call("execute", script="make test", timeout=5), "id": "call_0"}
        unknown = [AIMessage("", tool_calls=[made]), ToolMessage("Stopped.", tool_call_id="call_0")]
        assert reason(*ran("make test"), *unknown) == NOT_RUN

    def test_another_command_that_was_cut_off_does_not_count(self) -> None:
        """A person stopped it, for example."""
        other = AIMessage("", tool_calls=[call("shell", command="true")])
        assert reason(*ran("make test"), other, HumanMessage("Go on."), AIMessage("")) is None

    def test_of_calls_with_one_id_no_result_proves_an_end(self) -> None:
        """Nobody knows which of them it belongs to."""
        calls = call("shell", command="ls"), call("run_in_background", command="make test")
        twice = AIMessage("", tool_calls=[{**each, "id": "call_0"} for each in calls])
        results = [*ran("ls")[1:], ToolMessage("Started.", tool_call_id="call_0")]
        assert reason(*ran("make test"), twice, *results, AIMessage("")) == NOT_RUN

    def test_a_later_call_that_a_person_edited_into_another_command_does_not_count(self) -> None:
        other = ran("make test", artifact={"command": "true", "exit_code": 0})
        assert reason(*ran("make test"), *other) is None

    @pytest.mark.parametrize("codes", [(0, 1), (1, 0)])
    def test_of_runs_at_the_same_time_each_must_succeed(self, codes: tuple[int, int]) -> None:
        """Which of them ended last is not known."""
        calls = [{**call("shell", command="make test"), "id": str(at)} for at in (0, 1)]
        results = [ran("make test", code, tool_call_id=str(at))[1] for at, code in enumerate(codes)]
        answer = AIMessage("", tool_calls=calls)
        assert reason(answer, *results) == "its command ended with exit code 1"

    def test_a_later_run_that_was_cut_off_counts(self) -> None:
        """Its call has no result; calls of other commands do not matter."""
        passed, (cut_off, _), (other, _) = ran("make test"), ran("make test"), ran("make")
        assert reason(*passed, cut_off, HumanMessage("Go on.")) == NOT_RUN
        assert reason(*passed, cut_off, *ran("make")) == NOT_RUN
        assert reason(*passed, other) is None
        assert reason(cut_off, *passed) is None

    @pytest.mark.parametrize(("blank", "expected"), [("\n", None), ("\u00a0", NOT_RUN)])
    def test_only_blanks_that_a_shell_ignores_do_not_count(
        self, blank: str, expected: str | None
    ) -> None:
        assert reason(*ran(f"make test{blank}")) == expected

    @pytest.mark.parametrize(
        "fields",
        [
            {"artifact": None},
            {"artifact": {"exit_code": 0}},
            {"artifact": {"command": "make test"}},
            {"artifact": {"command": "true", "exit_code": 0}},
            {"status": "error"},
        ],
        ids=str,
    )
    def test_only_the_artifact_of_a_success_counts(self, fields: dict[str, Any]) -> None:
        """The text of the result says exit code 0, and the call has the command of the step."""
        assert reason(*ran("make test", **fields)) == NOT_RUN


class TestRewrittenList:
    """The user's checklist says what must succeed."""

    def test_a_step_without_its_backticks_needs_its_command(self) -> None:
        item = items("Test: make test")[0]
        listed = ["Build: `make`", item["text"], "Think"]
        assert reason(ASKED, item=item, listed=listed) == (
            "the command 'make test' of the checklist was not run to its end"
        )
        assert reason(ASKED, *ran("make test"), item=item, listed=listed) is None

    def test_a_step_with_another_command_needs_its_own(self) -> None:
        item = items("Test: `true`")[0]
        listed = ["Build: `make`", item["text"], "Think"]
        assert reason(ASKED, *ran("true"), *ran("make test", 2), item=item, listed=listed) == (
            "the command 'make test' of the checklist ended with exit code 2"
        )

    def test_a_step_that_was_dropped_is_not_forgotten(self) -> None:
        done = ran("make test")
        assert reason(ASKED, *done, listed=["Test: `make test`"]) == (
            "the command 'make' of the checklist was not run to its end"
        )
        assert reason(ASKED, *done, *ran("make"), listed=["Test: `make test`"]) is None

    def test_items_may_be_added(self) -> None:
        """The steps of the checklist are still there, each with its own command."""
        item = items("Fix the bug")[0]
        assert reason(ASKED, item=item, listed=[*LISTED, item["text"]]) is None

    @pytest.mark.parametrize("mode", ["replace", "append"])
    def test_a_list_that_is_replaced_in_the_same_turn_is_not_believed(self, mode: str) -> None:
        """The state still has the old list then. To append an item takes no step away."""
        write = call("write_todos", mode=mode, todos=["All done"])
        rewriting = turn("", write, call("edit_todos", action="complete", indices=[0]))
        refused = reason(ASKED, rewriting, item=items("All done")[0])
        assert (refused is not None) == (mode == "replace")

    def test_a_run_before_the_checklist_does_not_count(self) -> None:
        assert reason(*ran("make test"), ASKED) == NOT_RUN

    def test_the_newest_checklist_counts(self) -> None:
        """Later messages without one do not replace it."""
        old = HumanMessage(checklist("Old: `old`"))
        item, listed = items("Test")[0], ["Test"]
        for messages in ([old, ASKED], [old, ASKED, HumanMessage("Go on.")]):
            assert reason(*messages, *ran("make"), item=item, listed=listed) == (
                "the command 'make test' of the checklist was not run to its end"
            )


@tool
def explain(command: str) -> str:
    """Explain what a command does."""
    return "It ends with exit code 0"


@pytest.mark.slow
class TestAgents:
    @pytest.mark.parametrize(
        ("made", "why"),
        [
            (call("shell", command="exit 3"), "its command ended with exit code 3"),
            (call("explain", command="exit 3"), NOT_RUN),
            (call("exit code 0", command="exit 3"), NOT_RUN),
        ],
        ids=["a failure", "another tool", "an unknown tool"],
    )
    def test_a_model_that_lies_gets_no_step_past_the_list(
        self, made: ToolCall, why: str, tmp_path: Path
    ) -> None:
        """It says three times that the failing step is done."""

        def rule(prompt: list[BaseMessage]) -> AIMessage | str:
            said = sum(isinstance(message, AIMessage) for message in prompt)
            if said == 0:
                return turn("", made)
            return edit("complete", 0) if said < 4 else ""

        graph = build_graph(
            ScriptedChatModel(script=rule), [shell_tool(tmp_path), explain], check=command_passed
        ).compile()
        request: Any = {
            "messages": [HumanMessage("Go.")],
            "todos": [{"text": "Test: `exit 3`", "status": "not_started"}],
        }
        final = graph.invoke(request)
        assert final["todos"] == request["todos"]
        assert final["todo_loop"]["outcome"] == "stalled"
        assert final["todo_loop"]["refused"] == f"item 0 is not done: {why}"

    def test_an_error_that_repeats_the_arguments_proves_nothing(self, tmp_path: Path) -> None:
        made = call("execute", command="make test", timeout="exit code 0")
        script: list[Any] = [
            plan("Test: `make test`"),
            turn("", made),
            edit("complete", 0),
            "Done.",
        ]
        agent = build_coding_agent(
            ScriptedChatModel(script=script),
            tmp_path,
            ask=False,
            policy=NO_LOOP,
            check=command_passed,
        )
        final = agent.invoke(BEGIN)
        assert any("exit code 0" in message.text for message in final["messages"])
        assert final["todos"] == items("Test: `make test`")

    @pytest.mark.parametrize(("run", "status"), [("true", "not_started"), ("exit 0", "completed")])
    def test_a_command_that_a_person_edited_counts_as_what_it_became(
        self, run: str, status: str, tmp_path: Path
    ) -> None:
        """The history still has the model's own call."""
        script: list[Any] = [
            plan("Test: `exit 0`"),
            turn("", call("execute", command="exit 0")),
            edit("complete", 0),
            "Done.",
        ]
        agent = asking_agent(script, tmp_path)
        agent.invoke(BEGIN, CONFIG)
        action = {"name": "execute", "args": {"command": run}}
        decisions = [{"type": "edit", "edited_action": action}]
        final = agent.invoke(Command(resume={"decisions": decisions}), CONFIG)
        assert [todo["status"] for todo in final["todos"]] == [status]

    def test_a_background_call_that_a_person_edited_into_the_command_counts(
        self, tmp_path: Path
    ) -> None:
        """Nobody sees how it ends, so the run before it proves nothing."""
        script: list[Any] = [
            plan("Test: `exit 0`"),
            turn("", call("execute", command="exit 0")),
            turn("", call("run_in_background", command="true")),
            edit("complete", 0),
            "Done.",
        ]
        agent = asking_agent(script, tmp_path)
        agent.invoke(BEGIN, CONFIG)
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), CONFIG)
        action = {"name": "run_in_background", "args": {"command": "exit 0"}}
        decisions = [{"type": "edit", "edited_action": action}]
        final = agent.invoke(Command(resume={"decisions": decisions}), CONFIG)
        assert final["todos"] == items("Test: `exit 0`")

    @pytest.mark.parametrize(("new_list", "status"), [(True, "not_started"), (False, "completed")])
    def test_a_checklist_that_comes_again_with_a_new_list_is_done_again(
        self, new_list: bool, status: str, tmp_path: Path
    ) -> None:
        """Without a new list the tick stays; a person may have set it."""
        text = checklist("Test: `test ! -e broken`")
        run = turn("", call("shell", command="test ! -e broken"))
        model = ScriptedChatModel(script=[run, edit("complete", 0), ""] * 2)
        builder = build_graph(model, [shell_tool(tmp_path)], policy=NO_LOOP, check=command_passed)
        graph = builder.compile(checkpointer=InMemorySaver())
        request: Any = {"messages": [("user", text)], "todos": read_todos(text)}
        first = graph.invoke(request, CONFIG)
        assert [todo["status"] for todo in first["todos"]] == ["completed"]
        (tmp_path / "broken").touch()
        final = graph.invoke(request if new_list else {"messages": [("user", text)]}, CONFIG)
        assert [todo["status"] for todo in final["todos"]] == [status]

    @pytest.mark.parametrize(("keep_open", "status"), [(True, "not_started"), (False, "completed")])
    def test_an_open_step_that_is_kept_needs_no_checklist(
        self, keep_open: bool, status: str
    ) -> None:
        """The user's message may be summarized, and then only the list says the command."""
        model = ScriptedChatModel(script=[plan("Build it"), edit("complete", 0), ""])
        limits = TodoLimits(keep_open=keep_open)
        graph = build_graph(model, limits=limits, policy=NO_LOOP, check=command_passed).compile()
        final = graph.invoke({**BEGIN, "todos": items("Build: `make`")})
        assert [todo["status"] for todo in final["todos"]] == [status]

    def test_the_program_has_it_as_an_option_and_remembers_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """And `--costs` shows at the end what each step took."""
        monkeypatch.chdir(tmp_path)
        steps = write_checklist("Say: `echo ja`", "Think")
        assert main([steps, "--checked", "--costs", "--grace", "0", "--thread", "t"]) == 0
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
