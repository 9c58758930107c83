"""Programs that a signal ends neither repeat finished commands nor skip others.

The campaign `kills` ends them at random moments, with the helpers of this module.
"""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.support import ROOT, checklist
from tests.waiting import LONG, wait_for, wait_for_line

Program = subprocess.Popen[str]


@contextmanager
def graphs(folder: Path, *steps: str) -> Iterator[Program]:
    """The program with a checklist in a folder; whatever happens, nothing of it keeps running."""
    (folder / "PLAN.md").write_text(checklist(*steps), encoding="utf-8")
    given = ["PLAN.md", "--thread", "t", "--workdir", "work", "--create", "--grace", "0"]
    program = subprocess.Popen(
        [sys.executable, "-u", "-m", "graphs", *given],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a signal to its group does not reach the tests
    )
    try:
        yield program
    finally:
        program.kill()
        end_all_in(folder)
        program.communicate(timeout=LONG)


def end_all_in(folder: Path) -> None:
    """End what a failing test has left: every process that works in the folder or below it."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(folder):
                process.kill()


def itself(program: Program, signum: int) -> None:
    program.send_signal(signum)


def its_group(program: Program, signum: int) -> None:
    with suppress(ProcessLookupError):  # it had ended
        os.killpg(program.pid, signum)


def everything(program: Program, signum: int) -> None:
    """The program's children, and then the program, as at the end of a service or of a machine."""
    for child in children_of(program):
        with suppress(psutil.NoSuchProcess):
            child.send_signal(signum)
    program.send_signal(signum)


def children_of(program: Program) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):  # it had ended
        return list(psutil.Process(program.pid).children(recursive=True))
    return []


SIGNALS = [signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGQUIT, signal.SIGTERM]
TARGETS = [itself, its_group, everything]


def killed_at_random(
    folder: Path, chance: random.Random, steps: Sequence[str], longest: float
) -> None:
    """Run the program, and end it at most so many seconds after its work has started."""
    with graphs(folder, *steps) as program:
        assert program.stdout is not None
        assert select.select([program.stdout], [], [], LONG)[0]
        # The test is about the moment, so there is nothing to wait for.
        time.sleep(chance.uniform(0, longest))
        program.send_signal(signal.SIGSTOP)  # from now on it starts no process
        started = children_of(program)
        chance.choice(TARGETS)(program, chance.choice(SIGNALS))
        program.send_signal(signal.SIGCONT)
        program.communicate(timeout=LONG)
        wait_for(lambda: not any(map(is_running, started)), "the guard to end its command")


def is_running(process: psutil.Process) -> bool:
    """Whether a process runs; one that its parent has not collected does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def resumed(folder: Path, *steps: str) -> None:
    """Run the program again, until it has completed all steps."""
    with graphs(folder, *steps) as program:
        shown, _ = program.communicate(timeout=LONG)
    assert program.returncode == 0, shown


def lines_in(folder: Path) -> list[str]:
    """What the commands have written."""
    log = folder / "work" / "log"
    return log.read_text().splitlines() if log.exists() else []


def check_ends(folder: Path, steps: Sequence[str], kills: int) -> None:
    """Check that each step has ended, and that a kill repeated at most the one it cut off."""
    ran = Counter(lines_in(folder))
    ends = [ran[f"end {number}"] for number in range(len(steps))]
    begins = [ran[f"begin {number}"] for number in range(len(steps))]
    assert min(ends) >= 1, f"not done: {ran}"
    assert sum(ends) <= len(steps) + kills, f"ended again: {ran}"
    assert sum(begins) <= len(steps) + kills, f"began again: {ran}"


_STEP = "Work: `{0}echo begin >> log; test ! -e go && {{ sleep 600 & wait; }}; echo end >> log`"
STEP = _STEP.format("")
DEAF_STEP = _STEP.format("trap 'exit 0' HUP INT QUIT TERM; ")
"""A step whose command, like many servers, ends with exit code 0 when it gets a signal."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signum", "to", "step"),
    [
        (signal.SIGKILL, itself, STEP),
        (signal.SIGTERM, its_group, STEP),
        (signal.SIGHUP, itself, STEP),
        (signal.SIGINT, its_group, STEP),
        (signal.SIGTERM, everything, DEAF_STEP),
    ],
)
def test_a_command_that_was_cut_off_is_not_done(
    signum: signal.Signals, to: Callable[[Program, int], None], step: str, tmp_path: Path
) -> None:
    """Its first part had succeeded when the signal came; the resumed program runs all of it."""
    with graphs(tmp_path, step) as program:
        wait_for_line(tmp_path / "work" / "log")
        started = children_of(program)
        to(program, signum)
        program.communicate(timeout=LONG)
        wait_for(lambda: not any(map(is_running, started)), "the guard to end its command")
    assert program.returncode != 0
    (tmp_path / "work" / "go").touch()
    resumed(tmp_path, step)
    assert lines_in(tmp_path) == ["begin", "begin", "end"]
