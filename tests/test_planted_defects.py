"""Each campaign finds the defects that are planted here; one that cannot fail proves nothing."""

from typing import Any

import pytest

from campaigns import (
    arguments,
    checks,
    databases,
    growth,
    models,
    runner,
    switches,
    texts,
)
from campaigns.cases import Score, Trial, run_trial
from tests import runner_defects
from tests.test_campaigns import few_examples, tried
from todo_tools import AutoContinue, TodoItem
from todo_tools._list import operations
from todo_tools._list.operations import apply
from todo_tools._list.todos import texts_of
from todo_tools._view import view

__all__ = ["few_examples"]  # the fixture is used here, too


def found(trial: Trial, cases: int) -> Score:
    """The first case with a violation; one of so many cases must have one."""
    for number in range(cases):
        score = run_trial("campaign", trial, 1, first=number, count=1)
        if score.violated:
            return score
    raise AssertionError(f"{cases} cases did not notice the defect")


class TestThreads:
    """What is stored, and what is done."""

    @pytest.mark.parametrize(
        "trial",
        [
            databases.full_disk,
            arguments.tool_node,
            models.middleware,
            switches.states,
        ],
    )
    def test_a_state_that_loses_items_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The tools return the right list, but the channel stores another one."""

        def forgetful(todos: list[TodoItem], operation: Any) -> list[TodoItem]:
            return apply(todos, operation)[:-1]

        monkeypatch.setattr("todo_tools._thread.channels.apply", forgetful)
        assert found(trial, 3)

    @pytest.mark.parametrize("trial", [models.hand_built, models.middleware])
    def test_a_loop_without_limits_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("todo_tools._loop.decision._limit", lambda *_, worked: None)
        assert found(trial, 30)

    @pytest.mark.parametrize("trial", [models.hand_built, models.middleware])
    def test_a_loop_that_talks_over_the_user_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The agent is sent back though it did not work, which no policy of these runs allows."""
        monkeypatch.setattr("campaigns.models.AutoContinue", lambda **_: AutoContinue(max_idle=0))
        monkeypatch.setattr("todo_tools._loop.decision._has_worked", lambda *_: True)
        assert "without work" in found(trial, 10).example


@pytest.mark.slow
class TestRunner:
    """Each process of the campaign plants the defect in itself."""

    @pytest.mark.parametrize(
        ("defect", "kind", "reason"),
        [
            (runner_defects.tick_before_check, "refused", "but judged"),
            (runner_defects.tick_in_node, "asks", "but judged"),
            (runner_defects.retry_around_agent, "breaks", "went back"),
            (runner_defects.async_durability, "plain", "went back"),
        ],
    )
    def test_a_broken_promise_is_found(
        self, defect: Any, kind: str, reason: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runner, "DEFECT", defect)
        monkeypatch.setattr(runner, "KINDS", [kind])
        assert reason in found(runner.killed_sqlite, 10).example


class TestTexts:
    @pytest.mark.parametrize(
        ("trial", "function"),
        [
            (texts.model, "_list.formatting.one_line"),
            (texts.people, "rendering._lines.one_line"),
            (texts.people, "rendering._html.escaped"),
            (texts.terminal, "rendering._lines.one_line"),
        ],
    )
    def test_a_text_that_acts_is_found(
        self, trial: Trial, function: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The function that escapes texts is disabled."""
        monkeypatch.setattr(f"todo_tools.{function}", str)
        assert tried(trial).violated


class TestChecks:
    @pytest.mark.parametrize("trial", [checks.checked_node, checks.checked_agent])
    def test_an_operation_that_does_not_know_its_items_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A call that another middleware refused then shifts the ticks of its turn."""
        set_status = operations._with_status
        by_index: Any = lambda todos, status, indices, _: set_status(todos, status, indices, None)  # noqa: E731
        monkeypatch.setattr(operations, "_with_status", by_index)
        assert "without a check" in found(trial, 60).example

    def test_a_tick_without_work_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The end of an item's work is overlooked."""
        monkeypatch.setattr("campaigns.checks.has_worked", lambda *_: None)
        assert "without work" in found(checks.worked, 3).example


class TestPrompts:
    BOTH = pytest.mark.parametrize("trial", [models.hand_built, models.middleware])

    @pytest.mark.parametrize("trial", [checks.checked_agent, models.hand_built, models.middleware])
    def test_a_block_that_is_not_shown_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("todo_tools._view.view.due_block", lambda _: None)
        monkeypatch.setattr("todo_tools.middleware.needs_block", lambda _: False)
        assert found(trial, 20)

    def test_a_block_that_moves_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is noted nowhere, so it is always shown with the newest message."""
        monkeypatch.setattr("todo_tools.middleware.with_list", lambda _, stored, __: stored)
        assert "sent" in found(models.middleware, 20).example

    @BOTH
    def test_a_reminder_that_vanishes_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is on the newest result only."""
        newest: Any = lambda turns, *_: [turn.results[-1] for turn in turns[-1:] if turn.results]  # noqa: E731
        monkeypatch.setattr(view, "_reminders", newest)
        assert "sent" in found(trial, 20).example


class TestGrowth:
    def test_work_that_is_quadratic_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each turn of a thread looks at all of its messages."""
        remind = view._reminders

        def slow(turns: Any, entries: Any, every: int) -> Any:
            for _ in range(len(entries) ** 2):
                texts_of([])
            return remind(turns, entries, every)

        monkeypatch.setattr("campaigns.growth.VARIANTS", ["TodoMiddleware"])
        monkeypatch.setattr(view, "_reminders", slow)
        assert "calls rise" in found(growth.real_turns, 1).example
