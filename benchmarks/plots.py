"""The plots: what a list adds to the cost of a run, by number of items."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.lists import LANGCHAIN, LIGHT_FOLDED, PACK
from benchmarks.results import Results
from benchmarks.work import Case

ITEMS = (3, 5, 10, 20, 50, 100)
TITLES = {
    "automatic": "automatic prefix cache",
    "marked": "marked cache",
}
COLORS = {LANGCHAIN.name: "#d9822b", PACK.name: "#3d85c6", LIGHT_FOLDED.name: "#4f9d5d"}
TEXT = "#7d838c"
"""A colour that is legible on white and on black."""
WIDTH = 0.28
UNDATED: dict[str, Any] = {"Date": None, "Creator": None}
SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 11,
    "svg.fonttype": "none",  # text stays text, which is small and the same on every machine
    "svg.hashsalt": "todo list",  # the same numbers give the same file
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "xtick.color": TEXT,
}


def draw_all(results: Results, folder: Path) -> list[Path]:
    """Draw one plot for each cache.

    Args:
        results: The measurements.
        folder: Where the plots go.

    Returns:
        The files written.
    """
    paths = list[Path]()
    for cache in TITLES:
        path = folder / f"added-cost-{cache}.svg"
        draw(added(results, cache), cache, path)
        paths.append(path)
    return paths


def added(results: Results, cache: str) -> dict[str, list[float]]:
    """What each list adds, in percent, by number of items."""
    return {
        name: [100 * results.work[Case(n)].added(name, "beside", cache) for n in ITEMS]
        for name in COLORS
    }


def draw(percents: dict[str, list[float]], cache: str, path: Path) -> None:
    """Draw groups of bars, each labelled with its number."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        axes = figure.subplots()
        for nth, (name, values) in enumerate(percents.items()):
            places = [place + (nth - 1) * WIDTH for place in range(len(values))]
            bars = axes.bar(places, values, WIDTH * 0.94, color=COLORS[name], label=name)
            labels = [f"{value:+,.0f}" for value in values]
            axes.bar_label(bars, labels, padding=2, color=COLORS[name], fontsize=8)
        axes.set_title(
            f"Cost that a list adds to a scripted run, in % ({TITLES[cache]})",
            fontsize=12,
        )
        axes.set_xticks(range(len(ITEMS)), [str(n) for n in ITEMS])
        axes.set_xlabel("items on the list, three tool calls each")
        axes.tick_params(length=0)
        axes.margins(y=0.12)  # space for the number on the tallest bar
        axes.yaxis.set_visible(False)
        axes.spines[:].set_visible(False)
        axes.axhline(0, color=TEXT, linewidth=0.8)
        axes.legend(frameon=False, loc="upper left")
        figure.savefig(path, format="svg", transparent=True, metadata=UNDATED)
