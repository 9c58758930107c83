"""The size of a run in a SQLite checkpointer, and the time and memory of the framework."""

import sqlite3
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any

from langchain.agents import AgentState, create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.message import _messages_delta_reducer as add_messages_batch

from benchmarks.lists import LANGCHAIN, NO_LIST, PACK, ListKind
from benchmarks.scripts import REQUEST, SYSTEM_PROMPT, script
from benchmarks.work import Case, working_tool
from todo_tools import DeltaTodoState
from todo_tools.testing import ScriptedChatModel

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}
TIMES = 5
"""How often loading and forking are timed."""


class DeltaMessages(AgentState[Any]):
    """An agent's state whose checkpoints store only new messages, as those of `DeltaTodoState`."""

    messages: Annotated[list[AnyMessage], DeltaChannel(add_messages_batch)]


@dataclass(frozen=True)
class Variant:
    """A list with a state class."""

    name: str
    kind: ListKind
    state: type[Any] | None = None


PLAIN_NO_LIST = Variant("no list", NO_LIST)
DELTA = Variant("this package, `DeltaTodoState`", PACK, DeltaTodoState)
VARIANTS = (
    PLAIN_NO_LIST,
    Variant("no list, `DeltaTodoState`", NO_LIST, DeltaTodoState),
    Variant("LangChain", LANGCHAIN),
    Variant("LangChain, `DeltaChannel`", LANGCHAIN, DeltaMessages),
    Variant("this package", PACK),
    DELTA,
)


CASES = (
    Case(5, 1, 100),
    Case(5, 1, 2_000),
    Case(5, 3, 2_000),
    Case(10, 3, 100),
    Case(10, 3, 2_000),
    Case(10, 3, 20_000),
    Case(20, 1, 100),
    Case(20, 3, 2_000),
    Case(50, 2, 2_000),
    Case(100, 1, 100),
    Case(100, 1, 2_000),
)
"""Cases with 100 items and three calls are left out: their databases exceed a gigabyte."""


@dataclass(frozen=True)
class Stored:
    """The figures of one run."""

    size: int
    """Bytes of the database."""
    cpu: float
    """CPU seconds of the run; the scripted model and the tool take almost none."""
    peak: int
    """Bytes of Python objects at the run's peak, minus those at its start."""
    load: float
    """Seconds to load the latest state."""
    fork: float
    """Seconds to write a new branch at the middle checkpoint."""


def measure(case: Case, variant: Variant) -> Stored:
    """Run with the todo calls beside the work.

    It is run twice: the second time with its memory traced, which slows it down.
    """
    answers = script(case, "beside", variant.kind.calls)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "threads.sqlite")
        cpu = _cpu(case, variant, answers, path)
        size = Path(path).stat().st_size
        with SqliteSaver.from_conn_string(path) as saver:
            agent = _agent(case, variant, answers, saver)
            load = _seconds(lambda: agent.get_state(CONFIG))
            middle = _middle(path)
            fork = _seconds(lambda: agent.update_state(middle, _BRANCH, as_node="tools"))
    return Stored(size, cpu, _peak(case, variant, answers), load, fork)


_BRANCH = {"messages": [HumanMessage("Do it in another way.")]}


def _cpu(case: Case, variant: Variant, answers: Sequence[AIMessage], path: str) -> float:
    with SqliteSaver.from_conn_string(path) as saver:
        agent = _agent(case, variant, answers, saver)
        began = time.process_time()
        agent.invoke({"messages": [HumanMessage(REQUEST)]}, CONFIG)
        return time.process_time() - began


def _peak(case: Case, variant: Variant, answers: Sequence[AIMessage]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "threads.sqlite")
        with SqliteSaver.from_conn_string(path) as saver:
            agent = _agent(case, variant, answers, saver)
            tracemalloc.start()
            try:
                agent.invoke({"messages": [HumanMessage(REQUEST)]}, CONFIG)
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()


def _agent(case: Case, variant: Variant, answers: Sequence[AIMessage], saver: SqliteSaver) -> Any:
    rest = iter(answers)

    def answer(_: list[BaseMessage]) -> AIMessage:
        model.prompts.clear()  # the model's records do not count as the framework's memory
        return next(rest)

    model = ScriptedChatModel(script=answer)
    return create_agent(
        model,
        [working_tool(case.chars)],
        middleware=variant.kind.middleware(),
        system_prompt=SYSTEM_PROMPT,
        state_schema=variant.state,
        checkpointer=saver,
    )


def _middle(path: str) -> RunnableConfig:
    """The checkpoint in the middle of the run."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id"
        ids = [row[0] for row in connection.execute(query)]
    place = {"checkpoint_ns": "", "checkpoint_id": ids[len(ids) // 2]}
    return {"configurable": {"thread_id": "1", **place}}


def _seconds(action: Callable[[], object]) -> float:
    """The median time that an action takes."""
    times = list[float]()
    for _ in range(TIMES):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return median(times)
