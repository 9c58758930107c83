"""Read a person's reply to the question whether to continue: a word, a text, or a decision."""

from typing import Any, NamedTuple

from todo_tools._calls.arguments import brief
from todo_tools._list.todos import is_mapping

_WORDS = {"yes": True, "y": True, "no": False, "n": False}


class Reply(NamedTuple):
    """A valid reply."""

    continues: bool
    """Whether the agent should continue."""
    words: str = ""
    """The person's own message, if there is one; it replaces the continuation message."""


def read_reply(reply: Any) -> Reply:
    """Parse a reply.

    Args:
        reply: `True`, `False`, a text, or what LangChain's human-in-the-loop interfaces send: a
            dict with one decision (`approve`, `reject`, `respond` or `edit`), with or without the
            person's message.

    Raises:
        ValueError: `reply` has another form; the error names the allowed ones.
    """
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
            return Reply(kind != "reject", words if isinstance(words, str) else "")
        case _:
            raise ValueError(
                f"{brief(reply)} is not an answer. Resume with true, false, a text, or "
                '{"decisions": [{"type": "approve" | "reject" | "edit" | "respond", ...}]}.'
            )
