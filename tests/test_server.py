"""The graphs on LangGraph's server, used through its SDK and by web pages."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import ToolMessage
from langgraph_sdk.errors import BadRequestError, ConflictError, UnprocessableEntityError
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from tests.server import ROOT, Server, serving
from tests.support import items
from tests.waiting import LONG, wait_for, wait_for_file
from todo_tools import todos_from_messages
from todo_tools.clients import from_client_todos, to_client_todos

pytestmark = pytest.mark.slow

APPROVE: Any = {"resume": {"decisions": [{"type": "approve"}]}}

CONTROL = "os.readlink"
"""The deliberate blocking call in `tests.served`."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with this repository's `langgraph.json`; it must report no blocking call."""
    directory = tmp_path_factory.mktemp("repository")
    shutil.copy(ROOT / "langgraph.json", directory)
    (directory / "work").mkdir()
    with serving(directory, TODO_WORKDIR=str(directory / "work")) as server:
        yield server
    assert server.blocking_calls == set()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the graphs of `tests.served`; it must report only its blocking call."""
    directory = tmp_path_factory.mktemp("served")
    graces = ("grace", "grace_agent", "long_grace", "long_grace_agent")
    names = (*graces, "ask", "ask_agent", "blocking", "delta")
    graphs = {name: f"./tests/served.py:{name}" for name in names}
    config = json.dumps({"dependencies": ["."], "graphs": graphs})
    (directory / "langgraph.json").write_text(config, encoding="utf-8")
    with serving(directory) as server:
        yield server
    assert server.blocking_calls <= {CONTROL}


def user(text: str, **channels: object) -> Any:
    """The input of a run: the user's message, and values for other channels."""
    return {"messages": [{"role": "user", "content": text}], **channels}


def statuses(todos: list[dict[str, str]]) -> list[str]:
    return [todo["status"] for todo in from_client_todos(todos)]


def texts(todos: list[dict[str, str]]) -> list[str]:
    return [todo["text"] for todo in from_client_todos(todos)]


def continuations(values: dict[str, Any]) -> list[str]:
    """The messages with which the loop sent the agent back to work."""
    return [
        message["content"]
        for message in values["messages"]
        if message["additional_kwargs"].get("lc_source") == "todo_tools"
    ]


def users_messages(values: dict[str, Any]) -> list[str]:
    return [
        message["content"]
        for message in values["messages"]
        if message["type"] == "human" and "lc_source" not in message["additional_kwargs"]
    ]


