"""Approval of tool calls: the question to a person, the meaning of the answer, the decisions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.types import Command, Interrupt

from graphs.coding_agent import after_plans
from graphs.terminal.plan import edit_plan, is_plan
from graphs.terminal.question import size_of
from todo_tools import TodoItem
from todo_tools.rendering.lowlevel import Line, Span, one_line

Decision = dict[str, Any]

_EDIT = "edit"
_SHOW = "show"

_APPROVING = frozenset(
    ["yes", "y", "ok", "okay", "sure", "yes please", "yep", "go", "do it"],
)
_REJECTING = frozenset(["no", "n", "nope", "stop"])
_ALWAYS = frozenset(["a", "always"])


@dataclass(frozen=True)
class Answer:
    """What a person answered about a call."""

    approved: bool
    reason: str = ""
    """Why it was rejected, if that was said."""
    always: bool = False
    """Whether later calls of the same tool are approved too."""
    edited: Mapping[str, Any] | None = None
    """The call as the person changed it, if that was done."""

    @property
    def decision(self) -> Decision:
        """The answer as LangChain's `HumanInTheLoopMiddleware` takes it."""
        if self.edited:
            return {"type": "edit", "edited_action": self.edited}
        if self.approved:
            return {"type": "approve"}
        return {"type": "reject", **({"message": self.reason} if self.reason else {})}

    @property
    def line(self) -> Line:
        """The answer in words, to confirm to the person how it was understood."""
        if self.approved:
            return Line((Span("approved as edited" if self.edited else "approved", "success"),))
        reason = f": {one_line(self.reason)}" if self.reason else ""
        return Line((Span(f"rejected{reason}", "warning"),))


def read_answer(text: str) -> Answer | None:
    """Read what a person typed: an approval, a rejection, or the reason for a rejection.

    Args:
        text: The line. It may end with a full stop or exclamation marks.

    Returns:
        The answer; `None` for an empty line.
    """
    said = text.strip()
    word = re.sub(r"\s+", " ", said.rstrip(".! ").lower())
    if word in _APPROVING | _ALWAYS:
        return Answer(approved=True, always=word in _ALWAYS)
    if word in _REJECTING:
        return Answer(approved=False)
    return Answer(approved=False, reason=said) if said else None


def answers_about(action: Mapping[str, Any], *, cut: bool = False) -> str:
    """The answers that a person can give; `show` is one if the call is not shown whole."""
    words = ["yes", "no", "always"] + ["edit"] * is_plan(action) + ["show"] * cut
    return f"{', '.join(words)}, or why not"


def question_about(action: Mapping[str, Any], *, cut: bool = False) -> Line:
    """The question about a call. It repeats the call's name just above the answer."""
    what = Span(f"{one_line(action['name'])}, {size_of(action)}. ", "text")
    ask = Span("Do it?", "warning", bold=True)
    return Line((what, ask, Span(f" {answers_about(action, cut=cut)}:", "text")))


def wants_all(text: str) -> bool:
    """Whether the answer asks to see the parts of a call that were left out."""
    return text.strip().lower() == _SHOW


def answer_about(action: Mapping[str, Any], text: str) -> Answer | None:
    """Read what a person typed about a call; `edit` opens a plan in the editor.

    Args:
        action: The call with its `name` and `args`.
        text: The line.

    Returns:
        The answer; `None` for an empty line.

    Raises:
        NotEditedError: The person chose to edit the plan, but it was not changed.
    """
    if is_plan(action) and text.strip().lower() == _EDIT:
        args = edit_plan(action["args"])
        return Answer(approved=True, edited={"name": action["name"], "args": args})
    return read_answer(text)


@dataclass
class Approved:
    """The tools that are approved without asking, until the program ends."""

    everything: bool = False
    names: set[str] = field(default_factory=set[str])

    def __contains__(self, name: object) -> bool:
        return self.everything or name in self.names

    def after(self, answer: Answer, name: str, take_back: str) -> tuple[Line, ...]:
        """Record an answer, and return lines that say how it was understood.

        Args:
            answer: The person's answer.
            name: The tool that the question was about.
            take_back: What the person can do to be asked again.
        """
        if not answer.always:
            return (answer.line,)
        self.names.add(name)
        text = f"{one_line(name)} is approved without asking until the program ends; {take_back}"
        return answer.line, Line((Span(text, "warning"),))


@dataclass(frozen=True)
class Approval:
    """The tool calls awaiting approval, and the decisions so far."""

    waiting: tuple[Interrupt, ...] = ()
    decisions: tuple[Decision, ...] = ()

    def of(self, waiting: Sequence[Interrupt]) -> "Approval":
        """The approval that a thread waits for; decisions last as long as its question."""
        return self if tuple(waiting) == self.waiting else Approval(tuple(waiting))

    @property
    def calls(self) -> list[Mapping[str, Any]]:
        """The calls to decide on, in order."""
        return [call for asked in self.waiting for call in asked.value["action_requests"]]

    @property
    def next_call(self) -> Mapping[str, Any]:
        """The first undecided call."""
        return self.calls[len(self.decisions)]

    def list_before_next(self, todos: Sequence[TodoItem]) -> list[TodoItem]:
        """The list to which the next call applies: approved plans before it come first.

        Args:
            todos: The list before all of the calls.
        """
        decided = zip(self.calls, self.decisions, strict=False)
        return after_plans(
            todos,
            (
                decision.get("edited_action", call)["args"]
                for call, decision in decided
                if is_plan(call) and decision["type"] != "reject"
            ),
        )

    @property
    def complete(self) -> bool:
        """Whether all are decided."""
        return len(self.decisions) == len(self.calls)

    def decided(self, answer: Answer) -> "Approval":
        """A new approval that includes an answer about the next call."""
        return replace(self, decisions=(*self.decisions, answer.decision))

    def passing(self, approved: Approved) -> "Approval":
        """A new approval with all calls approved up to the next one that needs a question."""
        passed = self
        while not passed.complete and passed.next_call["name"] in approved:
            passed = passed.decided(Answer(approved=True))
        return passed

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
