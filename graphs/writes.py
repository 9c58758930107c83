"""What a client may write into a thread; LangGraph's server itself accepts more.

The rules for runs are called by `graphs/auth.py`. On some routes `auth` does not see what is
written; `CheckWrites` reads their requests.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphs.access import route_of

Check = Callable[[Mapping[str, Any]], str | None]
"""Says what is wrong with the body of a request; `None` if nothing is."""

_END = "__end__"
_OVERWRITE = "__overwrite__"
_JUMP = "jump_to"
_QUESTIONS = "__interrupt__"
_QUESTION = re.compile("[0-9a-f]{32}")


def fault_in_values(values: object) -> str | None:
    """Say which value a client may not write; `None` if there is none.

    Args:
        values: The values by channel, or pairs of a channel and a value. They may be the result of
            a run; LangGraph ignores the questions in it.
    """
    for channel, value in _by_channel(values):
        if channel != _QUESTIONS and (str(channel).startswith("__") or ":" in str(channel)):
            # For example `branch:to:NODE`, which starts a node, or `__start__`, which is unchecked.
            return f"{channel!r} is a channel of LangGraph itself; a client may not write it"
        if channel == _JUMP:
            return f"{_JUMP!r} is written by middleware; a client may not choose the next node"
        if isinstance(value, dict) and (_OVERWRITE in value or value.get("type") == _OVERWRITE):
            return f"{channel!r} may not be overwritten without its checks; send a plain value"
    return None


def fault_in_command(command: Mapping[str, Any]) -> str | None:
    """Say what a client may not command; `None` if all is allowed.

    Args:
        command: The command of a run. Interfaces end an interrupted run with `goto`.
    """
    goto: Any = command.get("goto") or _END
    if goto not in (_END, [_END]):
        return f"'goto' may only be {_END!r}"
    update = command.get("update")
    if any(channel == _QUESTIONS for channel, _ in _by_channel(update)):  # a command writes it
        return f"{_QUESTIONS!r} may not be written"
    return fault_in_values(update)


def fault_in_answer(command: Mapping[str, Any]) -> str | None:
    """Say what is wrong with an answer of the event protocol; it must name its question.

    There an answer waits for the run before it. So one that is sent twice would also answer the
    next question, which nobody has seen.
    """
    answer = command.get("resume", {})
    if isinstance(answer, dict) and all(map(_QUESTION.fullmatch, cast("dict[str, Any]", answer))):
        return None
    return (
        "this would count as an answer; answers need 'input.respond', which names a question, and "
        "messages need /threads/ID/runs"
    )


def _fault_in_update(body: Mapping[str, Any]) -> str | None:
    """What is wrong with an edit of a thread, or with a thread that is created."""
    for name in ("as_node", "supersteps"):
        if body.get(name):
            return f"{name!r} is not allowed: it writes in the name of a node that did not run"
    return fault_in_values(body.get("values"))


def _fault_in_message(body: Mapping[str, Any]) -> str | None:
    """What is wrong with a message that starts or resumes a run."""
    params = body.get("params")
    if isinstance(params, dict) and params.get("context"):
        return "'context' would be ignored here; put its keys into 'config.configurable'"
    return None


def _no_fault(_: Mapping[str, Any]) -> None:
    """`auth` checks the runs; here they only get a default."""


def _with_defaults(body: Any) -> Any:
    """Let a run that answers a question not wait for another run, unless the client asks for it.

    Otherwise an answer that is sent twice, for example by a double click, would also answer the
    next question, which nobody has seen.
    """
    match body:
        case {"command": {"resume": _}} if not body.get("multitask_strategy"):
            return {**body, "multitask_strategy": "reject"}
        case _:
            return body


_CHECKS: dict[str, Check] = {
    "/threads": _fault_in_update,
    "/threads/[^/]+/state": _fault_in_update,
    "/threads/[^/]+/commands": _fault_in_message,
    "/threads/[^/]+/runs(/stream|/wait)?": _no_fault,
}
"""The check of each route."""


def _by_channel(values: object) -> Iterator[tuple[Any, Any]]:
    if isinstance(values, dict):
        yield from cast("Mapping[Any, Any]", values).items()
    elif isinstance(values, list):
        for pair in cast("Sequence[Any]", values):
            match pair:
                case [channel, value]:
                    yield channel, value
                case _:
                    pass


class CheckWrites:
    """Middleware that refuses what a client may not write.

    Args:
        app: The app to which accepted requests go.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        check = _check_of(scope)
        if check is None:
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        try:
            content: Any = json.loads(body)
        except (ValueError, RecursionError):
            await JSONResponse({"detail": "the body is not JSON"}, 422)(scope, receive, send)
            return
        if isinstance(content, dict) and (fault := check(cast("dict[str, Any]", content))):
            await JSONResponse({"detail": fault}, 422)(scope, receive, send)
            return
        if (changed := _with_defaults(content)) is not content:
            body = json.dumps(changed).encode()
        read: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return read.pop() if read else await receive()

        await self._app(scope, again, send)


def _check_of(scope: Scope) -> Check | None:
    if scope["type"] != "http" or scope["method"] != "POST":
        return None
    route = route_of(scope)
    return next((_CHECKS[path] for path in _CHECKS if re.fullmatch(path, route)), None)
