"""Kills: a process that is killed before a write to the database, or by a signal."""

import multiprocessing
import os
import random
import signal
from collections.abc import Callable
from typing import Any

from campaigns.agents import DURABILITIES, VARIANTS, Job, Saver, opened
from campaigns.cases import Case, Trial
from tests.terminal.test_kills import check_ends, killed_at_random, resumed

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__])


def sqlite_writes(case: Case) -> None:
    """Kill a run on SQLite before one of its writes."""
    kill_at_write(case, str(case.folder / "threads.sqlite"))


def postgres_writes(case: Case) -> None:
    """Kill a run on PostgreSQL before one of its writes."""
    kill_at_write(case, case.place.postgres)


def signals(case: Case) -> None:
    """End the program of `graphs/` several times, by any signal, and resume it."""
    steps = [_step(case.random, number) for number in range(4)]
    kills = case.random.choice([1, 2, 3])
    for _ in range(kills):
        killed_at_random(case.folder, case.random, steps, _LONGEST_RUN)
    resumed(case.folder, *steps)
    check_ends(case.folder, steps, kills)


_LONGEST_RUN = 2.5
"""The latest moment of a kill, in seconds."""


def _step(chance: random.Random, number: int) -> str:
    """A step that takes long or not; one that is deaf ends with exit code 0 at a signal."""
    deaf = "trap 'exit 0' HUP INT QUIT TERM; " if chance.random() < 0.3 else ""
    waits = chance.choice(["", "", "sleep 0.1; ", "sleep 0.8 & wait $!; "])
    return f"Step {number}: `{deaf}echo begin {number} >> log; {waits}echo end {number} >> log`"


TRIALS: tuple[Trial, ...] = (sqlite_writes, postgres_writes, signals)


def kill_at_write(case: Case, address: str) -> None:
    """A random variant, durability mode and write."""
    variant, durability = case.random.choice(VARIANTS), case.random.choice(DURABILITIES)
    whole = Job(variant, durability, address, case.folder / "whole")
    job = Job(variant, durability, address, case.folder)
    killed(job, case.random.randrange(_writes_of(whole)))
    job.check_finish()


def killed(job: Job, write: int) -> None:
    """Run a job in a new process, until it is killed or done."""
    process = _processes.Process(target=_killed_at_write, args=(job, write))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode


def _killed_at_write(job: Job, write: int) -> None:
    with opened(job.address) as saver:

        def die(number: int) -> None:
            if number == write:
                os.kill(os.getpid(), signal.SIGKILL)

        _counted(saver, die)
        job.run(saver, job.request)


def _writes_of(job: Job) -> int:
    """How often a run writes to the database, if nobody kills it."""
    job.folder.mkdir()
    counts = [0]
    with opened(job.address) as saver:
        _counted(saver, counts.append)
        job.run(saver, job.request)
    return counts[-1] + 1


def _counted(saver: Saver, before: Callable[[int], object]) -> None:
    """Call `before` with the number of each write, before it happens."""
    numbers = iter(range(10**9))
    for name in ("put", "put_writes"):
        write = getattr(saver, name)

        def counted(*args: Any, write: Callable[..., Any] = write, **kwargs: Any) -> Any:
            before(next(numbers))
            return write(*args, **kwargs)

        setattr(saver, name, counted)
