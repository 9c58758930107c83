"""Who may use the served graphs: raw requests to every route of LangGraph's server."""

import http.client
import json
import shutil
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from graphs.access import CheckAccess, owner
from graphs.writes import CheckWrites
from tests.server import ROOT, Server, serving, statuses, user
from tests.waiting import LONG

pytestmark = pytest.mark.slow

TOKEN = "open sesame"
PAGE = "http://localhost:3000"
"""An origin that `langgraph.json` allows."""
RUN = {"assistant_id": "until_done", "input": user("- [ ] a")}

ROUTES = [
    ("GET", "/"),
    ("GET", "/ok"),
    ("GET", "/info"),
    ("GET", "/docs"),
    ("GET", "/openapi.json"),
    ("GET", "/metrics"),
    ("GET", "/ui/until_done/entrypoint.js"),
    ("POST", "/ui/until_done"),
    ("GET", "/deploy"),
    ("POST", "/deploy"),
    ("GET", "/deploy/1/stream"),
    ("POST", "/internal/truncate"),
    ("GET", "/internal/debug/thread/THREAD"),
    ("GET", "/threads/THREAD"),
    ("GET", "/threads/THREAD/state"),
    ("POST", "/threads/THREAD/state"),
    ("POST", "/threads/THREAD/commands"),
    ("POST", "/threads/search"),
    ("POST", "/assistants/search"),
    ("POST", "/runs/wait"),
    ("POST", "/runs/crons/search"),
    ("POST", "/store/namespaces"),
    ("POST", "/mcp"),
    ("POST", "/a2a/THREAD"),
    ("GET", "/no/such/route"),
]
"""A route of each kind; those of the first half never pass LangGraph's `auth`."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with this repository's `langgraph.json` and without a token."""
    directory = tmp_path_factory.mktemp("repository")
    shutil.copy(ROOT / "langgraph.json", directory)
    with serving(directory, TODO_HOSTS="agents.example, other.example") as server:
        yield server
    assert server.blocking_calls == set()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with this repository's `langgraph.json` and a token."""
    directory = tmp_path_factory.mktemp("guarded")
    shutil.copy(ROOT / "langgraph.json", directory)
    with serving(directory, TODO_TOKEN=TOKEN) as server:
        yield server


def send(
    server: Server, method: str, path: str, headers: Mapping[str, str] = {}, body: object = None
) -> http.client.HTTPResponse:
    """Send a raw request. `Host` is the right one unless the headers have another; `""` is none."""
    address = urlsplit(server.url).netloc
    content = json.dumps(body or {}).encode()
    connection = http.client.HTTPConnection(address, timeout=LONG)
    connection.putrequest(method, path, skip_host=True)
    length = {"Content-Length": str(len(content)), "Connection": "close"}
    for name, value in {"Host": address, **headers, **length}.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders(content)
    return connection.getresponse()


class TestEveryRoute:
    """No route answers, and nothing happens."""

    @pytest.fixture(autouse=True)
    def thread(self, repository: Server, guarded: Server) -> Iterator[dict[str, str]]:
        """A thread of each server, which is still there afterwards."""
        threads = {server.url: server.new_thread() for server in (repository, guarded)}
        yield threads
        for server in (repository, guarded):
            assert server.client.threads.get(threads[server.url])

    @pytest.mark.parametrize(("method", "path"), ROUTES)
    def test_a_page_of_another_origin_is_refused(
        self, method: str, path: str, repository: Server, thread: dict[str, str]
    ) -> None:
        """The server itself would only hide the answer from the page."""
        path = path.replace("THREAD", thread[repository.url])
        answer = send(repository, method, path, {"Origin": "https://example.com"})
        assert answer.status == 403
        assert answer.headers["Access-Control-Allow-Origin"] is None
        assert json.loads(answer.read())["detail"].startswith("https://example.com is not in")

    @pytest.mark.parametrize(("method", "path"), ROUTES)
    def test_a_rebound_name_is_refused(
        self, method: str, path: str, repository: Server, thread: dict[str, str]
    ) -> None:
        """A page gave its name this machine's address, so it is of the server's origin."""
        path = path.replace("THREAD", thread[repository.url])
        port = urlsplit(repository.url).port
        answer = send(repository, method, path, {"Host": f"rebound.example:{port}"})
        assert answer.status == 403
        assert json.loads(answer.read())["detail"].startswith("the host 'rebound.example:")

    @pytest.mark.parametrize(("method", "path"), ROUTES)
    def test_a_missing_token_is_refused(
        self, method: str, path: str, guarded: Server, thread: dict[str, str]
    ) -> None:
        path = path.replace("THREAD", thread[guarded.url])
        answer = send(guarded, method, path)
        assert answer.status == 401
        assert list(json.loads(answer.read())) == ["detail"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/internal/truncate"),
        ("GET", "/internal/debug/thread/THREAD"),
        ("GET", "/deploy"),
        ("POST", "/deploy"),
        ("GET", "/deploy/1/stream"),
    ],
)
def test_routes_that_no_rule_limits_are_closed(method: str, path: str, guarded: Server) -> None:
    """Also with the token: one deletes all threads, one reads any, one starts a program."""
    thread = guarded.new_thread()
    headers = {"X-Api-Key": TOKEN}
    assert send(guarded, method, path.replace("THREAD", thread), headers).status == 404
    assert guarded.client.threads.get(thread)


