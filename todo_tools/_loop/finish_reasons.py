"""Detect answers that the user cut off or the provider refused."""

import re
from typing import Any, Literal

from langchain_core.messages import AIMessage

from todo_tools._list.todos import is_mapping

# A server may repeat the reason in each chunk of a stream; LangChain joins it to one string.
_ABORTED = re.compile("(abort(ed)?|cancell?ed|interrupted)+", re.IGNORECASE)
_REFUSED = re.compile(
    "(blocklist|content_filter(ed)?|guardrail_intervened|image_safety|jailbreak|model_armor"
    "|prohibited_content|recitation|refusal|safety|spii)+",
    re.IGNORECASE,
)
_KEYS = ("stop_reason", "finish_reason", "stopReason", "finishReason", "done_reason", "status")


def broken_off(answer: AIMessage) -> Literal["aborted", "refused"] | None:
    """Return `aborted` if the user cut the answer off, `refused` if the provider blocked it."""
    data = answer.response_metadata
    inner = {**_dict(data.get("incomplete_details")), **_dict(data.get("prompt_feedback"))}
    given = [*map(data.get, _KEYS), inner.get("reason"), inner.get("block_reason")]
    reasons = [str(getattr(reason, "name", reason)) for reason in given]
    if any(map(_ABORTED.fullmatch, reasons)):
        return "aborted"
    blocks = () if isinstance(answer.content, str) else map(_dict, answer.content)
    kinds = {
        kind for each in blocks for kind in (each.get("type"), _dict(each.get("value")).get("type"))
    }
    is_refusal = bool(answer.additional_kwargs.get("refusal")) or "refusal" in kinds
    return "refused" if is_refusal or any(map(_REFUSED.fullmatch, reasons)) else None


def _dict(value: Any) -> dict[str, Any]:
    return {**value} if is_mapping(value) else {}
