"""The server, the interfaces and the browser, which are started once each."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, ViewportSize, sync_playwright

from tests.clients import served
from tests.clients.__main__ import BROWSERS
from tests.clients.build import INTERFACES, REACT, Interface
from tests.clients.pages import PAGES, ChatPage
from tests.server import ROOT, Server, reserved_port, serving

SIZE = ViewportSize(width=1100, height=1000)


@pytest.fixture(scope="session")
def origins() -> Iterator[dict[str, str]]:
    """The address of each interface and of the React page, by its name."""
    with ExitStack() as stack:
        found = {each.name: stack.enter_context(_started(each)) for each in INTERFACES}
        yield found | {"react": stack.enter_context(_started_page())}


def _started(interface: Interface) -> AbstractContextManager[str]:
    command = ["node_modules/.bin/next", "start", "--hostname", "127.0.0.1", "--port"]
    return _serving(command, interface.directory)


def _started_page() -> AbstractContextManager[str]:
    return _serving([sys.executable, "-m", "http.server", "--bind", "127.0.0.1"], REACT)


@contextmanager
def _serving(command: list[str], directory: Path) -> Iterator[str]:
    """Run a command that serves pages; the port is its last argument."""
    with reserved_port() as port:
        process = subprocess.Popen(
            [*command, str(port)],
            cwd=directory,
            env={**os.environ, "NEXT_TELEMETRY_DISABLED": "1"},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_until_answering(address, process)
            yield address
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_until_answering(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert process.poll() is None, "the interface has ended"
        try:
            if httpx.get(address, trust_env=False, timeout=30).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"nothing answers at {address}")


@pytest.fixture(scope="session")
def server(origins: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """What this repository serves, with the interfaces' origins and further graphs."""
    directory = tmp_path_factory.mktemp("served")
    plain, config = (
        json.loads((ROOT / name).read_text(encoding="utf-8"))
        for name in ("langgraph.json", "langgraph-ui.json")
    )
    config["http"]["cors"]["allow_origins"] = list(origins.values())
    tested = {name: f"./tests/clients/served.py:{name}" for name in served.GRAPHS}
    config["graphs"] |= plain["graphs"] | tested
    config["ui"]["half_done_shown"] = config["ui"]["with_list"]
    (directory / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
    with serving(directory) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    chromium = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        # Without the sandbox, because containers have no rights for it.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=[interface.name for interface in INTERFACES])
def chat(
    request: pytest.FixtureRequest, browser: Browser, origins: dict[str, str], server: Server
) -> Iterator[ChatPage]:
    """A window that shows an interface, in a new browser profile."""
    name: str = request.param
    context = browser.new_context(viewport=SIZE)
    context.set_default_timeout(20_000)
    yield PAGES[name](context.new_page(), origins[name], server)
    context.close()
