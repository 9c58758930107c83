"""What the clients of the server may ask for; `graphs/access.py` has decided who they are.

Requests that are invalid are refused before anything runs: a run with an unknown context, because
the server silently drops unknown keys, and a run that would jump to a node or skip a check.
"""

from collections.abc import Mapping
from typing import Any

from langgraph_sdk import Auth

from graphs.access import CALLER
from graphs.context import fault_in, fault_in_config
from graphs.writes import fault_in_answer, fault_in_command, fault_in_values

STATELESS = "todo_stateless"
"""The key in a run's `configurable` that says whether its thread is deleted when it ends."""

auth = Auth()


@auth.authenticate
async def authenticate(scope: dict[str, Any]) -> str:
    """Name the caller of a request.

    Args:
        scope: The request, as `graphs/access.py` has accepted it.

    Returns:
        The identity of the caller.

    Raises:
        Auth.exceptions.HTTPException: The server does not use that app.
    """
    if not scope.get(CALLER):
        raise Auth.exceptions.HTTPException(
            status_code=403, detail="http.app of langgraph.json must be graphs/app.py:app"
        )
    return str(scope[CALLER])


@auth.on.threads.create_run
async def check_run(ctx: Auth.types.AuthContext, value: Auth.types.RunsCreate) -> None:  # noqa: ARG001  the server passes both
    """Refuse a run that is not allowed.

    Args:
        ctx: The caller.
        value: The run.

    Raises:
        Auth.exceptions.HTTPException: The context is invalid, or the input, or the command.
    """
    run: dict[str, Any] = value.get("kwargs", {})
    configurable: dict[str, Any] = run.get("config", {}).get("configurable", {})
    # If the client sent no context, this is a copy of `configurable`, which may also have keys for
    # LangGraph or the client itself.
    is_given = configurable.get("__context_provided__")
    _check_run({**run, "context": run.get("context") if is_given else None})
    if configurable.get("__event_streaming_v2"):
        _refuse(fault_in_answer(run.get("command") or {}))
    configurable[STATELESS] = bool(run.get("temporary"))


@auth.on(resources="crons", actions=["create", "update"])
async def check_cron(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> None:  # noqa: ARG001
    """Refuse a cron whose runs would not be allowed."""
    _check_run(value.get("payload") or {})


@auth.on(resources="assistants", actions=["create", "update"])
async def check_assistant(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> None:  # noqa: ARG001
    """Refuse an assistant with invalid settings, because all its runs would have them."""
    _refuse(fault_in(value.get("context") or {}) or fault_in_config(value.get("config") or {}))


def _check_run(run: Mapping[str, Any]) -> None:
    _refuse(
        fault_in(run.get("context") or {})
        or fault_in_config(run.get("config") or {})
        or fault_in_values(run.get("input"))
        or fault_in_command(run.get("command") or {})
    )


def _refuse(fault: str | None) -> None:
    if fault:
        raise Auth.exceptions.HTTPException(status_code=422, detail=fault)