class TestThisRepository:
    def test_every_graph_of_it_runs(self, repository: Server) -> None:
        """After a message it runs to its end or to a question for a person."""
        config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
        found = repository.client.assistants.search(limit=100)
        assert {assistant["graph_id"] for assistant in found} == set(config["graphs"])
        for graph in config["graphs"]:
            thread = repository.new_thread()
            repository.client.runs.wait(thread, graph, input=user("- [ ] Think it over"))
            assert repository.status_of(thread) in ("idle", "interrupted")
            assert len(repository.values_of(thread)["messages"]) > 1

    def test_a_run_is_continued_to_the_end(self, repository: Server) -> None:
        """Each change of the list and each decision is streamed."""
        thread = repository.new_thread()
        steps = ["Think", "Run: `touch made`", "Think again", "Look"]
        checklist = "\n".join(f"- [ ] {step}" for step in steps)
        stream = repository.client.runs.stream(
            thread, "until_done", input=user(checklist), stream_mode="custom"
        )
        events = [part.data for part in stream if part.event == "custom"]
        values = repository.values_of(thread)
        assert statuses(values["todos"]) == ["completed", "abandoned", "completed", "completed"]
        assert values["todo_loop"]["outcome"] == "finished"
        assert values["todo_loop"]["in_turn"] == 1
        assert continuations(values) == []  # otherwise deep-agents-ui would show them as the user's
        assert users_messages(values) == [checklist]

        lists = [event for event in events if event["type"] == "todos"]
        assert texts(lists[0]["todos"]) == steps
        assert lists[-1]["todos"] == values["todos"]
        assert values["todos"][0] == {"content": "Think", "status": "completed"}
        assert lists[-1]["status"] == "✓ Done (4 items)"
        assert {"📋 0/4", "📋 1/4", "📋 2/4", "📋 3/4"} < {event["status"] for event in lists}
        decisions = [event["outcome"] for event in events if event["type"] == "todo_loop"]
        assert decisions == [None, "finished"]

    def test_a_list_is_seeded_and_edited_from_outside(self, repository: Server) -> None:
        """This works in the input of a run, during a run, and after it."""
        client, thread = repository.client, repository.new_thread()
        client.runs.wait(
            thread,
            "until_done",
            input=user("Begin.", todos=items("a", "b")),
            interrupt_after=["tools"],
        )
        assert statuses(repository.values_of(thread)["todos"])[0] == "in_progress"
        client.threads.update_state(thread, {"todos": items("c", "d")})
        client.runs.wait(thread, "until_done", input=None)
        values = repository.values_of(thread)
        assert texts(values["todos"]) == ["c", "d"]
        assert values["todo_loop"]["outcome"] == "finished"

        client.threads.update_state(thread, {"todos": [*values["todos"], *items("e")]})
        client.runs.wait(thread, "until_done", input=user("One more."))
        values = repository.values_of(thread)
        assert statuses(values["todos"]) == ["completed"] * 3
        assert values["todo_loop"]["outcome"] == "finished"

    def test_an_invalid_list_is_refused(self, repository: Server) -> None:
        """The error has the reason, and the thread is not changed."""
        client, thread = repository.client, repository.new_thread()
        client.runs.wait(thread, "until_done", input=user("Begin.", todos=items("a")))
        before = repository.state_of(thread)
        with pytest.raises(BadRequestError, match="string of 1 to 100000 characters"):
            client.threads.update_state(thread, {"todos": items("")})
        assert repository.state_of(thread) == before

    def test_an_invalid_record_of_the_loop_is_refused(self, repository: Server) -> None:
        """The error has the reason, and the next run is not affected."""
        client, thread = repository.client, repository.new_thread()
        answer: Any = client.runs.wait(
            thread, "until_done", input=user("- [ ] a", todo_loop="x"), raise_error=False
        )
        assert answer["__error__"]["message"].startswith("todo_loop is invalid")
        with pytest.raises(BadRequestError, match="todo_loop is invalid"):
            repository.state_of(thread)
        client.runs.wait(thread, "until_done", input=user("- [ ] a"))
        before = repository.state_of(thread)
        with pytest.raises(BadRequestError, match="todo_loop is invalid"):
            client.threads.update_state(thread, {"todo_loop": "x"})
        assert repository.state_of(thread) == before

    @pytest.mark.parametrize("graph", ["until_done", "coding_agent"])
    def test_an_overwritten_record_of_the_loop_counts_as_none(
        self, graph: str, repository: Server
    ) -> None:
        """LangGraph stores it unchecked; the thread can still be edited and run."""
        client, thread = repository.client, repository.new_thread()
        client.runs.wait(thread, graph, input=user("- [ ] a"))
        client.threads.update_state(thread, {"todo_loop": {"__overwrite__": "x"}})
        client.runs.wait(thread, graph, input=user("- [ ] b"))
        values = repository.values_of(thread)
        assert texts(values["todos"]) == ["b"]
        assert values["todo_loop"]["outcome"] == "finished"

    def test_a_command_waits_for_a_person_and_runs_in_the_directory_of_its_thread(
        self, repository: Server
    ) -> None:
        client, work = repository.client, repository.directory / "work"
        threads = [repository.new_thread() for _ in range(2)]
        for thread in threads:
            message = user("- [ ] Here: `pwd > here`")
            client.runs.wait(thread, "coding_agent", input=message)
            assert repository.status_of(thread) == "interrupted"
        assert list(work.rglob("here")) == []
        for thread in threads:
            client.runs.wait(thread, "coding_agent", command=APPROVE)
            assert statuses(repository.values_of(thread)["todos"]) == ["completed"]
            assert (work / thread / "here").read_text() == f"{work / thread}\n"

    def test_a_thread_is_not_edited_during_a_run(self, repository: Server) -> None:
        """The server refuses the edit, and the run continues."""
        client, thread = repository.client, repository.new_thread()
        work = repository.directory / "work" / thread
        step = "Wait: `touch waiting; until test -e go; do sleep 0.05; done`"
        client.runs.wait(thread, "coding_agent", input=user(f"- [ ] {step}"))
        run = client.runs.create(thread, "coding_agent", command=APPROVE)
        wait_for_file(work / "waiting")
        with pytest.raises(ConflictError):
            client.threads.update_state(thread, {"todos": []})
        (work / "go").touch()
        client.runs.join(thread, run["run_id"])
        assert repository.values_of(thread)["todos"] == to_client_todos(
            items(step, status="completed")
        )

    def test_a_fork_has_its_own_list(self, repository: Server) -> None:
        """It starts at an earlier checkpoint with its own list; the first branch keeps its list."""
        client, thread = repository.client, repository.new_thread()
        client.runs.wait(thread, "until_done", input=user("- [ ] a\n- [ ] b"))
        tip: Any = repository.state_of(thread)
        assert statuses(tip["values"]["todos"]) == ["completed", "completed"]
        history: Any = client.threads.get_history(thread, limit=100)
        for moment in history:
            messages = moment["values"].get("messages", [])
            assert retold(messages) == from_client_todos(moment["values"].get("todos", []))
        moment = next(
            past
            for past in history
            if past["next"] == ["agent"]
            and statuses(past["values"].get("todos", [])) == ["in_progress", "not_started"]
        )

        fork: Any = client.threads.update_state(
            thread, {"todos": items("c", "d", "e")}, checkpoint=moment["checkpoint"]
        )
        client.runs.wait(thread, "until_done", input=None, checkpoint=fork["checkpoint"])
        branch = repository.values_of(thread)
        assert texts(branch["todos"]) == ["c", "d", "e"]
        assert statuses(branch["todos"]) == ["completed"] * 3

        again: Any = client.runs.wait(
            thread,
            "until_done",
            input=user("Another way.", todos=items("f")),
            checkpoint_id=moment["checkpoint"]["checkpoint_id"],
        )
        assert again["todos"] == to_client_todos(items("f", status="completed"))
        kept: Any = client.threads.get_state(thread, checkpoint=tip["checkpoint"])
        assert kept["values"] == tip["values"]


