"""The measurements as Markdown."""

import os
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.compare import FOLDS, IN_DEEPAGENTS, Comparison
from benchmarks.goals import CACHES, MOST_ADDED, goals, times_less
from benchmarks.lists import (
    CLEARED,
    FOLDED,
    KINDS,
    LANGCHAIN,
    LIGHT,
    LIGHT_FOLDED,
    LISTS,
    PACK,
    UNFOLDED,
    ListKind,
)
from benchmarks.prices import PRICE_LISTS
from benchmarks.results import Results
from benchmarks.runner import AT_ONCE, CALLS, CHARS, REPORT, TIMES, Cost, Way
from benchmarks.work import Case

PRICES = tuple(PRICE_LISTS)
BESIDE = "beside"
SHORT = (5, 10, 20, 50)
"""The numbers of items in the short tables."""
ITEM_RUNS = "Each item a run of its own"


def report(results: Results) -> str:
    """All tables, each below its heading."""
    usual = {case: seen for case, seen in results.work.items() if case.chars == Case(1).chars}
    deep = {IN_DEEPAGENTS: results.in_deepagents}
    sections = [
        ("In short: added to a scripted run, by how its todo calls are made", summary(results)),
        ("In short: finished items leave the prompt", folded_summary(results)),
        ("Where it costs more that finished items leave the prompt", not_worth(results)),
        ("The light prompt, where a cache begins at 1,024 tokens", light_summary(results)),
        ("In short: bytes in a SQLite file", stored_summary(results)),
        ("Goals", goals_table(results)),
        ("Added to the same work without a list: results of 2,000 characters", added(usual)),
        ("Added in deepagents' default stack", added(deep)),
        ("Added to a conversation of 20 user messages that never uses the list", talk(results)),
        ("Nothing but planning", planning(results.planning)),
        ("Storage, time and memory", storage(results)),
        (ITEM_RUNS, item_runs(results.runner)),
        ("Characters that a tick adds to the prompt, by what changes results", changed(results)),
        ("Time of the view, beside LangChain's conversion of the same history", speed(results)),
        ("Added to the same work without a list: all cases", added(results.work)),
        ("All figures", details(results)),
    ]
    return "\n\n".join(f"## {title}\n\n{body}" for title, body in sections) + "\n"


def summary(results: Results) -> str:
    """What is added, from the least to the most of the ways to make todo calls."""
    return table(
        ["items", "list", "tokens sent", "automatic prefix cache", "marked cache"],
        [
            [str(items), kind.name, *_ranges(results.work[Case(items)], kind.name)]
            for items in SHORT
            for kind in KINDS
        ],
    )


def _ranges(seen: Comparison, name: str) -> list[str]:
    sent = [seen.added_sent(name, style) for style in seen.styles]
    costs = ([seen.added(name, style, cache) for style in seen.styles] for cache in CACHES)
    return [_range(shares) for shares in (sent, *costs)]


