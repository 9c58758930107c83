"""All measurements of one run of the benchmark."""

import sys
from dataclasses import dataclass

from benchmarks import changed, compare, runner, speed, storage
from benchmarks.compare import Comparison
from benchmarks.speed import Speed
from benchmarks.storage import VARIANTS, Stored
from benchmarks.work import Case


@dataclass(frozen=True)
class Results:
    """The measurements, by case."""

    work: dict[Case, Comparison]
    small: dict[Case, Comparison]
    """The cases around the smallest prefix that is cached."""
    planning: dict[Case, Comparison]
    talk: Comparison
    in_deepagents: Comparison
    stored: dict[Case, dict[str, Stored]]
    """The measurements, by the variant's name."""
    speed: dict[int, Speed]
    """The times of the view, by the number of messages."""
    runner: dict[runner.Way, runner.Cost]
    """The costs of an item that has a run of its own."""
    changed: dict[str, float]
    """The characters of a tick, by what changes the texts of results."""

    def named(self) -> list[tuple[str, Comparison]]:
        """All comparisons, each with a title."""
        return [
            *((str(case), seen) for case, seen in self.work.items()),
            *((str(case), seen) for case, seen in self.small.items()),
            *((f"planning {case.items}", seen) for case, seen in self.planning.items()),
            ("conversation", self.talk),
            ("deepagents", self.in_deepagents),
        ]


def measure() -> Results:
    """Measure everything; what is timed first and alone."""
    stored = _stored()
    _say("timing the view")
    timed = {size: speed.measure(size) for size in speed.SIZES}
    _say("running each item on its own")
    items = runner.measure()
    _say(f"comparing {len(compare.WORK)} cases of work")
    work = compare.compare_all(compare.WORK)
    _say("comparing plans, a conversation and deepagents")
    return Results(
        work=work,
        small=compare.compare_all(compare.SMALL),
        planning=compare.compare_all(compare.PLANNING),
        talk=compare.compare_talk(),
        in_deepagents=compare.compare_in_deepagents(),
        stored=stored,
        speed=timed,
        runner=items,
        changed={kind: changed.measure(kind) for kind in changed.KINDS},
    )


def _stored() -> dict[Case, dict[str, Stored]]:
    stored = dict[Case, dict[str, Stored]]()
    for case in storage.CASES:
        _say(f"storing {case}")
        stored[case] = {variant.name: storage.measure(case, variant) for variant in VARIANTS}
    return stored


def _say(what: str) -> None:
    """Show the progress to the person who waits."""
    print(what, file=sys.stderr, flush=True)