class TestContext:
    """What a client may set for one run."""

    @pytest.mark.parametrize("graph", ["coding_agent", "notes", "until_done"])
    def test_it_is_in_the_schemas_of_the_assistant(self, graph: str, repository: Server) -> None:
        assistants: Any = repository.client.assistants
        (assistant,) = assistants.search(graph_id=graph)
        schema = assistants.get_schemas(assistant["assistant_id"])["context_schema"]
        assert not schema["additionalProperties"]
        ((name, field),) = schema["properties"].items()
        assert name == "max_continuations"
        assert field["description"].startswith("Maximum number of continuations")

    @pytest.mark.parametrize("graph", ["coding_agent", "until_done"])
    def test_it_is_that_of_one_run(self, graph: str, repository: Server) -> None:
        """The next run has the default again."""
        client, thread = repository.client, repository.new_thread()
        message = user("- [ ] a\n- [ ] b\n- [ ] c\n- [ ] d")
        client.runs.wait(thread, graph, input=message, context={"max_continuations": 0})
        values = repository.values_of(thread)
        assert values["todo_loop"]["outcome"] == "limit_in_turn"
        assert "completed" in statuses(values["todos"])
        client.runs.wait(thread, graph, input=user("Go on."))
        values = repository.values_of(thread)
        assert values["todo_loop"]["outcome"] == "finished"

    @pytest.mark.parametrize(
        ("context", "given"),
        [
            ({"model": "large"}, "'large'"),
            ({"max_continuations": "5"}, "'5'"),
            ({"max_continuations": 101}, "101"),
        ],
    )
    def test_a_wrong_one_is_refused(
        self, context: dict[str, Any], given: str, repository: Server
    ) -> None:
        """The error names the key, the value and what is allowed, and nothing runs."""
        client, thread = repository.client, repository.new_thread()
        (key,) = context
        reason = rf"context\['{key}'\] is invalid: .*, got {given}; .*Allowed: max_continuations"
        with pytest.raises(UnprocessableEntityError, match=reason):
            client.runs.create(thread, "until_done", input=user("Begin."), context=context)
        with pytest.raises(UnprocessableEntityError, match=reason):
            client.assistants.create("until_done", context=context)
        assert client.runs.list(thread) == []

    def test_a_client_may_have_its_own_keys_in_configurable(self, repository: Server) -> None:
        """LangGraph's clients also send theirs there; a setting of the run is checked there too."""
        client, thread = repository.client, repository.new_thread()

        def run(**configurable: object) -> None:
            config: Any = {"configurable": configurable}
            client.runs.wait(thread, "until_done", input=user("- [ ] a"), config=config)

        run(user="me")
        assert repository.values_of(thread)["todo_loop"]["outcome"] == "finished"
        with pytest.raises(httpx.HTTPStatusError, match="422"):
            run(max_continuations="5")


