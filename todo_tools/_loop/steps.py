"""Estimate whether a run has enough steps left before it reaches the `recursion_limit`."""

from typing import Any, get_type_hints

from langchain_core.messages import AIMessage
from langgraph.managed import RemainingSteps
from typing_extensions import TypedDict, is_typeddict

from todo_tools._list import prompts
from todo_tools._list.todos import is_mapping
from todo_tools.state import LoopState, loop_in

# A round is a model call and all nodes before the next call. It takes 2 steps in an agent with only
# a tool node. Each `before_model` and `after_model` hook of a middleware adds one.
_ROUND = 3
_LONGEST_ROUND = 8
# Extra steps after the last answer, for the `after_agent` hooks of other middleware.
_END = 2


def may_continue(state: object) -> bool:
    """Whether enough steps are left to send the agent back to work, with tools."""
    return _rounds_are_left(state, 3)


def may_run_tools(state: object) -> bool:
    """Whether enough steps are left to run the tool calls and to answer after them."""
    return _rounds_are_left(state, 2)


def _steps_left(state: object) -> int | None:
    """Return the number of steps left; `None` if the state has no `remaining_steps`."""
    key = "remaining_steps"
    left = state.get(key) if is_mapping(state) else getattr(state, key, None)
    return left if isinstance(left, int) else None


def _rounds_are_left(state: object, rounds: int) -> bool:
    left = _steps_left(state)
    return left is None or left >= rounds * loop_in(state).get("round_steps", _ROUND) + _END


def measured(state: object) -> LoopState:
    """Return the `todo_loop` update of a model call; the next call computes the round from it."""
    left = _steps_left(state)
    if left is None:
        return {}
    taken = loop_in(state).get("steps_left", 0) - left
    # Not positive in the first round of a run, which `before_agent` begins with zero.
    known: LoopState = {"round_steps": min(taken, _LONGEST_ROUND)} if taken > 0 else {}
    return {**known, "steps_left": left}


def last_words(answer: AIMessage) -> AIMessage:
    """Replace the tool calls of an answer by a note that says why they were not run."""
    text = "\n\n".join(part for part in (answer.text, prompts.OUT_OF_STEPS) if part)
    return AIMessage(text, id=answer.id, name=answer.name, usage_metadata=answer.usage_metadata)


def with_steps(schema: type[Any]) -> type[Any]:
    """Add LangGraph's `remaining_steps` to a state schema, for a node that reads it.

    `TodoState` does not have this field, because LangGraph does not allow it in input and output
    schemas. A schema that is not a `TypedDict` is returned unchanged; it can define the field
    itself.
    """
    if not is_typeddict(schema):
        return schema
    fields: dict[str, Any] = get_type_hints(schema, include_extras=True)
    fields.setdefault("remaining_steps", RemainingSteps)
    return TypedDict(f"{schema.__name__}WithSteps", fields)  # type: ignore[operator, no-any-return]
