"""Families of tasks; a generator makes each task from its number of steps and a seed."""

from collections.abc import Callable
from itertools import pairwise
from random import Random

from evals.tasks import Step, Task, field_has, file_has, never, numbered, words
from evals.world import World

_Made = tuple[str, list[Step], World]
"""The request, the steps and the world of a task."""

_DO_ALL = "Please do all of the following:"


def copy(random: Random, n: int) -> _Made:
    """Copy files, some of them with a change."""
    steps, world = list[Step](), World()
    for number, word in enumerate(words(random, n), 1):
        step = _copy_step(random, word, number, world)
        steps.append(step)
    return numbered(_DO_ALL, steps), steps, world


def _copy_step(random: Random, word: str, number: int, world: World) -> Step:
    source, target = f"{word}.txt", f"{word}_copy.txt"
    text = f"{random.choice(_COLOURS)} {random.choice(_THINGS)} {100 * number + number}"
    world.files[source] = text
    how, result = random.choice(
        [
            (f"Copy the text of {source} to {target}", text),
            (f"Read {source}, and write its text in capital letters to {target}", text.upper()),
            (
                f"Read {source}, and write only its first word to {target}",
                text.split(maxsplit=1)[0],
            ),
        ]
    )
    return Step(how, target, file_has(target, result))


def lookup(random: Random, n: int) -> _Made:
    """Look facts up, and write each to a file."""
    steps, world = list[Step](), World()
    for word in words(random, n):
        fact, target = f"price of {word}", f"{word}_price.txt"
        price = str(random.randrange(100, 1000))
        world.facts[fact] = price
        text = f'Look up "{fact}" and write the answer to {target}'
        steps.append(Step(text, target, file_has(target, price)))
    return numbered(_DO_ALL, steps), steps, world


def records(random: Random, n: int) -> _Made:
    """Edit records, some with a value that is in another record."""
    steps, world = list[Step](), World()
    names = words(random, 2 * n)
    for name, other in zip(names[:n], names[n:], strict=True):
        for record in (name, other):
            world.records[record] = {
                "city": random.choice(_CITIES),
                "level": str(random.randrange(10)),
            }
        steps.append(_record_step(random, name, other, world))
    return numbered(_DO_ALL, steps), steps, world


def _record_step(random: Random, name: str, other: str, world: World) -> Step:
    city = random.choice([city for city in _CITIES if city != world.records[name]["city"]])
    if random.random() < _HALF:
        text = f"Set the city of the record {name} to {city}"
    else:
        world.records[other]["city"] = city
        text = f"Set the city of the record {name} to the city of the record {other}"
    return Step(text, name, field_has(name, "city", city))


def conditional(random: Random, n: int) -> _Made:
    """Edit records; the new value depends on what is found."""
    steps, world = list[Step](), World()
    for number, name in enumerate(words(random, n)):
        is_open = random.random() < _HALF
        if number % 2:
            world.records[name] = {"state": "open" if is_open else "closed", "level": "none"}
            text = (
                f"If the state of the record {name} is open, set its level to high; otherwise set "
                "its level to low"
            )
            done = field_has(name, "level", "high" if is_open else "low")
            steps.append(Step(text, name, done))
        else:
            steps.append(_file_condition(random, name, world, is_open=is_open))
    return numbered(_DO_ALL, steps), steps, world


def _file_condition(random: Random, name: str, world: World, *, is_open: bool) -> Step:
    source, target = f"{name}.txt", f"{name}_answer.txt"
    world.files[source] = f"{random.choice(_THINGS)} {'open' if is_open else 'closed'}"
    text = f"If {source} has the word open, write yes to {target}; otherwise write no to {target}"
    return Step(text, target, file_has(target, "yes" if is_open else "no"))


def chain(random: Random, n: int) -> _Made:
    """Look up the word of the file before; each step needs the one before."""
    keys = words(random, n + 1)
    world = World({"link_0.txt": keys[0]}, dict(pairwise(keys)))
    steps = [
        Step(
            f"Read link_{at - 1}.txt, look up its word, and write the answer to link_{at}.txt",
            f"link_{at}.txt",
            file_has(f"link_{at}.txt", keys[at]),
        )
        for at in range(1, n + 1)
    ]
    return numbered("Please do all of the following, in this order:", steps), steps, world