def _range(shares: Sequence[float]) -> str:
    low, high = (f"{100 * share:+,.0f}" for share in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _signed(share: float) -> str:
    return f"{100 * share:+,.0f} %"


def folded_summary(results: Results) -> str:
    """What is added where finished items leave the prompt, with the largest prompt of each run."""
    kinds = (PACK, FOLDED, LIGHT, LIGHT_FOLDED, *CLEARED)
    return table(
        ["case", "list", "tokens sent", *CACHES, "largest prompt", "of no list's"],
        [
            [str(case), kind.name, *_folded_cells(results.work[case], kind.name)]
            for case in FOLDS
            for kind in kinds
        ],
    )


def _folded_cells(comparison: Comparison, name: str) -> list[str]:
    largest = comparison.runs[name, BESIDE].largest
    return [
        _signed(comparison.added_sent(name, BESIDE)),
        *(_signed(comparison.added(name, BESIDE, cache)) for cache in CACHES),
        f"{largest:,}",
        f"{largest / comparison.without.largest:.0%}",
    ]


def not_worth(results: Results) -> str:
    """The runs that cost more when finished items leave the prompt, with what it takes to do so."""
    return table(
        ["case", "list", "todo calls", *CACHES],
        [
            [title, folded.name, style, *(_signed(share) for share in shares)]
            for title, seen in results.named()
            for folded in UNFOLDED
            for style in seen.styles
            if max(shares := _more(seen, folded, style)) > 0
        ],
    )


def _more(seen: Comparison, folded: ListKind, style: str) -> list[float]:
    """What a folded list costs more than the same list unfolded, under both caches."""
    with_fold, without = (seen.runs[k.name, style].costs for k in (folded, UNFOLDED[folded]))
    return [with_fold[cache] / without[cache] - 1 for cache in CACHES]


def light_summary(results: Results) -> str:
    """How much more the light prompt costs than the default one, for each smallest prefix."""
    prices = [price for price in PRICES if "from" in price]
    rows = list[list[str]]()
    for case, seen in results.small.items():
        light, default = (seen.runs[kind.name, BESIDE].costs for kind in (LIGHT, PACK))
        shares = [_signed(light[price] / default[price] - 1) for price in prices]
        rows.append([f"{case.prompt:,}", f"{case.items} x {case.calls}", *shares])
    return table(["tokens of the agent's own prompt", "items x calls", *prices], rows)


def stored_summary(results: Results) -> str:
    """The bytes of a run in the checkpointer, for the cases of the goals."""
    names = list(next(iter(results.stored.values())))
    return table(
        ["items", *names],
        [
            [str(case.items), *(f"{variants[name].size / 1e6:,.1f} MB" for name in names)]
            for case, variants in results.stored.items()
            if case in MOST_ADDED
        ],
    )


def goals_table(results: Results) -> str:
    """Each goal with its measurement."""
    return table(
        ["goal", "limit", "measured", "", "missed by"],
        [
            [goal.text, goal.limit, goal.measured, "met" if goal.met else "missed", goal.missed_by]
            for goal in goals(results)
        ],
    )


def added(comparisons: dict[Case, Comparison]) -> str:
    """The share that each list adds; slashes separate the styles in a cell."""
    return table(
        ["case", "list", "tokens sent", *PRICES],
        [
            [str(case), kind.name, *_added_cells(comparison, kind.name)]
            for case, comparison in comparisons.items()
            for kind in KINDS
        ],
    )


def talk(results: Results) -> str:
    """The cost of a list that is not used."""
    return table(
        ["list", "tokens sent", *PRICES],
        [[kind.name, *_added_cells(results.talk, kind.name)] for kind in KINDS],
    )


def _added_cells(comparison: Comparison, name: str) -> list[str]:
    sent = [comparison.added_sent(name, style) for style in comparison.styles]
    shares = [
        [comparison.added(name, style, price) for style in comparison.styles] for price in PRICES
    ]
    return [_percents(cell) for cell in (sent, *shares)]


def _percents(shares: Iterable[float]) -> str:
    return " / ".join(f"{100 * share:,.0f}" for share in shares) + " %"


def planning(comparisons: dict[Case, Comparison]) -> str:
    """The cost of LangChain's list, and how many times cheaper the others are."""
    return table(
        ["items", "todo calls", "list", *PRICES],
        [
            [str(case.items), style, kind.name, *_planning_cells(comparison, kind.name, style)]
            for case, comparison in comparisons.items()
            for style in comparison.styles
            for kind in LISTS
        ],
    )


def _planning_cells(comparison: Comparison, name: str, style: str) -> list[str]:
    costs = comparison.runs[name, style].costs
    if name == LANGCHAIN.name:
        return [f"{costs[price]:,.0f}" for price in PRICES]
    return [
        f"{costs[price]:,.0f} ({times_less(comparison, name, style, price):.1f}x less)"
        for price in PRICES
    ]


def storage(results: Results) -> str:
    """The stored bytes, and the time and memory of the framework."""
    return table(
        ["case", "", "database", "CPU", "peak memory", "load latest", "fork middle"],
        [
            [
                str(case),
                name,
                f"{stored.size / 1e6:,.2f} MB",
                f"{stored.cpu:.2f} s",
                f"{stored.peak / 1e6:.1f} MB",
                f"{1e3 * stored.load:.1f} ms",
                f"{1e3 * stored.fork:.1f} ms",
            ]
            for case, variants in results.stored.items()
            for name, stored in variants.items()
        ],
    )


def item_runs(costs: Mapping[Way, Cost]) -> str:
    """What an item costs, and where its bytes are."""
    load, processors = os.getloadavg()[2], os.cpu_count() or 1
    shared = ", which other programs shared" if load > 2 * processors else ""
    head = ITEM_RUNS_HEAD.format(load=load, processors=processors, shared=shared)
    places = list(dict.fromkeys(name for cost in costs.values() for name in sorted(cost.kept)))
    rows = [
        [
            *(way.name, way.database, f"{way.items:,}", way.prompt),
            *(f"{1e3 * seconds:.1f} ms" for seconds in (cost.seconds, cost.cpu)),
            *(f"{cost.kept[place] / 1e3:.1f} kB" if place in cost.kept else "" for place in places),
        ]
        for way, cost in costs.items()
    ]
    return head + table(["", "stored in", "items", "prompt", "time", "CPU", *places], rows)


ITEM_RUNS_HEAD = f"""\
`python -m benchmarks runner` measures this part alone and writes it here. An agent makes {CALLS}
calls with results of {CHARS} characters, then reports with {len(REPORT)}. The runner is
`create_item_runner` with `at_once={AT_ONCE}`, `DeltaItemsState` and `durability="sync"`. The loops
give the same agent the same prompts, one after the other. All figures are for each item.

- Times are the medians of {TIMES} runs, by turns. CPU is that of the process, without PostgreSQL's
  server. The load of the machine was {{load:.1f}} on {{processors}} processors{{shared}}.
- *Outer* are the bytes of values in the namespace of the thread itself, *inner* those in namespaces
  of the items' runs. The rest of the database is keys, indexes, metadata and free space.

"""


def speed(results: Results) -> str:
    """The time of the view, in all and for each message."""
    return table(
        ["messages", "`model_view`", "`convert_to_openai_messages`", "share", "view of a message"],
        [
            [
                f"{size:,}",
                f"{1e3 * timed.view:,.1f} ms",
                f"{1e3 * timed.converted:,.1f} ms",
                f"{timed.share:.0%}",
                f"{timed.each:,.1f} µs",
            ]
            for size, timed in results.speed.items()
        ],
    )


def changed(results: Results) -> str:
    """What other middleware adds to a tick of a list with 30 items."""
    rows = [[kind, f"{characters:,.0f}"] for kind, characters in results.changed.items()]
    return table(["middleware that changes results", "characters of a tick"], rows)


def details(results: Results) -> str:
    """The absolute figures of every run, collapsed."""
    rows = [row for title, comparison in results.named() for row in _detail_rows(title, comparison)]
    heads = [
        "case",
        "list",
        "todo calls",
        "model calls",
        "tokens sent",
        "largest",
        "received",
        *PRICES,
    ]
    return f"<details>\n\n{table(heads, rows)}\n\n</details>"


def _detail_rows(title: str, comparison: Comparison) -> list[list[str]]:
    runs = {("no list", ""): comparison.without, **comparison.runs}
    return [
        [
            title,
            name,
            style,
            *(f"{number:,}" for number in (run.calls, run.sent, run.largest, run.received)),
            *(f"{run.costs[price]:,.0f}" for price in PRICES),
        ]
        for (name, style), run in runs.items()
    ]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
