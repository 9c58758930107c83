"""Read a message history: the user's messages, todo results, calls without a result."""

from todo_tools._thread.transcript import (
    details_of,
    is_from_user,
    is_injected,
    last_user_message,
    pending_calls,
)

__all__ = [
    "details_of",
    "is_from_user",
    "is_injected",
    "last_user_message",
    "pending_calls",
]