class TestOtherOrigins:
    """A page of another origin cannot use the server."""

    def request(self, server: Server, graph: str) -> str:
        """A run in which the stand-in would create a file if it had a shell without approval."""
        path = server.directory / "touched"
        return json.dumps({"assistant_id": graph, "input": user(f"- [ ] Go: `touch {path}`")})

    @pytest.mark.parametrize("graph", ["until_done", "coding_agent"])
    @pytest.mark.parametrize("origin", ["https://example.com", "http://localhost:2024", "null"])
    def test_its_post_starts_no_run(self, graph: str, origin: str, repository: Server) -> None:
        """A browser sends plain text without a preflight request, and the server would parse it."""
        before = repository.client.threads.count()
        answer = httpx.post(
            f"{repository.url}/runs/wait",
            content=self.request(repository, graph),
            headers={"Origin": origin, "Content-Type": "text/plain"},
            timeout=LONG,
            trust_env=False,
        )
        assert answer.status_code == 403
        assert "access-control-allow-origin" not in answer.headers
        assert repository.client.threads.count() == before
        assert not (repository.directory / "touched").exists()

    def test_its_preflight_is_refused(self, repository: Server) -> None:
        assert preflight(repository, "https://example.com").status_code == 400

    def test_its_websocket_is_refused(self, repository: Server) -> None:
        """CORS does not cover WebSockets, which can start runs."""
        thread = repository.new_thread()
        url = f"{repository.url.replace('http', 'ws')}/threads/{thread}/stream/events"
        with connect(url, open_timeout=LONG, proxy=None):
            pass  # a client that is not a page may connect
        with (
            pytest.raises(InvalidStatus, match="403"),
            connect(url, open_timeout=LONG, origin=Origin("https://example.com"), proxy=None),
        ):
            pass

    @pytest.mark.parametrize("graph", ["until_done", "coding_agent"])
    def test_without_an_origin_no_command_runs_either(self, graph: str, repository: Server) -> None:
        """A person has to approve it first."""
        answer = httpx.post(
            f"{repository.url}/runs/wait",
            content=self.request(repository, graph),
            timeout=LONG,
            trust_env=False,
        )
        assert answer.status_code == 200
        assert not (repository.directory / "touched").exists()

    def test_a_page_of_an_allowed_origin_can_start_runs(self, repository: Server) -> None:
        origin = "http://localhost:3000"
        allowed = preflight(repository, origin)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == origin
        answer = httpx.post(
            f"{repository.url}/runs/wait",
            content=self.request(repository, "until_done"),
            headers={"Origin": origin, "Content-Type": "application/json"},
            timeout=LONG,
            trust_env=False,
        )
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == origin


def preflight(server: Server, origin: str) -> httpx.Response:
    """The preflight request of a browser for JSON from a page of another origin."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type, x-api-key",
    }
    return httpx.options(f"{server.url}/runs/wait", headers=headers, timeout=LONG, trust_env=False)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with this repository's `langgraph.json` and a token."""
    directory = tmp_path_factory.mktemp("guarded")
    shutil.copy(ROOT / "langgraph.json", directory)
    with serving(directory, TODO_TOKEN="open sesame") as server:
        yield server


class TestToken:
    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"Authorization": "Bearer open"},
            {"X-Api-Key": "open"},
            {"X-Auth-Scheme": "langsmith"},
        ],
    )
    def test_without_it_nothing_can_be_read_or_run(
        self, headers: dict[str, str], guarded: Server
    ) -> None:
        """A caller who claims to be LangSmith's Studio is refused too."""
        for path in ("/threads/search", "/runs/wait", "/assistants/search"):
            answer = httpx.post(
                f"{guarded.url}{path}", json={}, headers=headers, timeout=LONG, trust_env=False
            )
            assert answer.status_code == 401

    def test_with_it_a_run_goes_to_its_end(self, guarded: Server) -> None:
        """LangGraph's clients send the token as their API key."""
        thread = guarded.new_thread()
        guarded.client.runs.wait(thread, "until_done", input=user("- [ ] Think"))
        assert statuses(guarded.values_of(thread)["todos"]) == ["completed"]

    def test_it_can_be_a_bearer_token(self, guarded: Server) -> None:
        answer = httpx.post(
            f"{guarded.url}/threads/search",
            json={},
            headers={"Authorization": "Bearer open sesame"},
            timeout=LONG,
            trust_env=False,
        )
        assert answer.status_code == 200


