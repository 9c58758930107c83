"""Compute ids for messages without one; they are the same every time a thread is read.

LangGraph adds ids to message objects and dicts before it stores them. But a `DeltaChannel` stores a
tuple such as `("user", "hi")` or a bare string without an id. So the id is computed from the text
and from the id of the message before it.
"""

from collections.abc import Iterator, Sequence
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import BaseMessage


def stable_ids(messages: Sequence[BaseMessage], before: str = "") -> Iterator[str]:
    """Yield the id of each message; a message without an id gets a computed one.

    Args:
        messages: Messages of a history.
        before: The id of the message before the first of them.
    """
    for message in messages:
        before = message.id or str(uuid5(NAMESPACE_OID, f"{before}/{message.type}/{message.text}"))
        yield before
