"""Forking, time travel and resuming on every kind of checkpointer."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde._msgpack import STRICT_MSGPACK_ENABLED
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import StateSnapshot

from graphs.until_done import build_graph
from tests.support import BEGIN, Graph, edit, items, outcome_of, plan
from todo_tools import AutoContinue, DeltaTodoState, TodoState, todos_from_messages
from todo_tools.testing import ScriptedChatModel

STATES = pytest.mark.parametrize("state", [TodoState, DeltaTodoState])


@contextmanager
def memory_saver(_: Path, __: str) -> Iterator[BaseCheckpointSaver[Any]]:
    yield InMemorySaver()


@contextmanager
def sqlite_saver(path: Path, _: str) -> Iterator[BaseCheckpointSaver[Any]]:
    with SqliteSaver.from_conn_string(str(path / "threads.sqlite")) as saver:
        yield saver


@contextmanager
def postgres_saver(_: Path, uri: str) -> Iterator[BaseCheckpointSaver[Any]]:
    with PostgresSaver.from_conn_string(uri) as saver:
        saver.setup()
        yield saver


@asynccontextmanager
async def async_sqlite_saver(path: Path, _: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    async with AsyncSqliteSaver.from_conn_string(str(path / "threads.sqlite")) as saver:
        yield saver


@asynccontextmanager
async def async_postgres_saver(_: Path, uri: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    async with AsyncPostgresSaver.from_conn_string(uri) as saver:
        await saver.setup()
        yield saver


PERSISTENT = [sqlite_saver, pytest.param(postgres_saver, marks=pytest.mark.slow)]
SAVERS = pytest.mark.parametrize("open_saver", [memory_saver, *PERSISTENT])
ASYNC_SAVERS = pytest.mark.parametrize(
    "open_saver",
    [async_sqlite_saver, pytest.param(async_postgres_saver, marks=pytest.mark.slow)],
)


@pytest.fixture
def uri(request: pytest.FixtureRequest) -> str:
    """Start the server only for the tests that need one."""
    needed = request.node.get_closest_marker("slow")
    return str(request.getfixturevalue("postgres")) if needed else ""


def working_graph(saver: BaseCheckpointSaver[Any], state: Any) -> Graph:
    """An agent that plans two items, stops, starts the first, stops, and so on."""
    model = ScriptedChatModel(
        script=[
            plan("a", "b"),
            "Planned.",
            edit("start", 0),
            "Started.",
            edit("complete", 0),
            *["Half done."] * 9,
        ]
    )
    policy = AutoContinue(max_in_a_row=3)
    return build_graph(model, policy=policy, state_schema=state).compile(checkpointer=saver)


def just_started(snapshot: StateSnapshot) -> bool:
    """The checkpoint before the agent's turn in which the first item is in progress."""
    statuses = [todo["status"] for todo in snapshot.values.get("todos", [])]
    return snapshot.next == ("agent",) and statuses == ["in_progress", "not_started"]


def in_turn(values: dict[str, Any]) -> int:
    return int(values["todo_loop"].get("in_turn", 0))


