"""Who may use the server: no page of another origin, and only clients with `TODO_TOKEN` if set.

CORS alone is not enough. A browser asks the server before it sends JSON to another origin. But it
sends plain text and opens WebSockets without asking, and the server accepts both as requests.
"""

import json
import os
from collections.abc import Mapping
from hmac import compare_digest

from langgraph_sdk import Auth

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
