"""Decide whether an agent that stopped calling tools is sent back to work.

The decision has no side effects. Only this module defines the order of the checks and the three
limits; the conditional edge and the middleware carry the decision out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.runtime import Runtime

from todo_tools._list import prompts
from todo_tools._list.formatting import format_incomplete
from todo_tools._list.todos import (
    STATUSES,
    TodoItem,
    incomplete,
    require_flag,
    require_whole_number,
)
from todo_tools._loop.finish_reasons import broken_off, only_broken_calls
from todo_tools._loop.speaker import at_first_end, within_run
from todo_tools._loop.steps import may_continue
from todo_tools._view.shown_history import shown_history
from todo_tools.events import LoopEvent, Outcome
from todo_tools.state import LoopState, loop_in, messages_in, todos_in
from todo_tools.transcript import is_injected

PROGRESS: LoopState = {"in_a_row": 0, "outcome": None, "refused": None}
"""The `todo_loop` update of a tool that changed the list; it resets the count in a row."""

_DAY = 24 * 60 * 60

_Limit = Literal["out_of_steps", "limit_in_turn", "limit_in_a_row", "stalled"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoContinue:
    """When and how an agent with incomplete todos is sent back to work.

    The loop always ends: it sends the agent back at most `max_in_turn` times per user message.
    Only a message that is in the state when a run begins counts as a user message. Messages that
    tools or middleware add during a run do not reset the limits. Removing messages does not
    either.

    The limits count continuations, not tool calls. If a model never stops calling tools,
    LangGraph's `recursion_limit` ends the run; LangChain's `ModelCallLimitMiddleware` and
    `ToolCallLimitMiddleware` can end it earlier. If too few steps are left for a continuation, the
    loop stops with the outcome `out_of_steps`.

    Args:
        max_in_a_row: The most continuations in a row. A successful `write_todos` or `edit_todos`
            call or a user message resets the count; with 0 the loop never continues.
        max_in_turn: The most continuations after one user message. Only a new user message resets
            the count; with 0 the loop never continues.
        max_idle: The most continuations in a row without any tool call; an agent that only talks
            probably needs the user. With 0 the loop never continues; `None` sets no limit.
        grace_seconds: Whole seconds, at most a day, to wait before a continuation, so that the user
            can step in.
            Each second is announced by a `CountdownEvent`. If the run is cancelled meanwhile, the
            thread stays as the agent's last answer left it.
        ask: Ask a person with `interrupt()` before each continuation instead of waiting; needs a
            checkpointer. Resume with `True` or `"yes"`, with `False` or `"no"`, or with any other
            text, which becomes the user's next message. The `decisions` of LangChain's
            human-in-the-loop middleware also work. After any other value the question is repeated.
        store: Whether to store each continuation in the history. It is tagged so that interfaces
            can hide it, as agent-chat-ui does. Use `False` for interfaces that hide nothing, such
            as deep-agents-ui; the model then reads it only through `model_view` or
            `TodoMiddleware`.
        explain: Whether to append a notice to the last answer if a limit was reached or the
            provider refused the answer. People see it in any interface; `model_view` removes it.
        stop_when: A function of the state that returns true to stop the loop, such as `asks_user`.
        prompt: The instruction at the beginning of a continuation message. The incomplete items
            and the suggested call follow it.

    Raises:
        TypeError: A count is not a whole number, `ask`, `store` or `explain` is neither `True` nor
            `False`, `stop_when` is not a plain function, or `prompt` is not a string.
        ValueError: A count is negative, `grace_seconds` is more than a day, both `ask` and
            `grace_seconds` are given, or `prompt` is blank.

    Example:
        ```python
        policy = AutoContinue(max_in_a_row=5, stop_when=lambda state: state.get("budget", 1) <= 0)
        ```
    """

    max_in_a_row: int = 20
    max_in_turn: int = 100
    max_idle: int | None = 3
    grace_seconds: int = 0
    ask: bool = False
    store: bool = True
    explain: bool = True
    stop_when: Callable[[Any], bool] | None = None
    prompt: str = prompts.CONTINUE

    def __post_init__(self) -> None:
        for name in ("max_in_a_row", "max_in_turn"):
            require_whole_number(name, getattr(self, name), minimum=0)
        require_whole_number("grace_seconds", self.grace_seconds, minimum=0, maximum=_DAY)
        if self.max_idle is not None:
            require_whole_number("max_idle", self.max_idle, minimum=0)
        for name in ("ask", "store", "explain"):
            require_flag(name, getattr(self, name))
        if self.ask and self.grace_seconds:
            raise ValueError(
                f"ask=True already waits for a person, got grace_seconds={self.grace_seconds}; "
                "give one of the two"
            )
        if self.stop_when is not None and not _is_plain_function(self.stop_when):
            raise TypeError(
                f"stop_when must be a plain function of the state, got {self.stop_when!r}"
            )
        if not isinstance(self.prompt, str):
            raise TypeError(f"prompt must be a string, got {self.prompt!r}")
        if not self.prompt.strip():
            raise ValueError("prompt must not be blank; it tells the model to keep working")


Policy = AutoContinue | Callable[[Runtime[Any]], AutoContinue]
"""The settings of the loop, or a function that chooses them for each run."""


def require_policy(policy: object) -> None:
    """Raise an error if a value is not a `Policy`.

    Raises:
        TypeError: `policy` is neither an `AutoContinue` nor a plain function.
    """
    # A class is callable too; `AutoContinue` instead of `AutoContinue()` would fail only in a run.
    is_function = _is_plain_function(policy) and not isinstance(policy, type)
    if not isinstance(policy, AutoContinue) and not is_function:
        raise TypeError(
            "policy must be an AutoContinue or a plain function of the runtime that returns one, "
            f"got {policy!r}"
        )


def _is_plain_function(value: object) -> bool:
    return callable(value) and not (
        iscoroutinefunction(value) or iscoroutinefunction(type(value).__call__)
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of `decide`: stop the loop, or send the agent back to work."""

    loop: LoopState
    """The counters before this decision, reset if the user has spoken."""
    outcome: Outcome | None = None
    """Why the loop stops; `None` sends the agent back to work."""
    prompt: str = ""
    """The continuation message. Empty if the loop stops, or if the model only needs to read the
    errors for its invalid tool calls."""
    lines: str = ""
    """The part of `prompt` that lists the incomplete items."""
    notice: str = ""
    """A notice for the user about the end of the loop; empty if none is needed."""

    @property
    def next_loop(self) -> LoopState:
        """The counters and the outcome to store."""
        if self.outcome:
            return {**self.loop, "outcome": self.outcome}
        return {
            **self.loop,
            "in_a_row": self.loop.get("in_a_row", 0) + 1,
            "in_turn": self.loop.get("in_turn", 0) + 1,
            "idle": self.loop.get("idle", 0) + 1,
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


def decide(
    state: Any, policy: AutoContinue, *, own_answer: bool = True, in_run: bool = False
) -> Decision:
    """Decide what happens after an answer without a tool call. The state is not changed.

    Args:
        state: The graph state with `messages`, `todos` and `todo_loop`.
        policy: The limits and the application's own stop condition.
        own_answer: Whether the model's own answer ends the run.
        in_run: Whether this run has already been checked for new user messages.

    Returns:
        The decision.
    """
    todos, history = todos_in(state), shown_history(state)
    look = within_run if in_run else at_first_end
    loop = _after_work(look(loop_in(state), messages_in(state)), history)
    answers = _last_answers(history)
    # If middleware added the last answer, the model's answer is one of those before it.
    reason = _broken_off(answers[:1] if own_answer else answers)
    retries = reason is None and any(map(only_broken_calls, answers[:1]))
    if not todos and not retries:
        return Decision(loop, "no_todos")
    if not incomplete(todos) and not retries:
        return Decision(loop, "finished")
    if outcome := reason or _stop_outside(state, policy, own_answer=own_answer):
        return Decision(loop, outcome, notice=_notice(outcome, todos, loop))
    if limit := _limit_reached(state, loop, policy):
        return Decision(loop, limit, notice=_notice(limit, todos, loop))
    if retries:
        return Decision(loop)
    lines = format_incomplete(todos)
    return Decision(loop, prompt=_prompt(todos, lines, policy.prompt), lines=lines)


def _stop_outside(
    state: Any, policy: AutoContinue, *, own_answer: bool
) -> Literal["ended_elsewhere", "stop_condition"] | None:
    """Return the outcome if another middleware or the application stops the loop."""
    if not own_answer:
        return "ended_elsewhere"
    return "stop_condition" if policy.stop_when and policy.stop_when(state) else None


def _last_answers(messages: Sequence[BaseMessage]) -> list[AIMessage]:
    """Return the last answer and the answers directly before it, newest first.

    Middleware may have added a message of any kind after the model's answer.
    """
    answers: list[AIMessage] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            answers.append(message)
        elif answers:
            break
    return answers


def _broken_off(answers: Sequence[AIMessage]) -> Literal["aborted", "refused"] | None:
    for answer in answers:
        if reason := broken_off(answer):
            return reason
    return None


def _after_work(loop: LoopState, messages: Sequence[BaseMessage]) -> LoopState:
    """Reset the idle counter if the model has called a tool since it last stopped."""
    return {**loop, "idle": 0} if _has_worked(messages) else loop


def _has_worked(messages: Sequence[BaseMessage]) -> bool:
    """Whether the model called a tool after the last continuation and before its last answer."""
    newest = reversed(messages)
    next((message for message in newest if isinstance(message, AIMessage)), None)
    for message in newest:
        if isinstance(message, AIMessage):
            return bool(message.tool_calls)
        if is_injected(message):
            return False
    return False


def _limit_reached(state: Any, loop: LoopState, policy: AutoContinue) -> _Limit | None:
    if not may_continue(state):
        return "out_of_steps"
    if loop.get("in_turn", 0) >= policy.max_in_turn:
        return "limit_in_turn"
    if loop.get("in_a_row", 0) >= policy.max_in_a_row:
        return "limit_in_a_row"
    if policy.max_idle is not None and loop.get("idle", 0) >= policy.max_idle:
        return "stalled"
    return None


def _notice(outcome: Outcome, todos: list[TodoItem], loop: LoopState) -> str:
    """Return the notice for the user; empty if the user or the application stopped the loop."""
    reached = {
        "out_of_steps": "before the recursion limit of this run",
        "limit_in_turn": f"after {_continuations(loop.get('in_turn', 0))} for one message",
        "limit_in_a_row": f"after {_continuations(loop.get('in_a_row', 0))} without progress",
        "stalled": f"after {_continuations(loop.get('idle', 0))} without a tool call",
        "refused": "after the provider refused or filtered the answer",
    }.get(outcome)
    if reached is None:
        return ""
    remaining = len(incomplete(todos))
    rest = f"; {remaining} todo(s) remain" if remaining else ""
    if remaining and (failed := loop.get("refused")):
        rest += f" ({failed})"
    return f"⚠ Stopped {reached}{rest}. Send a message to go on."


def _continuations(number: int) -> str:
    return "1 continuation" if number == 1 else f"{number} continuations"


def _prompt(todos: list[TodoItem], lines: str, instruction: str) -> str:
    """Build the continuation message; it suggests a call for the most urgent item."""
    index, item = min(incomplete(todos), key=lambda entry: STATUSES[entry[1]["status"]].precedence)
    action = STATUSES[item["status"]].next_action
    return prompts.continuation(instruction, lines, action, index)