def test_a_token_may_have_letters_that_are_not_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients send them as UTF-8."""
    monkeypatch.setenv("TODO_TOKEN", "sésame")
    assert owner(Headers(raw=[(b"x-api-key", "sésame".encode())])) == "owner"
    assert owner(Headers(raw=[(b"x-api-key", b"sesame")])) is None


class TestHosts:
    @pytest.mark.parametrize(
        "host",
        [
            "localhost",
            "LocalHost:2024",
            "127.0.0.1:2024",
            "192.168.1.5",
            "[::1]:2024",
            "agents.example:2024",
            "Other.Example",
        ],
    )
    def test_local_names_addresses_and_named_hosts_are_known(
        self, host: str, repository: Server
    ) -> None:
        """No page can make its own name one of these."""
        assert send(repository, "GET", "/ok", {"Host": host}).status == 200

    @pytest.mark.parametrize(
        "host",
        [
            "",
            ":2024",
            "example",
            "localhost.example.com",
            "127.0.0.1.example.com",
            "127.0.0.1@example.com",
            "agents.example.com",
            "[::1",
            "agents.example,other.example",
        ],
    )
    def test_any_other_is_not(self, host: str, repository: Server) -> None:
        assert send(repository, "GET", "/ok", {"Host": host}).status in (400, 403)


class TestPages:
    """Pages of other origins, and those that `langgraph.json` allows."""

    @pytest.mark.parametrize("origin", ["https://example.com", "http://localhost:2024", "null"])
    def test_a_post_of_another_starts_no_run(self, origin: str, repository: Server) -> None:
        """A browser sends plain text without a preflight request, and the server would parse it."""
        before = repository.client.threads.count()
        headers = {"Origin": origin, "Content-Type": "text/plain"}
        assert send(repository, "POST", "/runs/wait", headers, RUN).status == 403
        assert repository.client.threads.count() == before

    def test_a_preflight_of_another_is_refused(self, repository: Server) -> None:
        assert preflight(repository, "https://example.com").status_code == 403

    def test_a_websocket_of_another_is_refused(self, repository: Server) -> None:
        """CORS does not cover WebSockets, which can start runs."""
        url = socket_of(repository)
        with connect(url, open_timeout=LONG, proxy=None):
            pass  # a client that is not a page may connect
        with (
            pytest.raises(InvalidStatus, match="403"),
            connect(url, open_timeout=LONG, origin=Origin("https://example.com"), proxy=None),
        ):
            pass

    def test_one_that_is_allowed_can_start_runs(self, repository: Server) -> None:
        allowed = preflight(repository, PAGE)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == PAGE
        headers = {"Origin": PAGE, "Content-Type": "application/json"}
        answer = send(repository, "POST", "/runs/wait", headers, RUN)
        assert answer.status == 200
        assert answer.headers["Access-Control-Allow-Origin"] == PAGE

    def test_one_that_is_allowed_needs_the_token(self, guarded: Server) -> None:
        """It asks with a preflight, in which a browser sends no token, and can read the refusal."""
        assert preflight(guarded, PAGE).status_code == 200
        refused = send(guarded, "POST", "/threads/search", {"Origin": PAGE})
        assert refused.status == 401
        assert refused.headers["Access-Control-Allow-Origin"] == PAGE
        headers = {"Origin": PAGE, "X-Api-Key": TOKEN}
        assert send(guarded, "POST", "/threads/search", headers).status == 200


def preflight(server: Server, origin: str) -> httpx.Response:
    """The preflight request of a browser for JSON from a page of another origin."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type, x-api-key",
    }
    return httpx.options(f"{server.url}/runs/wait", headers=headers, timeout=LONG, trust_env=False)


