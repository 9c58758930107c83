"""The campaigns: short runs find no violation, and each campaign finds a planted defect."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase
from langgraph.checkpoint.sqlite import SqliteSaver

from campaigns import arguments, databases, kills, models, switches, texts
from campaigns.__main__ import CAMPAIGNS, main
from campaigns.agents import Job, opened
from campaigns.cases import Case, Score, Trial, run_trial
from campaigns.summary import summary
from todo_tools import AutoContinue, TodoItem
from todo_tools._list.operations import apply

FAST = [
    databases.full_disk,
    databases.read_only,
    arguments.tool_node,
    arguments.agent_tools,
    models.hand_built,
    models.middleware,
    texts.model,
    texts.people,
    texts.terminal,
    switches.states,
    switches.encrypted,
]
SLOW = [
    kills.sqlite_writes,
    kills.sqlite_moments,
    databases.two_runs_at_once,
    databases.lost_connection,
    texts.browser,
]


@pytest.fixture(autouse=True)
def few_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the cases."""
    monkeypatch.setattr("campaigns.cases.EXAMPLES", 20)
    monkeypatch.setattr("campaigns.cases.PHASES", (Phase.generate,))


def tried(trial: Trial, *, count: int = 1) -> Score:
    return run_trial("campaign", trial, 1, count=count)


@pytest.mark.parametrize("trial", [*FAST, *(pytest.param(t, marks=pytest.mark.slow) for t in SLOW)])
def test_a_short_run_violates_nothing(trial: Trial) -> None:
    score = tried(trial)
    assert score.tried
    assert not score.violated, score.trace


class TestPlantedDefects:
    """A campaign that cannot fail proves nothing."""

    @pytest.mark.parametrize(
        "trial",
        [
            databases.full_disk,
            arguments.tool_node,
            arguments.agent_tools,
            models.hand_built,
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
        assert tried(trial, count=3).violated

    def test_a_step_that_is_done_twice_is_found(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The thread starts again instead of being resumed."""
        lose = RuntimeError("the power is gone")

        def moment(_: object) -> None:
            if len(job.done()) == 2:
                raise lose

        job = Job("TodoState", "sync", str(tmp_path / "threads"), tmp_path, moment=moment)
        with opened(job.address) as saver, pytest.raises(RuntimeError):
            job.run(saver, job.request)

        def begin_again(self: Job, saver: Any) -> None:
            saver.delete_thread(str(self.folder))
            self.run(saver, self.request)

        monkeypatch.setattr(Job, "go_on", begin_again)
        with pytest.raises(AssertionError, match="done again"):
            Job(job.variant, job.durability, job.address, job.folder).check_finish()

    def test_an_error_that_is_swallowed_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The run ends as if everything was stored."""
        for name in ("put", "put_writes"):
            write = getattr(SqliteSaver, name)

            def silent(*args: Any, write: Callable[..., Any] = write) -> Any:
                with suppress(sqlite3.Error):
                    return write(*args)
                return args[1]

            monkeypatch.setattr(SqliteSaver, name, silent)
        assert "did not reach the caller" in tried(databases.read_only).example

    def test_a_long_error_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("todo_tools._calls.arguments.brief", lambda value: f"{value!r}" * 50)
        assert tried(arguments.tool_node).violated

    @pytest.mark.parametrize("trial", [models.hand_built, models.middleware])
    def test_a_loop_without_limits_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("todo_tools._loop.decision._limit", lambda *_, worked: None)
        assert tried(trial, count=10).violated

    @pytest.mark.parametrize("trial", [models.hand_built, models.middleware])
    def test_a_loop_that_talks_over_the_user_is_found(
        self, trial: Trial, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The agent is sent back though it did not work, which no policy of these runs allows."""
        monkeypatch.setattr("campaigns.models.AutoContinue", lambda **_: AutoContinue(max_idle=0))
        monkeypatch.setattr("todo_tools._loop.decision._has_worked", lambda *_: True)
        assert "without work" in tried(trial, count=10).example

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

    def test_a_text_that_is_stored_in_the_clear_is_found(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "campaigns.switches.EncryptedSerializer.from_pycryptodome_aes", lambda **_: None
        )
        assert "in the clear" in tried(switches.encrypted).example


class TestRunning:
    def test_a_case_is_repeated_by_its_seed_and_number(self) -> None:
        """Its random choices do not depend on earlier cases."""
        drawn: list[float] = []
        draw: Callable[[Case], object] = lambda case: drawn.append(case.random.random())  # noqa: E731
        run_trial("campaign", draw, 7, count=3)
        run_trial("campaign", draw, 7, first=2, count=1)
        assert drawn[3] == drawn[2] != drawn[1]

    def test_a_case_that_hangs_is_a_violation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def hang(_: Case) -> None:
            while True:
                pass

        monkeypatch.setattr("campaigns.cases.LONGEST_CASE", 1)
        assert "TimeoutError" in tried(hang).example

    def test_one_case_runs_alone(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--seed", "1", "--case", "full_disk:0"]) == 0
        assert capsys.readouterr().out == "seed 1\nno promise was violated\n"

    @pytest.mark.parametrize("case", ["nothing:1", "full_disk", "full_disk:x"])
    def test_an_unknown_case_is_refused(self, case: str) -> None:
        assert main(["--case", case]) == 2

    @pytest.mark.slow
    def test_a_campaign_runs_in_processes(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Its summary is printed and written to a file."""
        file = tmp_path / "summary.md"
        assert main(["arguments", "--seconds", "1", "--seed", "1", "--summary", str(file)]) == 0
        assert file.read_text() in capsys.readouterr().out

    def test_the_summary_names_the_first_violation(self) -> None:
        """The seed and the case are enough to repeat it."""
        score = Score("kills", "sqlite_writes", 7, 1_200, 1, 3.2, "sqlite_writes:3: KeyError: 'x'")
        text = summary([score], "python -m campaigns", 60)
        assert "| kills | sqlite writes | 1,200 | 1 | 3 |" in text
        assert "- `--seed 7 --case sqlite_writes:3: KeyError: 'x'`" in text

    def test_the_names_of_the_trials_are_unique(self) -> None:
        """The name of a case has only its trial."""
        names = [trial.__name__ for trials in CAMPAIGNS.values() for trial in trials]
        assert len(set(names)) == len(names)
