"""Trace which functions of this package an agent calls, and count the modules on the way.

A *room* is a module of `todo_tools`, without `rendering` and `testing`. A *move* is a change of
room from one called function to the next; returns do not count. A generator is called each time
that it continues. Before Python 3.12 a comprehension is a function, so later versions may count
less. `make trace` prints the table; with `TRACE=--calls` it also lists the functions.
"""

import argparse
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage

import todo_tools
from benchmarks.tables import table
from graphs.until_done import build_graph
from todo_tools import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

LIBRARY = Path(todo_tools.__file__).parent
LEFT_OUT = ("rendering", "testing")
JOURNEYS = (
    "start to the first prompt",
    "a tool call to the next prompt",
    "a last answer to the continuation",
)


@dataclass(frozen=True)
class Budget:
    """The most rooms and moves of a journey."""

    rooms: int
    moves: int


@dataclass(frozen=True)
class Call:
    """A function of this package that was called."""

    room: str
    function: str


@dataclass(frozen=True)
class Journey:
    """What an agent calls between two prompts."""

    graph: str
    name: str
    calls: Sequence[Call]
    budget: Budget

    @property
    def rooms(self) -> int:
        """The number of modules that it visits."""
        return len({each.room for each in self.calls})

    @property
    def moves(self) -> int:
        """How often the next function is in another module."""
        return sum(left.room != entered.room for left, entered in pairwise(self.calls))

    @property
    def within_budget(self) -> bool:
        """Whether it takes no more than it may."""
        return self.rooms <= self.budget.rooms and self.moves <= self.budget.moves


HAND_BUILT = (Budget(10, 35), Budget(19, 90), Budget(14, 90))
"""The budgets of the journeys, in their order."""
MIDDLEWARE = tuple(Budget(budget.rooms + 2, budget.moves + 15) for budget in HAND_BUILT)

Build = Callable[[ScriptedChatModel], Any]
GRAPHS: dict[str, tuple[Build, Sequence[Budget]]] = {
    "hand-built": (lambda model: build_graph(model).compile(), HAND_BUILT),
    "`create_agent`": (
        lambda model: create_agent(model, middleware=[TodoMiddleware()]),
        MIDDLEWARE,
    ),
}


def trace() -> list[Journey]:
    """Trace the three journeys in both kinds of graph."""
    return [
        Journey(graph, name, calls, budget)
        for graph, (build, budgets) in GRAPHS.items()
        for name, calls, budget in zip(JOURNEYS, _traced(build), budgets, strict=True)
    ]


def _traced(build: Build) -> list[list[Call]]:
    """The calls before each of the first three prompts."""
    _run(build, [])  # what only the first run of a process calls is left out
    calls = list[Call]()
    borders = [0, *_run(build, calls)]
    return [calls[begin:end] for begin, end in pairwise(borders)][: len(JOURNEYS)]


def _run(build: Build, calls: list[Call]) -> list[int]:
    """Run an agent that plans two items and stops; return the number of calls at each prompt."""
    answers = iter([turn("", call("write_todos", mode="replace", todos=["Measure", "Cut"]))])
    borders = list[int]()

    def answer(_: list[BaseMessage]) -> AIMessage | str:
        borders.append(len(calls))
        return next(answers, "I stop here.")

    agent = build(ScriptedChatModel(script=answer))
    with _noting(calls):
        agent.invoke({"messages": [("user", "Begin.")]})
    return borders


@contextmanager
def _noting(calls: list[Call]) -> Iterator[None]:
    """Append each call to a list, also those in new threads, where tools run."""

    def note(frame: FrameType, event: str, _: object) -> None:
        room = _room(frame.f_code.co_filename) if event == "call" else None
        if room is not None:
            calls.append(Call(room, frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _room(file: str) -> str | None:
    """The module of this package that a file is; `None` if it does not count."""
    path = Path(file)
    if not path.is_relative_to(LIBRARY):
        return None
    parts = path.relative_to(LIBRARY).with_suffix("").parts
    return None if parts[0] in LEFT_OUT else ".".join(parts)


def summary(journeys: Sequence[Journey]) -> str:
    """The journeys with their budgets."""
    return table(
        ["graph", "journey", "calls", "rooms", "at most", "moves", "at most", ""],
        [
            [
                journey.graph,
                journey.name,
                *map(str, (len(journey.calls), journey.rooms, journey.budget.rooms)),
                *map(str, (journey.moves, journey.budget.moves)),
                "met" if journey.within_budget else "missed",
            ]
            for journey in journeys
        ],
    )


def route(journey: Journey) -> str:
    """The functions that a journey calls, in order; each stay in a room is one line."""
    stays = groupby(journey.calls, key=lambda each: each.room)
    lines = (f"  {room}: {', '.join(each.function for each in stay)}" for room, stay in stays)
    return "\n".join([f"{journey.graph}, {journey.name}", *lines])


def main(arguments: Sequence[str] | None = None) -> None:
    """Trace the journeys and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.trace", description=__doc__)
    parser.add_argument("--calls", action="store_true", help="list the called functions as well")
    lists_calls = parser.parse_args(arguments).calls
    journeys = trace()
    if lists_calls:
        print("\n\n".join(map(route, journeys)), end="\n\n")
    print(summary(journeys))


if __name__ == "__main__":
    main()
