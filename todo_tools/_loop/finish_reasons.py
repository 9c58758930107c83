"""Detect answers that the user cut off or the provider refused."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage

from todo_tools._list.todos import is_mapping

# A server may repeat the reason in each chunk of a stream; LangChain joins it to one string.
_ABORTED = re.compile("(abort|aborted|cancelled|canceled|interrupted)+", re.IGNORECASE)
_REFUSED = re.compile(
    "(blocklist|content_filter|content_filtered|guardrail_intervened|image_safety|jailbreak"
    "|model_armor|prohibited_content|recitation|refusal|safety|spii)+",
    re.IGNORECASE,
)
_REASON_KEYS = (
    "stop_reason",
    "finish_reason",
    "stopReason",
    "finishReason",
    "done_reason",
    "status",
)


def broken_off(answer: AIMessage) -> Literal["aborted", "refused"] | None:
    """Return `aborted` if the user cut the answer off, `refused` if the provider blocked it."""
    reasons = list(_reasons(answer.response_metadata))
    if any(map(_ABORTED.fullmatch, reasons)):
        return "aborted"
    return "refused" if any(map(_REFUSED.fullmatch, reasons)) or _is_refusal(answer) else None


def _reasons(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the finish reasons of an answer, from every key that providers use."""
    details = metadata.get("incomplete_details")  # OpenAI's responses
    feedback = metadata.get("prompt_feedback")  # Gemini, when the prompt itself is blocked
    for reason in (
        *(metadata.get(key) for key in _REASON_KEYS),
        details.get("reason") if is_mapping(details) else None,
        feedback.get("block_reason") if is_mapping(feedback) else None,
    ):
        yield str(getattr(reason, "name", reason))


def _is_refusal(answer: AIMessage) -> bool:
    """Whether the message itself is marked as a refusal, as OpenAI does."""
    if answer.additional_kwargs.get("refusal"):
        return True
    # A string has no blocks; a loop over its characters takes seconds for a long answer.
    if isinstance(answer.content, str):
        return False
    blocks = [block for block in answer.content if is_mapping(block)]
    return any("refusal" in (block.get("type"), _original(block).get("type")) for block in blocks)


def _original(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the provider's own block inside a standard content block, or an empty dict."""
    value = block.get("value")
    return value if is_mapping(value) else {}