@STATES
class TestSync:
    @SAVERS
    def test_time_travel_finds_the_list_of_every_moment(
        self, open_saver: Any, state: Any, tmp_path: Path, uri: str, config: RunnableConfig
    ) -> None:
        """At each checkpoint the message history gives the same list."""
        with open_saver(tmp_path, uri) as saver:
            graph = working_graph(saver, state)
            final = graph.invoke(BEGIN, config)
            assert [todo["status"] for todo in final["todos"]] == ["completed", "not_started"]
            history = list(graph.get_state_history(config))
        seen = {tuple(todo["status"] for todo in s.values.get("todos", [])) for s in history}
        assert seen == {
            (),
            ("not_started", "not_started"),
            ("in_progress", "not_started"),
            ("completed", "not_started"),
        }
        for snapshot in history:
            values = snapshot.values
            assert todos_from_messages(values.get("messages", [])) == values.get("todos", [])

    @SAVERS
    def test_a_fork_is_independent(
        self, open_saver: Any, state: Any, tmp_path: Path, uri: str, config: RunnableConfig
    ) -> None:
        """It has the list and the counters of its checkpoint; the first branch keeps its own."""
        with open_saver(tmp_path, uri) as saver:
            graph = working_graph(saver, state)
            final = graph.invoke(BEGIN, config)
            tip = graph.get_state(config).config
            moment = next(filter(just_started, graph.get_state_history(config)))
            fork = graph.update_state(moment.config, {"todos": items("c")})
            assert graph.get_state(fork).values["todos"] == items("c")
            assert in_turn(graph.get_state(fork).values) == in_turn(moment.values)
            branched = graph.invoke(None, fork)
            assert branched["todos"] == items("c")
            assert graph.get_state(tip).values["todos"] == final["todos"]

    @pytest.mark.parametrize("open_saver", PERSISTENT)
    def test_a_later_process_resumes_the_thread(
        self, open_saver: Any, state: Any, tmp_path: Path, uri: str, config: RunnableConfig
    ) -> None:
        """The checkpoints contain everything that it needs."""
        with open_saver(tmp_path, uri) as saver:
            graph = working_graph(saver, state)
            graph.invoke(BEGIN, config, interrupt_after=["auto_continue"])
        with open_saver(tmp_path, uri) as saver:
            model = ScriptedChatModel(script=lambda _: "Resumed.")
            policy = AutoContinue(max_in_a_row=3, max_idle=None)
            builder = build_graph(model, policy=policy, state_schema=state)
            final = builder.compile(checkpointer=saver).invoke(None, config)
        assert final["todos"] == items("a", "b")
        assert in_turn(final) == 3
        assert outcome_of(final) == "limit_in_a_row"


@STATES
@ASYNC_SAVERS
async def test_a_later_process_resumes_it_asynchronously(
    open_saver: Any, state: Any, tmp_path: Path, uri: str, config: RunnableConfig
) -> None:
    async with open_saver(tmp_path, uri) as saver:
        graph = working_graph(saver, state)
        await graph.ainvoke(BEGIN, config, interrupt_after=["auto_continue"])
    async with open_saver(tmp_path, uri) as saver:
        graph = working_graph(saver, state)
        await graph.aupdate_state(config, {"todos": items("b")})
        assert (await graph.aget_state(config)).values["todos"] == items("b")
        assert in_turn(await graph.ainvoke(None, config)) > 1


def test_an_edit_during_a_run_is_a_separate_branch(config: RunnableConfig) -> None:
    """A checkpointer takes no lock: the run continues with its own list, and neither is lost."""

    def answer(prompt: list[BaseMessage]) -> Any:
        if prompt[-1].type == "human":
            return plan("a")
        graph.update_state(config, {"todos": items("by hand")})
        return "Done."

    model = ScriptedChatModel(script=answer)
    policy = AutoContinue(max_in_turn=0)
    graph = build_graph(model, policy=policy).compile(checkpointer=InMemorySaver())
    assert graph.invoke(BEGIN, config)["todos"] == items("a")
    lists = [past.values.get("todos") for past in graph.get_state_history(config)]
    assert lists[0] == items("a")
    assert items("by hand") in lists


@STATES
def test_strict_serialization_gives_back_the_same_state(
    state: Any, tmp_path: Path, config: RunnableConfig
) -> None:
    """The state is plain data, so LangGraph's strict mode blocks none of it."""
    assert STRICT_MSGPACK_ENABLED
    with sqlite_saver(tmp_path, "") as saver:
        graph = working_graph(saver, state)
        final = graph.invoke(BEGIN, config)
    with sqlite_saver(tmp_path, "") as saver:
        read = working_graph(saver, state).get_state(config).values
    assert read["todos"] == final["todos"]
    assert read["todo_loop"] == final["todo_loop"]
    assert todos_from_messages(read["messages"]) == read["todos"]


def test_deltas_need_a_fifth_of_the_space(tmp_path: Path, config: RunnableConfig) -> None:
    """A run that starts and completes 20 items takes less than a fifth of the bytes."""
    sizes = {}
    for state in (TodoState, DeltaTodoState):
        steps = [edit(action, index) for index in range(20) for action in ("start", "complete")]
        written = plan(*(f"Step {n}" for n in range(20)))
        model = ScriptedChatModel(script=[written, *steps, "Done."])
        path = tmp_path / state.__name__
        path.mkdir()
        with sqlite_saver(path, "") as saver:
            graph = build_graph(model, state_schema=state).compile(checkpointer=saver)
            graph.invoke(BEGIN, config)
        sizes[state] = (path / "threads.sqlite").stat().st_size
    assert sizes[DeltaTodoState] * 5 < sizes[TodoState]
