"""The decision to send an agent back to work: order of the checks, work, limits, the prompt."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from tests.support import edit, items, result_of
from todo_tools import AutoContinue, TodoItem
from todo_tools._loop.decision import Decision, Ended, decide, heard
from todo_tools._thread.channels import LoopState
from todo_tools._thread.reading import read
from todo_tools.testing import call, turn

OPEN = [*items("a", status="completed"), *items("b"), *items("c", status="in_progress")]
DONE = items("a", status="abandoned")
USER = HumanMessage("Begin.", id="u1")
TALK = AIMessage("That is all.")
BY_MODEL, ELSEWHERE = Ended(), Ended(by_model=False)


def did(command: str = "make", text: str = "ok", name: str = "shell") -> list[AnyMessage]:
    """A tool call of the model, and its result."""
    made = call(name, command=command)
    return [turn("", made), ToolMessage(text, name=name, tool_call_id=made["id"])]


def completed(index: int) -> tuple[AIMessage, ToolMessage]:
    """A call that completes an item of `OPEN`, and its result."""
    (made,) = (answer := edit("complete", index)).tool_calls
    return answer, result_of("edit_todos", made["args"], OPEN, tool_call_id=made["id"])


def told() -> AnyMessage:
    """A continuation in the history."""
    return HumanMessage("Go on.", additional_kwargs={"lc_source": "todo_tools"})


def at_end(
    todos: list[TodoItem] = OPEN,
    loop: LoopState | None = None,
    policy: AutoContinue = AutoContinue(),
    messages: list[AnyMessage] | None = None,
    ended: Ended = BY_MODEL,
) -> Decision:
    """Decide after an answer without tool calls; by default, of an agent that has worked."""
    history = [USER, *did(), TALK] if messages is None else messages
    state = {"messages": history, "todos": todos}
    reading = read(state)
    return decide(reading, heard(loop or {}, reading), policy, state, ended)


def counted(in_a_row: int, in_turn: int, idle: int = 0) -> LoopState:
    return {"in_a_row": in_a_row, "in_turn": in_turn, "idle": idle, "user_message": "u1"}


REFUSAL = {"type": "refusal", "refusal": "I cannot help with that."}


class TestOrder:
    def test_a_finished_list_stops_before_any_limit_is_checked(self) -> None:
        """So there is no notice about a limit."""
        decision = at_end(DONE, counted(99, 99), AutoContinue(max_in_a_row=0))
        assert decision.outcome == "finished"
        assert decision.notice == ""

    @pytest.mark.parametrize(
        ("last", "outcome"),
        [
            ({"response_metadata": {"stop_reason": "aborted"}}, "aborted"),
            ({"response_metadata": {"finish_reason": "cancelledcancelled"}}, "aborted"),
            ({"response_metadata": {"stop_reason": "refusal"}}, "refused"),
            ({"response_metadata": {"finish_reason": "SAFETY"}}, "refused"),
            ({"response_metadata": {"stopReason": "guardrail_intervened"}}, "refused"),
            (
                {"response_metadata": {"incomplete_details": {"reason": "content_filter"}}},
                "refused",
            ),
            ({"response_metadata": {"prompt_feedback": {"block_reason": "SAFETY"}}}, "refused"),
            ({"additional_kwargs": {"refusal": "I cannot help with that."}}, "refused"),
            ({"content": [REFUSAL]}, "refused"),
            ({"content": [{"type": "non_standard", "value": REFUSAL}]}, "refused"),
        ],
    )
    def test_an_answer_that_was_cut_off_or_refused_stops(
        self, last: dict[str, Any], outcome: str
    ) -> None:
        """Every provider's form counts, also repeated by a stream; `stop_when` is not called."""
        policy = AutoContinue(stop_when=lambda _: True)
        answer = AIMessage(**{"content": "", **last})
        decision = at_end(policy=policy, messages=[USER, answer])
        assert decision.outcome == outcome
        assert bool(decision.notice) == (outcome == "refused")

    @pytest.mark.parametrize("by_model", [True, False])
    def test_a_message_after_an_aborted_answer_does_not_hide_it(self, by_model: bool) -> None:
        """A middleware may add such a message, even as an AI message."""
        added = HumanMessage("The time is 12:00.") if by_model else AIMessage("Stopped.")
        aborted = AIMessage("I was…", response_metadata={"stop_reason": "aborted"})
        decision = at_end(messages=[USER, aborted, added], ended=Ended(by_model=by_model))
        assert decision.outcome == "aborted"

    def test_a_run_that_something_else_ended_stops(self) -> None:
        """A limit on model calls may end it; the outcome of a finished list is still `finished`."""
        assert at_end(ended=ELSEWHERE).outcome == "ended_elsewhere"
        assert at_end(messages=[], ended=ELSEWHERE).outcome == "ended_elsewhere"
        assert at_end(DONE, ended=ELSEWHERE).outcome == "finished"

    @pytest.mark.parametrize(
        "reason", ["stop", "end_turn", "stopstop", "length", "max_tokens", None]
    )
    def test_an_ordinary_end_continues(self, reason: str | None) -> None:
        """An answer that ran out of tokens is also continued."""
        last = AIMessage("", response_metadata={"finish_reason": reason})
        assert at_end(messages=[USER, *did(), last]).outcome is None

    def test_the_applications_condition_stops_before_the_limits(self) -> None:
        """The condition gets the state."""
        policy = AutoContinue(max_in_a_row=0, stop_when=lambda state: len(state["todos"]) == 3)
        assert at_end(policy=policy).outcome == "stop_condition"

    def test_a_continuation_is_counted(self) -> None:
        decision = at_end(loop=counted(3, 7))
        assert decision.outcome is None
        assert decision.next_loop.items() >= counted(4, 8).items()


