"""What the clients of the server may ask for; `graphs/access.py` has decided who they are.

What is not allowed here is denied: clients have threads and runs, and read the assistants. A run
that would jump to a node, skip a check or has an unknown context is refused before it begins.
Its limit: all callers see all threads; docs/serve.md has an example with several users.
"""

from typing import Any

from langgraph_sdk import Auth

from graphs.access import CALLER
from graphs.context import RunContext, fault_in_context
from graphs.writes import fault_in_answer, fault_in_command, fault_in_values

STATELESS = "todo_stateless"  # in a run's `configurable`: its thread is deleted when it ends
auth = Auth()


@auth.authenticate
async def authenticate(scope: dict[str, Any]) -> str:
    """Name the caller of a request, as `graphs/access.py` has accepted it."""
    if not scope.get(CALLER):
        detail = "http.app of langgraph.json must be graphs/app.py:app"
        raise Auth.exceptions.HTTPException(status_code=403, detail=detail)
    return str(scope[CALLER])


@auth.on
async def allow(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001  the server passes both
    """Allow all threads, and to read the assistants, which belong to the server; deny the rest."""
    is_read = ctx.resource == "assistants" and ctx.action in ("read", "search")
    return ctx.resource == "threads" or is_read


@auth.on.threads.create_run
async def check_run(ctx: Auth.types.AuthContext, value: Auth.types.RunsCreate) -> None:  # noqa: ARG001
    """Refuse a run whose context, input or command is not allowed."""
    run: dict[str, Any] = value.get("kwargs", {})
    configurable: dict[str, Any] = run.get("config", {}).get("configurable", {})
    command: dict[str, Any] = run.get("command") or {}
    # If the client sent no context, it is a copy of `configurable`, which has other keys as well.
    context = run.get("context") if configurable.get("__context_provided__") else None
    own = {key: configurable[key] for key in RunContext.model_fields if key in configurable}
    fault = fault_in_context(context or {}) or fault_in_context(own)
    fault = fault or fault_in_values(run.get("input")) or fault_in_command(command)
    if configurable.get("__event_streaming_v2"):
        fault = fault or fault_in_answer(command)
    if fault:
        raise Auth.exceptions.HTTPException(status_code=422, detail=fault)
    configurable[STATELESS] = bool(run.get("temporary"))
