"""Read a message history: the user's messages, and calls without a result."""

from todo_tools._thread.transcript import is_from_user, pending_calls

__all__ = ["is_from_user", "pending_calls"]
