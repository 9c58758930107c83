"""A task: a request of several steps, each of which is checked in the world."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from evals.world import World

Done = Callable[[World], bool]
"""Whether a step is done, from the state of the world."""


@dataclass(frozen=True)
class Step:
    """One step of a task."""

    text: str
    """What is to be done, in one sentence without a full stop."""
    name: str
    """What the step changes: the name of a file or a record, which no other step has."""
    done: Done
    kind: str = "work"
    """`work`; `impossible`: cannot be done and must be reported; `ask`: needs an answer first."""


@dataclass(frozen=True)
class Task:
    """A request, and the world in which it is done."""

    family: str
    n: int
    seed: int
    request: str
    """The user's message."""
    steps: tuple[Step, ...]
    world: World
    """The world at the beginning; copy it for each run."""

    @property
    def work(self) -> list[Step]:
        """The steps that can be done without asking."""
        return [step for step in self.steps if step.kind == "work"]

    @property
    def special(self) -> Step | None:
        """The step that is impossible or needs an answer, if the task has one."""
        return next((step for step in self.steps if step.kind != "work"), None)

    def done(self, world: World) -> list[Step]:
        """Return the steps that are done in a world."""
        return [step for step in self.work if step.done(world)]


def file_has(path: str, text: str) -> Done:
    """Whether a file has a text; white space around it and a final full stop do not count."""
    return lambda world: _plain(world.files.get(path, "")) == _plain(text)


def field_has(record: str, field: str, value: str) -> Done:
    """Whether a field of a record has a value."""
    return lambda world: _plain(world.records[record][field]) == _plain(value)


def never(_: World) -> bool:
    """Whether a step is done that cannot be done: no."""
    return False


def _plain(text: str) -> str:
    return text.strip().removesuffix(".")


def numbered(opening: str, steps: Sequence[Step]) -> str:
    """Write the steps as a numbered list below a sentence."""
    lines = [f"{number}. {step.text}" for number, step in enumerate(steps, 1)]
    return "\n".join([opening, *lines])


def words(random: Random, count: int) -> list[str]:
    """Return different words in a random order; after the first sixty they have a number."""
    rounds = count // len(_WORDS) + 1
    known = [f"{word}{number or ''}" for number in range(rounds) for word in _shuffled(random)]
    return known[:count]


def _shuffled(random: Random) -> list[str]:
    return random.sample(_WORDS, len(_WORDS))


_WORDS = (
    "amber anchor apple arrow basil beacon birch bridge button canal candle cedar "
    "clover cobalt copper coral cotton daisy delta ember falcon feather fern flint garden "
    "ginger glacier granite harbor hazel heron honey indigo island ivory jasmine juniper "
    "kettle lagoon lantern lemon linen magnet maple marble meadow mirror nickel olive orchid "
    "pepper pigeon quartz raven ribbon saddle silver spruce thistle walnut"
).split()
