"""What a client may write into a thread; LangGraph's server itself accepts more.

The rules for runs are called by `graphs/auth.py`. On some routes `auth` does not see what is
written; `CheckWrites` reads their requests. Its limit: it knows the routes of langgraph-api 0.16.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphs.access import route_of

_OVERWRITE, _QUESTIONS = "__overwrite__", "__interrupt__"
_QUESTION = re.compile("[0-9a-f]{32}")
_UPDATES = re.compile("/threads(/[^/]+/state)?")
_RUNS = re.compile("/threads/[^/]+/runs(/stream|/wait)?")


def fault_in_values(values: object) -> str | None:
    """Say which value a client may not write, by channel or in pairs; `None` if there is none."""
    for channel, value in _by_channel(values):
        if channel != _QUESTIONS and (str(channel).startswith("__") or ":" in str(channel)):
            # For example `branch:to:NODE`, which starts a node, or `__start__`, which is unchecked.
            return f"{channel!r} is a channel of LangGraph itself; a client may not write it"
        if channel == "jump_to":
            return "'jump_to' is written by middleware; a client may not choose the next node"
        if isinstance(value, dict) and (_OVERWRITE in value or value.get("type") == _OVERWRITE):
            return f"{channel!r} may not be overwritten without its checks; send a plain value"
    return None


def fault_in_command(command: Mapping[str, Any]) -> str | None:
    """Say what a client may not command. Interfaces end an interrupted run with `goto`."""
    goto, update = command.get("goto") or "__end__", command.get("update")
    if goto not in ("__end__", ["__end__"]):
        return "'goto' may only be '__end__'"
    if any(channel == _QUESTIONS for channel, _ in _by_channel(update)):  # a command writes it
        return f"{_QUESTIONS!r} may not be written"
    return fault_in_values(update)


def fault_in_answer(command: Mapping[str, Any]) -> str | None:
    """Say what is wrong with an answer of the event protocol, which waits for the run before."""
    # One that is sent twice would otherwise answer the next question, which nobody has seen.
    answer = command.get("resume", {})
    if isinstance(answer, dict) and all(map(_QUESTION.fullmatch, cast("dict[str, Any]", answer))):
        return None
    return "answers need 'input.respond', which names a question; messages need /threads/ID/runs"


def _by_channel(values: object) -> Sequence[Any]:
    if isinstance(values, dict):
        return list(cast("Mapping[Any, Any]", values).items())
    pairs = cast("Sequence[Any]", values if isinstance(values, list) else [])
    return [(pair[0], pair[-1]) for pair in pairs if isinstance(pair, list) and pair]


class CheckWrites:
    """Middleware that refuses what a client may not write."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        fault: str | None = None
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        route = route_of(scope) if is_post else ""
        if not (_UPDATES.fullmatch(route) or _RUNS.fullmatch(route)):
            return await self._app(scope, receive, send)
        try:
            body: Any = json.loads(await Request(scope, receive).body())
        except (ValueError, RecursionError):
            body, fault = None, "the body is not JSON"
        if isinstance(body, dict):
            sent = cast("dict[str, Any]", body)
            if _UPDATES.fullmatch(route):
                fault = _fault_in_update(sent)
            elif isinstance(sent.get("command"), dict) and "resume" in sent["command"]:
                # An answer that is sent twice must not answer the next question, too.
                sent["multitask_strategy"] = sent.get("multitask_strategy") or "reject"
        if fault:
            return await JSONResponse({"detail": fault}, 422)(scope, receive, send)
        content = json.dumps(body).encode()
        read: list[Message] = [{"type": "http.request", "body": content}]

        async def again() -> Message:
            return read.pop() if read else await receive()

        return await self._app(scope, again, send)


def _fault_in_update(body: Mapping[str, Any]) -> str | None:
    """What is wrong with an edit of a thread, or with a thread that is created."""
    for name in ("as_node", "supersteps"):
        if body.get(name):
            return f"{name!r} is not allowed: it writes in the name of a node that did not run"
    return fault_in_values(body.get("values"))
