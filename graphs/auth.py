"""Who may use the server: no page of another origin, and only clients with `TODO_TOKEN` if set.

CORS alone is not enough. A browser asks the server before it sends JSON to another origin. But it
sends plain text and opens WebSockets without asking, and the server accepts both as requests.

A run with an invalid context is refused here too, because the server silently drops unknown keys.
"""

import json
import os
from collections.abc import Mapping
from hmac import compare_digest
from typing import Any

from langgraph_sdk import Auth

from graphs.context import RunContext, fault_in

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> str:
    """Accept or refuse a request.

    Args:
        headers: Its headers. A browser always names the page in `Origin`; other clients do not.

    Returns:
        The identity of the caller, the same for all: there is one token.

    Raises:
        Auth.exceptions.HTTPException: The request is refused.
    """
    origin = _text(headers, b"origin")
    if origin and origin not in _allowed_origins():
        raise Auth.exceptions.HTTPException(
            status_code=403, detail=f"{origin} is not in http.cors.allow_origins of langgraph.json"
        )
    token = os.environ.get("TODO_TOKEN", "")
    if token and not compare_digest(_given_token(headers).encode(), token.encode()):
        raise Auth.exceptions.HTTPException(
            status_code=401, detail="send the token as 'Authorization: Bearer ...' or 'X-Api-Key'"
        )
    return "owner"


@auth.on.threads.create_run
async def check_run(ctx: Auth.types.AuthContext, value: Auth.types.RunsCreate) -> None:  # noqa: ARG001  the server passes both
    """Refuse a run with a context that the graphs do not know.

    Args:
        ctx: The caller.
        value: The run.

    Raises:
        Auth.exceptions.HTTPException: A key is unknown, or a value is invalid.
    """
    run: dict[str, Any] = value.get("kwargs", {})
    context: dict[str, Any] = run.get("context") or {}
    # If the client sent no context, this is a copy of `configurable`, which may also have keys for
    # LangGraph or the client itself.
    if not run.get("config", {}).get("configurable", {}).get("__context_provided__"):
        context = {key: context[key] for key in RunContext.model_fields.keys() & context.keys()}
    _check(context)


@auth.on(resources="assistants", actions=["create", "update"])
async def check_assistant(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> None:  # noqa: ARG001
    """Refuse an assistant with an invalid context, because all its runs would have it."""
    _check(value.get("context") or {})


def _check(context: Mapping[str, Any]) -> None:
    if fault := fault_in(context):
        raise Auth.exceptions.HTTPException(status_code=422, detail=fault)


def _allowed_origins() -> list[str]:
    """The origins that `langgraph.json` allows; the server passes them on in this variable."""
    settings = json.loads(os.environ.get("LANGGRAPH_HTTP") or "{}")
    return list(settings.get("cors", {}).get("allow_origins", []))


def _given_token(headers: Mapping[bytes, bytes]) -> str:
    """The token of a request; LangGraph's clients send their `api_key` in `X-Api-Key`."""
    bearer = _text(headers, b"authorization").removeprefix("Bearer ")
    return bearer or _text(headers, b"x-api-key")


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1")
