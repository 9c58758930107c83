"""Build the agents of this repository by name, for the programs."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from graphs import notes, until_done
from graphs.checked import command_passed
from graphs.coding_agent import build_coding_agent
from graphs.model import chat_model, is_stand_in
from graphs.terminal.tools.background import BackgroundTasks
from graphs.terminal.tools.shell import LocalShell, shell_tool
from todo_tools import AutoContinue, TodoLimits

AGENTS = ("coding", "notes", "until_done")


@contextmanager
def open_agent(
    name: str,
    model: str,
    workdir: Path,
    policy: AutoContinue,
    checkpointer: BaseCheckpointSaver[Any],
    *,
    limits: TodoLimits = TodoLimits(),
    env: Mapping[str, str] | None = None,
    ask_plan: bool = False,
    checked: bool = False,
) -> Generator[CompiledStateGraph[Any, Any, Any, Any], None, None]:
    """Build an agent; afterwards, end the commands that it left running.

    Args:
        name: One of `AGENTS`.
        model: `provider:name` of a chat model, or `stand-in`.
        workdir: The directory in which its commands run.
        policy: When and how the agent is sent back to work.
        checkpointer: Where its threads are kept.
        limits: How much the model may write into the list, and whether it may drop open items.
        env: Variables to pass to its commands, besides those that are always passed.
        ask_plan: Whether a person approves each plan first; for the coding agent only.
        checked: Whether a step can only be completed if its command succeeded; not for the notes
            agent.

    Yields:
        The compiled graph.

    Raises:
        ModelError: The model cannot be created.
    """
    check = command_passed if checked else None
    if name == "coding":
        chat = chat_model(model, command_tool="execute")
        with BackgroundTasks(LocalShell(workdir, env=env)) as tasks:
            yield build_coding_agent(
                chat,
                workdir,
                ask_plan=ask_plan,
                policy=policy,
                limits=limits,
                tasks=tasks,
                checkpointer=checkpointer,
                env=env,
                check=check,
            )
    elif name == "notes":
        chat = notes.notes_model() if is_stand_in(model) else chat_model(model)
        builder = notes.build_graph(chat, policy=policy, limits=limits)
        yield builder.compile(checkpointer=checkpointer)
    else:
        tools = [shell_tool(workdir, env=env)]
        builder = until_done.build_graph(
            chat_model(model), tools, policy=policy, limits=limits, check=check
        )
        yield builder.compile(checkpointer=checkpointer)
