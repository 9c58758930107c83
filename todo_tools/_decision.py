"""Whether an agent that stopped calling tools is sent back to work: one pure decision.

The order of the checks, the two limits and what resets them are defined here and nowhere else; the
conditional edge and the middleware only carry the decision out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage

from todo_tools import _prompts as prompts
from todo_tools._finish_reasons import broken_off
from todo_tools._formatting import format_incomplete
from todo_tools._todos import STATUSES, TodoItem, incomplete, require_whole_number
from todo_tools.events import LoopEvent, Outcome
from todo_tools.state import LoopState, loop_in, messages_in, todos_in
from todo_tools.transcript import last_user_message

PROGRESS: LoopState = {"in_a_row": 0, "outcome": None}
"""What a change of the list writes: it is progress, so it resets the limit in a row."""

SPOKEN: LoopState = {"outcome": None}
"""What the user's own message in place of a continuation writes; the message resets the limits."""

_ANSWERS = {"yes": True, "y": True, "no": False, "n": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoContinue:
    """When and how an agent with incomplete todos is sent back to work.

    Args:
        max_in_a_row: Continuations without a successful `write_todos` or `edit_todos` call or a
            message from the user in between; 0 never continues.
        max_in_turn: Continuations since the user's last message, whatever the list does; 0 never
            continues. This limit makes the loop end for every model.
        grace_seconds: Whole seconds to wait before a continuation, each announced by a
            `CountdownEvent`, so that the user can step in. If the run is cancelled meanwhile, the
            thread stays where the agent's last answer left it.
        ask: Ask a person with `interrupt()` before each continuation instead of waiting; needs a
            checkpointer. Resume with `True` or `"yes"`, with `False` or `"no"`, or with any other
            text, which becomes the user's next message; on anything else the question is repeated.
        stop_when: Your own stop condition: a function of the state, true to stop the loop.
        prompt: The instruction that a continuation message begins with. The incomplete items and
            the suggested call follow it.

    Raises:
        TypeError: A count is not a whole number, `stop_when` is not a plain function, or `prompt`
            is not a string.
        ValueError: A count is negative, both `ask` and `grace_seconds` are given, or `prompt` is
            blank.

    Example:
        ```python
        policy = AutoContinue(max_in_a_row=5, stop_when=lambda state: state.get("budget", 1) <= 0)
        ```
    """

    max_in_a_row: int = 20
    max_in_turn: int = 100
    grace_seconds: int = 0
    ask: bool = False
    stop_when: Callable[[Any], bool] | None = None
    prompt: str = prompts.CONTINUE

    def __post_init__(self) -> None:
        for name in ("max_in_a_row", "max_in_turn", "grace_seconds"):
            require_whole_number(name, getattr(self, name), minimum=0)
        if self.ask and self.grace_seconds:
            raise ValueError(
                f"ask=True already waits for a person, got grace_seconds={self.grace_seconds}; "
                "give one of the two"
            )
        if self.stop_when and not _is_plain_function(self.stop_when):
            raise TypeError(
                f"stop_when must be a plain function of the state, got {self.stop_when!r}"
            )
        if not isinstance(self.prompt, str):
            raise TypeError(f"prompt must be a string, got {self.prompt!r}")
        if not self.prompt.strip():
            raise ValueError("prompt must not be blank; it tells the model to go on working")


def _is_plain_function(value: object) -> bool:
    return callable(value) and not (
        iscoroutinefunction(value) or iscoroutinefunction(type(value).__call__)
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens after an answer without a tool call."""

    loop: LoopState
    """The counters before this decision, reset if the user has spoken."""
    outcome: Outcome | None = None
    """Why the loop stops; `None` sends the agent back to work."""
    prompt: str = ""
    """The continuation message, when the agent is sent back to work."""
    lines: str = ""
    """The part of it that lists the incomplete items."""
    notice: str = ""
    """What the user is told when a limit was reached."""

    @property
    def next_loop(self) -> LoopState:
        """The counters and the outcome to store."""
        if self.outcome:
            return {**self.loop, "outcome": self.outcome}
        return {
            **self.loop,
            "in_a_row": self.loop.get("in_a_row", 0) + 1,
            "in_turn": self.loop.get("in_turn", 0) + 1,
            "outcome": None,
        }

    @property
    def event(self) -> LoopEvent:
        """The decision as an event of the custom stream."""
        loop = self.next_loop
        return {
            "type": "todo_loop",
            "outcome": self.outcome,
            "in_a_row": loop.get("in_a_row", 0),
            "in_turn": loop.get("in_turn", 0),
            "text": self.notice,
        }


def decide(state: Any, policy: AutoContinue, *, own_answer: bool = True) -> Decision:
    """Decide after an answer without a tool call; changes nothing.

    Args:
        state: The graph state with `messages`, `todos` and `todo_loop`.
        policy: The limits and the application's own stop condition.
        own_answer: Whether the run ends because of the model's own answer.

    Returns:
        The decision.
    """
    todos = todos_in(state)
    messages = messages_in(state)
    loop = _reset_by_user(loop_in(state), messages)
    if not todos:
        return Decision(loop, "no_todos")
    if not incomplete(todos):
        return Decision(loop, "finished")
    last = messages[-1] if messages else None
    if isinstance(last, AIMessage) and (reason := broken_off(last)):
        return Decision(loop, reason)
    if not own_answer:
        return Decision(loop, "ended_elsewhere")
    if policy.stop_when and policy.stop_when(state):
        return Decision(loop, "stop_condition")
    if limit := _limit_reached(loop, policy):
        return Decision(loop, limit, notice=_notice(limit, todos, loop))
    lines = format_incomplete(todos)
    return Decision(loop, prompt=_prompt(todos, lines, policy.prompt), lines=lines)


def read_answer(answer: object) -> bool | str | None:
    """Read what a person answered to the question whether to continue.

    Returns:
        Yes, no, the person's own message, or `None` for what is none of these.
    """
    if isinstance(answer, bool):
        return answer
    if isinstance(answer, str) and answer.strip():
        return _ANSWERS.get(answer.strip().lower(), answer)
    return None


def _reset_by_user(loop: LoopState, messages: Sequence[BaseMessage]) -> LoopState:
    """The counters, set to zero if the user has spoken since.

    The user's message may have been summarized away; then nobody has spoken since.
    """
    at = last_user_message(messages)
    if at is None:
        return loop
    spoken = messages[at].id or f"message {at}"
    if spoken == loop.get("user_message"):
        return loop
    return {"in_a_row": 0, "in_turn": 0, "user_message": spoken}


def _limit_reached(
    loop: LoopState, policy: AutoContinue
) -> Literal["limit_in_turn", "limit_in_a_row"] | None:
    if loop.get("in_turn", 0) >= policy.max_in_turn:
        return "limit_in_turn"
    if loop.get("in_a_row", 0) >= policy.max_in_a_row:
        return "limit_in_a_row"
    return None


def _notice(
    limit: Literal["limit_in_turn", "limit_in_a_row"], todos: list[TodoItem], loop: LoopState
) -> str:
    if limit == "limit_in_turn":
        reached = f"{loop.get('in_turn', 0)} continuations for one message"
    else:
        reached = f"{loop.get('in_a_row', 0)} continuations without progress"
    remaining = len(incomplete(todos))
    return f"⚠ Stopped after {reached}; {remaining} todo(s) remain. Send a message to go on."


def _prompt(todos: list[TodoItem], lines: str, instruction: str) -> str:
    """The continuation message, with the call that its most urgent item suggests."""
    index, item = min(incomplete(todos), key=lambda entry: STATUSES[entry[1]["status"]].precedence)
    action = STATUSES[item["status"]].next_action
    return prompts.continuation(instruction, lines, action, index)