def test_a_missing_working_directory_is_an_error_at_start(tmp_path: Path) -> None:
    shutil.copy(ROOT / "langgraph.json", tmp_path)
    missing = str(tmp_path / "missing")
    reason = f"TODO_WORKDIR must name an existing directory, got '{missing}'"
    with (
        pytest.raises(AssertionError, match=re.escape(reason)),
        serving(tmp_path, TODO_WORKDIR=missing),
    ):
        pass


def retold(messages: list[dict[str, Any]]) -> Any:
    """Rebuild the list of a thread from its history, in the server's JSON."""
    results = [message for message in messages if message["type"] == "tool"]
    return todos_from_messages([ToolMessage(**message) for message in results])


GRACE = pytest.mark.parametrize("graph", ["grace", "grace_agent"])
ASK = pytest.mark.parametrize("graph", ["ask", "ask_agent"])


class TestGracePeriod:
    @GRACE
    def test_a_run_continues_after_it(self, graph: str, served: Server) -> None:
        """The stream has the seconds of the countdown."""
        thread = served.new_thread()
        stream = served.client.runs.stream(
            thread, graph, input=user("- [ ] a\n- [ ] b"), stream_mode="custom"
        )
        events = [part.data for part in stream if part.event == "custom"]
        countdown = [event for event in events if event["type"] == "todo_countdown"]
        assert [event["seconds"] for event in countdown] == [3, 2, 1]
        values = served.values_of(thread)
        assert len(continuations(values)) == 1
        assert values["todo_loop"]["outcome"] == "finished"

    @GRACE
    def test_a_cancelled_run_sends_no_continuation(self, graph: str, served: Server) -> None:
        """The thread is at the end of the agent's answer, and resumes from there."""
        client, thread = served.client, served.new_thread()
        run, events = "", []
        stream = client.runs.stream(
            thread, f"long_{graph}", input=user("- [ ] a\n- [ ] b"), stream_mode="custom"
        )
        for part in stream:
            if part.event == "metadata":
                run = part.data["run_id"]
            elif part.event == "custom":
                events.append(part.data)
                if part.data.get("seconds") == LONG - 1:
                    client.runs.cancel(thread, run, wait=True)
        assert client.runs.get(thread, run)["status"] == "interrupted"
        assert [event["type"] for event in events].count("todo_loop") == 0
        state = served.state_of(thread)
        assert continuations(state["values"]) == []
        assert state["values"]["messages"][-1]["content"] == "1 of 2 steps are finished so far."
        assert statuses(state["values"]["todos"]) == ["completed", "in_progress"]

        client.runs.wait(thread, graph, input=None)
        values = served.values_of(thread)
        assert len(continuations(values)) == 1
        assert statuses(values["todos"]) == ["completed", "completed"]
        assert values["todo_loop"]["outcome"] == "finished"

    @GRACE
    def test_a_new_message_replaces_the_continuation(self, graph: str, served: Server) -> None:
        """With `multitask_strategy="interrupt"` only the new message is sent."""
        client, thread = served.client, served.new_thread()
        first, second = "", ""
        stream = client.runs.stream(
            thread, f"long_{graph}", input=user("- [ ] a\n- [ ] b"), stream_mode="custom"
        )
        for part in stream:
            if part.event == "metadata":
                first = part.data["run_id"]
            elif part.event == "custom" and part.data.get("seconds") == LONG:
                second = client.runs.create(
                    thread,
                    graph,
                    input=user("Mind the gap."),
                    multitask_strategy="interrupt",
                )["run_id"]
        assert second
        client.runs.join(thread, second)
        assert client.runs.get(thread, first)["status"] == "interrupted"
        assert client.runs.get(thread, second)["status"] == "success"
        values = served.values_of(thread)
        assert continuations(values) == []
        assert users_messages(values) == ["- [ ] a\n- [ ] b", "Mind the gap."]
        assert statuses(values["todos"]) == ["completed", "completed"]
        assert values["todo_loop"]["outcome"] == "finished"


