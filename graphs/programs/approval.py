"""Asking a person on the terminal whether a tool call may be carried out."""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langgraph.types import Command, Interrupt

from todo_tools.rendering import one_line

Decision = dict[str, str]

_NOBODY = "nobody could be asked: there is no terminal, and --yes was not given"


async def decide(action: Mapping[str, Any], *, approve_all: bool) -> Decision:
    """Get a decision for LangChain's `HumanInTheLoopMiddleware`.

    Args:
        action: The call with its `name` and `args`.
        approve_all: Approve without asking.

    Returns:
        Yes, no, or no with what the person typed as the reason; no without a terminal.

    Raises:
        EOFError: The terminal was closed; nothing is decided.
    """
    if approve_all:
        return {"type": "approve"}
    if not sys.stdin.isatty():
        return {"type": "reject", "message": _NOBODY}
    for line in approval_lines(action):
        print(line)
    while (answer := read_answer(await _read_line("  Do it? yes, no, or why not: "))) is None:
        pass
    return decision_of(answer)


_WORDS = {"yes": True, "y": True, "no": False, "n": False}


def read_answer(text: str) -> bool | str | None:
    """Read what a person typed: yes, no, a text of their own, or `None` for nothing."""
    return _WORDS.get(text.strip().lower(), text) if text.strip() else None


def decision_of(answer: bool | str) -> Decision:  # noqa: FBT001  what a person said
    """The decision that an answer means: yes, no, or no with a reason."""
    if isinstance(answer, str):
        return {"type": "reject", "message": answer.strip()}
    return {"type": "approve" if answer else "reject"}


@dataclass(frozen=True)
class Approval:
    """The tool calls awaiting approval, and the decisions so far."""

    waiting: tuple[Interrupt, ...] = ()
    decisions: tuple[Decision, ...] = ()

    def of(self, waiting: Sequence[Interrupt]) -> "Approval":
        """The approval that a thread waits for; decisions are kept while it is the same."""
        return self if tuple(waiting) == self.waiting else Approval(tuple(waiting))

    @property
    def calls(self) -> list[Mapping[str, Any]]:
        """The calls to decide on, in order."""
        return [call for asked in self.waiting for call in asked.value["action_requests"]]

    @property
    def next_call(self) -> Mapping[str, Any]:
        """The first call that is not decided."""
        return self.calls[len(self.decisions)]

    @property
    def complete(self) -> bool:
        """Whether all are decided."""
        return len(self.decisions) == len(self.calls)

    def decided(self, text: str) -> "Approval":
        """The approval after what a person typed about the next call: yes, no, or why not."""
        answer = read_answer(text)
        return replace(
            self, decisions=(*self.decisions, decision_of(text if answer is None else answer))
        )

    @property
    def command(self) -> Command[Any]:
        """What resumes the run, when all are decided."""
        left = iter(self.decisions)
        return Command(
            resume={
                asked.id: {"decisions": [next(left) for _ in asked.value["action_requests"]]}
                for asked in self.waiting
            }
        )


def approval_lines(action: Mapping[str, Any]) -> Iterator[str]:
    """Show a person a tool call to decide on: all of it, since the cut part could matter most.

    Args:
        action: The call with its `name` and `args`.

    Yields:
        Lines to print, in which nothing of the call can act on the terminal.
    """
    yield f"\n? {one_line(action['name'])}"
    for name, value in action["args"].items():
        first, *rest = str(value).split("\n")
        yield f"    {one_line(name)}: {one_line(first)}"
        yield from (f"    {' ' * len(name)}│ {one_line(line)}" for line in rest)


async def _read_line(question: str) -> str:
    """Ask on the terminal. Unlike `input` this can be cancelled, so that Ctrl-C works."""
    print(question, end="", flush=True)
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line
