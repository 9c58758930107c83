"""Whether an agent that stopped calling tools is sent back to work: one pure decision.

The order of the checks, the two limits and what re-arms them stand here and nowhere else; the
conditional edge and every other adapter only carry the decision out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage

from todo_tools import prompts
from todo_tools.events import LoopEvent
from todo_tools.models import TodoItem, incomplete, is_mapping, require_whole_number
from todo_tools.state import LoopState, loop_in, messages_in, todos_in
from todo_tools.text import format_incomplete
from todo_tools.transcript import last_user_message

Outcome = Literal[
    "no_todos",
    "finished",
    "aborted",
    "refused",
    "ended_elsewhere",
    "stop_condition",
    "limit_in_a_row",
    "limit_in_turn",
    "declined",
]
"""Why an agent was let go.

`ended_elsewhere`: another middleware ended the run, such as a limit on model calls; `declined`: a
person answered no when asked whether to continue.
"""

# How providers and applications say that an answer was cut off or refused, in lower case.
_ABORTED = {"abort", "aborted", "cancelled", "canceled", "interrupted"}
_REFUSED = {
    "blocklist",
    "content_filter",
    "content_filtered",
    "guardrail_intervened",
    "image_safety",
    "jailbreak",
    "model_armor",
    "prohibited_content",
    "recitation",
    "refusal",
    "safety",
    "spii",
}
_ANSWERS = {"yes": True, "y": True, "no": False, "n": False}
_REASON_KEYS = (
    "stop_reason",
    "finish_reason",
    "stopReason",
    "finishReason",
    "done_reason",
    "status",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoContinue:
    """When and how an agent with incomplete todos is sent back to work.

    Args:
        max_in_a_row: Continuations without a successful `write_todos` or `edit_todos` call or a
            message from the user in between; 0 never continues.
        max_in_turn: Continuations for one message of the user, whatever the list does; 0 never
            continues. This limit is what makes the loop end for every model.
        grace_seconds: Whole seconds to wait before a continuation, each announced by a
            `CountdownEvent`, so that the user can step in. Cancelling the run meanwhile leaves the
            thread at the end of the agent's turn.
        ask: Ask a person with `interrupt()` before each continuation instead of waiting; needs a
            checkpointer. Resume with `True` or `"yes"`, with `False` or `"no"`, or with any other
            text, which becomes the user's next message; on anything else the question is repeated.
        stop_when: Your own stop condition: a function of the state, true to let the agent go.

    Raises:
        TypeError: A count is not a whole number, or `stop_when` is not a plain function.
        ValueError: A count is negative, or both `ask` and `grace_seconds` are given.

    Example:
        >>> AutoContinue(max_in_a_row=5, stop_when=lambda state: state.get("budget", 1) <= 0)
    """

    max_in_a_row: int = 20
    max_in_turn: int = 100
    grace_seconds: int = 0
    ask: bool = False
    stop_when: Callable[[Any], bool] | None = None

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


def _is_plain_function(value: object) -> bool:
    return callable(value) and not (
        iscoroutinefunction(value) or iscoroutinefunction(type(value).__call__)
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of an agent's turn that ended without a tool call."""

    loop: LoopState
    """The counters before this decision, re-armed if the user has spoken."""
    outcome: Outcome | None = None
    """Why the agent is let go; `None` sends it back to work."""
    prompt: str = ""
    """The continuation message, when the agent is sent back to work."""
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
    """Decide at the end of an agent's turn; changes nothing.

    Args:
        state: The graph state with `messages`, `todos` and `todo_loop`.
        policy: The limits and the application's own stop condition.
        own_answer: Whether the model itself ended the turn.

    Returns:
        The decision.
    """
    todos = todos_in(state)
    messages = messages_in(state)
    loop = _rearmed(loop_in(state), messages)
    if not todos:
        return Decision(loop, "no_todos")
    if not incomplete(todos):
        return Decision(loop, "finished")
    if broken_off := _broken_off(messages):
        return Decision(loop, broken_off)
    if not own_answer:
        return Decision(loop, "ended_elsewhere")
    if policy.stop_when and policy.stop_when(state):
        return Decision(loop, "stop_condition")
    if limit := _limit_reached(loop, policy):
        return Decision(loop, limit, notice=_notice(limit, todos, loop))
    return Decision(loop, prompt=_prompt(todos))


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


def _rearmed(loop: LoopState, messages: Sequence[BaseMessage]) -> LoopState:
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


def _broken_off(messages: Sequence[BaseMessage]) -> Literal["aborted", "refused"] | None:
    """Whether the last answer was cut off by the user, or refused or filtered by the provider."""
    last = messages[-1] if messages else None
    if not isinstance(last, AIMessage):
        return None
    reasons = set(_end_reasons(last.response_metadata))
    if reasons & _ABORTED:
        return "aborted"
    return "refused" if reasons & _REFUSED or _is_refusal(last) else None


def _end_reasons(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Why an answer ended, in lower case, in the forms in which providers say so."""
    details = metadata.get("incomplete_details")  # OpenAI's responses
    feedback = metadata.get("prompt_feedback")  # Gemini, when the prompt itself is blocked
    for reason in (
        *(metadata.get(key) for key in _REASON_KEYS),
        details.get("reason") if is_mapping(details) else None,
        feedback.get("block_reason") if is_mapping(feedback) else None,
    ):
        yield str(getattr(reason, "name", reason)).lower()


def _is_refusal(message: AIMessage) -> bool:
    """Whether the message itself is one, as OpenAI marks it."""
    blocks = [block for block in message.content if is_mapping(block)]
    return bool(message.additional_kwargs.get("refusal")) or any(
        "refusal" in (block.get("type"), _original(block).get("type")) for block in blocks
    )


def _original(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a standard content block was made from."""
    value = block.get("value")
    return value if is_mapping(value) else {}


def _notice(
    limit: Literal["limit_in_turn", "limit_in_a_row"], todos: list[TodoItem], loop: LoopState
) -> str:
    if limit == "limit_in_turn":
        reached = f"{loop.get('in_turn', 0)} continuations for one message"
    else:
        reached = f"{loop.get('in_a_row', 0)} continuations without progress"
    remaining = len(incomplete(todos))
    return f"⚠ Stopped after {reached}; {remaining} todo(s) remain. Send a message to go on."


def _prompt(todos: list[TodoItem]) -> str:
    """The continuation message: the item in progress is to be completed, else the next started."""
    open_items = incomplete(todos)
    started = [index for index, todo in open_items if todo["status"] == "in_progress"]
    action, index = ("complete", started[0]) if started else ("start", open_items[0][0])
    return prompts.continuation(format_incomplete(todos), action, index)
