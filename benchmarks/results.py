"""Everything that one run of the benchmark measures."""

from dataclasses import dataclass

from benchmarks import compare, storage
from benchmarks.compare import Comparison
from benchmarks.storage import VARIANTS, Stored
from benchmarks.work import Case


@dataclass(frozen=True)
class Results:
    """The measurements, by case."""

    work: dict[Case, Comparison]
    planning: dict[Case, Comparison]
    talk: Comparison
    in_deepagents: Comparison
    stored: dict[Case, dict[str, Stored]]
    """By the variant's name."""

    def named(self) -> list[tuple[str, Comparison]]:
        """All comparisons with a title each."""
        return [
            *((str(case), seen) for case, seen in self.work.items()),
            *((f"planning {case.items}", seen) for case, seen in self.planning.items()),
            ("conversation", self.talk),
            ("deepagents", self.in_deepagents),
        ]


def measure() -> Results:
    """Measure all; the storage by itself first, since it is timed."""
    stored = {
        case: {variant.name: storage.measure(case, variant) for variant in VARIANTS}
        for case in storage.CASES
    }
    return Results(
        work=compare.compare_all(compare.WORK),
        planning=compare.compare_all(compare.PLANNING),
        talk=compare.compare_talk(),
        in_deepagents=compare.compare_in_deepagents(),
        stored=stored,
    )
