"""The steps that a run has left before LangGraph ends it with an error (`recursion_limit`)."""

from typing import Any, get_type_hints

from langchain_core.messages import AIMessage
from langgraph.managed import RemainingSteps
from typing_extensions import TypedDict, is_typeddict

from todo_tools import _prompts as prompts
from todo_tools._todos import is_mapping
from todo_tools.state import LoopState, loop_in

# A round is a model call with all nodes up to the next one. It takes 2 steps where an agent has no
# node but its tools; each `before_model` and `after_model` hook of a middleware adds one.
_ROUND = 3
_LONGEST_ROUND = 8
# What may follow the last answer besides the nodes of a round: the ends of other middleware.
_END = 2


def may_continue(state: object) -> bool:
    """Whether enough steps are left to send the agent back to work, with tools."""
    return _rounds_are_left(state, 3)


def may_run_tools(state: object) -> bool:
    """Whether enough steps are left to run the calls of an answer and to answer after them."""
    return _rounds_are_left(state, 2)


def _steps_left(state: object) -> int | None:
    """The steps left, where a state has LangGraph's `remaining_steps`."""
    key = "remaining_steps"
    left = state.get(key) if is_mapping(state) else getattr(state, key, None)
    return left if isinstance(left, int) else None


def _rounds_are_left(state: object, rounds: int) -> bool:
    left = _steps_left(state)
    return left is None or left >= rounds * loop_in(state).get("round_steps", _ROUND) + _END


def measured(state: object) -> LoopState:
    """What to note at a model call, so that the steps of a round are known at the next."""
    left = _steps_left(state)
    if left is None:
        return {}
    taken = loop_in(state).get("steps_left", 0) - left
    # Less than one in a new run. Bounded, since that run may also have a lower limit.
    known: LoopState = {"round_steps": min(taken, _LONGEST_ROUND)} if taken > 0 else {}
    return {**known, "steps_left": left}


def last_words(answer: AIMessage) -> AIMessage:
    """An answer without its tool calls, which says why they were not run."""
    text = "\n\n".join(part for part in (answer.text, prompts.OUT_OF_STEPS) if part)
    return AIMessage(text, id=answer.id, name=answer.name, usage_metadata=answer.usage_metadata)


def with_steps(schema: type[Any]) -> type[Any]:
    """A state schema with LangGraph's `remaining_steps`, for a node that reads it.

    It is not a part of `TodoState`, since LangGraph allows it in no input or output schema.
    A state that is no `TypedDict` stays as it is; it can have the field itself.
    """
    if not is_typeddict(schema):
        return schema
    fields: dict[str, Any] = get_type_hints(schema, include_extras=True)
    fields.setdefault("remaining_steps", RemainingSteps)
    return TypedDict(f"{schema.__name__}WithSteps", fields)  # type: ignore[operator, no-any-return]
