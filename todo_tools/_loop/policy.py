"""The settings of the loop: when and how an agent with incomplete todos is sent back to work."""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Annotated, Any

from langgraph.runtime import Runtime
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass as settings

from todo_tools._list import prompts

_DAY = 24 * 60 * 60


_Count = Annotated[int, Field(ge=0)]


@settings(frozen=True, kw_only=True, slots=True, config=ConfigDict(strict=True, extra="forbid"))
class AutoContinue:
    """When and how an agent with incomplete todos is sent back to work.

    An agent is sent back only after work: it got a new tool result since the user or the loop last
    told it something. A result is new if its tool, its arguments or its text differ from those of
    earlier results for the same user message. So after "stop" or a new subject, the run ends if
    the model answers without calling a tool. It also ends if the agent only repeats its question.

    The loop ends when the first of these is true:

    - There is no list, or every item is finished.
    - The user cut the answer off, the provider refused it, or other middleware ended the run.
    - `stop_when` returns true.
    - The agent has not worked, and `max_idle` allows no more continuations.
    - The run is close to LangGraph's `recursion_limit`. A hand-built graph knows this if its state
      has `remaining_steps: RemainingSteps`.
    - `max_in_turn` or `max_in_a_row` is reached.

    So it always ends: it sends the agent back at most `max_in_turn` times per user message. With
    `TodoMiddleware`, only a message that is in the state when a run begins counts as the user's. In
    a hand-built graph, each new human message counts; tag those that your own nodes and tools add
    with `additional_kwargs={"lc_source": "..."}`.

    The limits count continuations, not tool calls. If a model never stops calling tools,
    LangGraph's `recursion_limit` ends the run; LangChain's `ModelCallLimitMiddleware` and
    `ToolCallLimitMiddleware` can end it earlier.

    Args:
        max_in_a_row: The most continuations in a row. A call of `write_todos` or `edit_todos` that
            changes the list resets the count, and so does a user message; with 0 the loop never
            continues.
        max_in_turn: The most continuations after one user message. Only a new user message resets
            the count; with 0 the loop never continues.
        max_idle: How many times in a row an agent that has not worked is sent back again. An agent
            has worked if it got a new tool result since it was last told something by the user or
            the loop. 0: never; `None`: no limit. Allow more for programs that nobody watches.
        grace_seconds: Whole seconds, at most a day, to wait before a continuation, so that the user
            can step in. Each second is announced by a `CountdownEvent`. If the run is cancelled
            meanwhile, the thread stays as the agent's last answer left it.
        ask: Ask a person with `interrupt()` before each continuation instead of waiting; needs a
            checkpointer. Resume with `True` or `"yes"`, with `False` or `"no"`, or with any other
            text, which becomes the user's next message. The `decisions` of LangChain's
            human-in-the-loop middleware also work. After any other value the question is repeated.
        store: Whether to store each continuation in the history. It is tagged so that interfaces
            can hide it, as agent-chat-ui does. Use `False` for interfaces that hide nothing, such
            as deep-agents-ui; the model then reads it only through `model_view` or
            `TodoMiddleware`.
        explain: Whether to append a notice to the last answer if a limit was reached, the agent did
            not work after a continuation, or the provider refused the answer. People see it in any
            interface; `model_view` removes it.
        stop_when: A function of the state that returns true to stop the loop, such as `asks_user`.
        prompt: The instruction at the beginning of a continuation message. The incomplete items
            and the suggested call follow it.

    Raises:
        TypeError: `stop_when` is not a plain function.
        ValueError: Another setting has a wrong type or is out of its range, both `ask` and
            `grace_seconds` are given, or `prompt` is blank.

    Example:
        ```python
        policy = AutoContinue(max_in_a_row=5, stop_when=lambda state: state.get("budget", 1) <= 0)
        ```
    """

    max_in_a_row: _Count = 20
    max_in_turn: _Count = 100
    max_idle: _Count | None = 0
    grace_seconds: Annotated[int, Field(ge=0, le=_DAY)] = 0
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
