"""The graphs on LangGraph's server, used through its SDK and by web pages."""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain_core.messages import ToolMessage
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import UnprocessableEntityError

from tests.server import ROOT, Server, serving, statuses, user
from tests.support import items
from tests.waiting import LONG, wait_for
from todo_tools import todos_from_messages
from todo_tools._list.formats import from_client_todos
from todo_tools.clients import to_client_todos

pytestmark = pytest.mark.slow

CONFIG = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
CONTROL = "os.readlink"
"""The deliberate blocking call in `tests.served`."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with this repository's `langgraph.json` and the graphs of `tests.served`.

    It must report no blocking call but the deliberate one.
    """
    directory = tmp_path_factory.mktemp("served")
    graces = ("grace", "grace_agent", "long_grace", "long_grace_agent")
    names = (*graces, "ask", "ask_agent", "blocking", "delta", "records")
    graphs = {name: f"./tests/served.py:{name}" for name in names}
    config = {**CONFIG, "graphs": {**CONFIG["graphs"], **graphs}}
    (directory / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
    with serving(directory) as server:
        yield server
    assert server.blocking_calls <= {CONTROL}


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
    def test_every_graph_of_it_runs(self, served: Server) -> None:
        """After a message it runs to its end; none has a shell."""
        found = served.client.assistants.search(limit=100)
        assert {assistant["graph_id"] for assistant in found} > set(CONFIG["graphs"])
        assert set(CONFIG["graphs"]) == {"each", "notes", "until_done"}
        for graph in CONFIG["graphs"]:
            thread = served.new_thread()
            served.client.runs.wait(thread, graph, input=user("- [ ] Think it over"))
            assert served.status_of(thread) == "idle"
            assert len(served.values_of(thread)["messages"]) > 1

    def test_a_run_is_continued_to_the_end(self, served: Server) -> None:
        """Each change of the list and each decision is streamed."""
        thread = served.new_thread()
        steps = ["Think", "Measure", "Think again", "Look"]
        checklist = "\n".join(f"- [ ] {step}" for step in steps)
        stream = served.client.runs.stream(
            thread, "until_done", input=user(checklist), stream_mode="custom"
        )
        events = [part.data for part in stream if part.event == "custom"]
        values = served.values_of(thread)
        assert statuses(values["todos"]) == ["completed"] * 4
        assert values["todo_outcome"] == "finished"
        assert values["todo_loop"]["in_turn"] == 1
        assert continuations(values) == []  # otherwise deep-agents-ui would show them as the user's
        assert users_messages(values) == [checklist]

        lists = [event for event in events if event["type"] == "todos"]
        assert texts(lists[0]["todos"]) == steps
        assert lists[-1]["todos"] == from_client_todos(values["todos"])
        assert values["todos"][0] == {"content": "Think", "status": "completed"}
        assert lists[-1]["status"] == "✓ Done (4 items)"
        assert {"📋 0/4", "📋 1/4", "📋 2/4", "📋 3/4"} < {event["status"] for event in lists}
        decisions = [event["outcome"] for event in events if event["type"] == "todo_loop"]
        assert decisions == [None, "finished"]

    def test_a_fork_has_its_own_list(self, served: Server) -> None:
        """It starts at an earlier checkpoint with its own list; the first branch keeps its list."""
        client, thread = served.client, served.new_thread()
        client.runs.wait(thread, "until_done", input=user("- [ ] a\n- [ ] b"))
        tip: Any = served.state_of(thread)
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
        branch = served.values_of(thread)
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


OVERWRITES = [{"__overwrite__": "x"}, {"type": "__overwrite__", "value": "x"}]


class TestWrites:
    """What a client may not write, because it would lead around a check."""

    @pytest.mark.parametrize("value", OVERWRITES)
    def test_no_channel_is_overwritten(self, value: object, served: Server) -> None:
        """Such a value would be stored unchecked; refused, it leaves the thread as it was."""
        client, thread = served.client, served.new_thread()
        client.runs.wait(thread, "until_done", input=user("- [ ] a"))
        before = served.state_of(thread)
        writes: list[Any] = [
            {"input": user("- [ ] b", todos=value)},
            {"command": {"update": {"todos": value}}},
            {"command": {"update": [["todos", value]]}},
        ]
        for write in writes:
            with pytest.raises(UnprocessableEntityError, match="'todos' may not be overwritten"):
                client.runs.create(thread, "until_done", **write)
        with pytest.raises(UnprocessableEntityError, match="'todos' may not be overwritten"):
            client.threads.update_state(thread, {"todos": value})
        assert served.state_of(thread) == before
        assert served.status_of(thread) == "idle"

    @pytest.mark.parametrize(
        "goto", ["tools", ["__end__", "tools"], {"node": "tools", "input": []}]
    )
    def test_no_run_jumps_to_a_node(self, goto: Any, served: Server) -> None:
        client, thread = served.client, served.new_thread()
        with pytest.raises(UnprocessableEntityError, match="'goto' may only be '__end__'"):
            client.runs.create(thread, "until_done", command={"goto": goto})
        assert client.runs.list(thread) == []

    def test_no_values_choose_the_next_node(self, served: Server) -> None:
        """`create_agent` reads it from the state, and fails if no edge leads there."""
        client, thread = served.client, served.new_thread()
        client.runs.wait(thread, "until_done", input=user("- [ ] a"))
        with pytest.raises(UnprocessableEntityError, match="'jump_to' is written by middleware"):
            client.threads.update_state(thread, {"messages": [], "jump_to": "tools"})
        with pytest.raises(UnprocessableEntityError, match="'jump_to' is written by middleware"):
            client.runs.create(thread, "until_done", input=user("- [ ] b", jump_to="tools"))

    @pytest.mark.parametrize("update", [{"branch:to:tools": None}, [["__start__", {"todos": "x"}]]])
    def test_no_update_names_a_channel_of_langgraph(self, update: Any, served: Server) -> None:
        """It would start a node, or lead around the checks of the graph's own channels."""
        client, thread = served.client, served.new_thread()
        command: Any = {"update": update}
        with pytest.raises(UnprocessableEntityError, match="is a channel of LangGraph itself"):
            client.runs.create(thread, "until_done", command=command)
        with pytest.raises(UnprocessableEntityError, match="is a channel of LangGraph itself"):
            client.threads.update_state(thread, update)
        assert client.runs.list(thread) == []

    def test_nobody_writes_in_the_name_of_a_node(self, served: Server) -> None:
        """Neither with an edit of a thread nor with the steps of a new one."""
        client, thread = served.client, served.new_thread()
        client.runs.wait(thread, "until_done", input=user("- [ ] a"))
        before = served.state_of(thread)
        with pytest.raises(UnprocessableEntityError, match="'as_node' is not allowed"):
            client.threads.update_state(thread, {"todos": []}, as_node="agent")
        step: Any = {"updates": [{"values": {"todos": []}, "as_node": "agent"}]}
        with pytest.raises(UnprocessableEntityError, match="'supersteps' is not allowed"):
            client.threads.create(graph_id="until_done", supersteps=[step])
        assert served.state_of(thread) == before


class TestContext:
    """What a client may set for one run."""

    def test_it_is_that_of_one_run(self, served: Server) -> None:
        """The next run has the default again."""
        client, thread = served.client, served.new_thread()
        message = user("- [ ] a\n- [ ] b\n- [ ] c\n- [ ] d")
        client.runs.wait(thread, "until_done", input=message, context={"max_continuations": 0})
        values = served.values_of(thread)
        assert values["todo_outcome"] == "limit_in_turn"
        assert "completed" in statuses(values["todos"])
        client.runs.wait(thread, "until_done", input=user("Go on."))
        values = served.values_of(thread)
        assert values["todo_outcome"] == "finished"

    def test_a_client_may_have_its_own_keys_in_configurable(self, served: Server) -> None:
        """LangGraph's clients also send theirs there; a setting of the run is checked there too."""
        client, thread = served.client, served.new_thread()

        def run(**configurable: object) -> None:
            config: Any = {"configurable": configurable}
            client.runs.wait(thread, "until_done", input=user("- [ ] a"), config=config)

        run(user="me")
        assert served.values_of(thread)["todo_outcome"] == "finished"
        with pytest.raises(httpx.HTTPStatusError, match="422"):
            run(max_continuations="5")
        with pytest.raises(UnprocessableEntityError, match=r"'model'\] is invalid"):
            client.runs.create(thread, "until_done", input={}, context={"model": "large"})


def retold(messages: list[dict[str, Any]]) -> Any:
    """Rebuild the list of a thread from its history, in the server's JSON."""
    results = [message for message in messages if message["type"] == "tool"]
    return todos_from_messages([ToolMessage(**message) for message in results])


def function_of(page: str, heading: str, name: str) -> Any:
    """A function of the first block below a heading of the documentation."""
    _, after = (ROOT / "docs" / page).read_text(encoding="utf-8").split(f"## {heading}")
    names: dict[str, Any] = {}
    exec(after.split("```python\n")[1].split("```")[0], names)
    return names[name]


@pytest.mark.parametrize("graph", ["delta", "grace", "grace_agent"])
def test_an_item_is_done_again(graph: str, served: Server) -> None:
    """Its run begins with the list of that moment; the first branch stays, and can go on."""
    client, thread = served.client, served.new_thread()
    client.runs.wait(thread, graph, input=user("- [ ] a\n- [ ] b"))
    first = served.state_of(thread)
    known: Any = client.threads.get_history(thread, limit=100)
    do_again = function_of("serve.md", "Do an item again", "do_again")
    do_again(client, thread, graph, 1, "In another way.")
    history: Any = client.threads.get_history(thread, limit=100)
    assert history[-len(known) :] == known
    now = served.state_of(thread)["values"]
    assert users_messages(now) == ["- [ ] a\n- [ ] b", "In another way."]
    begun = [s for s in history if users_messages(s["values"])[-1:] == ["In another way."]][-1]
    assert statuses(begun["values"]["todos"]) == ["in_progress", "not_started"]
    assert statuses(now["todos"]) == ["completed", "completed"]
    client.runs.wait(thread, graph, input=user("Go on."), checkpoint=first["checkpoint"])
    assert users_messages(served.values_of(thread)) == ["- [ ] a\n- [ ] b", "Go on."]


def test_another_client_goes_on_with_a_cancelled_run(served: Server) -> None:
    """No item that had ended runs again, and only what was in flight is repeated."""
    thread, todos = served.new_thread(), [f"record {number}" for number in range(50)]
    log = served.directory / "records"
    run, seen = "", defaultdict[str, list[str]](list)
    stream = served.client.runs.stream(
        thread,
        "records",
        input=user("Check the records.", todos=todos),
        stream_mode="custom",
        durability="sync",
    )
    for part in stream:
        if part.event == "metadata":
            run = part.data["run_id"]
        elif part.event == "custom" and part.data["type"] == "todo_item":
            seen[part.data["status"]].append(part.data["text"])
            if len(seen["in_progress"]) == 20:
                served.client.runs.cancel(thread, run, wait=True)
    assert served.client.runs.get(thread, run)["status"] == "interrupted"
    before = log.read_text(encoding="utf-8").splitlines()
    assert len(before) < len(todos)

    with get_sync_client(url=served.url) as other:
        function_of("item-runs.md", "On a server", "go_on")(other, thread, "records")
    values = served.values_of(thread)
    assert statuses(values["todos"]) == ["completed"] * len(todos)
    assert sorted(report["text"] for report in values["reports"].values()) == sorted(todos)
    after = log.read_text(encoding="utf-8").splitlines()[len(before) :]
    assert {*seen["completed"]}.isdisjoint(after)
    assert {*before, *after} == {*todos}
    assert len(before) + len(after) - len(todos) <= 3


GRACE = pytest.mark.parametrize("graph", ["grace", "grace_agent"])
ASK = pytest.mark.parametrize("graph", ["ask", "ask_agent"])


class TestGracePeriod:
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
        assert values["todo_outcome"] == "finished"


class TestAsking:
    @ASK
    @pytest.mark.parametrize("answer", [True, "yes", {"decisions": [{"type": "approve"}]}])
    def test_yes_sends_the_agent_back_to_work(
        self, answer: object, graph: str, served: Server
    ) -> None:
        thread = served.new_thread()
        served.client.runs.wait(thread, graph, input=user("- [ ] a\n- [ ] b"))
        assert served.status_of(thread) == "interrupted"
        question = questions(served, thread)[0]
        assert question["type"] == "todo_continue"
        assert question["status"] == "📋 1/2"
        assert continuations(served.values_of(thread)) == []
        served.client.runs.wait(thread, graph, command={"resume": answer})
        assert served.status_of(thread) == "idle"
        values = served.values_of(thread)
        assert len(continuations(values)) == 1
        assert values["todo_outcome"] == "finished"


def questions(server: Server, thread: str) -> list[dict[str, Any]]:
    tasks = server.state_of(thread)["tasks"]
    return [interrupt["value"] for task in tasks for interrupt in task["interrupts"]]


def test_blocking_calls_would_be_reported(served: Server) -> None:
    """So the other tests would detect any."""
    thread = served.new_thread()
    answer = served.client.runs.wait(thread, "blocking", input=user("Block."), raise_error=False)
    assert isinstance(answer, dict)
    assert answer["__error__"]["error"] == "BlockingError"
    wait_for(lambda: served.blocking_calls == {CONTROL}, "the report")
