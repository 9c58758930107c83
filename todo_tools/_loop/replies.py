"""Read a person's reply to the question whether to continue: a word, a text, or a decision.

Decisions have the format of LangChain's human-in-the-loop middleware, which interfaces such as
agent-chat-ui send.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from todo_tools._calls.arguments import brief
from todo_tools._list.todos import is_list, is_mapping

_WORDS = {"yes": True, "y": True, "no": False, "n": False}
_ALLOWED = (
    "Resume with true, false, a text, or "
    '{"decisions": [{"type": "approve" | "reject" | "edit" | "respond", ...}]}.'
)


class Reply(NamedTuple):
    """A valid reply."""

    continues: bool
    """Whether the agent should continue."""
    words: str = ""
    """The person's own message, if there is one; it replaces the continuation message."""


def read_reply(reply: object) -> Reply:
    """Parse a reply.

    Args:
        reply: `True`, `False`, a text, or a dict with one decision. The decision is `approve`;
            `reject`, with or without a `message`; `respond` with a `message`; or `edit` with the
            person's message in `edited_action["args"]["message"]`.

    Raises:
        ValueError: `reply` has another form; the error names the allowed ones.
    """
    if isinstance(reply, bool):
        return Reply(reply)
    if isinstance(reply, str) and reply.strip():
        word = _WORDS.get(reply.strip().lower())
        return Reply(continues=True, words=reply) if word is None else Reply(word)
    if is_mapping(reply) and "decisions" in reply:
        return _decided(reply["decisions"])
    raise _unreadable(f"{brief(reply)} is not an answer")


def _decided(decisions: object) -> Reply:
    if not is_list(decisions) or len(decisions) != 1 or not is_mapping(decisions[0]):
        raise _unreadable(f"decisions must be a list of one decision, got {brief(decisions)}")
    decision: Mapping[str, Any] = decisions[0]
    match decision.get("type"):
        case "approve":
            return Reply(continues=True)
        case "reject":
            return Reply(continues=False, words=_text(decision, "message", required=False))
        case "respond":
            return Reply(continues=True, words=_text(decision, "message"))
        case "edit":
            action = decision.get("edited_action")
            args = action.get("args") if is_mapping(action) else None
            if not is_mapping(args):
                raise _unreadable("edited_action must have args with a message")
            # The message is empty if the person saved the form unchanged.
            return Reply(continues=True, words=_text(args, "message", required=False))
        case other:
            raise _unreadable(f"{brief(other)} is not a decision type")


def _text(holder: Mapping[str, Any], key: str, *, required: bool = True) -> str:
    """Return the text under a key; empty if it is blank and not required."""
    text = holder.get(key) or ""
    if not isinstance(text, str) or (required and not text.strip()):
        raise _unreadable(f"{key} must be a text, got {brief(holder.get(key))}")
    return text if text.strip() else ""


def _unreadable(problem: str) -> ValueError:
    return ValueError(f"{problem}. {_ALLOWED}")
