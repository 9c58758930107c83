"""Build the agent of a thread, for the programs."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from graphs import until_done
from graphs.coding_agent import build_coding_agent
from graphs.model import chat_model
from graphs.terminal.session import Session
from graphs.terminal.tools.background import BackgroundTasks
from graphs.terminal.tools.shell import LocalShell, shell_tool
from todo_tools import AutoContinue, TodoLimits


@contextmanager
def open_agent(
    session: Session,
    policy: AutoContinue,
    saver: BaseCheckpointSaver[Any],
    *,
    limits: TodoLimits = TodoLimits(),
) -> Generator[CompiledStateGraph[Any, Any, Any, Any], None, None]:
    """Build the agent of a thread; afterwards, end the commands that it left running.

    Raises:
        ModelError: The model cannot be created.
    """
    workdir = session.workdir
    if session.agent == "coding":
        model = chat_model(session.model, command_tool="execute")
        with BackgroundTasks(LocalShell(workdir)) as tasks:
            yield build_coding_agent(
                model, workdir, policy=policy, limits=limits, tasks=tasks, checkpointer=saver
            )
    else:
        model, tools = chat_model(session.model), [shell_tool(workdir)]
        builder = until_done.build_graph(model, tools, policy=policy, limits=limits)
        yield builder.compile(checkpointer=saver)