def requests(random: Random, n: int) -> _Made:
    """Many small requests of different kinds in one paragraph, not in a list."""
    steps, world = list[Step](), World()
    makers = [copy, lookup, records, conditional]
    for family in (makers[number % len(makers)] for number in range(n)):
        step = _another(family, random, steps, world)
        steps.append(step)
    random.shuffle(steps)
    opened = (f"{_OPENINGS[at % len(_OPENINGS)]}{_lower(s.text)}." for at, s in enumerate(steps))
    return f"A few things today. {' '.join(opened)} Thanks!", steps, world


def _another(
    family: Callable[[Random, int], _Made], random: Random, steps: list[Step], world: World
) -> Step:
    """Make a step of a family whose names are not taken yet, and add its things to the world."""
    while True:
        _, (step,), made = family(random, 1)
        names = {*made.files, *made.facts, *made.records, step.name}
        if names.isdisjoint({*world.files, *world.facts, *world.records, *(s.name for s in steps)}):
            world.files |= made.files
            world.facts |= made.facts
            world.records |= made.records
            return step


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def impossible(random: Random, n: int) -> _Made:
    """Copy files, one of which does not exist: the step must be abandoned, and reported."""
    _, steps, world = copy(random, n)
    at = random.randrange(n)
    target = steps[at].name
    source = target.replace("_copy", "")
    del world.files[source]
    steps[at] = Step(f"Copy the text of {source} to {target}", target, never, "impossible")
    return numbered(_DO_ALL, steps), steps, world


def ask(random: Random, n: int) -> _Made:
    """Copy files; one step needs an answer from the person."""
    _, steps, world = copy(random, n)
    target = "favourite.txt"
    text = f"Write my favourite colour to {target}; I have not told you which one it is, so ask me"
    steps[random.randrange(n)] = Step(text, target, never, "ask")
    return numbered(_DO_ALL, steps), steps, world


def digest(random: Random, n: int) -> _Made:
    """Read three long reports that an index names; the last of them names the next index."""
    keys, world, steps = words(random, n + 1), World(), list[Step]()
    for number, (key, following) in enumerate(pairwise(keys), 1):
        prices = random.sample(range(100, 1000), 3)
        names = [f"{key}_report_{letter}.txt" for letter in "abc"]
        for name, price in zip(names, prices, strict=True):
            lines = [_report_line(random, at) for at in range(1, 41)]
            lines.insert(random.randrange(5, 35), f"The price was {price}.")
            if name == names[-1]:
                lines.insert(random.randrange(5, 35), f"The next index is {following}_index.txt.")
            world.files[name] = "\n".join(lines)
        world.files[f"{key}_index.txt"] = f"See {', '.join(names)}."
        before = f"the index that the reports of step {number - 1} name"
        index = f"{key}_index.txt" if number == 1 else before
        target = f"answer_{number}.txt"
        text = (
            f"Read {index} and all reports that it names; write the name of the report with the "
            f"highest price and that price to {target}"
        )
        best = names[prices.index(max(prices))]
        steps.append(Step(text, target, file_has(target, f"{best} {max(prices)}")))
    form = "Write the answers in the form: x_report_a.txt 123"
    opening = f"Please do all of the following, in this order. {form}"
    return numbered(opening, steps), steps, world


def _report_line(random: Random, number: int) -> str:
    thing = f"The {random.choice(_COLOURS)} {random.choice(_THINGS)} of {random.choice(_CITIES)}"
    return f"{number}. {thing} was {random.choice(_FATES)} on day {random.randrange(1, 365)}."


FAMILIES: dict[str, Callable[[Random, int], _Made]] = {
    "copy": copy,
    "lookup": lookup,
    "records": records,
    "conditional": conditional,
    "chain": chain,
    "requests": requests,
    "impossible": impossible,
    "ask": ask,
    "digest": digest,
}


def make_task(family: str, n: int, seed: int) -> Task:
    """Make a task; the same arguments make the same task on every machine."""
    request, steps, world = FAMILIES[family](Random(f"{family} {n} {seed}"), n)
    return Task(family, n, seed, request, tuple(steps), world)


_HALF = 0.5
_COLOURS = "red green blue white black brown grey pink".split()
_THINGS = "boat door lamp chair wheel clock table glove".split()
_CITIES = "Oslo Lima Rome Cairo Perth Quito Seoul Turin".split()
_FATES = "seen sold mended moved lost".split()
_OPENINGS = ("First, ", "Then ", "Also ", "Please ", "And ", "After that, ")
