"""The table at the end of a run."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from campaigns.cases import Score

_PACKAGES = (
    "langgraph",
    "langchain",
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
)


def summary(scores: Sequence[Score], command: str, seconds: float) -> str:
    """The date, the command and the versions, and then the scores as a Markdown table."""
    versions = ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    seeds = ", ".join(sorted({str(score.seed) for score in scores}))
    lines = [
        f"{datetime.now(UTC):%Y-%m-%d}, `{command.strip()}`, seed {seeds}: "
        f"{sum(score.tried for score in scores):,} tried, "
        f"{sum(score.violated for score in scores):,} violated, {seconds / 60:.0f} minutes, "
        f"{os.cpu_count()} cores.",
        f"Python {platform.python_version()}, {versions}.",
        "",
        "| campaign | trial | tried | violated | seconds |",
        "| --- | --- | ---: | ---: | ---: |",
        *map(_row, scores),
    ]
    counts = [f"- {s.trial}, {what}: {n:,}" for s in scores for what, n in s.counts.items()]
    lines += ["", *counts] if counts else []
    examples = [
        f"- `--seed {score.seed} --case {score.example}`" for score in scores if score.example
    ]
    if examples:
        lines += ["", "The first violation of each trial:", "", *examples]
    return "\n".join(lines) + "\n"


def _row(score: Score) -> str:
    name = score.trial.replace("_", " ")
    return (
        f"| {score.campaign} | {name} | {score.tried:,} | {score.violated:,} | "
        f"{score.seconds:.0f} |"
    )
