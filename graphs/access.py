"""Who may use the server: checks of the token, `Origin` and `Host` of every request.

LangGraph's `auth` never sees some routes of `langgraph dev`, such as `/internal/truncate`; this is
the outermost app. CORS is not enough: a browser sends plain text and opens WebSockets unasked, and
a page can give its name the address of this machine. Its limit: one token for all, or `caller_of`.
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

CALLER = "todo_caller"  # the key in the scope of an accepted request that names its caller
_CLOSED = ("/internal/", "/deploy")  # `langgraph dev` adds them for its own tests and LangSmith
_POLICY_VIOLATION = 1008


def owner(headers: Headers) -> str | None:
    """The caller: `"owner"` if the request has `TODO_TOKEN`, or if that is not set."""
    token = os.environ.get("TODO_TOKEN", "")
    bearer = re.sub("(?i)^bearer ", "", headers.get("authorization", ""))
    given = (bearer, headers.get("x-api-key", ""))  # a proxy may add an `Authorization` of its own
    has_token = any(compare_digest(each.encode("latin-1"), token.encode()) for each in given)
    return "owner" if not token or has_token else None


def route_of(scope: Scope) -> str:
    """The path as the server's routes match it: without its prefix and a final line break."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")).removesuffix("\n")


class CheckAccess:
    """Middleware that refuses requests; `caller_of` names the caller, and `None` refuses it."""

    def __init__(self, app: ASGIApp, caller_of: Callable[[Headers], str | None] = owner) -> None:
        self._app = app
        self._caller_of = caller_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, a WebSocket, or the start and end of the server."""
        # The server's own requests to itself; no request from outside can have this root path.
        is_own = f"{scope.get('root_path')}/".startswith("/noauth/")
        is_checked = scope["type"] in ("http", "websocket") and not is_own
        fault = self._fault_in(scope) if is_checked else None
        await (_refusal(scope, *fault) if fault else self._app)(scope, receive, send)

    def _fault_in(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the reason of a refusal; otherwise the caller is noted."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not _is_known_host(host):
            return 403, f"the host {host!r} is not localhost, an IP address, or one of TODO_HOSTS"
        if origin and origin not in _allowed_origins():
            return 403, f"{origin} is not in http.cors.allow_origins of langgraph.json"
        scope[CALLER] = self._caller_of(headers)
        asks = {"origin", "access-control-request-method"} <= set(headers)
        is_preflight = asks and scope.get("method") == "OPTIONS"  # has no token
        if scope[CALLER] is None and not is_preflight:
            return 401, "send the token as 'Authorization: Bearer ...' or 'X-Api-Key'"
        if route_of(scope).startswith(_CLOSED):
            return 404, "this route is closed: it could do what `auth` does not allow"
        return None


def _is_known_host(host: str) -> bool:
    """Whether a name cannot be one that a page has given the address of this machine."""
    named = os.environ.get("TODO_HOSTS", "").lower().split(",")
    try:
        name = urlsplit(f"//{host}").hostname or ""
        known = ["localhost", *filter(None, map(str.strip, named))]
        return name in known or bool(ip_address(name))
    except ValueError:
        return False


def _allowed_origins() -> list[str]:
    """The origins that `langgraph.json` allows; the server passes them on in the variable."""
    settings = json.loads(os.environ.get("LANGGRAPH_HTTP") or "{}")
    return list(settings.get("cors", {}).get("allow_origins", []))


def _refusal(scope: Scope, status: int, reason: str) -> ASGIApp:
    if scope["type"] == "websocket":
        return WebSocketClose(_POLICY_VIOLATION, reason)
    origin = Headers(scope=scope).get("origin", "")
    # Otherwise a page that forgot its token would see an error of CORS.
    readable = {"Access-Control-Allow-Origin": origin} if origin in _allowed_origins() else {}
    return JSONResponse({"detail": reason}, status, readable)
