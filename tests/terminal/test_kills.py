"""Programs that are killed at random moments do not repeat finished commands when resumed."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.support import ROOT, checklist
from tests.waiting import LONG, wait_for

KILLS = int(os.environ.get("RANDOM_KILLS", "5"))
"""How many kills; `RANDOM_KILLS=100` takes some minutes."""

STEPS = 4
_BEGINS, _ENDS = "echo begin {0} >> log", "echo end {0} >> log"
_PLAN = checklist(*(f"Step {n}: `{_BEGINS}; sleep 0.1; {_ENDS}`".format(n) for n in range(STEPS)))
_LONGEST_RUN = 1.2
"""The latest moment of a kill, in seconds: a little more than the steps take."""


def graphs(folder: Path, *argv: str) -> subprocess.Popen[str]:
    """The program with a checklist in a folder."""
    (folder / "PLAN.md").write_text(_PLAN, encoding="utf-8")
    given = ["PLAN.md", "--thread", "t", "--workdir", "work", "--create", "--grace", "0"]
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "graphs", *given, *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def killed_at_random(folder: Path, moment: float) -> None:
    """Run the program, and kill it some seconds after its work has started."""
    program = graphs(folder)
    assert program.stdout is not None
    assert select.select([program.stdout], [], [], LONG)[0]
    time.sleep(moment)  # the test is about the moment, so there is nothing to wait for
    program.send_signal(signal.SIGSTOP)  # from now on it starts no process
    started: list[psutil.Process] = []
    with suppress(psutil.NoSuchProcess):  # it had ended
        started = psutil.Process(program.pid).children(recursive=True)
    program.kill()
    program.communicate(timeout=LONG)
    wait_for(lambda: not any(map(is_running, started)), "the guard to end its command")


def is_running(process: psutil.Process) -> bool:
    """Whether a process runs; one that its parent has not collected does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def lines_in(folder: Path) -> list[str]:
    """What the commands have written."""
    log = folder / "work" / "log"
    return log.read_text().splitlines() if log.exists() else []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(KILLS))
def test_no_finished_command_runs_twice_after_a_kill(seed: int, tmp_path: Path) -> None:
    """A command that was killed while it ran runs again, and the checklist is completed."""
    killed_at_random(tmp_path, random.Random(seed).uniform(0, _LONGEST_RUN))
    ended = [line for line in lines_in(tmp_path) if line.startswith("end")]
    stored = len(list(tmp_path.glob("todo-threads.sqlite-endings/*/*")))
    # A command that was killed between its last line and its end has not ended.
    again = ended[-1] if stored == len(ended) - 1 else ""
    resumed = graphs(tmp_path)
    shown, _ = resumed.communicate(timeout=LONG)
    assert resumed.returncode == 0, shown
    ran = Counter(lines_in(tmp_path))
    ends = [f"end {n}" for n in range(STEPS)]
    assert all(ran[end] == 1 or (end == again and ran[end] == 2) for end in ends)
    assert all(ran[f"begin {n}"] in (1, 2) for n in range(STEPS))
