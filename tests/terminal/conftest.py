"""Fixtures of the tests of the terminal agent."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def heard_signals() -> Iterator[None]:
    """Let the programs of a test hear all signals: under nohup, for example, they ignore some."""
    ignored = [
        signum
        for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
        if signal.getsignal(signum) is signal.SIG_IGN
    ]
    for signum in ignored:
        signal.signal(signum, signal.SIG_DFL)
    yield
    for signum in ignored:
        signal.signal(signum, signal.SIG_IGN)
