"""The same work without a list and with each kind of list."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from deepagents import create_deep_agent
from langchain.agents import create_agent

from benchmarks.lists import LISTS, NO_LIST
from benchmarks.run import Build, Figures, figures, run_talk, run_work
from benchmarks.work import STYLES, Case

UNUSED = "unused"
"""The style of a conversation that never uses its list."""

WORK = [
    *(
        Case(items, calls, chars)
        for items in (3, 5, 10, 20, 50, 100)
        for calls in (1, 3)
        for chars in (100, 2_000, 20_000)
    ),
    Case(50, 2, 2_000),
]
PLANNING = [Case(items, calls=0) for items in (3, 5, 10, 20, 50, 100)]
IN_DEEPAGENTS = Case(10, 3, 2_000)


@dataclass(frozen=True)
class Comparison:
    """One piece of work, done with every list in every style."""

    without: Figures
    """The run without a list."""
    runs: dict[tuple[str, str], Figures]
    """The runs, by the list's name and the style."""

    def added(self, name: str, style: str, price: str) -> float:
        """The cost that a list adds, as a share of the run without one."""
        return self.runs[name, style].costs[price] / self.without.costs[price] - 1

    def added_sent(self, name: str, style: str) -> float:
        """The tokens sent that a list adds, as a share of the run without one."""
        return self.runs[name, style].sent / self.without.sent - 1

    @property
    def styles(self) -> list[str]:
        """The styles that were run, in order."""
        return list(dict.fromkeys(style for _, style in self.runs))


def compare_work(case: Case, build: Build = create_agent) -> Comparison:
    """Do the work of a case in every style; without working calls, "beside" equals "alone"."""
    styles = STYLES if case.calls else STYLES[1:]
    runs = {
        (kind.name, str(style)): figures(run_work(case, style, kind, build))
        for kind in LISTS
        for style in styles
    }
    return Comparison(figures(run_work(case, "beside", NO_LIST, build)), runs)


def compare_talk() -> Comparison:
    """Hold a conversation with every list, without using it."""
    runs = {(kind.name, UNUSED): figures(run_talk(kind)) for kind in LISTS}
    return Comparison(figures(run_talk(NO_LIST)), runs)


def compare_in_deepagents() -> Comparison:
    """Work in deepagents' default stack, which has no list by default."""
    return compare_work(IN_DEEPAGENTS, create_deep_agent)


def compare_all(cases: list[Case]) -> dict[Case, Comparison]:
    """Compare cases on two processors, the longest first."""
    ordered = sorted(cases, key=lambda case: case.items, reverse=True)
    with ProcessPoolExecutor(max_workers=2) as pool:
        compared = dict(zip(ordered, pool.map(compare_work, ordered), strict=True))
    return {case: compared[case] for case in cases}
