"""What Ctrl-C does for a while: nothing, or end a blocking read."""

import signal
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


def deaf_to_ctrl_c() -> AbstractContextManager[None]:
    """Leave Ctrl-C to a child process: it inherits an ignored signal, but not a handler."""
    return _ctrl_c_calls(_do_nothing)


def ended_by_ctrl_c() -> AbstractContextManager[None]:
    """Let Ctrl-C end a blocking read; `asyncio` would wait for its next step after the first."""
    return _ctrl_c_calls(signal.default_int_handler)


@contextmanager
def _ctrl_c_calls(handler: Callable[..., Any]) -> Generator[None, None, None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _do_nothing(*_: object) -> None:
    pass