class TestAsking:
    def asked(self, served: Server, graph: str) -> str:
        """Create a thread that waits for an answer."""
        thread = served.new_thread()
        served.client.runs.wait(thread, graph, input=user("- [ ] a\n- [ ] b"))
        assert served.status_of(thread) == "interrupted"
        question = questions(served, thread)[0]
        assert question["type"] == "todo_continue"
        assert question["status"] == "📋 1/2"
        assert continuations(served.values_of(thread)) == []
        return thread

    def answered(self, served: Server, graph: str, answer: object) -> dict[str, Any]:
        thread = self.asked(served, graph)
        served.client.runs.wait(thread, graph, command={"resume": answer})
        assert served.status_of(thread) == "idle"
        return dict(served.values_of(thread))

    @ASK
    @pytest.mark.parametrize("answer", [True, "yes", {"decisions": [{"type": "approve"}]}])
    def test_yes_sends_the_agent_back_to_work(
        self, answer: object, graph: str, served: Server
    ) -> None:
        values = self.answered(served, graph, answer)
        assert len(continuations(values)) == 1
        assert values["todo_loop"]["outcome"] == "finished"

    @ASK
    @pytest.mark.parametrize("answer", [False, "no", {"decisions": [{"type": "reject"}]}])
    def test_no_ends_the_run(self, answer: object, graph: str, served: Server) -> None:
        """The list is unchanged."""
        values = self.answered(served, graph, answer)
        assert continuations(values) == []
        assert statuses(values["todos"]) == ["completed", "in_progress"]
        assert values["todo_loop"]["outcome"] == "declined"

    @ASK
    def test_a_message_is_the_users_own(self, graph: str, served: Server) -> None:
        """No continuation is sent."""
        values = self.answered(served, graph, "Go on, but slowly.")
        assert continuations(values) == []
        assert users_messages(values)[1:] == ["Go on, but slowly."]
        assert values["todo_loop"]["outcome"] == "finished"

    @ASK
    def test_an_unreadable_answer_is_asked_again(self, graph: str, served: Server) -> None:
        thread = self.asked(served, graph)
        served.client.runs.wait(thread, graph, command={"resume": {"a": "riddle"}})
        assert questions(served, thread)[0]["question"].startswith("That could not be read.")
        served.client.runs.wait(thread, graph, command={"resume": "yes"})
        assert served.values_of(thread)["todo_loop"]["outcome"] == "finished"


def questions(server: Server, thread: str) -> list[dict[str, Any]]:
    tasks = server.state_of(thread)["tasks"]
    return [interrupt["value"] for task in tasks for interrupt in task["interrupts"]]


def test_a_fork_of_a_delta_state_can_be_read_and_continued(served: Server) -> None:
    """The server passes the earlier messages as dicts."""
    client, thread = served.client, served.new_thread()
    client.runs.wait(thread, "delta", input=user("- [ ] a\n- [ ] b"))
    history: Any = client.threads.get_history(thread, limit=100)
    moment = next(
        past
        for past in history
        if past["next"] == ["agent"] and statuses(past["values"]["todos"])[0] == "in_progress"
    )
    fork: Any = client.threads.update_state(
        thread, {"todos": items("c")}, checkpoint=moment["checkpoint"]
    )
    assert served.values_of(thread)["todos"] == items("c")
    client.runs.wait(thread, "delta", input=None, checkpoint=fork["checkpoint"])
    values: Any = served.values_of(thread)
    assert values["todos"] == items("c", status="completed") == retold(values["messages"])
    assert values["messages"][: len(moment["values"]["messages"])] == moment["values"]["messages"]
    assert len(client.threads.get_history(thread, limit=100)) > len(values["messages"])


def test_blocking_calls_would_be_reported(served: Server) -> None:
    """So the other tests would detect any."""
    thread = served.new_thread()
    answer = served.client.runs.wait(thread, "blocking", input=user("Block."), raise_error=False)
    assert isinstance(answer, dict)
    assert answer["__error__"]["error"] == "BlockingError"
    wait_for(lambda: served.blocking_calls == {CONTROL}, "the report")
