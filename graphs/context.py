"""What a client may set for one run of a served graph."""

import reprlib
from collections.abc import Mapping
from typing import Any

from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphs.terminal.tools.endings import FOLDER
from todo_tools import AutoContinue

_MOST = AutoContinue().max_in_turn


class RunContext(BaseModel):
    """What a client may set for one run. Whoever runs the server chooses the model."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    max_continuations: int = Field(default=_MOST, ge=0, le=_MOST)
    """Maximum number of continuations after one user message; 0 turns the loop off."""


def policy_of(runtime: Runtime[Any]) -> AutoContinue:
    """Choose the policy of a run by its context.

    A person reads each answer and can reply, so an agent that only talks is not sent back
    (`max_idle=0`). Continuations are not stored, because some clients would show them as user
    messages.
    """
    context = runtime.context or RunContext()
    return AutoContinue(max_in_turn=context.max_continuations, max_idle=0, store=False)


def fault_in(context: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a context that a client sent; `None` if nothing is."""
    try:
        RunContext.model_validate(context)
    except ValidationError as error:
        fault = error.errors()[0]
        allowed = ", ".join(
            f"{name} ({field.description})" for name, field in RunContext.model_fields.items()
        )
        return (
            f"context[{reprlib.repr(fault['loc'][0])}] is invalid: {fault['msg']}, got "
            f"{reprlib.repr(fault['input'])}; change it or leave it out. Allowed: {allowed}"
        )
    return None


def fault_in_config(config: Mapping[str, Any]) -> str | None:
    """Say what is wrong with a config that a client sent; `None` if nothing is.

    It is the config of a run or an assistant. Its `configurable` may have keys for LangGraph or the
    client itself.
    """
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    if FOLDER in configurable:  # the shell would write there
        return f"config['configurable'][{FOLDER!r}] is only for the programs of this repository"
    fields = RunContext.model_fields
    return fault_in({key: configurable[key] for key in fields if key in configurable})
