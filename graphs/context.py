"""What a client may set for one run of a served graph. Its limit: it is one setting."""

from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from todo_tools import AutoContinue

_MOST = AutoContinue().max_in_turn


class RunContext(BaseModel):
    """What a client may set. Whoever runs the server chooses the model."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    max_continuations: int = Field(default=_MOST, ge=0, le=_MOST)
    """Maximum number of continuations after one user message; 0 turns the loop off."""


def policy_of(runtime: Runtime[Any]) -> AutoContinue:
    """The policy of a run; some clients would show stored continuations as user messages."""
    context = runtime.context or RunContext()
    return AutoContinue(max_in_turn=context.max_continuations, max_idle=0, store=False)


def fault_in_context(context: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a context that a client sent; `None` if nothing is."""
    try:
        RunContext.model_validate(context)
    except ValidationError as error:
        fault = error.errors()[0]
        allowed = f"only max_continuations, 0 to {_MOST}"
        return f"context[{str(fault['loc'][0])[:40]!r}] is invalid: {fault['msg']}; {allowed}"
    return None
