"""A run as lines: their content, their order, and when the list is shown."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphs.terminal.run_lines import RunLines
from tests.support import items
from todo_tools.middleware import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

MODES = ["updates", "custom"]
CALLS = ["1", "2", "3"]


def shown(run: RunLines, *chunks: tuple[str, Any]) -> list[str]:
    """The printed lines."""
    lines = [line for chunk in chunks for line in (*run.after(*chunk), *run.changed_list())]
    return "\n".join(map(str, lines)).splitlines()


def answered(text: str = "", *ids: str) -> tuple[str, Any]:
    calls = [{"name": "shell", "args": {"command": f"do {each}"}, "id": each} for each in ids]
    return "updates", {"agent": {"messages": [AIMessage(text, tool_calls=calls)]}}


def result(call_id: str, text: str) -> tuple[str, Any]:
    message = ToolMessage(text, name="shell", tool_call_id=call_id)
    return "updates", {"tools": {"messages": [message]}}


class TestMessages:
    def test_the_lines_of_an_answer_are_one_block(self) -> None:
        assert shown(RunLines(), answered("One.\n\nTwo.")) == ["💬 One.", "   ", "   Two."]

    def test_long_output_is_cut_to_its_end(self) -> None:
        output = "\n".join(map(str, range(20)))
        lines = shown(RunLines(), answered("", "1"), result("1", output))
        assert lines[1:3] == ["  (8 lines not shown)", "  │ 8"]
        assert len(lines) == 14

    def test_no_text_can_act_in_the_terminal(self) -> None:
        answer = turn("Look\x1b[2J", call("shell", command="cat \x1b]0;title\x07"))
        output = ToolMessage("\x1b[31mred", name="shell", tool_call_id="1")
        chunk = {"agent": {"messages": [answer]}, "tools": [{"messages": [output]}]}
        assert shown(RunLines(), ("updates", chunk)) == [
            "💬 Look␛[2J",
            "→ Shell cat ␛]0;title␇",
            "  │ ␛[31mred",
        ]

    @pytest.mark.parametrize("update", [None, (), [None], {}, {"messages": []}, {"other": 1}])
    def test_updates_without_messages_show_nothing(self, update: Any) -> None:
        assert shown(RunLines(), ("updates", {"node": update})) == []

    def test_a_notice_is_a_line_and_is_not_repeated_below(self) -> None:
        run = RunLines()
        event = {"type": "todo_loop", "outcome": "stalled", "in_turn": 1, "text": "⚠ It stalled."}
        assert shown(run, ("custom", event)) == ["⚠ It stalled."]
        assert not run.followed.notice


def test_tokens_are_counted_once_for_each_answer() -> None:
    """Those of the thread before the run count too; some providers say nothing."""

    def spent(tokens: int, name: str) -> AIMessage:
        usage = UsageMetadata(input_tokens=tokens - 1, output_tokens=1, total_tokens=tokens)
        return AIMessage("Well.", id=name, usage_metadata=usage)

    run = RunLines({"messages": [spent(100, "1"), AIMessage("Free.", id="2")]})
    shown(run, ("updates", {"agent": {"messages": [spent(20, "3")]}}))
    shown(run, ("updates", {"approval": {"messages": [spent(20, "3")]}}))
    assert run.tokens == 120
    run.resume_at({"messages": [spent(100, "1")]})
    assert run.tokens == 100


class TestAsked:
    """Calls that a person is asked about; the question shows them."""

    def test_a_call_that_is_asked_about_is_not_shown_before_the_question(self) -> None:
        run = RunLines(asks="shell".__eq__)
        assert shown(run, answered("I do it.", "1", "2")) == ["💬 I do it."]
        run.has_asked({"name": "shell", "args": {"command": "do 1"}})
        assert [str(line) for line in run.shown_now()] == ["→ Shell do 2"]
        assert not run.shown_now()
        assert shown(run, result("1", "one"), result("2", "two")) == ["  │ one", "  │ two"]

    def test_a_call_that_nobody_is_asked_about_is_shown_with_its_result(self) -> None:
        """It could not succeed. Calls of other tools are shown at once."""
        run = RunLines(asks="shell".__eq__)
        assert shown(run, answered("", "1"), result("1", "no such file")) == [
            "→ Shell do 1",
            "  │ no such file",
        ]
        assert shown(RunLines(asks="other".__eq__), answered("", "1")) == ["→ Shell do 1"]

    def test_calls_of_another_place_in_the_thread_are_forgotten(self) -> None:
        run = RunLines(asks="shell".__eq__)
        shown(run, answered("", "1"))
        run.resume_at({"messages": answered("", "1")[1]["agent"]["messages"]})
        assert [str(line) for line in run.shown_now()] == ["→ Shell do 1"]
        shown(run, answered("", "2"))
        run.resume_at({"messages": []})
        assert not run.shown_now()


REJECTS = "HumanInTheLoopMiddleware.after_model"
REFUSES = "RefuseImpossible.after_model"


def rejected(call_id: str) -> tuple[str, Any]:
    message = ToolMessage("no", name="shell", tool_call_id=call_id, status="error")
    return "updates", {REJECTS: {"messages": [message]}}


class TestDecided:
    """The texts that inform the model of a person's decision are not shown."""

    def test_the_result_of_a_later_call_with_the_id_of_a_rejected_one_is_shown(self) -> None:
        """After a fork, or in another turn of a model server that uses the same ids."""
        run = RunLines()
        assert shown(run, answered("", "1"), rejected("1")) == ["→ Shell do 1"]
        approved = ("updates", {REJECTS: None})
        lines = shown(run, answered("", "1"), approved, result("1", "one"))
        assert lines == ["→ Shell do 1", "  │ one"]

    def test_so_is_that_of_a_call_which_was_approved_on_another_branch(self) -> None:
        run = RunLines()
        calls = answered("", "1")
        shown(run, calls, rejected("1"))
        run.resume_at({"messages": calls[1]["agent"]["messages"]})
        assert shown(run, result("1", "one")) == ["  │ one"]

    def test_a_rejection_is_not_shown_after_the_result_of_an_approved_call(self) -> None:
        run = RunLines()
        shown(run, answered("", "1", "2"))
        assert shown(run, rejected("2"), result("1", "one")) == ["  │ one"]


