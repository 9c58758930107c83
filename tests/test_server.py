"""The graphs on LangGraph's server, used through its SDK and by web pages."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain_core.messages import ToolMessage
from langgraph_sdk.errors import BadRequestError, UnprocessableEntityError

from tests.server import ROOT, Server, serving, statuses, user
from tests.support import items
from tests.waiting import LONG, wait_for
from todo_tools import todos_from_messages
from todo_tools.clients import from_client_todos, to_client_todos

pytestmark = pytest.mark.slow

CONTROL = "os.readlink"
"""The deliberate blocking call in `tests.served`."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with this repository's `langgraph.json`; it must report no blocking call."""
    directory = tmp_path_factory.mktemp("repository")
    shutil.copy(ROOT / "langgraph.json", directory)
    with serving(directory) as server:
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


def texts(todos: list[dict[str, str]]) -> list[str]:
    return [todo["text"] for todo in from_client_todos(todos)]


RARELY = "0 0 29 2 *"
"""The schedule of a cron that does not run during a test."""


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
        """After a message it runs to its end; none has a shell."""
        config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
        found = repository.client.assistants.search(limit=100)
        assert {assistant["graph_id"] for assistant in found} == set(config["graphs"])
        assert set(config["graphs"]) == {"notes", "until_done"}
        for graph in config["graphs"]:
            thread = repository.new_thread()
            repository.client.runs.wait(thread, graph, input=user("- [ ] Think it over"))
            assert repository.status_of(thread) == "idle"
            assert len(repository.values_of(thread)["messages"]) > 1

    def test_mcp_clients_read_what_each_graph_does(self, repository: Server) -> None:
        """Each graph is a tool with its name, a description and the messages it takes."""
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accepted = {"accept": "application/json, text/event-stream"}
        answer = httpx.post(f"{repository.url}/mcp", json=asked, headers=accepted).json()
        tools = {tool["title"]: tool for tool in answer["result"]["tools"]}
        config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
        assert {name: tool["description"] for name, tool in tools.items()} == {
            name: graph["description"] for name, graph in config["graphs"].items()
        }
        assert all("messages" in tool["inputSchema"]["properties"] for tool in tools.values())

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


OVERWRITES = [{"__overwrite__": "x"}, {"type": "__overwrite__", "value": "x"}]


