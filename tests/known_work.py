"""Do the steps of an evaluation by their texts alone, with rules instead of a model."""

import re
from collections.abc import Callable, Sequence

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import ToolCall

from evals.tasks import Step, Task
from evals.world import World
from todo_tools.testing import call, turn

_Change = tuple[str, dict[str, str]]
"""The tool that changes the world, and its arguments."""


def write(path: str, text: str) -> _Change:
    return "write_file", {"path": path, "text": text}


def edit(name: str, field: str, value: str) -> _Change:
    return "edit_record", {"name": name, "field": field, "value": value}


def answer_of(world: World, source: str) -> str:
    return "yes" if "open" in world.read_file(source) else "no"


def level_of(world: World, record: str) -> str:
    return "high" if "state: open" in world.look_up(record) else "low"


RULES: list[tuple[str, Callable[..., _Change]]] = [
    (r"copy the text of (\S+) to (\S+)", lambda w, a, b: write(b, w.read_file(a))),
    (
        r"read (\S+), and write its text in capital letters to (\S+)",
        lambda w, a, b: write(b, w.read_file(a).upper()),
    ),
    (
        r"read (\S+), and write only its first word to (\S+)",
        lambda w, a, b: write(b, w.read_file(a).split()[0]),
    ),
    (r'look up "(.+)" and write the answer to (\S+)', lambda w, a, b: write(b, w.look_up(a))),
    (
        r"set the city of the record (\S+) to the city of the record (\S+)",
        lambda w, a, b: edit(a, "city", w.records[b]["city"]),
    ),
    (r"set the city of the record (\S+) to (\S+)", lambda w, a, b: edit(a, "city", b)),
    (
        r"if (\S+) has the word open, write yes to (\S+); otherwise write no to \S+",
        lambda w, a, b: write(b, answer_of(w, a)),
    ),
    (
        r"if the state of the record (\S+) is open, .*",
        lambda w, a: edit(a, "level", level_of(w, a)),
    ),
    (
        r"read (\S+), look up its word, and write the answer to (\S+)",
        lambda w, a, b: write(b, w.look_up(w.read_file(a))),
    ),
]


def do_step(text: str, world: World) -> ToolCall:
    """Do a step in a world, and return the call that did it."""
    for pattern, rule in RULES:
        if found := re.fullmatch(pattern, text, re.IGNORECASE):
            name, args = rule(world, *found.groups())
            getattr(world, name)(**args)
            made = call(name)
            made["args"].update(args)  # one of them is called `name`
            return made
    raise AssertionError(f"no rule for {text!r}")


def work_of(task: Task, steps: Sequence[Step] | None = None) -> list[AIMessage]:
    """Return a turn for each step, by default for all that can be done."""
    world = task.world.copy()
    return [turn("", do_step(step.text, world)) for step in (steps or task.work)]
