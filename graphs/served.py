"""The graphs that `langgraph.json` serves; the server adds the checkpointer.

`TODO_MODEL` names the chat model (`provider:name`); without it a stand-in answers. The coding agent
works in one directory for each thread. `TODO_WORKDIR` names their parent directory; the default is
a new temporary directory.

No graph here runs a command without a person's approval: only the coding agent has a shell, and it
asks.

The lists have the format of LangChain's clients, because people use those with a server. What a
client may set for one run is in `graphs/context.py`.
"""

import asyncio
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, NotRequired
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from graphs import notes as notes_example
from graphs import until_done as until_done_example
from graphs.coding_agent import build_coding_agent
from graphs.context import RunContext, policy_of
from graphs.model import chat_model, is_stand_in
from graphs.notes import Notes, fold_notes
from todo_tools.state import ClientTodoState

Graph = CompiledStateGraph[Any, Any, Any, Any]

_MOST_AGENTS = 100
_MODEL = os.environ.get("TODO_MODEL")


def _base_directory() -> Path:
    """The directory below which each thread has its own."""
    named = os.environ.get("TODO_WORKDIR")
    if not named:
        return Path(tempfile.mkdtemp(prefix="todo-"))
    directory = Path(named).resolve()
    if not directory.is_dir():
        raise NotADirectoryError(f"TODO_WORKDIR must name an existing directory, got {named!r}")
    return directory


_BASE = _base_directory()
_CODING_MODEL = chat_model(_MODEL, command_tool="execute")
_building = Lock()


class ClientNotesState(ClientTodoState):
    """`NotesState` with the list in the format of LangChain's clients."""

    notes: NotRequired[Annotated[Notes, fold_notes]]


notes = notes_example.build_graph(
    notes_example.notes_model() if is_stand_in(_MODEL) else chat_model(_MODEL),
    policy=policy_of,
    state_schema=ClientNotesState,
    context_schema=RunContext,
).compile(name="notes")
until_done = until_done_example.build_graph(
    chat_model(_MODEL),
    policy=policy_of,
    state_schema=ClientTodoState,
    context_schema=RunContext,
).compile(name="until_done")


async def coding_agent(config: RunnableConfig) -> Graph:
    """The coding agent of a thread, which works in the thread's own directory.

    The server calls this on its event loop for every run and whenever it reads a thread.

    Args:
        config: The config of the run; it has no thread if the server only needs the schemas.

    Returns:
        The agent. All calls with the same thread return the same agent, so that its background
        tasks continue.
    """
    thread = config.get("configurable", {}).get("thread_id")
    return await asyncio.to_thread(_agent_of, str(UUID(str(thread))) if thread else "")


def _agent_of(thread: str) -> Graph:
    with _building:  # otherwise two calls at once could build two agents for one thread
        return _build_agent(thread)


@lru_cache(maxsize=_MOST_AGENTS)
def _build_agent(thread: str) -> Graph:
    """Build an agent; its background tasks end when the cache drops it."""
    directory = _BASE / thread
    directory.mkdir(exist_ok=True)
    agent = build_coding_agent(
        _CODING_MODEL,
        directory,
        policy=policy_of,
        todos_format="langchain",
        context_schema=RunContext,
    )
    agent.name = "coding_agent"  # `create_agent(name=...)` would also set the name of every message
    return agent