def socket_of(server: Server) -> str:
    """The address of a WebSocket that can start runs."""
    return f"{server.url.replace('http', 'ws')}/threads/{server.new_thread()}/stream/events"


class TestToken:
    @pytest.mark.parametrize(
        "headers",
        [
            {"Authorization": "Bearer open"},
            {"Authorization": f"Bearer {TOKEN}s"},
            {"X-Api-Key": "open"},
            {"X-Auth-Scheme": "langsmith"},
            {"Authorization": "Bearer \u00e9"},
            {"Authorization": f"Basic {TOKEN}"},
        ],
    )
    def test_another_one_is_refused(self, headers: dict[str, str], guarded: Server) -> None:
        """So is a caller who claims to be LangSmith's Studio."""
        for path in ("/threads/search", "/runs/wait", "/internal/truncate"):
            assert send(guarded, "POST", path, headers).status == 401

    def test_a_websocket_needs_it(self, guarded: Server) -> None:
        url = socket_of(guarded)
        with (
            pytest.raises(InvalidStatus, match="403"),
            connect(url, open_timeout=LONG, proxy=None),
        ):
            pass
        headers = {"X-Api-Key": TOKEN}
        with connect(url, open_timeout=LONG, proxy=None, additional_headers=headers):
            pass

    def test_with_it_a_run_goes_to_its_end(self, guarded: Server) -> None:
        """LangGraph's clients send the token as their API key."""
        thread = guarded.new_thread()
        guarded.client.runs.wait(thread, "until_done", input=user("- [ ] Think"))
        assert statuses(guarded.values_of(thread)["todos"]) == ["completed"]

    @pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
    def test_it_can_be_a_bearer_token(self, scheme: str, guarded: Server) -> None:
        headers = {"Authorization": f"{scheme} {TOKEN}"}
        assert send(guarded, "POST", "/threads/search", headers).status == 200

    def test_it_counts_beside_the_credentials_of_a_proxy(self, guarded: Server) -> None:
        headers = {"Authorization": "Basic b3BlbjpzZXNhbWU=", "X-Api-Key": TOKEN}
        assert send(guarded, "POST", "/threads/search", headers).status == 200

    def test_a_configuration_without_the_app_lets_nobody_in(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """`auth` alone would not check who it is."""
        directory = tmp_path_factory.mktemp("incomplete")
        config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
        del config["http"]["app"]
        (directory / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
        with serving(directory) as server:
            answer = send(server, "POST", "/threads/search")
            assert answer.status == 403
            assert b"http.app of langgraph.json" in answer.read()


def test_a_server_below_a_prefix_has_the_same_rules() -> None:
    """The server's own routes leave out `http.mount_prefix`, so the rules do as well."""
    asked: list[str] = []
    app = Starlette(routes=[Mount("/agents", CheckAccess(CheckWrites(Spy(asked))))])
    client = TestClient(app, "http://localhost")
    assert client.post("/agents/internal/truncate").status_code == 404
    edit = client.post("/agents/threads/1/state", json={"as_node": "tools"})
    assert edit.status_code == 422
    assert not asked
    client.post("/agents/threads/1/state", json={"values": {}})
    assert asked == ["/agents/threads/1/state"]


class Spy:
    """An app that notes what reaches it."""

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._asked.append(scope["path"])
        await JSONResponse({})(scope, receive, send)