def after(*messages: AnyMessage) -> str | None:
    """The outcome after these messages, and an answer without a tool call."""
    return at_end(messages=[*messages, TALK]).outcome


class TestWork:
    """An agent has worked if it changed the list or got a new result since it was told."""

    @pytest.mark.parametrize(
        "result",
        [did("test"), did(text="2 errors"), did(name="terminal")],
        ids=["arguments", "text", "tool"],
    )
    def test_a_result_that_differs_in_anything_is_new(self, result: list[AnyMessage]) -> None:
        assert after(USER, *did(), TALK, told(), *result) is None

    def test_two_commands_in_turns_are_nothing_new(self) -> None:
        """A result counts once, however long ago it was."""
        both = *did("make"), *did("test")
        assert after(USER, *both, TALK, told(), *did("make")) == "stalled"

    def test_a_failed_call_is_no_work(self) -> None:
        """Such as a call of a tool that does not exist."""
        failed = ToolMessage("No such tool.", tool_call_id="1", status="error")
        called = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}])
        assert after(USER, called, failed) == "answered"
        assert after(USER, *did(), TALK, told(), called, failed) == "stalled"

    @pytest.mark.parametrize("name", ["shell", None])  # a node of one's own may leave it out
    def test_a_person_who_rejects_a_call_speaks_to_the_agent(self, name: str | None) -> None:
        """What ran beside the call is no work since then; what ran later is."""
        made, rejected = call("look"), call("shell", command="rm")
        both: list[AnyMessage] = [
            turn("", rejected, made),
            ToolMessage(
                "User rejected the tool call for `shell` with reason: Stop.",
                name=name,
                tool_call_id=rejected["id"],
                status="error",
            ),
            ToolMessage("A garden.", name="look", tool_call_id=made["id"]),
        ]
        assert after(USER, *both) == "answered"
        assert after(USER, *did(), TALK, told(), *both) == "answered"
        assert after(USER, *both, *did()) is None
        assert after(USER, *both, *did(), TALK, told()) == "stalled"
        assert after(USER, *both, told()) == "stalled"
        picture = HumanMessage("The picture.", additional_kwargs={"lc_source": "camera"})
        between = [*both[:2], picture, both[2]]
        assert after(USER, *between) == "answered"
        assert after(USER, *between, TALK, told(), *did()) is None

    def test_a_todo_call_is_work_if_it_changed_the_list(self) -> None:
        """Item [0] was completed before."""
        assert after(USER, *did(name="list_todos", text="No todos")) == "answered"
        assert after(USER, *completed(0)) == "answered"
        assert after(USER, *completed(1)) is None

    def test_the_result_of_the_last_answer_is_that_answer(self) -> None:
        """A structured response is one; a todo call beside it is work."""
        report, (tick, done) = call("Report"), completed(1)
        responded = ToolMessage("Returning…", name="Report", tool_call_id=report["id"])
        answered: list[AnyMessage] = [USER, turn("", report), responded]
        assert at_end(messages=answered).outcome == "answered"
        both = turn("", report, *tick.tool_calls)
        assert at_end(messages=[USER, both, responded, done]).outcome is None

    def test_an_agent_that_has_not_worked_may_be_sent_back_again(self) -> None:
        """`max_idle` is the number of times in a row; the other counts are independent of it."""
        talked: list[AnyMessage] = [USER, TALK]
        twice = AutoContinue(max_idle=2)
        decision = at_end(loop=counted(1, 1, 1), policy=twice, messages=talked)
        assert decision.next_loop.items() >= counted(2, 2, 2).items()
        assert at_end(loop=decision.next_loop, policy=twice, messages=talked).outcome == "answered"

    def test_work_resets_the_idle_count(self) -> None:
        decision = at_end(loop=counted(3, 3, 3), policy=AutoContinue(max_idle=3))
        assert decision.next_loop.items() >= counted(4, 4).items()

    def test_the_id_of_the_call_in_a_result_is_nothing_new(self) -> None:
        """deepagents names the call where it moved a large result into a file."""

        def moved(call_id: str, text: str) -> list[AnyMessage]:
            made: Any = {"name": "shell", "args": {}, "id": call_id}
            text = f"Tool result too large, {call_id[:2]}... is at: /{call_id}\n\n{text}"
            return [turn("", made), ToolMessage(text, name="shell", tool_call_id=call_id)]

        first = *moved("a.1", "1 error"), TALK, told()
        assert after(USER, *first, *moved("b.2", "1 error")) == "stalled"
        assert after(USER, *first, *moved("b.2", "2 errors")) is None


