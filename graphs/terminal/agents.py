"""Build the agents of the programs by name."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from graphs import until_done
from graphs.coding_agent import build_coding_agent
from graphs.model import chat_model
from graphs.terminal.tools.background import BackgroundTasks
from graphs.terminal.tools.shell import LocalShell, shell_tool
from todo_tools import AutoContinue, TodoLimits

AGENTS = ("coding", "until_done")

Graph = CompiledStateGraph[Any, Any, Any, Any]


@contextmanager
def open_agent(
    name: str,
    model: str,
    workdir: Path,
    policy: AutoContinue,
    checkpointer: BaseCheckpointSaver[Any],
    *,
    limits: TodoLimits = TodoLimits(),
) -> Generator[Graph, None, None]:
    """Build an agent; afterwards, end the commands that it left running.

    Args:
        name: One of `AGENTS`.
        model: `provider:name` of a chat model, or `stand-in`.
        workdir: The directory in which its commands run.
        policy: When and how the agent is sent back to work.
        checkpointer: Where its threads are kept.
        limits: How much the model may write into the list, and whether it may drop open items.

    Yields:
        The compiled graph.

    Raises:
        ModelError: The model cannot be created.
    """
    if name == "coding":
        chat = chat_model(model, command_tool="execute")
        with BackgroundTasks(LocalShell(workdir)) as tasks:
            yield build_coding_agent(
                chat, workdir, policy=policy, limits=limits, tasks=tasks, checkpointer=checkpointer
            )
    else:
        shell = shell_tool(workdir)
        builder = until_done.build_graph(chat_model(model), [shell], policy=policy, limits=limits)
        yield builder.compile(checkpointer=checkpointer)
