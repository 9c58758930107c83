"""Do the runs: several at once, each saved as it ends, within a budget."""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby, product
from pathlib import Path
from threading import Lock
from typing import Any

from langchain_core.language_models import BaseChatModel

from evals.arms import ARMS, CONTROL, PACK
from evals.conversation import hold
from evals.families import make_task
from evals.figures import count
from evals.meter import Caps
from evals.models import Price
from evals.results import Job, Result, load, load_all, path_of, said, save

PACKAGES = ("langgraph-todo-tools", "langchain", "langgraph", "langchain-core")
MAX_FAILURES = 5
"""After this number of failed runs, no new one begins: the key or the server is wrong."""


@dataclass(frozen=True)
class Setting:
    """What all runs have in common."""

    folder: Path
    model_name: str
    model: Callable[[], BaseChatModel]
    """Creates the chat model; called once for each run."""
    temperature: float | None = None
    price: Price | None = None
    budget: float | None = None
    """US dollars for all runs of the folder; no run begins after they are spent."""
    max_calls: int | None = None
    """For each run; by default 20, and 10 more for each step."""
    max_tokens: int = 500_000
    jobs: int = 1
    """Runs at once."""
    tell: Callable[[str], None] = print


def jobs_of(
    families: Iterable[str],
    sizes: Iterable[int],
    seeds: Iterable[int],
    arms: Iterable[str],
    repeats: int,
) -> list[Job]:
    """Return the runs to do; those of one task follow each other, and the last seeds come last."""
    tasks = product(range(1, repeats + 1), seeds, families, sizes, arms)
    return [Job(family, n, seed, repeat, arm) for repeat, seed, family, n, arm in tasks]


def run_all(jobs: Sequence[Job], setting: Setting) -> int:
    """Do the runs that have no file yet; those of one task follow each other, the control last.

    Returns:
        The number of runs that failed or were not begun.
    """
    todo = [job for job in jobs if not path_of(setting.folder, job).exists()]
    setting.tell(f"{len(jobs)} runs, {len(jobs) - len(todo)} of them done already")
    spent = sum(result["cost"] or 0 for result in load_all(setting.folder))
    progress = _Progress(setting, len(todo), spent)
    with ThreadPoolExecutor(setting.jobs) as pool:
        for _, group in groupby(todo, key=lambda job: job.pair):
            # The control needs the number of calls that this package has made.
            ordered = sorted(group, key=lambda job: job.arm == CONTROL)
            pool.submit(_try_each, ordered, setting, progress)
    setting.tell(progress.summary())
    return len(todo) - progress.finished


def _try_each(jobs: Iterable[Job], setting: Setting, progress: "_Progress") -> None:
    for job in jobs:
        _try(job, setting, progress)


def _try(job: Job, setting: Setting, progress: "_Progress") -> None:
    """Do one run and save it; a failed one leaves no file and is done again the next time."""
    if progress.stops():
        return
    try:
        result = run_one(job, setting)
    except Exception as error:
        progress.failed(job, error)
    else:
        save(setting.folder, job, result)
        progress.did(job, result)


def run_one(job: Job, setting: Setting) -> Result:
    """Do one run.

    Raises:
        FileNotFoundError: It is the control, and this package has not done the same task.
    """
    task = make_task(job.family, job.n, job.seed)
    caps = Caps(_calls_for(job, setting), setting.max_tokens)
    began = time.monotonic()
    talk = hold(ARMS[job.arm], task, setting.model(), caps)
    seconds = time.monotonic() - began
    done = task.done(talk.world)
    return {
        "job": asdict(job),
        "model": setting.model_name,
        "temperature": setting.temperature,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {package: version(package) for package in PACKAGES},
        "caps": asdict(caps),
        "figures": count(task, talk),
        "usage": talk.usage.as_dict(),
        "cost": setting.price.of(talk.usage) if setting.price else None,
        "seconds": round(seconds, 1),
        "outcome": talk.outcome,
        "stops": talk.stops,
        "steps": [
            {"text": step.text, "name": step.name, "kind": step.kind, "done": step in done}
            for step in task.steps
        ],
        "todos": talk.todos,
        "history": said(talk.messages),
        "prompt": said(talk.prompt),
    }


def _calls_for(job: Job, setting: Setting) -> int:
    if job.arm == CONTROL:
        same = Job(job.family, job.n, job.seed, job.repeat, PACK)
        path = path_of(setting.folder, same)
        if not path.exists():
            raise FileNotFoundError(
                f"run {same.name} first: its number of calls is the limit of the control"
            )
        return load(path)["usage"]["calls"]
    return setting.max_calls or 20 + 10 * job.n


@dataclass
class _Progress:
    """What has been done so far, and an estimate of the rest; used by several threads."""

    setting: Setting
    total: int
    spent: float
    finished: int = 0
    failures: int = 0
    _began: float = field(default_factory=time.monotonic)
    _lock: Any = field(default_factory=Lock)

    def stops(self) -> bool:
        """Whether no run may begin any more."""
        budget = self.setting.budget
        return self.failures >= MAX_FAILURES or (budget is not None and self.spent >= budget)

    def did(self, job: Job, result: Result) -> None:
        """Report a run that is done."""
        with self._lock:
            self.finished += 1
            self.spent += result["cost"] or 0
            figures, usage = result["figures"], result["usage"]
            self.setting.tell(
                f"[{self.finished}/{self.total}] {job.name}: {figures['done']} of "
                f"{figures['asked']} steps, {figures['false_ticks']} false ticks, "
                f"{usage['calls']} calls, {result['seconds']:.0f} s, {result['outcome']}; "
                f"{self._rest()} left"
            )

    def failed(self, job: Job, error: Exception) -> None:
        """Report a run that failed."""
        with self._lock:
            self.failures += 1
            self.setting.tell(f"{job.name} failed: {type(error).__name__}: {str(error)[:300]}")

    def summary(self) -> str:
        """Return a line for the end."""
        left = self.total - self.finished
        cost = f", {self.spent:.2f} USD in this folder" if self.setting.price else ""
        rest = f", {left} not done (start again to go on)" if left else ""
        return f"{self.finished} runs done, {self.failures} failed{rest}{cost}"

    def _rest(self) -> str:
        seconds = (time.monotonic() - self._began) / self.finished * (self.total - self.finished)
        return f"about {seconds / 60:.0f} min"
