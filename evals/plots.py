"""A plot of a folder of runs: the share of steps done, by arm."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks import plots
from benchmarks.plots import TEXT, UNDATED
from evals.estimates import estimate
from evals.report import by_arm_and_size, share, title
from evals.results import Result

COLOR = "#3d85c6"
SETTINGS: dict[Any, Any] = {**plots.SETTINGS, "ytick.color": TEXT}


def draw(results: Iterable[Result], path: Path) -> None:
    """Draw the share of steps done with its 95 % interval: a row for each arm and number of steps.

    Args:
        results: The runs of one model.
        path: The SVG file to write.
    """
    rows = {
        f"{title(arm)}, N = {n} (n={len(some)})": estimate([*map(share, some)])
        for (arm, n), some in by_arm_and_size(results).items()
    }
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(7.2, 0.7 + 0.34 * len(rows)), layout="constrained")
        axes = figure.subplots()
        means = [100 * row.mean for row in rows.values()]
        below = [100 * (row.mean - row.low) for row in rows.values()]
        above = [100 * (row.high - row.mean) for row in rows.values()]
        axes.barh([*rows], means, xerr=[below, above], color=COLOR, ecolor=TEXT, capsize=3)
        axes.set_xlabel("steps done of steps asked, in percent, with 95 % intervals")
        axes.set_xlim(0, 100)
        axes.invert_yaxis()
        for side in ("right", "top"):
            axes.spines[side].set_visible(False)
        figure.savefig(path, format="svg", transparent=True, metadata=UNDATED)
