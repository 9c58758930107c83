"""The work of a run, step by step, independent of the list.

A step is one model turn: changes of the list, calls of the working tool, or both. The run without a
list has the same steps without the changes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from langchain_core.tools import BaseTool, tool

Status = Literal["pending", "in_progress", "completed"]
Style = Literal["beside", "alone", "apart"]
"""The turns in which the todo calls are made.

- `beside`: in one turn an item is completed, the next one started and its first working call made.
- `alone`: in one turn an item is completed and the next one started; the work has other turns.
- `apart`: the plan, each start and each completion have separate turns.
"""

STYLES: tuple[Style, ...] = ("beside", "alone", "apart")


@dataclass(frozen=True)
class Case:
    """The size of a piece of work."""

    items: int
    calls: int = 3
    """Working calls for each item; 0 means planning only."""
    chars: int = 2_000
    """The length of a working call's result."""
    said: int = 45
    """Where finished items leave the prompt: the tokens that the model says beside each tick."""
    again: float = 0
    """There, too: the share of the items that fetch one result of the item before again."""

    prompt: int = 0
    """The tokens that the agent's own system prompt has besides the benchmark's one sentence."""

    def __str__(self) -> str:
        prompt = f", own prompt of {self.prompt:,}" if self.prompt else ""
        said = f", {self.said} said" if self.said != Case.said else ""
        again = f", {self.again:.0%} fetch again" if self.again else ""
        return f"{self.items} x {self.calls}, {self.chars:,}{said}{again}{prompt}"

    def fetches_again(self, item: int) -> bool:
        """Whether an item fetches a result again; these items are spread evenly."""
        return item > 0 and int((item + 1) * self.again) > int(item * self.again)


@dataclass(frozen=True)
class Step:
    """One model turn."""

    statuses: tuple[Status, ...]
    """The list after the step's changes."""
    plans: bool = False
    completes: int | None = None
    starts: int | None = None
    works: int | None = None
    """The item that a working call belongs to."""
    fetches: int | None = None
    """The item whose first result is fetched again."""

    @property
    def changes(self) -> bool:
        """Whether the step changes the list."""
        return self.plans or self.completes is not None or self.starts is not None


def steps(case: Case, style: Style) -> Iterator[Step]:
    """The turns of a run, except for the final answer."""
    made = _apart(case) if style == "apart" else _together(case, style)
    for step in made:
        yield step
        if step.starts is not None and case.fetches_again(step.starts):
            yield Step(step.statuses, fetches=step.starts - 1)


def _together(case: Case, style: Style) -> Iterator[Step]:
    """An item is completed and the next one started in one turn."""
    for item in range(case.items):
        now = _statuses(case, item, "in_progress")
        before = item - 1 if item else None
        works = item if style == "beside" and case.calls else None
        yield Step(now, plans=item == 0, completes=before, starts=item, works=works)
        left = case.calls if works is None else case.calls - 1
        yield from [Step(now, works=item)] * left
    yield Step(_statuses(case, case.items), completes=case.items - 1)


def _apart(case: Case) -> Iterator[Step]:
    """Every change of the list has a separate turn."""
    yield Step(_statuses(case, 0), plans=True)
    for item in range(case.items):
        now = _statuses(case, item, "in_progress")
        yield Step(now, starts=item)
        yield from [Step(now, works=item)] * case.calls
        yield Step(_statuses(case, item + 1), completes=item)


def _statuses(case: Case, item: int, status: Status = "pending") -> tuple[Status, ...]:
    """All earlier items are completed, the item has the status, and the rest is pending."""
    done: list[Status] = ["completed"] * item
    rest: list[Status] = ["pending"] * (case.items - item - 1)
    return (*done, *([status] if item < case.items else []), *rest)


def text(item: int) -> str:
    """An item's text, of usual length."""
    return f"Step {item}: change the module, run its tests and write down what was found"


def working_tool(chars: int) -> BaseTool:
    """A tool whose results have a given length and differ from item to item."""

    @tool
    def work(item: int, call: int) -> str:
        """Do a part of the work on an item."""
        line = f"Item {item}, call {call}: the tests of this module pass.\n"
        return (line * (chars // len(line) + 1))[:chars]

    return work