class TestOrder:
    @pytest.mark.parametrize("order", list(permutations(CALLS)))
    def test_results_are_shown_in_the_order_of_the_calls(self, order: tuple[str, ...]) -> None:
        """The order in which results arrive does not matter."""
        run = RunLines()
        shown(run, answered("", *CALLS))
        lines = shown(run, *(result(each, each) for each in order))
        assert lines == ["  │ 1", "  │ 2", "  │ 3"]

    @pytest.mark.parametrize(("refused", "approved"), [("1", "2"), ("2", "1")])
    def test_an_error_before_the_question_about_another_call_hides_no_result(
        self, refused: str, approved: str
    ) -> None:
        """It is shown at once; then the middleware that asks repeats the model's answer."""
        calls = [call("shell", command=f"do {each}") | {"id": each} for each in ("1", "2")]
        answer = turn("", *calls).model_copy(update={"id": "a"})
        error = ToolMessage("no file", name="shell", tool_call_id=refused)
        run = RunLines(asks="shell".__eq__)
        shown(run, ("updates", {"model": {"messages": [answer]}}))
        lines = shown(run, ("updates", {REFUSES: {"messages": [error]}}))
        assert lines == [f"→ Shell do {refused}", "  │ no file"]
        run.resume_at({"messages": [answer, error]})
        shown(run, ("updates", {REJECTS: {"messages": [answer]}}))
        assert shown(run, result(approved, "done")) == [f"→ Shell do {approved}", "  │ done"]

    def test_ids_of_earlier_turns_do_not_change_it(self) -> None:
        """Some model servers use the same ids again."""
        calls = answered("", "1", "2")[1]["agent"]["messages"]
        old = [ToolMessage("old", name="shell", tool_call_id=each) for each in ("1", "2")]
        run = RunLines({"messages": [*calls, *old, *calls]})
        assert shown(run, result("2", "two"), result("1", "one")) == ["  │ one", "  │ two"]

    def test_results_of_calls_from_an_earlier_stream_are_shown(self) -> None:
        """A process that resumes a thread knows the calls from its state."""
        calls = answered("", "1", "2")[1]["agent"]["messages"]
        done = ToolMessage("1", name="shell", tool_call_id="1")
        assert shown(RunLines({"messages": [*calls, done]}), result("2", "2")) == ["  │ 2"]
        assert shown(RunLines(), result("2", "2")) == ["  │ 2"]

    def test_events_that_overtake_each_other_show_the_last_list_only(self) -> None:
        """The calls of one AI message run in threads, so their events arrive in any order."""
        for _ in range(5):
            script: list[AIMessage | str] = [
                turn(
                    "",
                    call("write_todos", mode="replace", todos=["a", "b", "c"]),
                    *(call("edit_todos", action="complete", indices=[n]) for n in range(3)),
                ),
                "Done.",
            ]
            agent = create_agent(ScriptedChatModel(script=script), middleware=[TodoMiddleware()])
            run, lines = RunLines(), list[str]()
            for chunk in begin(agent):
                lines += shown(run, chunk)
            assert lines[4:] == [
                "  ✓ [0] a",
                "  ✓ [1] b",
                "  ✓ [2] c",
                "  ✓ Done (3 items)",
                "💬 Done.",
            ]


