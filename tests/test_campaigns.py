"""The campaigns: short runs find no violation, and `test_planted_defects.py` plants some."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import Phase

from campaigns import (
    approvals,
    arguments,
    checks,
    databases,
    growth,
    kills,
    models,
    runner,
    served,
    switches,
    texts,
)
from campaigns.__main__ import main
from campaigns.cases import Case, Score, Trial, run_trial

FAST = [
    databases.full_disk,
    arguments.tool_node,
    models.hand_built,
    models.middleware,
    texts.model,
    texts.people,
    texts.terminal,
    switches.states,
    switches.encrypted,
    checks.checked_node,
    checks.checked_agent,
    checks.edited_list,
    checks.worked,
]
SLOW = [
    kills.sqlite_writes,
    databases.two_runs_at_once,
    databases.lost_connection,
    runner.killed_sqlite,
    runner.lost_backend,
    runner.two_resumes,
    kills.signals,
    approvals.coding_agent,
    growth.real_turns,
    served.strangers,
    served.unapproved,
]


@pytest.fixture(autouse=True)
def few_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the cases."""
    monkeypatch.setattr("campaigns.cases.EXAMPLES", 20)
    monkeypatch.setattr("campaigns.cases.PHASES", (Phase.generate,))
    monkeypatch.setattr("campaigns.growth.TURNS", 4)


def tried(trial: Trial, *, count: int = 1) -> Score:
    return run_trial("campaign", trial, 1, count=count)


@pytest.mark.parametrize("trial", [*FAST, *(pytest.param(t, marks=pytest.mark.slow) for t in SLOW)])
def test_a_short_run_violates_nothing(trial: Trial) -> None:
    score = tried(trial)
    assert score.tried
    assert not score.violated, score.trace


class TestRunning:
    def test_a_case_is_repeated_by_its_seed_and_number(self) -> None:
        """Its random choices do not depend on earlier cases."""
        drawn: list[float] = []
        draw: Callable[[Case], object] = lambda case: drawn.append(case.random.random())  # noqa: E731
        run_trial("campaign", draw, 7, count=3)
        run_trial("campaign", draw, 7, first=2, count=1)
        assert drawn[3] == drawn[2] != drawn[1]

    @pytest.mark.slow
    def test_a_campaign_runs_in_processes(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Its summary is printed and written to a file."""
        file = tmp_path / "summary.md"
        assert main(["arguments", "--seconds", "1", "--seed", "1", "--summary", str(file)]) == 0
        assert file.read_text() in capsys.readouterr().out
