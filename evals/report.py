"""The tables of a folder of runs, as Markdown; no model is needed."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import exp, log
from statistics import fmean

from evals.arms import ARMS, CONTROL, EARLIER
from evals.estimates import Estimate, estimate
from evals.meter import Usage
from evals.models import PRICE_LISTS, Price
from evals.results import Job, Result, job_of, todo_turns

_Groups = dict[str, list[Result]]
BASES = ("none", CONTROL, "langchain")
"""The arms that the others are compared with."""
MIDDLE = PRICE_LISTS["middle"]
USED = ("n", "calls", "todo calls", "sent", "of these cached", "received")
_PRICES = "; ".join(
    f"{name} {price.sent}, {price.cached}, {price.received}" for name, price in PRICE_LISTS.items()
)
COST_RULE = (
    "A run costs, in US cents, its tokens sent and not cached, its tokens cached and its tokens "
    f"received, each at its price in US dollars for a million ({_PRICES}); behind the stroke all "
    "tokens sent have the full price, as without a cache."
)


def report(results: Iterable[Result]) -> str:
    """Return all tables; results of different models have tables of their own."""
    by_model: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_model[_model(result)].append(result)
    parts = [part for model, some in by_model.items() for part in _parts(model, some)]
    return "\n\n".join(parts) + "\n" if parts else "no runs yet\n"


def _model(result: Result) -> str:
    temperature = result["temperature"]
    return result["model"] + ("" if temperature is None else f", temperature {temperature}")


def _parts(model: str, results: list[Result]) -> Iterator[str]:
    arms = _grouped(results, lambda job: job.arm)
    dates = sorted(result["date"][:10] for result in results)
    versions = sorted({f"{k} {v}" for r in results for k, v in r["versions"].items()})
    yield f"# {model}"
    yield f"{len(results)} runs from {dates[0]} to {dates[-1]}; {', '.join(versions)}."
    yield f"## By arm\n\n{_by_arm(arms)}"
    yield f"## Calls and tokens, means of a run\n\n{_costs(arms)}"
    yield f"## By task, means of a run\n\n{COST_RULE}\n\n{_by_task(results)}"
    yield f"## Steps done of asked, by number of steps\n\n{_crossed(arms, lambda job: str(job.n))}"
    yield f"## Steps done of asked, by family\n\n{_crossed(arms, lambda job: job.family)}"
    yield f"## Pairs: share of steps done, compared on the same tasks\n\n{_pairs(arms)}"
    yield f"## Noise: the same arm twice on the same task\n\n{_noise(arms)}"
    yield f"## Why the runs ended\n\n{_outcomes(arms)}"


def _grouped(results: Iterable[Result], key: Callable[[Job], str]) -> _Groups:
    """Group results; arms have the order of `ARMS`, and those of earlier versions come last."""
    groups: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups[key(job_of(result))].append(result)
    order = [*ARMS, *EARLIER]
    return {
        name: groups[name]
        for name in sorted(
            groups, key=lambda name: order.index(name) if name in order else len(order)
        )
    }


def by_arm_and_size(results: Iterable[Result]) -> dict[tuple[str, int], list[Result]]:
    """Group results by arm, in the order of `ARMS`, and by number of steps."""
    groups: defaultdict[tuple[str, int], list[Result]] = defaultdict(list)
    for arm, some in _grouped(results, lambda job: job.arm).items():
        for result in sorted(some, key=lambda each: job_of(each).n):
            groups[arm, job_of(result).n].append(result)
    return dict(groups)


def _by_arm(arms: _Groups) -> str:
    heads = ["arm", "n", "steps done", "share [95 %]", "all done", "false ticks"]
    heads += ["of these blind", "lost", "gained", "special handled", "names what is left"]
    return table(heads, ([title(arm), *_arm_cells(some)] for arm, some in arms.items()))


def _arm_cells(some: list[Result]) -> list[str]:
    figures = [result["figures"] for result in some]
    special = [figure["special"] == "handled" for figure in figures if figure["special"]]
    named = [figure["names_rest"] for figure in figures if figure["names_rest"] is not None]
    return [
        str(len(some)),
        _done(some),
        _interval(estimate([share(result) for result in some])),
        _of(sum(f["all_done"] for f in figures), len(some)),
        _of(sum(f["false_ticks"] for f in figures), sum(f["ticked"] for f in figures)),
        str(sum(f["blind_ticks"] for f in figures)),
        str(sum(f["lost"] for f in figures)),
        str(sum(f["gained"] for f in figures)),
        _of(sum(special), len(special)),
        _of(sum(named), len(named)),
    ]


def _costs(arms: _Groups) -> str:
    heads = ["arm", *USED, "USD", "seconds"]
    return table(heads, ([title(arm), *_cost_cells(some)] for arm, some in arms.items()))


def _cost_cells(some: list[Result]) -> list[str]:
    costs = [result["cost"] for result in some if result["cost"] is not None]
    return [
        *_used(some),
        f"{fmean(costs):.4f}" if costs else "",
        f"{fmean(result['seconds'] for result in some):.0f}",
    ]


def _used(some: list[Result]) -> list[str]:
    usage = [result["usage"] for result in some]
    return [
        str(len(some)),
        f"{fmean(each['calls'] for each in usage):.1f}",
        f"{fmean(result['figures']['todo_calls'] for result in some):.1f}",
        *(f"{fmean(each[key] for each in usage):,.0f}" for key in ("sent", "cached", "received")),
    ]


def _by_task(results: list[Result]) -> str:
    heads = ["task", "arm", "words", "steps done", *USED, "turns of todo calls alone"]
    heads += ["largest prompt", *PRICE_LISTS, "middle, beside no list"]
    rows = list[list[str]]()
    for task, some in _grouped(results, lambda job: f"{job.family} {job.n}").items():
        arms = _grouped(some, lambda job: job.arm)
        rows += [[task, *_task_cells(one, arms.get("none", []))] for one in arms.values()]
    return table(heads, rows)


def _task_cells(some: list[Result], without: list[Result]) -> list[str]:
    words, usage = some[0].get("words", ""), [*map(_usage, some)]
    largest = max(each.largest for each in usage)
    return [
        title(job_of(some[0]).arm).removesuffix(f" ({words})"),
        words,
        _done(some),
        *_used(some),
        f"{fmean(map(todo_turns, some)):.1f}",
        f"{largest:,}" if largest else "",
        *(_cents(usage, price) for price in PRICE_LISTS.values()),
        "" if some == without else _added(some, without),
    ]


def _cents(usage: list[Usage], price: Price) -> str:
    """Return the mean cost with the cache and without."""
    prices = (price, replace(price, cached=price.sent))
    return " / ".join(f"{100 * fmean(map(each.of, usage)):.2f}" for each in prices)


def _added(some: list[Result], others: list[Result]) -> str:
    """Return the geometric mean of what is added to the cost of others on the same tasks."""
    known = {job_of(other).pair: _cost(other) for other in others}
    own = [(job_of(result).pair, _cost(result)) for result in some]
    ratios = [log(cost / known[pair]) for pair, cost in own if cost and known.get(pair)]
    if not ratios:
        return ""
    found = estimate(ratios)
    mean, low, high = (100 * (exp(part) - 1) for part in (found.mean, found.low, found.high))
    interval = f" [{low:+.0f}, {high:+.0f}]" if len(ratios) > 1 else ""
    return f"{mean:+.0f} %{interval}"


def _cost(result: Result) -> float:
    return PRICE_LISTS["middle"].of(_usage(result))


def _usage(result: Result) -> Usage:
    return Usage(**result["usage"])


def _crossed(arms: _Groups, key: Callable[[Job], str]) -> str:
    """Return a table of arms and another key of the jobs."""
    every = [result for some in arms.values() for result in some]
    columns = sorted({key(job_of(result)) for result in every}, key=lambda name: (len(name), name))
    rows = list[list[str]]()
    for arm, some in arms.items():
        groups = _grouped(some, key)
        rows.append([title(arm), *(_cell(groups.get(column, [])) for column in columns)])
    return table(["arm", *columns], rows)


def _cell(some: list[Result]) -> str:
    return f"{_done(some)} (n={len(some)})" if some else ""


def _pairs(arms: _Groups) -> str:
    bases = [base for base in BASES if base in arms]
    rows = [
        [title(arm), title(base), *_pair_cells(some, arms[base])]
        for arm, some in arms.items()
        for base in bases
        if arm != base
    ]
    heads = ["arm", "compared with", "n", "difference [95 %]", "more", "same", "fewer"]
    return table([*heads, "cost, middle [95 %]"], rows)


def _pair_cells(some: list[Result], others: list[Result]) -> list[str]:
    known = {job_of(other).pair: share(other) for other in others}
    own = [(job_of(result).pair, share(result)) for result in some]
    differences = [done - known[pair] for pair, done in own if pair in known]
    if not differences:
        return ["0", "", "", "", "", ""]
    return [
        str(len(differences)),
        _interval(estimate(differences), sign="+"),
        str(sum(difference > 0 for difference in differences)),
        str(sum(difference == 0 for difference in differences)),
        str(sum(difference < 0 for difference in differences)),
        _added(some, others),
    ]


def _noise(arms: _Groups) -> str:
    rows = list[list[str]]()
    for arm, some in arms.items():
        groups = _grouped(some, lambda job: repr((job.family, job.n, job.seed)))
        gaps = [
            abs(share(one) - share(other))
            for group in groups.values()
            for one, other in combinations(group, 2)
        ]
        if gaps:
            rows.append([title(arm), str(len(gaps)), f"{fmean(gaps):.0%}", f"{max(gaps):.0%}"])
    if not rows:
        return "No run was repeated; `--repeats 2` does."
    return table(["arm", "n", "mean difference", "largest"], rows)


def _outcomes(arms: _Groups) -> str:
    rows = list[list[str]]()
    for arm, some in arms.items():
        groups: defaultdict[str, int] = defaultdict(int)
        for result in some:
            groups[result["outcome"].partition(":")[0]] += 1
        shown = (f"{outcome} {number}" for outcome, number in sorted(groups.items()))
        rows.append([title(arm), str(len(some)), ", ".join(shown)])
    return table(["arm", "n", "outcomes"], rows)


def title(arm: str) -> str:
    """Return the words for an arm."""
    return ARMS[arm].title if arm in ARMS else EARLIER.get(arm, arm)


def share(result: Result) -> float:
    """Return the share of the steps that were done."""
    return result["figures"]["done"] / result["figures"]["asked"]


def _done(some: list[Result]) -> str:
    figures = [result["figures"] for result in some]
    return _of(sum(f["done"] for f in figures), sum(f["asked"] for f in figures))


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" if whole else ""


def _interval(found: Estimate, *, sign: str = "") -> str:
    mean, low, high = (f"{100 * part:{sign}.0f}" for part in (found.mean, found.low, found.high))
    return f"{mean} % [{low}, {high}]"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