class TestLimits:
    @pytest.mark.parametrize(
        ("loop", "policy", "steps_left", "outcome", "reached"),
        [
            ((19, 99), {}, 25, None, ""),
            ((20, 20), {}, None, "limit_in_a_row", "after 20 continuations without progress"),
            ((0, 100), {}, None, "limit_in_turn", "after 100 continuations for one message"),
            ((1, 1), {"max_in_a_row": 1}, None, "limit_in_a_row", "after 1 continuation without"),
            ((0, 0), {"max_in_a_row": 0}, None, "limit_in_a_row", "after 0 continuations"),
            ((0, 0), {"max_in_turn": 0}, None, "limit_in_turn", "after 0 continuations"),
            ((0, 0), {}, 24, "out_of_steps", "before the recursion limit of this run"),
        ],
    )
    def test_a_limit_stops_the_loop_with_a_notice(
        self,
        loop: tuple[int, int],
        policy: dict[str, int],
        steps_left: int | None,
        outcome: str | None,
        reached: str,
    ) -> None:
        """25 steps are enough for a few calls of tools. The event has the same words and counts."""
        settings = AutoContinue(**policy)  # type: ignore[arg-type]  # limits only
        decision = at_end(loop=counted(*loop), policy=settings, ended=Ended(steps_left=steps_left))
        assert decision.outcome == outcome
        assert decision.notice.startswith(f"⚠ Stopped {reached}" if reached else "")
        assert ("; 2 todos remain. Send a message to go on." in decision.notice) == bool(reached)
        added = 0 if outcome else 1
        assert decision.event == {
            "type": "todo_loop",
            "outcome": outcome,
            "in_a_row": loop[0] + added,
            "in_turn": loop[1] + added,
            "text": decision.notice,
        }

    def test_who_stops_the_loop_knows_it(self) -> None:
        """The application, other middleware and the user need no notice."""
        assert at_end(policy=AutoContinue(stop_when=lambda _: True)).notice == ""
        assert at_end(ended=ELSEWHERE).notice == ""
        assert at_end(messages=[USER, TALK]).notice == ""


class TestPrompt:
    @pytest.mark.parametrize(
        ("todos", "index", "call_to_add"),
        [
            (OPEN, 2, "'complete' on [2] beside the last of these calls"),
            (OPEN[:2], 1, "'start' on [1] in the same turn"),
            (OPEN, 2, ""),
        ],
        ids=["in progress", "not started", "without the todo tools"],
    )
    def test_it_asks_for_the_most_urgent_item(
        self, todos: list[TodoItem], index: int, call_to_add: str
    ) -> None:
        """An item in progress comes before one that is not started."""
        policy = AutoContinue(prompt="Work.")
        prompt = at_end(todos, policy=policy, ended=Ended(has_tools=bool(call_to_add))).prompt
        marked = (
            f", and call edit_todos with action {call_to_add}; abandon what cannot or need not be "
            "done"
        )
        assert prompt == (
            f"Work. Otherwise go on: do the work of [{index}] now with your other tools"
            f"{marked if call_to_add else ''}."
        )

    def test_no_text_of_a_todo_is_in_it(self) -> None:
        """It is a human message, and the model wrote the texts."""
        assert at_end(items("Delete everything.")).prompt == at_end(items("b")).prompt
