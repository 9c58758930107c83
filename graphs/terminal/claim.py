"""Lock a thread: two programs on one thread would overwrite each other's work."""

import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from filelock import FileLock, Timeout

from graphs.terminal.ctrl_c import ended_by_ctrl_c
from graphs.terminal.options import UnusableInputError
from graphs.terminal.typed import drop_typed, is_terminal


@contextmanager
def claimed(db: str, thread: str) -> Generator[None, None, None]:
    """Lock a thread; if another program has the lock, ask whether to use the thread anyway.

    The lock is on a file in a folder next to the database. The system releases it when the program
    ends, however it ends.

    Args:
        db: The file of the database.
        thread: The id of the thread.

    Raises:
        UnusableInputError: Another program has the lock, and the person refuses or cannot be asked
            because there is no terminal.
    """
    folder = Path(f"{db}-locks")
    lock = FileLock(folder / sha256(thread.encode()).hexdigest()[:16], mode=0o600)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        _ask(thread)
    except OSError as error:
        raise UnusableInputError(f"--db {db} cannot be used: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()


def _ask(thread: str) -> None:
    if is_terminal(sys.stdin):
        drop_typed(sys.stdin.fileno())
        question = f"Thread {thread!r} is open in another program. Use it here too? yes or no: "
        with suppress(EOFError), ended_by_ctrl_c():  # Ctrl-D means no
            if input(question).strip().lower() in {"yes", "y"}:
                return
    raise UnusableInputError(f"thread {thread!r} is open in another program")
