"""The same work without a list and with each kind of list."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from deepagents import create_deep_agent
from langchain.agents import create_agent

from benchmarks.lists import CLEARED, KINDS, LISTS, NO_LIST, SAME_ANSWERS, ListKind
from benchmarks.run import Build, Figures, figures, run_talk, run_work
from benchmarks.work import STYLES, Case, Style

UNUSED = "unused"
"""The style of a conversation that never uses its list."""

FOLDS = [
    *(Case(items, 3) for items in (1, 2, 5, 10, 20)),
    Case(10, 3, 500),
    Case(20, 6),
    Case(10, 10, 4_000),
    Case(5, 3, said=20),
    Case(20, 3, said=200),
    *(Case(20, 3, again=share) for share in (0.25, 0.5, 1)),
]
"""The cases that tell when it pays to leave out finished items."""
SMALL = [
    Case(items, calls, prompt=prompt)
    for prompt in (0, 450, 800)
    for items in (1, 2, 3, 5)
    for calls in (1, 3)
]
"""The cases that tell where the light prompt is cheaper than the default one.

With an own prompt of 450 tokens, the default prompt reaches the smallest prefix that is cached, and
the light prompt just does not.
"""
WORK = [
    *(
        Case(items, calls, chars)
        for items in (3, 5, 10, 20, 50, 100)
        for calls in (1, 3)
        for chars in (100, 2_000, 20_000)
    ),
    Case(50, 2, 2_000),
]
WORK += [case for case in FOLDS if case not in WORK]
PLANNING = [Case(items, calls=0) for items in (3, 5, 10, 20, 50, 100)]
IN_DEEPAGENTS = Case(10, 3, 2_000)


@dataclass(frozen=True)
class Comparison:
    """One piece of work, done with every list in every style."""

    without: Figures
    """The run without a list."""
    runs: dict[tuple[str, str], Figures]
    """The runs, by the list's name and the style."""
    unfolded: dict[tuple[str, str], Figures] = field(default_factory=dict[tuple[str, str], Figures])
    """The same answers as in the folded runs, but nothing is left out."""

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

    def measure(kind: ListKind, style: Style = "beside") -> Figures:
        return figures(run_work(case, style, kind, build))

    runs = {(kind.name, str(style)): measure(kind, style) for kind in LISTS for style in styles}
    for kind in CLEARED:  # without a list all styles are the same
        runs |= dict.fromkeys(((kind.name, style) for style in styles), measure(kind))
    unfolded = {
        (name, str(style)): measure(kind, style)
        for name, kind in SAME_ANSWERS.items()
        for style in styles
    }
    return Comparison(measure(NO_LIST), runs, unfolded)


def compare_talk() -> Comparison:
    """Hold a conversation with every list, without using it."""
    runs = {(kind.name, UNUSED): figures(run_talk(kind)) for kind in KINDS}
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
