"""Detect answers that were cut off or refused, or whose tool calls are invalid."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage

from todo_tools._list.todos import is_mapping

# Lower case, because reasons are converted to lower case before the comparison.
_ABORTED = {"abort", "aborted", "cancelled", "canceled", "interrupted"}
_REFUSED = {
    "blocklist",
    "content_filter",
    "content_filtered",
    "guardrail_intervened",
    "image_safety",
    "jailbreak",
    "model_armor",
    "prohibited_content",
    "recitation",
    "refusal",
    "safety",
    "spii",
}
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
    reasons = set(_reasons(answer.response_metadata))
    if reasons & _ABORTED:
        return "aborted"
    return "refused" if reasons & _REFUSED or _is_refusal(answer) else None


def _reasons(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the finish reasons of an answer in lower case, from every key that providers use."""
    details = metadata.get("incomplete_details")  # OpenAI's responses
    feedback = metadata.get("prompt_feedback")  # Gemini, when the prompt itself is blocked
    for reason in (
        *(metadata.get(key) for key in _REASON_KEYS),
        details.get("reason") if is_mapping(details) else None,
        feedback.get("block_reason") if is_mapping(feedback) else None,
    ):
        yield str(getattr(reason, "name", reason)).lower()


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
