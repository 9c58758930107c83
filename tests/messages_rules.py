"""Anthropic's rules for a single request: order, pairs, cache marks."""

import re
from collections.abc import Iterator
from typing import Any

from tests.prompt_cache import Request, blocks_of, marks_of

Content = list[dict[str, Any]]

MAX_MARKS = 4


class RefusedError(Exception):
    """A request that the API answers with status 400."""


def check_marks(request: Request) -> None:
    """Refuse more than four cache marks, and marks on thinking.

    Raises:
        RefusedError: The marks break a rule.
    """
    for block in blocks_of(request):
        if block.is_marked and not block.is_cacheable:
            raise RefusedError(f"{block.path}.cache_control: thinking blocks cannot be marked")
    if (marks := len(marks_of(request))) > MAX_MARKS:
        raise RefusedError(
            f"cache_control: at most {MAX_MARKS} blocks can be marked, found {marks}"
        )


def check_order(request: Request) -> None:
    """Refuse messages and blocks in a wrong order, and calls or results without their partner.

    Raises:
        RefusedError: The messages break a rule.
    """
    messages = request["messages"]
    if not messages or messages[0]["role"] != "user":
        raise RefusedError("messages: the first message must use the user role")
    if messages[-1]["role"] != "user":
        raise RefusedError("messages: the conversation must end with a user message")
    pending: list[str] = []
    seen = set[str]()
    for i, message in enumerate(messages):
        path = f"messages.{i}"
        _check_role(path, message["role"])
        _check_texts(path, message["content"])
        if message["role"] == "assistant":
            _check_results(path, pending, [])
            pending = _calls(path, message["content"], seen)
        else:
            _check_results(path, pending, list(_results(path, message["content"])))
            pending = []


def _check_role(path: str, role: str) -> None:
    if role not in ("user", "assistant"):
        raise RefusedError(f"{path}.role: {role!r} is not `user` or `assistant`")


def _check_texts(path: str, content: str | Content) -> None:
    if not content:
        raise RefusedError(f"{path}: all messages must have non-empty content")
    for text in _texts(content):
        if not text.strip():
            raise RefusedError(f"{path}: text content blocks must contain non-whitespace text")


def _texts(content: str | Content) -> Iterator[str]:
    """All texts of a message, including those in its tool results."""
    if isinstance(content, str):
        yield content
        return
    for block in content:
        if block["type"] == "text":
            yield block["text"]
        elif block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from _texts(block["content"])


def _calls(path: str, content: str | Content, seen: set[str]) -> list[str]:
    """The ids of an answer's calls."""
    blocks = [] if isinstance(content, str) else content
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    for call_id in calls:
        _check_id(f"{path}: `tool_use.id`", call_id)
        if call_id in seen:
            raise RefusedError(f"{path}: `tool_use` ids must be unique, {call_id} is not")
        seen.add(call_id)
    return calls


def _results(path: str, content: str | Content) -> Iterator[str]:
    """The call ids of a user message's results, which must be its first blocks."""
    blocks = [] if isinstance(content, str) else content
    others = False
    for block in blocks:
        if block["type"] != "tool_result":
            others = True
            continue
        if others:
            raise RefusedError(f"{path}: `tool_result` blocks must come before other content")
        _check_id(f"{path}: `tool_result.tool_use_id`", block["tool_use_id"])
        yield block["tool_use_id"]


def _check_id(name: str, value: str) -> None:
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", value):
        raise RefusedError(f"{name}: {value!r} does not match the pattern of an id")


def _check_results(path: str, calls: list[str], results: list[str]) -> None:
    """Refuse results that do not belong to the calls of the message before."""
    if orphans := [result for result in results if result not in calls]:
        raise RefusedError(f"{path}: `tool_result` without a `tool_use` right before it: {orphans}")
    if missing := [call for call in calls if call not in results]:
        raise RefusedError(f"{path}: `tool_use` without a `tool_result` right after it: {missing}")
    if len(results) > len(calls):
        raise RefusedError(f"{path}: a `tool_use` has more than one `tool_result`")
