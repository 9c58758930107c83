"""Lock a thread: two programs on one thread would overwrite each other's work."""

import fcntl
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256

from graphs.terminal.options import UnusableInputError
from graphs.terminal.typed import drop_typed


@contextmanager
def claimed(db: str, thread: str) -> Generator[None, None, None]:
    """Lock a thread; if another program has the lock, ask whether to use the thread anyway.

    The lock is on one byte of a file next to the database. The system releases it when the program
    ends, however it ends.

    Args:
        db: The file of the database.
        thread: The id of the thread.

    Raises:
        UnusableInputError: Another program has the lock, and the person refuses or cannot be asked
            because there is no terminal.
    """
    try:
        file = os.open(f"{db}-lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UnusableInputError(f"--db {db} cannot be used: {error.strerror}") from None
    try:
        if not _hold(file, thread):
            _ask(thread)
        yield
    finally:
        os.close(file)


def _hold(file: int, thread: str) -> bool:
    place = int.from_bytes(sha256(thread.encode()).digest()[:7])
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except OSError:
        return False
    return True


def _ask(thread: str) -> None:
    if sys.stdin.isatty():
        drop_typed(sys.stdin.fileno())
        answer = input(
            f"Thread {thread!r} is open in another program. Use it here too? yes or no: "
        )
        if answer.strip().lower() in {"yes", "y"}:
            return
    raise UnusableInputError(f"thread {thread!r} is open in another program")
