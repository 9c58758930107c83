"""The coding agent: `langgraph dev --no-reload --config langgraph-coding.json`.

It gives everybody who may use the server a shell. So it has a configuration of its own, and starts
only with `TODO_TOKEN`. A person approves each command and each change of a file.

Each thread works in its own directory, which is removed with the thread. `TODO_WORKDIR` names their
parent directory; the default is a new temporary directory. `TODO_MODEL` is the same as for the
other graphs, and so is the policy (`graphs/context.py`): an agent that only talks is not sent back.
The list is the agent's own plan, which it may replace.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph_sdk import Auth
from langgraph_sdk.runtime import ServerRuntime

from graphs.auth import STATELESS, auth
from graphs.coding_agent import build_coding_agent
from graphs.context import RunContext, policy_of
from graphs.model import chat_model
from graphs.terminal.tools.background import BackgroundTasks
from graphs.terminal.tools.shell import LocalShell

__all__ = ["auth", "coding_agent"]

Graph = CompiledStateGraph[Any, Any, Any, Any]

_MOST_WORKPLACES = 100

if not os.environ.get("TODO_TOKEN"):
    raise RuntimeError("the coding agent gives its users a shell: set TODO_TOKEN to serve it")


_BASE = Path(os.environ.get("TODO_WORKDIR") or tempfile.mkdtemp(prefix="todo-")).resolve(
    strict=True
)
_MODEL = chat_model(os.environ.get("TODO_MODEL"), command_tool="execute")

_workplaces: dict[str, tuple[Graph, BackgroundTasks]] = {}
"""What works for the last threads, the newest last; the tasks of the others have ended."""
_changing = Lock()


@asynccontextmanager
async def coding_agent(
    config: RunnableConfig, runtime: ServerRuntime[Any]
) -> AsyncGenerator[Graph, None]:
    """The coding agent of a thread, which works in the thread's own directory.

    The server calls this for every run and whenever it reads a thread or needs only the schemas.

    Yields:
        The agent, which is the same for all calls with the same thread.
    """
    configurable = config.get("configurable", {})
    thread = str(UUID(str(configurable["thread_id"]))) if "thread_id" in configurable else ""
    try:
        yield await asyncio.to_thread(_agent_of, thread)
    finally:
        is_run = runtime.access_context == "threads.create_run"
        if is_run and configurable.get(STATELESS):  # its thread ends with the run
            await asyncio.to_thread(_remove, thread)


@auth.on(resources="threads", actions=["delete"])
async def remove_directory(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> None:  # noqa: ARG001  the server passes both
    """Remove the directory of a thread that is deleted.

    If several are deleted, the server calls this for each of them as well.
    """
    if "run_id" in value:  # only a run is deleted, or rolled back
        return
    if thread := value.get("thread_id"):
        await asyncio.to_thread(_remove, str(UUID(str(thread))))


def _agent_of(thread: str) -> Graph:
    with _changing:  # otherwise two calls at once could build two agents for one thread
        place = _workplaces.pop(thread, None) or _build(thread)
        _workplaces[thread] = place
        if len(_workplaces) > _MOST_WORKPLACES:
            _workplaces.pop(next(iter(_workplaces)))[1].close()
        return place[0]


def _build(thread: str) -> tuple[Graph, BackgroundTasks]:
    directory = _BASE / thread
    directory.mkdir(exist_ok=True)
    tasks = BackgroundTasks(LocalShell(directory))
    agent = build_coding_agent(
        _MODEL,
        directory,
        policy=policy_of,
        tasks=tasks,
        todos_format="langchain",
        context_schema=RunContext,
    )
    agent.name = "coding_agent"  # `create_agent(name=...)` would also set the name of every message
    return agent, tasks


def _remove(thread: str) -> None:
    """End the background tasks of a thread, and remove its directory."""
    with _changing:
        if place := _workplaces.pop(thread, None):
            place[1].close()
        shutil.rmtree(_BASE / thread, ignore_errors=True)
