"""Ask a person about tool calls: the question, the meaning of the answer, the decisions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.types import Command, Interrupt

from todo_tools.rendering.lowlevel import Line, Span, one_line

ANSWERS = "yes, no, always, or your reason"

_YES = frozenset(["yes", "y", "ok", "okay"])
_NO = frozenset(["no", "n"])
_ALWAYS = frozenset(["always", "a"])


@dataclass(frozen=True)
class Answer:
    """What a person answered about a call."""

    approved: bool
    reason: str = ""
    """Why it was rejected, if that was said."""
    always: bool = False
    """Whether later calls of the same tool are approved too."""

    @property
    def decision(self) -> dict[str, Any]:
        """The answer as LangChain's `HumanInTheLoopMiddleware` takes it."""
        if self.approved:
            return {"type": "approve"}
        return {"type": "reject", **({"message": self.reason} if self.reason else {})}

    @property
    def line(self) -> Line:
        """How the answer was understood."""
        if self.approved:
            always = ", and always until the program ends" if self.always else ""
            return Line((Span(f"approved{always}", "success"),))
        reason = f": {one_line(self.reason)}" if self.reason else ""
        return Line((Span(f"rejected{reason}", "warning"),))


def read_answer(text: str) -> Answer | None:
    """Read what a person typed; `None` for an empty line.

    Any text that is not one of the known words is the reason for a rejection.
    """
    said = text.strip()
    word = said.rstrip(".! ").lower()
    if word in _YES | _ALWAYS:
        return Answer(approved=True, always=word in _ALWAYS)
    return Answer(approved=False, reason="" if word in _NO else said) if said else None


@dataclass(frozen=True)
class Approval:
    """The calls that a thread waits for, and the decisions so far."""

    waiting: tuple[Interrupt, ...] = ()
    decisions: tuple[dict[str, Any], ...] = ()
    always: frozenset[str] = field(default_factory=frozenset[str])
    """The tools that a person has approved until the program ends."""

    def of(self, waiting: Sequence[Interrupt]) -> "Approval":
        """The approval that a thread waits for now, without decisions."""
        return Approval(tuple(waiting), always=self.always)._passing()

    @property
    def calls(self) -> list[Mapping[str, Any]]:
        """The calls to decide on, in order."""
        return [call for asked in self.waiting for call in asked.value["action_requests"]]

    @property
    def next_call(self) -> Mapping[str, Any] | None:
        """The first undecided call; `None` if there is none."""
        return next(iter(self.calls[len(self.decisions) :]), None)

    def decided(self, answer: Answer) -> "Approval":
        """The approval with an answer about the next call; those approved always pass."""
        call = self.next_call
        always = self.always | {call["name"]} if call and answer.always else self.always
        return replace(self, decisions=(*self.decisions, answer.decision), always=always)._passing()

    def _passing(self) -> "Approval":
        call = self.next_call
        return self.decided(Answer(approved=True)) if call and call["name"] in self.always else self

    @property
    def command(self) -> Command[Any]:
        """The input that resumes the run once all calls are decided."""
        left = iter(self.decisions)
        return Command(
            resume={
                asked.id: {"decisions": [next(left) for _ in asked.value["action_requests"]]}
                for asked in self.waiting
            }
        )


def question_lines(call: Mapping[str, Any]) -> Iterator[Line]:
    """Show a call, whole, and the question about it.

    A model wrote the call. Each of its lines is indented, so none can pass for another question.
    """
    name, args = one_line(call["name"]), dict(call["args"])
    yield Line((Span(name, "accent", bold=True),), (Span("? ", "accent"),))
    removed, added = args.pop("old_string", None), args.pop("new_string", None)
    for argument, value in args.items():
        yield from _argument(f"{one_line(str(argument))}: ", str(value))
    for line in str(removed).split("\n") if removed is not None else ():
        yield Line((Span(one_line(line), "error"),), (Span("    - ", "error"),))
    for line in str(added).split("\n") if added is not None else ():
        yield Line((Span(one_line(line), "success"),), (Span("    + ", "success"),))
    yield Line((Span(f"{name}: {ANSWERS}", "warning"),))


def _argument(lead: str, value: str) -> Iterator[Line]:
    """An argument: its first line after its name, the other lines below."""
    for number, line in enumerate(value.split("\n")):
        mark = Span("    │ ", "dim", plain="    | ") if number else Span(f"    {lead}", "dim")
        yield Line((Span(one_line(line)),), (mark,))
