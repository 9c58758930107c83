"""A coding agent: a list to work through, files, a shell, and a person to ask."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from deepagents.middleware.filesystem import FilesystemMiddleware, FsToolName
from langchain import agents
from langchain.agents.middleware import AgentMiddleware, InterruptOnConfig
from langchain.agents.middleware.human_in_the_loop import DecisionType
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime

from graphs.terminal.tools.ask_first import AskFirst
from graphs.terminal.tools.background import BackgroundTasks
from graphs.terminal.tools.ran import RecordCommand
from graphs.terminal.tools.shell import MAX_OUTPUT_BYTES
from graphs.terminal.tools.workspace import EXCLUDED, MAX_FOUND, Workspace
from todo_tools import AutoContinue, TodoItem, TodoLimits, TodoMiddleware

CODING_PROMPT = """\
You are a coding agent. You work in one directory of a real machine, with tools for its files and a
shell in it. Name files relative to that directory, in file tools and in commands alike.

- Plan the work as todos. If the user gives a checklist, write each open step as one todo,
  unchanged and in order. If a step has a command in backticks, run it with execute, once and
  exactly as written.
- Read before you edit. Change files with edit_file and write_file, not with commands.
- Check what you did by running it. Complete an item when its check ends with exit code 0. Abandon
  an item that cannot be done, and say why.
- Use run_in_background for a command that does not end by itself, for example a server.
- A person may reject a command or a write. Do not try the same again: find another way, or abandon
  the item and say why."""

ASKED_ABOUT = ("write_file", "edit_file", "execute", "run_in_background")
"""The tools that wait for a person, because they change something; the todo tools do not."""

Ask = bool | Callable[[ToolCallRequest], bool]

_DECISIONS: list[DecisionType] = ["approve", "edit", "reject"]
_FILE_TOOLS: list[FsToolName] = [
    "ls",
    "read_file",
    "write_file",
    "edit_file",
    "glob",
    "grep",
    "execute",
]
_DESCRIPTIONS = {
    "ls": "List a directory. Directories end with /.",
    "glob": "Find files by a pattern such as *.py (at any depth) or src/**/*.py. Returns at most "
    f"{MAX_FOUND:,} paths, relative to the working directory. "
    f"{' and '.join(sorted(EXCLUDED))} are skipped unless the search begins inside them.",
    "execute": "Run a shell command in the working directory and wait until it ends. Returns its "
    "output and its exit code. A command that takes longer than "
    "the timeout (seconds) is killed with every process it started.",
}
# deepagents moves longer results into files in the user's directory, counting four characters as
# one token. This limit is above that of a command's output, so no output is moved.
_TOKENS_OF_A_RESULT = (MAX_OUTPUT_BYTES + 4_000) // 4


def build_coding_agent(
    model: BaseChatModel,
    workdir: Path,
    *,
    ask: Ask = True,
    timeout: int = 120,
    policy: AutoContinue | Callable[[Runtime[Any]], AutoContinue] = AutoContinue(),
    limits: TodoLimits = TodoLimits(),
    tasks: BackgroundTasks | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    todos_format: Literal["todo_tools", "langchain"] = "todo_tools",
    context_schema: type[Any] | None = None,
    check: Callable[[TodoItem, Any], str | None] | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the agent.

    Commands run with the rights of this process and are not confined to the directory; the file
    tools are.

    Args:
        model: Any chat model that can call tools.
        workdir: The directory it works in.
        ask: Whether a person is asked before a write or a command, in the form of LangChain's
            `HumanInTheLoopMiddleware` (`AskFirst`). A function decides for each call; it is called
            again on resume and must return the same, so it should read only the call. Asking needs
            a checkpointer.
        timeout: Seconds after which a command is killed.
        policy: When and how the agent is sent back to work, or a function that chooses it per run.
        limits: How much the model may write into the list.
        tasks: The background tasks, if you want to end them yourself. By default they end when the
            agent is no longer used, or when the program ends.
        checkpointer: Where threads are kept.
        todos_format: `"langchain"` if people use LangChain's clients to see the list.
        context_schema: What can be set for each run, for a `policy` that is a function.
        check: Returns the reason why an item is not done, before it is completed.

    Returns:
        The compiled graph, with the nodes `model`, `tools` and those of the middleware.

    Example:
        ```python
        agent = build_coding_agent(model, Path("."), checkpointer=InMemorySaver())
        agent.invoke({"messages": [("user", "Fix the tests.")]}, config)["__interrupt__"]
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
        ```
    """
    workspace = Workspace(workdir, timeout=timeout)

    files = FilesystemMiddleware(
        backend=workspace,
        tools=_FILE_TOOLS,
        custom_tool_descriptions=_DESCRIPTIONS,
        tool_token_limit_before_evict=_TOKENS_OF_A_RESULT,
        human_message_token_limit_before_evict=None,
    )
    middleware: list[AgentMiddleware[Any, Any, Any]] = [
        tasks or BackgroundTasks(workspace),
        TodoMiddleware(limits=limits, policy=policy, todos_format=todos_format, check=check),
        files,
        *_approval(ask),
        RecordCommand(),
    ]
    return agents.create_agent(
        model,
        system_prompt=CODING_PROMPT,
        middleware=middleware,
        context_schema=context_schema,
        checkpointer=checkpointer,
    )


def _approval(ask: Ask) -> list[AgentMiddleware[Any, Any, Any]]:
    """The middleware that asks a person."""
    if ask is False:
        return []
    config = InterruptOnConfig(allowed_decisions=_DECISIONS)
    if callable(ask):
        config["when"] = ask
    return [AskFirst(dict.fromkeys(ASKED_ABOUT, config))]
