"""A page of another origin cannot use the server; tested in Chromium."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page

from tests.clients.build import AGENT_CHAT_UI
from tests.server import Server

pytestmark = pytest.mark.slow

# Each script tries to start a run. A browser sends the second, the third and the fourth without
# asking the server first, and does not show the page the answer.
ATTEMPTS = {
    "json": """([runs, body]) => fetch(`${runs}/wait`, {
        method: "POST", headers: {"Content-Type": "application/json"}, body
      }).then((answer) => `${answer.status}`, () => "failed")""",
    "plain text": """([runs, body]) => fetch(`${runs}/wait`, {
        method: "POST", mode: "no-cors", headers: {"Content-Type": "text/plain"}, body
      }).then((answer) => answer.type, () => "failed")""",
    "form": """([runs, body]) => new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.name = "answer";
        const form = document.createElement("form");
        Object.assign(form, {
          action: `${runs}/wait`, method: "POST", enctype: "text/plain", target: "answer"});
        const field = document.createElement("input");
        [field.name, field.value] = [body.slice(0, -1) + ', "a": "', '"}'];
        form.append(field);
        document.body.append(frame, form);
        frame.onload = () => resolve("sent");
        form.submit();
      })""",
    "web socket": """([runs]) => new Promise((resolve) => {
        const address = runs.replace("http", "ws").replace(/runs$/, "stream/events");
        const socket = new WebSocket(address);
        socket.onopen = () => resolve("opened");
        socket.onerror = () => resolve("failed");
      })""",
}


class EmptyPage(BaseHTTPRequestHandler):
    """A page without content."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><body></body>")

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    """An origin that the server does not know: another port of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyPage) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{site.server_port}"
        site.shutdown()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


class Attempt(NamedTuple):
    """The result of an attempt to start a run."""

    learnt: str
    """What the page sees."""
    runs: int
    """How many runs the server has started."""


def attempt(page: Page, how: str, server: Server) -> Attempt:
    """Let a page try to start a run in a new thread."""
    thread = server.new_thread()
    messages = [{"role": "user", "content": "- [ ] Think"}]
    body = json.dumps({"assistant_id": "until_done", "input": {"messages": messages}})
    learnt: str = page.evaluate(ATTEMPTS[how], [f"{server.url}/threads/{thread}/runs", body])
    return Attempt(learnt, len(server.client.runs.list(thread)))


REFUSED = {"json": "failed", "plain text": "opaque", "form": "sent", "web socket": "failed"}
ALLOWED = {"json": "200", "plain text": "opaque", "form": "sent", "web socket": "opened"}


@pytest.mark.parametrize("how", ATTEMPTS)
def test_it_starts_no_run(how: str, page: Page, elsewhere: str, server: Server) -> None:
    page.goto(elsewhere)
    assert attempt(page, how, server) == (REFUSED[how], 0)


@pytest.mark.parametrize("how", ATTEMPTS)
def test_a_page_of_an_allowed_origin_can(
    how: str, page: Page, origins: dict[str, str], server: Server
) -> None:
    """So only the origin stopped the other pages. Opening a socket alone starts no run."""
    page.goto(origins[AGENT_CHAT_UI.name])
    assert attempt(page, how, server) == (ALLOWED[how], int(how != "web socket"))
