"""Each campaign finds the defects that are planted here; one that cannot fail proves nothing."""

from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from campaigns import (
    arguments,
    checks,
    databases,
    growth,
    models,
    parallel,
    prompts,
    switches,
    texts,
)
from campaigns.cases import Score, Trial, run_trial
from tests.test_campaigns import few_examples, tried
from todo_tools import AutoContinue, TodoItem
from todo_tools._list import operations
from todo_tools._list.operations import apply
from todo_tools._list.todos import texts_of
from todo_tools._view import view
from todo_tools._view.folding import Folds

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
            arguments.agent_tools,
            models.middleware,
            switches.states,
            parallel.branches,
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
        assert found(trial, 10)

    @pytest.mark.parametrize("trial", [models.hand_built, models.middleware])
    def test_a_loop_that_talks_over_the_user_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The agent is sent back though it did not work, which no policy of these runs allows."""
        monkeypatch.setattr("campaigns.models.AutoContinue", lambda **_: AutoContinue(max_idle=0))
        monkeypatch.setattr("todo_tools._loop.decision._has_worked", lambda *_: True)
        assert "without work" in found(trial, 10).example


class TestTexts:
    @pytest.mark.parametrize(
        ("trial", "function"),
        [
            (texts.model, "_list.formatting.one_line"),
            (texts.people, "rendering._lines.one_line"),
            (texts.people, "rendering._html.escaped"),
            (texts.terminal, "rendering._lines.one_line"),
            pytest.param(texts.browser, "rendering._lines.one_line", marks=pytest.mark.slow),
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


class TestPrompts:
    BOTH = pytest.mark.parametrize("trial", [prompts.agent_prompts, prompts.hand_built_prompts])

    @pytest.mark.parametrize(
        "trial", [checks.checked_agent, prompts.agent_prompts, prompts.hand_built_prompts]
    )
    def test_a_block_that_is_not_shown_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in ("_view.view", "middleware"):
            monkeypatch.setattr(f"todo_tools.{module}.needs_block", lambda _: False)
        assert found(trial, 20)

    @BOTH
    def test_a_reminder_that_vanishes_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is on the newest result only."""
        newest: Any = lambda turns, *_: [turn.results[-1] for turn in turns[-1:] if turn.results]  # noqa: E731
        monkeypatch.setattr(view, "_reminders", newest)
        assert "sent" in found(trial, 20).example

    def test_a_fold_of_the_newest_turn_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def everything(entries: Any, *_: object) -> Folds:
            results = (at for at, each in enumerate(entries) if isinstance(each[0], ToolMessage))
            return Folds(cut=set(results))

        monkeypatch.setattr(view, "folds_of", everything)
        assert found(prompts.folded, 20)


class TestGrowth:
    def test_work_that_is_quadratic_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each turn of a thread looks at all of its messages."""
        closing = view._closing

        def slow(turn: Any, entries: Any) -> list[int]:
            for _ in entries:
                texts_of([])
            return closing(turn, entries)

        monkeypatch.setattr(view, "_closing", slow)
        assert "calls rise" in found(growth.turns, 1).example
