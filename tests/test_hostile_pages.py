"""A page in Chromium cannot use the server: neither from another origin nor with a rebound name."""

import http.client
import json
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser import browsing, command_of
from tests.server import ROOT, Server, serving, user
from tests.waiting import LONG

pytestmark = pytest.mark.slow

NAME = "rebound.example"
"""The name of a page that now has the address of this machine."""

# The page tries what a browser sends without asking the server first, and what it asks for. It
# reports the status of each answer that it may read.
SCRIPT = """<!doctype html><script>
const [server, thread, run] = DATA;
const text = {"Content-Type": "text/plain"}, json = {"Content-Type": "application/json"};
const send = (path, options) => fetch(server + path, options).then(
  (answer) => answer.type === "opaque" ? "opaque" : answer.status, () => "failed");
const simple = (path, body) => send(path, {method: "POST", mode: "no-cors", headers: text, body});
const socket = () => new Promise((resolve) => {
  const address = `${server || location.origin}/threads/${thread}/stream/events`;
  const opened = new WebSocket(address.replace("http", "ws"));
  opened.onopen = () => resolve("opened");
  opened.onerror = () => resolve("failed");
});
const all = async () => ({
  read: await send(`/threads/${thread}/state`),
  debug: await send(`/internal/debug/thread/${thread}`),
  metrics: await send("/metrics"),
  json: await send(`/threads/${thread}/runs`, {method: "POST", headers: json, body: run}),
  text: await simple(`/threads/${thread}/runs`, run),
  truncate: await simple("/internal/truncate", "{}"),
  socket: await socket(),
});
all().then((seen) => fetch("/seen", {method: "POST", body: JSON.stringify(seen)}));
</script>"""


@contextmanager
def site(page: bytes, seen: Queue[Any]) -> Generator[int, None, None]:
    """A web server with a page, also for a browser that uses it as a proxy; yields its port.

    As a proxy it stands in for a name server: the page comes from here, and then its name has the
    address of this machine.
    """

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = urlsplit(self.path)
            if path.path == "/page":
                self.answer(200, page)
            elif path.path == "/seen":
                seen.put(json.loads(content))
                self.answer(200, b"")
            elif path.hostname == NAME:
                self.answer(*passed_on(self, content))
            else:  # the browser's own
                self.answer(404, b"")

        def answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield running.server_port
        running.shutdown()


def passed_on(request: BaseHTTPRequestHandler, content: bytes) -> tuple[int, bytes]:
    """Send a request with its name to this machine."""
    path = urlsplit(request.path)
    connection = http.client.HTTPConnection("127.0.0.1", path.port, timeout=LONG)
    headers = {**request.headers, "Connection": "close"}
    connection.request(str(request.command), path.path, content, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


@pytest.fixture(autouse=True, scope="module")
def browser() -> None:
    """Skip the tests if there is no browser, before a server is started for them."""
    command_of(Path())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The served graphs without a token, so that only the page itself is wrong."""
    directory = tmp_path_factory.mktemp("served")
    shutil.copy(ROOT / "langgraph.json", directory)
    with serving(directory) as running:
        yield running


def script_for(server: Server, thread: str, address: str) -> bytes:
    run = json.dumps({"assistant_id": "until_done", "input": user("- [ ] a")})
    return SCRIPT.replace("DATA", json.dumps([address, thread, run])).encode()


def test_a_page_of_another_origin_sees_and_does_nothing(server: Server, tmp_path: Path) -> None:
    """Another port of this machine is another origin."""
    thread, seen = server.new_thread(), Queue[Any]()
    with (
        site(script_for(server, thread, server.url), seen) as port,
        browsing(f"http://127.0.0.1:{port}/page", tmp_path),
    ):
        found = seen.get(timeout=LONG)
    assert found == {
        **dict.fromkeys(("read", "debug", "metrics", "json", "socket"), "failed"),
        **dict.fromkeys(("text", "truncate"), "opaque"),  # sent without asking, but refused
    }
    assert server.client.threads.get(thread)["status"] == "idle"
    assert server.client.runs.list(thread) == []


def seen_by_rebound_page(server: Server, thread: str, profile: Path) -> Any:
    seen = Queue[Any]()
    address = f"http://{NAME}:{urlsplit(server.url).port}/page"
    with (
        site(script_for(server, thread, ""), seen) as proxy,
        browsing(address, profile, f"--proxy-server=http://127.0.0.1:{proxy}"),
    ):
        return seen.get(timeout=LONG)


def test_a_rebound_page_sees_and_does_nothing(server: Server, tmp_path: Path) -> None:
    """For the browser it is of the server's own origin, so it may read each refusal."""
    thread = server.new_thread()
    seen = seen_by_rebound_page(server, thread, tmp_path)
    assert seen.pop("socket") == "failed"
    assert set(seen.values()) == {403}
    assert server.client.threads.get(thread)["status"] == "idle"
    assert server.client.runs.list(thread) == []


def test_only_its_host_stops_a_rebound_page_from_reading(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """A server that knows the name lets it read; what it posts has an unknown origin."""
    directory = tmp_path_factory.mktemp("trusting")
    shutil.copy(ROOT / "langgraph.json", directory)
    with serving(directory, TODO_HOSTS=NAME) as server:
        seen = seen_by_rebound_page(server, server.new_thread(), tmp_path)
    reading = {name: seen[name] for name in ("read", "metrics", "json", "text")}
    assert reading == {"read": 200, "metrics": 200, "json": 403, "text": 403}
