"""The example of docs/serve.md: two people on one server, with every resource of it."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import (
    PermissionDeniedError,
    UnprocessableEntityError,
)

from tests.server import ROOT, Server, serving, user
from tests.support import outcome_of
from tests.waiting import LONG

pytestmark = pytest.mark.slow

TOKENS = {"ada's secret": "ada", "bob's secret": "bob"}
SCHEDULE = "0 0 29 2 *"
REFUSED = (403, 404, 409)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the configuration and the code of the page."""
    directory = tmp_path_factory.mktemp("users")
    page = (ROOT / "docs" / "serve.md").read_text("utf-8")
    blocks = re.findall(r"^```(json|python)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    first, second, program = (block for _, block in blocks[:3])
    config = {**json.loads(first), **json.loads(second)}
    (directory / "langgraph.json").write_text(json.dumps(config), "utf-8")
    (directory / "auth.py").write_text(program, "utf-8")
    (directory / "agent.py").write_text("from graphs.served import until_done as agent\n", "utf-8")
    with serving(directory, token="ada's secret", AGENT_TOKENS=json.dumps(TOKENS)) as server:
        yield server


class Person(NamedTuple):
    """A user, with a thread of their own."""

    client: SyncLangGraphClient
    thread: str


@pytest.fixture(scope="module")
def ada(server: Server) -> Person:
    """The first user, whose thread has run."""
    thread = server.new_thread()
    server.client.runs.wait(thread, "agent", input=user("- [ ] a"))
    return Person(server.client, thread)


@pytest.fixture(scope="module")
def bob(server: Server) -> Iterator[Person]:
    """The second user, whose thread has not."""
    with get_sync_client(url=server.url, api_key="bob's secret") as client:
        yield Person(client, str(client.threads.create()["thread_id"]))


Attempt = Callable[[SyncLangGraphClient, str], Any]

ON_A_THREAD: dict[str, Attempt] = {
    "get": lambda client, thread: client.threads.get(thread),
    "state": lambda client, thread: client.threads.get_state(thread),
    "history": lambda client, thread: client.threads.get_history(thread),
    "edit": lambda client, thread: client.threads.update_state(thread, {"todos": []}),
    "mark": lambda client, thread: client.threads.update(thread, metadata={"owner": "bob"}),
    "create": lambda client, thread: client.threads.create(thread_id=thread),
    "delete": lambda client, thread: client.threads.delete(thread),
    "run": lambda client, thread: client.runs.create(thread, "agent", input=user("Go.")),
    "runs": lambda client, thread: client.runs.list(thread),
    "cancel": lambda client, thread: client.runs.cancel(thread, RUN),
}
RUN = "00000000-0000-0000-0000-000000000000"


class TestThreads:
    @pytest.mark.parametrize("attempt", ON_A_THREAD.values(), ids=list(ON_A_THREAD))
    def test_those_of_others_cannot_be_used(
        self, attempt: Attempt, ada: Person, bob: Person
    ) -> None:
        """Nor is one changed by the attempt."""
        before = ada.client.threads.get_state(ada.thread)
        with pytest.raises(httpx.HTTPStatusError) as refused:
            attempt(bob.client, ada.thread)
        assert refused.value.response.status_code in REFUSED
        assert ada.client.threads.get_state(ada.thread) == before
        assert ada.client.threads.get(ada.thread)["status"] == "idle"

    def test_those_of_others_are_not_found(self, ada: Person, bob: Person) -> None:
        found = [each["thread_id"] for each in bob.client.threads.search(limit=100)]
        assert bob.thread in found
        assert ada.thread not in found
        assert bob.client.threads.search(ids=[ada.thread]) == []
        claimed = bob.client.threads.search(metadata={"owner": "ada"}, limit=100)
        assert ada.thread not in [each["thread_id"] for each in claimed]

    def test_nobody_can_name_another_owner(self, bob: Person) -> None:
        forged = {"owner": "ada"}
        created: Any = bob.client.threads.create(metadata=forged)
        assert created["metadata"]["owner"] == "bob"
        changed: Any = bob.client.threads.update(created["thread_id"], metadata=forged)
        assert changed["metadata"]["owner"] == "bob"

    def test_ones_own_run_to_their_end(self, bob: Person) -> None:
        """Also stateless runs, and threads that a run creates."""
        client, thread = bob.client, str(uuid4())
        for place in (bob.thread, None, thread):
            final: Any = client.runs.wait(
                place, "agent", input=user("- [ ] a"), if_not_exists="create"
            )
            assert outcome_of(final) == "finished"
        created: Any = client.threads.get(thread)
        assert created["metadata"]["owner"] == "bob"


ON_ASSISTANTS: dict[str, Callable[[SyncLangGraphClient, str], Any]] = {
    "create": lambda client, _: client.assistants.create("agent"),
    "update": lambda client, name: client.assistants.update(name, metadata={"owner": "bob"}),
    "new version": lambda client, name: client.assistants.update(name, config={"tags": ["x"]}),
    "old version": lambda client, name: client.assistants.set_latest(name, 1),
    "delete": lambda client, name: client.assistants.delete(name),
}
ON_CRONS: dict[str, Attempt] = {
    "create": lambda client, _: client.crons.create("agent", schedule=SCHEDULE, input={}),
    "for a thread": lambda client, thread: client.crons.create_for_thread(
        thread, "agent", schedule=SCHEDULE, input={}
    ),
    "search": lambda client, _: client.crons.search(),
    "delete": lambda client, _: client.crons.delete(RUN),
}


class TestAssistants:
    @pytest.mark.parametrize("attempt", ON_ASSISTANTS.values(), ids=list(ON_ASSISTANTS))
    def test_nobody_changes_them(self, attempt: Attempt, bob: Person) -> None:
        (before,) = bob.client.assistants.search()
        with pytest.raises(PermissionDeniedError):
            attempt(bob.client, before["assistant_id"])
        assert bob.client.assistants.search() == [before]


@pytest.mark.parametrize("attempt", ON_CRONS.values(), ids=list(ON_CRONS))
def test_nobody_uses_crons(attempt: Attempt, bob: Person) -> None:
    """Not even for their own threads."""
    with pytest.raises(PermissionDeniedError):
        attempt(bob.client, bob.thread)


ON_STORE: dict[str, Callable[[Any, list[str]], Any]] = {
    "put": lambda store, place: store.put_item(place, key="k", value={}),
    "get": lambda store, place: store.get_item(place, key="k"),
    "delete": lambda store, place: store.delete_item(place, key="k"),
    "search": lambda store, place: store.search_items(place),
    "list": lambda store, place: store.list_namespaces(prefix=place),
}


class TestStore:
    @pytest.mark.parametrize("attempt", ON_STORE.values(), ids=list(ON_STORE))
    @pytest.mark.parametrize("place", [["ada"], ["ada", "bob"], ["adabob"], []])
    def test_the_parts_of_others_cannot_be_used(
        self, place: list[str], attempt: Callable[[Any, list[str]], Any], ada: Person, bob: Person
    ) -> None:
        """Nor the whole of it."""
        ada.client.store.put_item(["ada"], key="k", value={"a": 1})
        with pytest.raises((PermissionDeniedError, UnprocessableEntityError)):
            attempt(bob.client.store, place)
        assert ada.client.store.get_item(["ada"], key="k")["value"] == {"a": 1}

    def test_ones_own_can(self, bob: Person) -> None:
        store = bob.client.store
        store.put_item(["bob", "notes"], key="k", value={"b": 1})
        assert store.get_item(["bob", "notes"], key="k")["value"] == {"b": 1}
        assert [item["key"] for item in store.search_items(["bob"])["items"]] == ["k"]
        assert store.list_namespaces(prefix=["bob"])["namespaces"] == [["bob", "notes"]]
        store.delete_item(["bob", "notes"], key="k")


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/internal/truncate"), ("GET", "/internal/debug/thread/THREAD")]
)
def test_no_route_leads_around_the_rules(
    method: str, path: str, ada: Person, bob: Person, server: Server
) -> None:
    """These routes do not ask who it is."""
    answer = httpx.request(
        method,
        server.url + path.replace("THREAD", ada.thread),
        headers={"X-Api-Key": "bob's secret"},
        timeout=LONG,
        trust_env=False,
    )
    assert answer.status_code == 404
    assert ada.client.threads.get(ada.thread)


@pytest.mark.parametrize("method_of_the_protocol", ["run.start", "input.respond"])
def test_the_event_protocol_follows_the_rules_too(
    method_of_the_protocol: str, ada: Person, bob: Person, server: Server
) -> None:
    runs = len(ada.client.runs.list(ada.thread))
    params = {"assistant_id": "agent", "input": user("Go."), "interrupt_id": "1", "response": 1}
    answer = httpx.post(
        f"{server.url}/threads/{ada.thread}/commands",
        json={"id": 1, "method": method_of_the_protocol, "params": params},
        headers={"X-Api-Key": "bob's secret"},
        timeout=LONG,
        trust_env=False,
    )
    assert answer.json()["type"] == "error"
    assert len(ada.client.runs.list(ada.thread)) == runs


@pytest.mark.parametrize("token", ["", "ada", "somebody's secret"])
@pytest.mark.parametrize("path", ["/threads/search", "/internal/truncate", "/deploy"])
def test_a_stranger_is_refused(path: str, token: str, server: Server) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = httpx.post(server.url + path, json={}, headers=headers, timeout=LONG, trust_env=False)
    assert answer.status_code == 401