class TestWrites:
    """What a client may not write, because it would lead around a check."""

    @pytest.mark.parametrize("value", OVERWRITES)
    def test_no_channel_is_overwritten(self, value: object, repository: Server) -> None:
        """Such a value would be stored unchecked; refused, it leaves the thread as it was."""
        client, thread = repository.client, repository.new_thread()
        client.runs.wait(thread, "until_done", input=user("- [ ] a"))
        before = repository.state_of(thread)
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
        with pytest.raises(UnprocessableEntityError, match="'todos' may not be overwritten"):
            client.crons.create("until_done", schedule=RARELY, input=user("c", todos=value))
        assert repository.state_of(thread) == before
        assert repository.status_of(thread) == "idle"

    @pytest.mark.parametrize(
        "goto", ["tools", ["__end__", "tools"], {"node": "tools", "input": []}]
    )
    def test_no_run_jumps_to_a_node(self, goto: Any, repository: Server) -> None:
        client, thread = repository.client, repository.new_thread()
        with pytest.raises(UnprocessableEntityError, match="'goto' may only be '__end__'"):
            client.runs.create(thread, "until_done", command={"goto": goto})
        assert client.runs.list(thread) == []

    def test_no_values_choose_the_next_node(self, repository: Server) -> None:
        """`create_agent` reads it from the state, and fails if no edge leads there."""
        client, thread = repository.client, repository.new_thread()
        client.runs.wait(thread, "until_done", input=user("- [ ] a"))
        with pytest.raises(UnprocessableEntityError, match="'jump_to' is written by middleware"):
            client.threads.update_state(thread, {"messages": [], "jump_to": "tools"})
        with pytest.raises(UnprocessableEntityError, match="'jump_to' is written by middleware"):
            client.runs.create(thread, "until_done", input=user("- [ ] b", jump_to="tools"))

    @pytest.mark.parametrize(
        "update",
        [
            {"branch:to:tools": None},
            [["branch:to:tools", None]],
            {"__start__": {"todos": {"__overwrite__": "x"}}},
            [["__start__", {"todos": {"__overwrite__": "x"}}]],
        ],
        ids=str,
    )
    def test_no_update_names_a_channel_of_langgraph(self, update: Any, repository: Server) -> None:
        """It would start a node, or lead around the checks of the graph's own channels."""
        client, thread = repository.client, repository.new_thread()
        command: Any = {"update": update}
        with pytest.raises(UnprocessableEntityError, match="is a channel of LangGraph itself"):
            client.runs.create(thread, "until_done", command=command)
        with pytest.raises(UnprocessableEntityError, match="is a channel of LangGraph itself"):
            client.threads.update_state(thread, update)
        assert client.runs.list(thread) == []

    def test_the_result_of_a_run_can_be_sent_back(self, repository: Server) -> None:
        """It may have questions beside the channels; only a command would write them."""
        client, thread = repository.client, repository.new_thread()
        result: Any = {**user("- [ ] a"), "__interrupt__": []}
        client.runs.wait(thread, "until_done", input=result)
        client.threads.update_state(thread, {"messages": [], "__interrupt__": []})
        with pytest.raises(UnprocessableEntityError, match="'__interrupt__' may not be written"):
            client.runs.create(thread, "until_done", command={"update": {"__interrupt__": []}})

    @pytest.mark.parametrize("form", [dict, list])
    def test_an_update_may_name_the_channels_of_the_graph(
        self, form: Any, repository: Server
    ) -> None:
        """As values by channel, and as pairs."""
        client, thread = repository.client, repository.new_thread()
        client.runs.wait(thread, "until_done", input=user("- [ ] a"))
        update = {"messages": user("Go on.")["messages"], "todos": items("b")}
        client.runs.wait(thread, "until_done", command={"update": form(update.items())})
        values = repository.values_of(thread)
        assert (texts(values["todos"]), users_messages(values)[-1]) == (["b"], "Go on.")

    def test_a_run_may_jump_to_its_end(self, repository: Server) -> None:
        """Interfaces mark a thread as resolved in this way."""
        client, thread = repository.client, repository.new_thread()
        run = user("- [ ] a")
        client.runs.wait(thread, "until_done", input=run, interrupt_before=["tools"])
        client.runs.wait(thread, "until_done", command={"goto": "__end__"}, interrupt_before="*")
        assert repository.status_of(thread) in ("idle", "interrupted")

    def test_nobody_writes_in_the_name_of_a_node(self, repository: Server) -> None:
        """Neither with an edit of a thread nor with the steps of a new one."""
        client, thread = repository.client, repository.new_thread()
        client.runs.wait(thread, "until_done", input=user("- [ ] a"))
        before = repository.state_of(thread)
        with pytest.raises(UnprocessableEntityError, match="'as_node' is not allowed"):
            client.threads.update_state(thread, {"todos": []}, as_node="agent")
        step: Any = {"updates": [{"values": {"todos": []}, "as_node": "agent"}]}
        with pytest.raises(UnprocessableEntityError, match="'supersteps' is not allowed"):
            client.threads.create(graph_id="until_done", supersteps=[step])
        assert repository.state_of(thread) == before

    @pytest.mark.parametrize("end", ["%0A", "%0a"])
    def test_a_line_break_after_the_path_leads_round_no_check(
        self, repository: Server, end: str
    ) -> None:
        """The server's own routes accept it."""
        client, thread = repository.client, repository.new_thread()
        client.runs.wait(thread, "until_done", input=user("- [ ] a"))
        answer = httpx.post(
            f"{repository.url}/threads/{thread}/state{end}",
            json={"values": {"todos": []}, "as_node": "tools"},
            timeout=LONG,
            trust_env=False,
        )
        assert answer.status_code == 422
        assert "'as_node' is not allowed" in answer.text

    def test_what_is_not_json_is_refused(self, repository: Server) -> None:
        """So no check is led around by what only one of two parsers accepts."""
        thread = repository.new_thread()
        for body in (b"{", b'{"values": NaN}' * 2, b"[" * 100_000):
            answer = httpx.post(
                f"{repository.url}/threads/{thread}/state",
                content=body,
                timeout=LONG,
                trust_env=False,
            )
            assert answer.status_code == 422