def begin(agent: Any, request: Any = None, config: Any = None) -> Iterator[tuple[str, Any]]:
    request = request or {"messages": [("user", "Begin.")]}
    chunks: Iterator[tuple[str, Any]] = agent.stream(request, config, stream_mode=MODES)
    return chunks


class TestList:
    def event(self, *statuses: str) -> tuple[str, Any]:
        todos = [
            {"text": text, "status": status} for text, status in zip("abc", statuses, strict=False)
        ]
        return "custom", {"type": "todos", "todos": todos, "status": "", "position": 0}

    def test_only_the_items_that_moved_on_are_shown_again(self) -> None:
        run = RunLines()
        assert len(shown(run, self.event("in_progress", "not_started", "not_started"))) == 4
        assert shown(run, self.event("completed", "in_progress", "not_started")) == [
            "  ✓ [0] a",
            "  ● [1] b",
            "  📋 1/3",
        ]
        assert shown(run, self.event("completed", "in_progress", "not_started")) == []

    def test_a_list_with_other_texts_is_shown_whole(self) -> None:
        run = RunLines({"messages": [], "todos": items("x", "b")})
        assert len(shown(run, self.event("not_started", "not_started"))) == 3

    def test_the_list_before_the_run_is_not_shown_again(self) -> None:
        run = RunLines({"messages": [], "todos": items("a")})
        assert shown(run, self.event("not_started")) == []


def output(command: str, text: str) -> tuple[str, Any]:
    return "custom", {"type": "tool_output", "command": command, "text": text}


