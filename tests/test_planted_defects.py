"""Each campaign finds the defects that are planted here; one that cannot fail proves nothing."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import ToolMessage

from campaigns import (
    approvals,
    arguments,
    chat,
    checks,
    databases,
    growth,
    kills,
    models,
    parallel,
    prompts,
    served,
    switches,
    texts,
)
from campaigns.agents import Job
from campaigns.cases import Score, Trial, run_trial
from graphs.terminal.tools import ask_first
from tests.server import serving
from tests.support import ROOT, results_in
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


def site_with(defect: str, folder: Path) -> Path:
    """A directory that plants a defect in every Python program that has it in its path."""
    (folder / "sitecustomize.py").write_text(defect)
    return folder


STORES_LATE = """
from langgraph.pregel import Pregel

def late(run):
    return lambda self, *args, **kwargs: run(self, *args, **{**kwargs, "durability": "exit"})

Pregel.stream, Pregel.astream = late(Pregel.stream), late(Pregel.astream)
"""
LETS_EVERYBODY_IN = """
from graphs import access

access.CheckAccess._fault_in = lambda self, scope: scope.update({access.CALLER: "owner"})
"""
ASKS_BEFORE_THE_TOOLS_ONLY = """
from langchain.agents.middleware import HumanInTheLoopMiddleware

from graphs import writes
from graphs.terminal.tools.ask_first import AskFirst

AskFirst.awrap_tool_call = HumanInTheLoopMiddleware.awrap_tool_call
writes.fault_in_command = lambda command: None
"""
ONE_YES_FOR_ALL = """
from graphs.terminal.approval import Approved

after = Approved.after
Approved.after = lambda self, *given: self.names.add(given[1]) or after(self, *given)
"""


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

    @pytest.mark.slow
    def test_a_step_that_is_done_twice_is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The thread starts again instead of being resumed."""

        def begin_again(self: Job, saver: Any) -> None:
            saver.delete_thread(str(self.folder))
            self.run(saver, self.request)

        monkeypatch.setattr(Job, "go_on", begin_again)
        assert "done again" in found(kills.sqlite_writes, 20).example

    @pytest.mark.slow
    def test_a_program_that_stores_late_is_found(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """It stores its thread at the end of a run, not after each step."""
        paths = f"{site_with(STORES_LATE, tmp_path)}{os.pathsep}{ROOT}"
        monkeypatch.setattr("tests.terminal.test_kills.ROOT", paths)
        assert "ended" in found(kills.signals, 25).example

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


@pytest.mark.slow
class TestApprovals:
    def test_an_id_that_is_looked_for_in_the_whole_history_is_found(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """LangChain's middleware asks before the tools, and not about an id that had a result."""

        def is_open(request: Any) -> bool:
            known = {result.tool_call_id for result in results_in(request.state)}
            return request.tool_call["id"] not in known

        monkeypatch.setattr("graphs.coding_agent.is_open", is_open)
        monkeypatch.setattr("graphs.coding_agent.AskFirst", HumanInTheLoopMiddleware)
        assert "without an approval" in found(approvals.coding_agent, 30).example

    def test_an_approval_that_is_not_used_up_is_found(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Kept(dict[Any, Any]):
            def pop(self, key: Any, default: Any = None) -> Any:
                return self.get(key, default)

        begin = ask_first.AskFirst.__init__

        def keeping(self: Any, asked: Any) -> None:
            begin(self, asked)
            self._approved = Kept()

        monkeypatch.setattr(ask_first.AskFirst, "__init__", keeping)
        assert "without an approval" in found(approvals.coding_agent, 30).example


@pytest.mark.slow
class TestChat:
    def test_an_answer_that_counts_for_all_calls_is_found(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(chat, "PROGRAM", f"{ONE_YES_FOR_ALL}{chat.PROGRAM}")
        assert "were approved" in found(chat.asked, 20).example


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


@pytest.mark.slow
class TestServed:
    @pytest.fixture
    def plant(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
        """Plant a defect in the server."""

        def plant(defect: str) -> None:
            def defective(directory: Path, **settings: Any) -> Any:
                paths = f"{site_with(defect, tmp_path)}{os.pathsep}{directory}"
                return serving(directory, **settings, PYTHONPATH=paths)

            monkeypatch.setattr(served, "serving", defective)

        return plant

    def test_an_open_door_is_found(self, plant: Callable[[str], None]) -> None:
        plant(LETS_EVERYBODY_IN)
        assert tried(served.strangers).violated

    def test_a_way_around_the_approval_is_found(self, plant: Callable[[str], None]) -> None:
        plant(ASKS_BEFORE_THE_TOOLS_ONLY)
        assert "nobody approved" in tried(served.unapproved, count=10).example
