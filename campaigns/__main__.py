"""`python -m campaigns [--seconds N] [--seed S] [--case TRIAL:NUMBER] [NAME...]`."""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from random import SystemRandom

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
from campaigns.cases import Score, Trial, run_trial
from campaigns.summary import summary

CAMPAIGNS: dict[str, tuple[Trial, ...]] = {
    "kills": kills.TRIALS,
    "databases": databases.TRIALS,
    "runner": runner.TRIALS,
    "arguments": arguments.TRIALS,
    "models": models.TRIALS,
    "texts": texts.TRIALS,
    "switches": switches.TRIALS,
    "approvals": approvals.TRIALS,
    "checks": checks.TRIALS,
    "growth": growth.TRIALS,
    "served": served.TRIALS,
}
"""The trials of each campaign."""
SECONDS = 60
"""For each trial; together they take about 15 minutes on two idle cores."""


def main(argv: list[str] | None = None) -> int:
    """Run the campaigns; returns 1 if any promise was violated."""
    options = _options(argv)
    print(f"seed {options.seed}", flush=True)
    if options.case:
        return _repeat(options.case, options.seed)
    began = time.monotonic()
    scores = _run(options.names or list(CAMPAIGNS), options.seed, options.seconds)
    seconds = time.monotonic() - began
    text = summary(scores, f"python -m campaigns {' '.join(argv or sys.argv[1:])}", seconds)
    print(f"\n{text}")
    if options.summary:
        options.summary.write_text(text, encoding="utf-8")
    return 1 if any(score.violated for score in scores) else 0


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CAMPAIGNS))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each trial")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    parser.add_argument("--case", metavar="TRIAL:NUMBER", help="repeat one case")
    parser.add_argument("--summary", type=Path, help="a file to write the summary to")
    options = parser.parse_args(argv)
    if unknown := set(options.names) - CAMPAIGNS.keys():
        parser.error(f"no campaign {', '.join(sorted(unknown))}; there are {', '.join(CAMPAIGNS)}")
    return options


def _run(names: list[str], seed: int, seconds: float) -> list[Score]:
    """Run the trials of the campaigns, in one process per core."""
    with _processes() as pool:
        running: list[Future[Score]] = [
            pool.submit(run_trial, name, trial, seed, seconds=seconds)
            for name in names
            for trial in CAMPAIGNS[name]
        ]
        for done, future in enumerate(as_completed(running), 1):
            score = future.result()
            print(
                f"[{done}/{len(running)}] {score.campaign} {score.trial}: {score.tried:,} tried, "
                f"{score.violated} violated, {score.seconds:.0f} s",
                flush=True,
            )
    return [future.result() for future in running]


def _processes() -> ProcessPoolExecutor:
    """New processes, each for one trial.

    Hypothesis also tries values that it finds in the loaded modules. So a case is repeated in a
    process like the one it was found in.
    """
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(os.cpu_count(), mp_context=spawn, max_tasks_per_child=1)


def _repeat(case: str, seed: int) -> int:
    """Run one case again, and show the whole error."""
    name, _, number = case.partition(":")
    found = [
        (campaign, trial)
        for campaign, trials in CAMPAIGNS.items()
        for trial in trials
        if getattr(trial, "__name__", "") == name and number.isdecimal()
    ]
    if not found:
        print(f"no case {case!r}; give one as the summary does, such as sqlite_writes:7")
        return 2
    with _processes() as pool:
        score = pool.submit(run_trial, *found[0], seed, first=int(number), count=1).result()
    print(score.trace or "no promise was violated")
    return 1 if score.violated else 0


if __name__ == "__main__":
    sys.exit(main())
