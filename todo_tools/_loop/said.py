"""Read what others said at the end of an answer: a provider, the model, a person."""

import re
from typing import Any, Literal, NamedTuple, cast

from langchain_core.messages import AIMessage

from todo_tools._calls.arguments import brief
from todo_tools._list.todos import is_mapping
from todo_tools._thread.state import messages_in

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
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


# Quotes, brackets, emphasis, rules or pictures may follow the mark.
_QUESTION = re.compile(r"[?\uff1f\u061f][\W_]*\Z")


def asks_user(state: Any) -> bool:
    """Return whether the last answer of the model ends in a question mark.

    Use it as `AutoContinue(stop_when=asks_user)`. Quotes, emphasis or pictures may follow the
    question mark.

    Args:
        state: The graph state.

    Example:
        ```python
        policy = AutoContinue(stop_when=asks_user)
        assert asks_user({"messages": [AIMessage("**Which colour?**")]})
        ```
    """
    answers = (each for each in reversed(messages_in(state)) if isinstance(each, AIMessage))
    last = next(answers, None)
    return last is not None and bool(_QUESTION.search(last.text[-200:]))


_WORDS = {"yes": True, "y": True, "no": False, "n": False}


class Reply(NamedTuple):
    """A valid reply."""

    continues: bool
    """Whether the agent should continue."""
    words: str = ""
    """The person's own message, if there is one; it replaces the continuation."""


def read_reply(reply: Any) -> Reply:
    """Parse a reply: a bool, a text, or a decision of LangChain's human-in-the-loop interfaces."""
    if isinstance(reply, bool):
        return Reply(reply)
    if isinstance(reply, str) and reply.strip():
        word = _WORDS.get(reply.strip().lower())
        return Reply(continues=True, words=reply) if word is None else Reply(word)
    match reply:
        case {"decisions": [{"type": "approve" | "reject" | "respond" | "edit" as kind, **rest}]}:
            action = rest.get("edited_action")
            args = action.get("args", {}) if is_mapping(action) else rest
            words = args.get("message") if is_mapping(args) else None
            return Reply(
                kind != "reject", words if isinstance(words, str) and words.strip() else ""
            )
        case _:
            raise ValueError(
                f"{brief(reply)} is not an answer. Resume with true, false, a text, or "
                '{"decisions": [{"type": "approve" | "reject" | "edit" | "respond", ...}]}.'
            )
