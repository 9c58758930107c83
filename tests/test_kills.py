"""Programs that are killed at random moments, and what is done twice when they are resumed."""

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

KILLS = int(os.environ.get("RANDOM_KILLS", "5"))
"""How many of them; `RANDOM_KILLS=100` takes some minutes."""

STEPS = 4
_BEGINS, _ENDS = "echo begin {0} >> log", "echo end {0} >> log"
_PLAN = checklist(*(f"Step {n}: `{_BEGINS}; sleep 0.1; {_ENDS}`".format(n) for n in range(STEPS)))
_LONGEST_RUN = 1.2
"""Seconds; a little longer than the steps take, so that each moment of them may be hit."""


def graphs(folder: Path, *argv: str) -> subprocess.Popen[str]:
    """The program, working on a checklist in a folder."""
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
    """Run the program, and kill it so many seconds after it has begun to work."""
    program = graphs(folder)
    assert program.stdout is not None
    assert select.select([program.stdout], [], [], 60)[0]
    time.sleep(moment)  # the moment is what the test is about: there is nothing to wait for
    program.kill()
    program.communicate(timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(KILLS))
def test_no_finished_command_runs_twice_after_a_kill(seed: int, tmp_path: Path) -> None:
    """A command that was killed while it ran is run again, and the checklist is completed."""
    killed_at_random(tmp_path, random.Random(seed).uniform(0, _LONGEST_RUN))
    resumed = graphs(tmp_path)
    shown, _ = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, shown
    ran = Counter((tmp_path / "work" / "log").read_text().splitlines())
    assert {step: ran[step] for step in ran if step.startswith("end")} == {
        f"end {n}": 1 for n in range(STEPS)
    }
    assert all(ran[f"begin {n}"] in (1, 2) for n in range(STEPS))
