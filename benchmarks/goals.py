"""Goals for the cost of a list, compared with the measurements. They are printed, not asserted."""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.changed import MOST
from benchmarks.compare import UNUSED, Comparison
from benchmarks.lists import LANGCHAIN, LIGHT, LIGHT_FOLDED, PACK, PACKS, SAME_ANSWERS
from benchmarks.prices import PRICE_LISTS
from benchmarks.results import Results
from benchmarks.storage import DELTA, PLAIN_NO_LIST
from benchmarks.work import Case

CACHES = ("automatic", "marked")
PRICES = ("no cache", *CACHES)
MOST_ADDED = {
    Case(5, 3): 0.42,
    Case(10, 3): 0.30,
    Case(20, 3): 0.25,
    Case(50, 2): 0.30,
}
"""The largest added cost with the todo calls beside the work, under both caches."""
MOST_ADDED_FOLDED = {
    Case(5, 3): 0.12,
    Case(10, 3): -0.03,
    Case(20, 3): -0.20,
    Case(20, 6): -0.54,
    Case(10, 10, 4_000): -0.60,
}
"""The same for the light prompt where finished items leave the prompt."""
MOST_OF_LARGEST = {Case(20, 3): 0.45}
"""There, the largest prompt as a share of the largest one without a list."""
MOST_UNUSED = {PACK.name: 0.50, LIGHT.name: 0.36}
"""The largest share of the cost that LangChain's list adds to a conversation without list use."""
LEAST_TIMES_LESS = {5: 1.8, 100: 20.0}
"""Planning only: how many times cheaper than LangChain's list, by number of items."""
MOST_OF_CONVERSION = 1 / 3
"""The longest time of `model_view`, as a share of LangChain's conversion of the same history."""


@dataclass(frozen=True)
class Goal:
    """A goal and its measurement."""

    text: str
    limit: str
    measured: str
    met: bool
    missed_by: str = ""


def goals(results: Results) -> list[Goal]:
    """All goals, in the order in which the tables show their cases."""
    return [
        *_added(results, MOST_ADDED, PACK.name),
        *_added(results, MOST_ADDED_FOLDED, LIGHT_FOLDED.name),
        *_largest(results),
        _folding_never_costs(results),
        *_unused(results),
        *_planning(results),
        _never_dearer(results),
        *_stored(results),
        *_timed(results),
        *_changed(results),
    ]


def _added(results: Results, limits: dict[Case, float], name: str) -> Iterator[Goal]:
    for case, most in limits.items():
        for cache in CACHES:
            text = f"added at {case.items} items of {case.calls} calls, {name}, {cache} cache"
            yield _at_most(text, results.work[case].added(name, "beside", cache), most)


def _largest(results: Results) -> Iterator[Goal]:
    for case, most in MOST_OF_LARGEST.items():
        text = f"largest prompt, of that without a list: {case}"
        seen = results.work[case]
        share = seen.runs[LIGHT_FOLDED.name, "beside"].largest / seen.without.largest
        yield _at_most(text, share, most)


def _folding_never_costs(results: Results) -> Goal:
    """With the same answers, no prompt becomes dearer because finished items leave it."""
    shares = {
        f"{title}, {name}, {style}, {price}": seen.runs[name, style].costs[price] / cost - 1
        for title, seen in results.named()
        for (name, style), unfolded in seen.unfolded.items()
        for price, cost in unfolded.costs.items()
    }
    text = f"figures where {' or '.join(SAME_ANSWERS)} costs more than the same answers unfolded"
    return _none(text, {cell: share for cell, share in shares.items() if share > 0}, len(shares))


def _unused(results: Results) -> Iterator[Goal]:
    talk = results.talk
    for name, most in MOST_UNUSED.items():
        for price in PRICES:
            share = talk.added(name, UNUSED, price) / talk.added(LANGCHAIN.name, UNUSED, price)
            yield _at_most(f"unused, of what LangChain's adds: {name}, {price}", share, most)


def _at_most(text: str, share: float, most: float) -> Goal:
    missed_by = "" if share <= most else f"{100 * (share - most):,.1f} points"
    return Goal(text, f"at most {most:.0%}", f"{share:,.1%}", share <= most, missed_by)


def _planning(results: Results) -> Iterator[Goal]:
    for items, least in LEAST_TIMES_LESS.items():
        planned = results.planning[Case(items, calls=0)]
        for style in planned.styles:
            for price in PRICES:
                times = times_less(planned, PACK.name, style, price)
                missed_by = "" if times >= least else f"{least - times:.1f}x"
                text = f"less than LangChain's for {items} planned items, {style}, {price}"
                measured = f"{times:.1f}x"
                yield Goal(text, f"at least {least}x", measured, times >= least, missed_by)


def times_less(comparison: Comparison, name: str, style: str, price: str) -> float:
    """How many times cheaper a run is than the same run with LangChain's list."""
    ours = comparison.runs[name, style].costs[price]
    return comparison.runs[LANGCHAIN.name, style].costs[price] / ours


def _never_dearer(results: Results) -> Goal:
    cells = {
        f"{title}, {kind.name}, {style}, {price}": times_less(seen, kind.name, style, price)
        for title, seen in results.named()
        for kind in PACKS
        for style in seen.styles
        for price in PRICE_LISTS
    }
    dearer = {cell: 1 / times - 1 for cell, times in cells.items() if times < 1}
    return _none("figures where LangChain's list is cheaper", dearer, len(cells))


def _none(text: str, dearer: dict[str, float], count: int) -> Goal:
    """A goal that no figure is dearer; the dearer ones with the share by which they are."""
    measured = f"{len(dearer)} of {count}"
    if not dearer:
        return Goal(text, "none", measured, met=True)
    worst = max(dearer, key=lambda cell: dearer[cell])
    missed_by = f"at worst {dearer[worst]:+.1%} ({worst})"
    return Goal(text, "none", measured, met=False, missed_by=missed_by)


def _stored(results: Results) -> Iterator[Goal]:
    for case, stored in results.stored.items():
        share = stored[DELTA.name].size / stored[PLAIN_NO_LIST.name].size
        text = f"bytes with `DeltaTodoState`, of those without a list: {case}"
        yield _at_most(text, share, 1.0)


def _timed(results: Results) -> Iterator[Goal]:
    for size, speed in results.speed.items():
        text = f"time of `model_view`, of `convert_to_openai_messages`: {size:,} messages"
        yield _at_most(text, speed.share, MOST_OF_CONVERSION)


def _changed(results: Results) -> Iterator[Goal]:
    for kind, size in results.changed.items():
        missed_by = "" if size <= MOST else f"{size - MOST:,.0f} characters"
        text = f"characters of a tick, if results are changed: {kind}"
        yield Goal(text, f"at most {MOST}", f"{size:,.0f}", size <= MOST, missed_by)
