"""The settings of the loop: when and how an agent with open items is sent back to work."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Annotated, Any

from langgraph.runtime import Runtime
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as settings

from todo_tools._list import prompts

_Count = Annotated[int, Field(ge=0)]


@settings(frozen=True, kw_only=True, slots=True, config=ConfigDict(strict=True, extra="forbid"))
class AutoContinue:
    """When and how an agent with open items is sent back to work.

    An agent is sent back only after work: since the user or the loop last told it something, it got
    a tool result that it had not got before. So "stop", a new subject or a question ends the run.
    The loop always ends; the page "Why it stopped" of the documentation has the order of all
    reasons, and when a message counts as the user's.

    Args:
        max_in_a_row: The most continuations in a row. A change of the list by a todo call or a user
            message resets the counter; with 0 the agent is never sent back.
        max_in_turn: The most continuations after one user message, which alone resets the counter.
        max_idle: How many times in a row an agent that has not worked is sent back again. 0: never;
            `None`: no limit. Allow more for programs that nobody watches.
        grace_seconds: Whole seconds, at most a day, to wait before a continuation, so that the user
            can step in; each is announced by a `todo_countdown` event. If the run is cancelled
            meanwhile, the thread stays as the agent's last answer left it.
        ask: Ask a person with `interrupt()` before each continuation; needs a checkpointer. Resume
            with `True` or `"yes"`, `False` or `"no"`, a text, which becomes the user's message, or
            the `decisions` of LangChain's human-in-the-loop middleware.
        store: Whether to store each continuation in the history, with a tag that lets interfaces
            hide it. With `False`, the model reads it only through `model_view`.
        explain: Whether to append a notice to the last answer if a limit ended the loop.
            `model_view` removes it.
        stop_when: A function of the state that returns true to end the loop, such as `asks_user`.
        prompt: The instruction at the beginning of a continuation; the suggested call follows it.

    Raises:
        TypeError: `stop_when` is not a plain function.
        ValueError: Another setting is invalid, or both `ask` and `grace_seconds` are given.

    Example:
        ```python
        policy = AutoContinue(max_in_a_row=5, stop_when=lambda state: state.get("budget", 1) <= 0)
        ```
    """

    max_in_a_row: _Count = 20
    max_in_turn: _Count = 100
    max_idle: _Count | None = 0
    grace_seconds: Annotated[int, Field(ge=0, le=24 * 60 * 60)] = 0
    ask: bool = False
    store: bool = True
    explain: bool = True
    stop_when: Callable[[Any], bool] | None = None
    prompt: Annotated[str, Field(pattern=r"\S")] = prompts.CONTINUE

    def __post_init__(self) -> None:
        if self.ask and self.grace_seconds:
            raise ValueError("ask=True already waits for a person; leave grace_seconds out")
        if self.stop_when is not None and not _is_plain_function(self.stop_when):
            raise TypeError(f"stop_when must be a plain function, got {self.stop_when!r}")


Policy = AutoContinue | Callable[[Runtime[Any]], AutoContinue]
"""The settings of the loop, or a function that chooses them for each run."""


def require_policy(policy: object) -> None:
    """Raise TypeError if a value is neither an `AutoContinue` nor a plain function."""
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