class TestContext:
    """What a client may set for one run."""

    @pytest.mark.parametrize("graph", ["notes", "until_done"])
    def test_it_is_in_the_schemas_of_the_assistant(self, graph: str, repository: Server) -> None:
        assistants: Any = repository.client.assistants
        (assistant,) = assistants.search(graph_id=graph)
        schema = assistants.get_schemas(assistant["assistant_id"])["context_schema"]
        assert not schema["additionalProperties"]
        ((name, field),) = schema["properties"].items()
        assert name == "max_continuations"
        assert field["description"].startswith("Maximum number of continuations")

    def test_it_is_that_of_one_run(self, repository: Server) -> None:
        """The next run has the default again."""
        client, thread = repository.client, repository.new_thread()
        message = user("- [ ] a\n- [ ] b\n- [ ] c\n- [ ] d")
        client.runs.wait(thread, "until_done", input=message, context={"max_continuations": 0})
        values = repository.values_of(thread)
        assert values["todo_loop"]["outcome"] == "limit_in_turn"
        assert "completed" in statuses(values["todos"])
        client.runs.wait(thread, "until_done", input=user("Go on."))
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
        with pytest.raises(UnprocessableEntityError, match=reason):
            client.crons.create("until_done", schedule=RARELY, input={}, context=context)
        assert client.runs.list(thread) == []
        assert client.crons.search() == []

    def test_a_wrong_one_is_not_patched_into_a_cron(self, repository: Server) -> None:
        client = repository.client
        cron: Any = client.crons.create("until_done", schedule=RARELY, input={})
        with pytest.raises(UnprocessableEntityError, match="is invalid"):
            client.crons.update(cron["cron_id"], context={"model": "large"})
        client.crons.delete(cron["cron_id"])

    def test_the_event_protocol_takes_it_in_configurable(self, repository: Server) -> None:
        """A `context` there would be ignored, so it is refused; and no run starts."""
        client, thread = repository.client, repository.new_thread()

        def start(**settings: object) -> httpx.Response:
            params = {"assistant_id": "until_done", "input": user("- [ ] a"), **settings}
            message = {"id": 1, "method": "run.start", "params": params}
            return httpx.post(
                f"{repository.url}/threads/{thread}/commands",
                json=message,
                timeout=LONG,
                trust_env=False,
            )

        refused = start(context={"max_continuations": 5})
        assert refused.status_code == 422
        assert "put its keys into 'config.configurable'" in refused.text
        wrong = start(config={"configurable": {"max_continuations": "5"}})
        assert "context['max_continuations'] is invalid" in wrong.json()["message"]
        assert client.runs.list(thread) == []
        assert start(config={"configurable": {"max_continuations": 5}}).json()["type"] == "success"

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


def retold(messages: list[dict[str, Any]]) -> Any:
    """Rebuild the list of a thread from its history, in the server's JSON."""
    results = [message for message in messages if message["type"] == "tool"]
    return todos_from_messages([ToolMessage(**message) for message in results])


def do_again() -> Any:
    """The function of docs/serve.md."""
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    _, after = page.split("## Do an item again")
    names: dict[str, Any] = {}
    exec(after.split("```python\n")[1].split("```")[0], names)
    return names["do_again"]


@pytest.mark.parametrize("graph", ["delta", "grace", "grace_agent"])
def test_an_item_is_done_again(graph: str, served: Server) -> None:
    """Its run begins with the list of that moment; the first branch stays, and can go on."""
    client, thread = served.client, served.new_thread()
    client.runs.wait(thread, graph, input=user("- [ ] a\n- [ ] b"))
    first = served.state_of(thread)
    known: Any = client.threads.get_history(thread, limit=100)
    do_again()(client, thread, graph, 1, "In another way.")
    history: Any = client.threads.get_history(thread, limit=100)
    assert history[-len(known) :] == known
    now = served.state_of(thread)["values"]
    assert users_messages(now) == ["- [ ] a\n- [ ] b", "In another way."]
    begun = [s for s in history if users_messages(s["values"])[-1:] == ["In another way."]][-1]
    assert statuses(begun["values"]["todos"]) == ["in_progress", "not_started"]
    assert statuses(now["todos"]) == ["completed", "completed"]
    client.runs.wait(thread, graph, input=user("Go on."), checkpoint=first["checkpoint"])
    assert users_messages(served.values_of(thread)) == ["- [ ] a\n- [ ] b", "Go on."]


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


@pytest.mark.parametrize("graph", ["grace", "grace_agent"])
def test_an_overwritten_record_of_the_loop_counts_as_none(graph: str, served: Server) -> None:
    """A server without rules of its own stores it unchecked; the thread can still be used."""
    client, thread = served.client, served.new_thread()
    client.runs.wait(thread, graph, input=user("- [ ] a"))
    client.threads.update_state(thread, {"todo_loop": {"__overwrite__": "x"}})
    client.runs.wait(thread, graph, input=user("- [ ] b"))
    values = served.values_of(thread)
    assert texts(values["todos"]) == ["b"]
    assert values["todo_loop"]["outcome"] == "finished"


def test_blocking_calls_would_be_reported(served: Server) -> None:
    """So the other tests would detect any."""
    thread = served.new_thread()
    answer = served.client.runs.wait(thread, "blocking", input=user("Block."), raise_error=False)
    assert isinstance(answer, dict)
    assert answer["__error__"]["error"] == "BlockingError"
    wait_for(lambda: served.blocking_calls == {CONTROL}, "the report")
