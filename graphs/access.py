"""Who may use the server: checks of every request, whatever its route.

LangGraph's `auth` never sees some routes of `langgraph dev`, for example `/internal/truncate`,
which deletes all threads. This is the outermost app, so it sees them all.

CORS alone is not enough. A browser asks the server before it sends JSON to another origin. But it
sends plain text and opens WebSockets without asking, and the server accepts both as requests. And a
page can give its own name the address of this machine; then its origin is the server's.
"""

import json
import os
import re
from collections.abc import Callable
from hmac import compare_digest
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

CALLER = "todo_caller"
"""The key in the scope of an accepted request that holds the identity of the caller."""

_CLOSED = ("/internal/", "/deploy")
"""Where the routes begin that `langgraph dev` adds for its own tests and for LangSmith."""
_POLICY_VIOLATION = 1008


def owner(headers: Headers) -> str | None:
    """The caller of a server with one token, `TODO_TOKEN`, or with none.

    Args:
        headers: The headers of a request. LangGraph's clients send their `api_key` in `X-Api-Key`.

    Returns:
        `"owner"`, the same for all; `None` if the token is set and the request does not have it.
    """
    token = os.environ.get("TODO_TOKEN", "")
    bearer = re.sub("(?i)^bearer ", "", headers.get("authorization", ""))
    given = (bearer, headers.get("x-api-key", ""))  # a proxy may add an `Authorization` of its own
    has_token = any(compare_digest(each.encode("latin-1"), token.encode()) for each in given)
    return "owner" if not token or has_token else None


def route_of(scope: Scope) -> str:
    """The path of a request as the server's routes match it.

    They leave out the prefix under which the server is mounted, and a line break at the end.
    """
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")).removesuffix("\n")


class CheckAccess:
    """Middleware that refuses requests by their `Host`, `Origin` and token.

    Args:
        app: The app to which accepted requests go.
        caller_of: Names the caller by the headers of a request; `None` refuses it.
    """

    def __init__(self, app: ASGIApp, caller_of: Callable[[Headers], str | None] = owner) -> None:
        self._app = app
        self._caller_of = caller_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, a WebSocket, or the start and end of the server."""
        # The server's own requests to itself; no request from outside can have this root path.
        is_own = f"{scope.get('root_path')}/".startswith("/noauth/")
        if scope["type"] not in ("http", "websocket") or is_own:
            await self._app(scope, receive, send)
        elif fault := self._fault_in(scope):
            await _refusal(scope, *fault)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _fault_in(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the reason with which a request is refused; else the caller is noted."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not _is_known_host(host):
            return 403, f"the host {host!r} is not localhost, an IP address, or one of TODO_HOSTS"
        if origin and origin not in _allowed_origins():
            return 403, f"{origin} is not in http.cors.allow_origins of langgraph.json"
        scope[CALLER] = self._caller_of(headers)
        if scope[CALLER] is None and not _is_preflight(scope, headers):
            return 401, "send the token as 'Authorization: Bearer ...' or 'X-Api-Key'"
        if route_of(scope).startswith(_CLOSED):
            return 404, "this route is closed: it could do what `auth` does not allow"
        return None


def _is_known_host(host: str) -> bool:
    """Whether a name cannot be one that a page has given the address of this machine."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    named = os.environ.get("TODO_HOSTS", "").lower().split(",")
    if name in ["localhost", *map(str.strip, named)]:
        return bool(name)
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def _allowed_origins() -> list[str]:
    """The origins that `langgraph.json` allows; the server passes them on in this variable."""
    settings = json.loads(os.environ.get("LANGGRAPH_HTTP") or "{}")
    return list(settings.get("cors", {}).get("allow_origins", []))


def _is_preflight(scope: Scope, headers: Headers) -> bool:
    """Whether a browser asks what a page may send. It does so without a token."""
    asks = {"origin", "access-control-request-method"} <= set(headers)
    return asks and scope.get("method") == "OPTIONS"


def _refusal(scope: Scope, status: int, reason: str) -> ASGIApp:
    if scope["type"] == "websocket":
        return WebSocketClose(_POLICY_VIOLATION, reason)
    origin = Headers(scope=scope).get("origin", "")
    # Otherwise a page that forgot its token would see an error of CORS.
    readable = {"Access-Control-Allow-Origin": origin} if origin in _allowed_origins() else {}
    return JSONResponse({"detail": reason}, status, readable)
