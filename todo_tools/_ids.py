"""Ids for messages that have none, the same every time a thread is read.

LangGraph gives message objects and dicts their ids before they are stored. Where a `DeltaChannel`
holds the messages, a `("user", "hi")` or a bare string is stored without one. So its id must follow
from what is stored: from the text, and from the message before it.
"""

from collections.abc import Iterator, Sequence
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import BaseMessage


def stable_ids(messages: Sequence[BaseMessage], before: str = "") -> Iterator[str]:
    """The id of each message, its own or one that follows from what is stored.

    Args:
        messages: Messages of a history.
        before: The id of the message before them.
    """
    for message in messages:
        before = message.id or str(uuid5(NAMESPACE_OID, f"{before}/{message.type}/{message.text}"))
        yield before
