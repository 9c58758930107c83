"""`python -m evals [run]`, `python -m evals show RUN`, `python -m evals report [FOLDER]`."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from evals.arms import ARMS
from evals.families import FAMILIES
from evals.models import chat_model, price_of
from evals.report import report
from evals.results import load, load_all
from evals.runner import Setting, jobs_of, run_all
from evals.show import shown

RUNS = Path(__file__).parent / "runs"
NOTES = "README.md"
"""In a folder of runs: what limits them. The report prints it above their tables."""
COMMANDS = ("run", "show", "report")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns 1 if runs failed or were not begun."""
    given = list(sys.argv[1:] if argv is None else argv)
    if not given or given[0] not in (*COMMANDS, "-h", "--help"):
        given.insert(0, "run")
    options = _parser().parse_args(given)
    if options.command == "show":
        print(shown(load(_find(options.run, options.folder)), history=options.history))
    elif options.command == "report":
        print("\n".join(_pages(options.folder)), end="")
        if options.plot:
            _draw(options.folder, options.plot)
    else:
        return _run(options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_run_options(commands.add_parser("run", help="do the runs that have no file yet"))
    show = commands.add_parser("show", help="show one run as text")
    show.add_argument("run", help="its file, or the name of the file")
    show.add_argument("--history", action="store_true", help="not what the model read at the end")
    show.add_argument("--folder", type=Path, default=RUNS)
    tables = commands.add_parser("report", help="print all tables; no model is needed")
    tables.add_argument("folder", type=Path, nargs="?", default=RUNS)
    tables.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the steps done by arm")
    return parser


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    add, env = parser.add_argument, os.environ.get
    add("--model", default=env("MODEL"), help="provider:name; default: $MODEL")
    add("--base-url", default=env("BASE_URL"), help="an OpenAI-compatible server; $BASE_URL")
    add("--families", type=_names(FAMILIES), default=list(FAMILIES), help=", ".join(FAMILIES))
    add("--n", type=_numbers, default=[5], help="numbers of steps; default: 5")
    add("--seeds", type=_numbers, default=[1, 2, 3], help="default: 1,2,3")
    add("--arms", type=_names(ARMS), default=list(ARMS), help=", ".join(ARMS))
    add("--repeats", type=int, default=1, help="2 shows the noise; default: 1")
    add("--temperature", type=float, help="default: the model's own")
    add("--jobs", type=int, default=1, help="runs at once; default: 1")
    add("--max-calls", type=int, help="for each run; default: 20, and 10 more for each step")
    add("--max-tokens", type=int, default=500_000, help="for each run; default: 500,000")
    add("--max-answer", type=int, help="tokens of one answer; default: the model's own limit")
    add("--budget", type=float, default=env("BUDGET_USD") or None, help="US dollars; $BUDGET_USD")
    add("--price", default=env("PRICE"), help="USD for a million tokens: SENT,CACHED,RECEIVED")
    add("--folder", type=Path, help="for the files; default: evals/runs/MODEL")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a reader of names with commas between them."""
    allowed = list(known)

    def names(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := set(chosen).difference(allowed):
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(allowed)}"
            )
        return chosen

    return names


def _run(options: argparse.Namespace) -> int:
    price = price_of(options.model or "", options.price)
    if not options.model:
        print("no model: give --model provider:name, or set MODEL", file=sys.stderr)
        return 2
    if options.budget is not None and price is None:
        print(f"the price of {options.model} is unknown; give --price", file=sys.stderr)
        return 2
    setting = Setting(
        folder=options.folder or RUNS / re.sub(r"[^\w.-]+", "-", options.model),
        model_name=options.model,
        model=partial(
            chat_model,
            options.model,
            base_url=options.base_url,
            temperature=options.temperature,
            max_answer=options.max_answer,
        ),
        temperature=options.temperature,
        price=price,
        budget=options.budget,
        max_calls=options.max_calls,
        max_tokens=options.max_tokens,
        jobs=options.jobs,
        tell=partial(print, flush=True),
    )
    jobs = jobs_of(options.families, options.n, options.seeds, options.arms, options.repeats)
    left = run_all(jobs, setting)
    print(report(load_all(setting.folder)))
    return 1 if left else 0


def _pages(folder: Path) -> Iterator[str]:
    """Yield what is to be known about the runs of each folder, and their tables."""
    for each in sorted({path.parent for path in folder.rglob("*.json")}) or [folder]:
        notes = each / NOTES
        yield (f"{notes.read_text(encoding='utf-8')}\n" if notes.exists() else "") + report(
            load_all(each)
        )


def _draw(folder: Path, path: Path) -> None:
    from evals.plots import draw  # noqa: PLC0415  it takes a second to import, and few need it

    draw(load_all(folder), path)


def _find(run: str, folder: Path) -> Path:
    """Find the file of a run by its path or its name."""
    found = [Path(run)] if Path(run).is_file() else sorted(folder.rglob(f"{run}.json"))
    if not found:
        sys.exit(f"no run {run!r} in {folder}")
    return found[0]


if __name__ == "__main__":
    sys.exit(main())
