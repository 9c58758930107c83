"""Who may use the served graphs: raw requests to every route of LangGraph's server."""

import http.client
import json
import shutil
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.testclient import TestClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from graphs.access import CheckAccess
from graphs.writes import CheckWrites
from tests.server import ROOT, Server, serving, user
from tests.waiting import LONG

pytestmark = pytest.mark.slow

TOKEN = "open sesame"
OWN = {"X-Api-Key": TOKEN}
PAGE = "http://localhost:3000"
"""An origin that `langgraph.json` allows."""
RUN = {"assistant_id": "until_done", "input": user("- [ ] a")}

ROUTES = [
    *[("GET", path) for path in ("/", "/ok", "/info", "/docs", "/openapi.json", "/metrics")],
    *[("GET", "/ui/until_done/entrypoint.js"), ("POST", "/ui/until_done")],
    *[("GET", "/deploy"), ("POST", "/deploy"), ("GET", "/deploy/1/stream")],
    *[("POST", "/internal/truncate"), ("GET", "/internal/debug/thread/THREAD")],
    *[("GET", "/threads/THREAD"), ("GET", "/threads/THREAD/state")],
    *[("POST", f"/threads/{path}") for path in ("THREAD/state", "THREAD/commands", "search")],
    *[("POST", path) for path in ("/assistants/search", "/runs/wait", "/runs/crons/search")],
    *[("POST", path) for path in ("/store/namespaces", "/mcp", "/a2a/THREAD")],
    ("GET", "/no/such/route"),
]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with this repository's `langgraph.json` and a token."""
    directory = tmp_path_factory.mktemp("guarded")
    shutil.copy(ROOT / "langgraph.json", directory)
    with serving(directory, TODO_TOKEN=TOKEN, TODO_HOSTS="agents.example, other.example") as server:
        yield server
    assert server.blocking_calls == set()


def send(
    server: Server, method: str, path: str, headers: Mapping[str, str] = {}, body: object = None
) -> http.client.HTTPResponse:
    """Send a raw request. `Host` is the right one unless the headers have another; `""` is none."""
    address = urlsplit(server.url).netloc
    content = json.dumps(body or {}).encode()
    connection = http.client.HTTPConnection(address, timeout=LONG)
    connection.putrequest(method, path, skip_host=True)
    given = {"Content-Length": str(len(content)), "Connection": "close", "Host": address, **headers}
    for name, value in given.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders(content)
    return connection.getresponse()


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_no_route_answers_a_stranger(method: str, path: str, guarded: Server) -> None:
    """A page of another origin, a name that it gave this machine, and who has no token."""
    thread = guarded.new_thread()
    path = path.replace("THREAD", thread)
    page = send(guarded, method, path, {**OWN, "Origin": "https://example.com"})
    assert (page.status, page.headers["Access-Control-Allow-Origin"]) == (403, None)
    assert send(guarded, method, path, {**OWN, "Host": "rebound.example:2024"}).status == 403
    assert send(guarded, method, path).status == 401
    if path.startswith(("/internal/", "/deploy")):  # no rule limits them
        assert send(guarded, method, path, OWN).status == 404
    assert guarded.client.threads.get(thread)


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        *[(host, True) for host in ("LocalHost:2024", "192.168.1.5", "[::1]:2024")],
        *[(host, True) for host in ("agents.example:2024", "Other.Example")],
        *[(host, False) for host in ("", ":2024", "example", "localhost.example.com", "[::1")],
        *[(host, False) for host in ("127.0.0.1@example.com", "agents.example,other.example")],
    ],
)
def test_only_local_names_addresses_and_named_hosts_are_known(
    host: str, is_known: bool, guarded: Server
) -> None:
    """No page can make its own name one of these."""
    assert (send(guarded, "GET", "/ok", {**OWN, "Host": host}).status == 200) == is_known


@pytest.mark.parametrize("origin", ["http://localhost:2024", "null", PAGE])
def test_only_an_allowed_page_starts_runs(origin: str, guarded: Server) -> None:
    """A browser sends plain text without a preflight request, and the server would parse it."""
    headers = {**OWN, "Origin": origin, "Content-Type": "text/plain"}
    answer = send(guarded, "POST", "/runs/wait", headers, RUN)
    assert answer.status == (200 if origin == PAGE else 403)


def test_an_allowed_page_needs_the_token_and_can_read_the_refusal(guarded: Server) -> None:
    """It asks with a preflight, in which a browser sends no token."""
    asks = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    assert send(guarded, "OPTIONS", "/runs/wait", asks).status == 200
    refused = send(guarded, "POST", "/threads/search", {"Origin": PAGE})
    assert (refused.status, refused.headers["Access-Control-Allow-Origin"]) == (401, PAGE)


def test_a_websocket_needs_the_token_and_no_foreign_page(guarded: Server) -> None:
    """CORS does not cover WebSockets, which can start runs."""
    url = f"{guarded.url.replace('http', 'ws')}/threads/{guarded.new_thread()}/stream/events"
    options: Any = {"open_timeout": LONG, "proxy": None}
    with connect(url, additional_headers=OWN, **options):
        pass
    strangers: list[Any] = [{}, {"additional_headers": OWN, "origin": "https://example.com"}]
    for stranger in strangers:
        with pytest.raises(InvalidStatus, match="403"), connect(url, **stranger, **options):
            pass


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": f"bearer {TOKEN}"}, 200),
        ({"Authorization": "Basic b3BlbjpzZXNhbWU=", "X-Api-Key": TOKEN}, 200),  # of a proxy
        ({"Authorization": f"Bearer {TOKEN}s"}, 401),
        ({"Authorization": "Bearer \u00e9"}, 401),
        ({"X-Auth-Scheme": "langsmith"}, 401),
    ],
)
def test_the_token_counts_in_two_headers(
    headers: dict[str, str], status: int, guarded: Server
) -> None:
    """A caller who claims to be LangSmith's Studio needs it too."""
    assert send(guarded, "POST", "/threads/search", headers).status == status


@pytest.mark.parametrize("path", ["/store/items/search", "/runs/crons/search", "/assistants"])
def test_what_is_not_allowed_by_name_is_denied(path: str, guarded: Server) -> None:
    """Also with the token: the store, crons, and assistants of a client."""
    body = {"namespace_prefix": [], "graph_id": "until_done"}
    assert send(guarded, "POST", path, OWN, body).status == 403


def test_a_server_below_a_prefix_has_the_same_rules() -> None:
    """The server's own routes leave out `http.mount_prefix`, so the rules do as well."""
    app = Starlette(routes=[Mount("/agents", CheckAccess(CheckWrites(JSONResponse({}))))])
    client = TestClient(app, "http://localhost")
    assert client.post("/agents/internal/truncate").status_code == 404
    state = "/agents/threads/1/state"
    assert client.post(state, json={"as_node": "tools"}).status_code == 422
    assert client.post(state, content=b"{").status_code == 422  # what is not JSON
    assert client.post(state, json={"values": {}}).status_code == 200
