"""Programs that are killed at random moments do not repeat finished commands when resumed."""

import os
import random
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support import ROOT, checklist
from tests.waiting import LONG

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
    program.kill()
    program.communicate(timeout=LONG)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(KILLS))
def test_no_finished_command_runs_twice_after_a_kill(seed: int, tmp_path: Path) -> None:
    """A command that was killed while it ran runs again, and the checklist is completed."""
    killed_at_random(tmp_path, random.Random(seed).uniform(0, _LONGEST_RUN))
    resumed = graphs(tmp_path)
    shown, _ = resumed.communicate(timeout=LONG)
    assert resumed.returncode == 0, shown
    ran = Counter((tmp_path / "work" / "log").read_text().splitlines())
    assert {step: ran[step] for step in ran if step.startswith("end")} == {
        f"end {n}": 1 for n in range(STEPS)
    }
    assert all(ran[f"begin {n}"] in (1, 2) for n in range(STEPS))