class TestOutput:
    """The output of running tools, for a pipe."""

    def test_each_line_is_shown_as_it_comes_and_once(self) -> None:
        """The result then adds only what was not shown."""
        run = RunLines(output=True)
        chunks = [
            answered("", "1"),
            output("do 1", "one\ntw"),
            output("do 1", "o\nthree"),
            result("1", "one\ntwo\nthree\nfour\nexit code 0"),
        ]
        assert [shown(run, chunk) for chunk in chunks] == [
            ["→ Shell do 1"],
            ["  │ one"],
            ["  │ two"],
            ["  │ three", "  │ four", "  │ exit code 0"],
        ]

    def test_the_lines_of_several_commands_name_their_call(self) -> None:
        """Their results do too; the number distinguishes calls that begin alike."""
        run = RunLines(output=True)
        shown(run, answered("", "1", "2", "3"))
        outputs = [output("do 1", "a\n"), output("do 2", "a\n"), output("do 1", "b\n")]
        results = [result("2", "a\nexit code 2"), result("1", "a\nb\nexit code 1")]
        assert shown(run, *outputs) == [
            "  1 shell do 1 │ a",
            "  2 shell do 2 │ a",
            "  1 shell do 1 │ b",
        ]
        assert shown(run, *results, result("3", "a\nexit code 3")) == [
            "  1 shell do 1 │ exit code 1",
            "  2 shell do 2 │ exit code 2",
            "  3 shell do 3 │ a",
            "  3 shell do 3 │ exit code 3",
        ]

    def test_a_todo_call_beside_a_command_does_not_count(self) -> None:
        shell = {"name": "shell", "args": {"command": "make"}, "id": "1"}
        start = call("edit_todos", action="start", indices=[0])
        run = RunLines(output=True)
        shown(run, ("updates", {"agent": {"messages": [AIMessage("", tool_calls=[start, shell])]}}))
        assert shown(run, output("make", "a\n")) == ["  │ a"]

    def test_of_many_lines_at_once_the_last_are_shown(self) -> None:
        """The result does not count the others again."""
        run = RunLines(output=True)
        shown(run, answered("", "1"))
        text = "\n".join(map(str, range(20)))
        lines = shown(run, output("do 1", f"{text}\n"))
        assert lines[:2] == ["  (8 lines not shown)", "  │ 8"]
        assert lines[2:] == [f"  │ {number}" for number in range(9, 20)]
        assert shown(run, result("1", f"{text}\nexit code 0")) == ["  │ exit code 0"]

    def test_a_line_that_occurs_twice_is_shown_twice(self) -> None:
        run = RunLines(output=True)
        shown(run, answered("", "1"), output("do 1", "a\n"))
        assert shown(run, result("1", "a\na\nexit code 0")) == ["  │ a", "  │ exit code 0"]

    def test_a_line_of_standard_error_is_shown_once(self) -> None:
        """Only the result marks it."""
        run = RunLines(output=True)
        shown(run, answered("", "1"), output("do 1", "a\n"))
        assert shown(run, result("1", "b\n[stderr] a\nexit code 1")) == [
            "  │ b",
            "  │ exit code 1",
        ]

    def test_where_the_output_is_shown_in_place_the_result_is_whole(self) -> None:
        run = RunLines()
        assert shown(run, answered("", "1"), output("do 1", "a\n"))[1:] == []
        assert shown(run, result("1", "a\nexit code 0")) == ["  │ a", "  │ exit code 0"]

    def test_no_output_can_act_in_the_terminal(self) -> None:
        run = RunLines(output=True)
        shown(run, answered("", "1"))
        assert shown(run, output("do 1", "10%\r20%\x1b[2J\r\n")) == ["  │ 10%␍20%␛[2J"]


class TestLoop:
    def test_the_decisions_of_the_loop_are_shown(self) -> None:
        sent_back = {"type": "todo_loop", "outcome": None, "in_turn": 2, "text": ""}
        stopped = {"type": "todo_loop", "outcome": "limit_in_a_row", "in_turn": 2, "text": "⚠ Stop"}
        assert shown(RunLines(), ("custom", sent_back), ("custom", stopped)) == [
            "↻ not finished: sent back to work (continuation 2)",
            "⚠ Stop",
        ]

    def test_events_of_other_tools_are_ignored(self) -> None:
        assert shown(RunLines(), ("custom", {"type": "other"}), ("custom", {})) == []


def test_an_answer_that_middleware_repeats_is_shown_once(config: RunnableConfig) -> None:
    """The stream repeats the model's answer when an approval is resumed."""
    script: list[AIMessage | str] = [turn("I ask.", call("list_todos")), "Done."]
    agent = create_agent(
        ScriptedChatModel(script=script),
        middleware=[TodoMiddleware(), HumanInTheLoopMiddleware({"list_todos": True})],
        checkpointer=InMemorySaver(),
    )
    run, lines = RunLines(), list[str]()
    approval: Any = Command(resume={"decisions": [{"type": "approve"}]})
    for request in (None, approval):
        for chunk in begin(agent, request, config):
            lines += shown(run, chunk)
    assert lines == ["💬 I ask.", "→ list_todos", "💬 Done."]


def test_lines_from_before_an_approval_are_not_shown_again(config: RunnableConfig) -> None:
    """This also holds in another program that resumes the thread."""
    script: list[AIMessage | str] = [turn("I ask.", call("list_todos")), "Done."]
    agent = create_agent(
        ScriptedChatModel(script=script),
        middleware=[TodoMiddleware(), HumanInTheLoopMiddleware({"list_todos": True})],
        checkpointer=InMemorySaver(),
    )
    for _ in begin(agent, None, config):
        pass
    run, lines = RunLines(agent.get_state(config).values), list[str]()
    rejection: Any = Command(resume={"decisions": [{"type": "reject", "message": "No."}]})
    for chunk in begin(agent, rejection, config):
        lines += shown(run, chunk)
    assert lines == ["💬 Done."]
