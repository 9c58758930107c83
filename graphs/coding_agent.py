"""A coding agent: a list to work through, files, a shell, and a person to ask."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

from deepagents.middleware.filesystem import FilesystemMiddleware, FsToolName
from langchain import agents
from langchain.agents.middleware import AgentMiddleware, InterruptOnConfig
from langchain.agents.middleware.human_in_the_loop import DecisionType
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolCall
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime

from graphs.terminal.tools.ask_first import AskFirst
from graphs.terminal.tools.background import BackgroundTasks
from graphs.terminal.tools.ran import RecordCommand
from graphs.terminal.tools.refusal import RefuseImpossible, is_open
from graphs.terminal.tools.shell import MAX_OUTPUT_BYTES
from graphs.terminal.tools.workspace import EXCLUDED, MAX_FOUND, Workspace
from todo_tools import AutoContinue, TodoItem, TodoLimits, format_todos
from todo_tools.clients import TodosFormat
from todo_tools.middleware import TodoGateMiddleware, TodoMiddleware
from todo_tools.schemas import CallError, brief, read_index, read_texts
from todo_tools.state import messages_in, todos_in

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

PLANNING = "write_todos"
"""The tool that waits for a person if plans need approval."""

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
    "ls": "List a directory. Names are sorted, ignoring case; directories end with /.",
    "glob": "Find files by a pattern such as *.py (at any depth) or src/**/*.py. Returns at most "
    f"{MAX_FOUND:,} paths, relative to the working directory. "
    f"{' and '.join(sorted(EXCLUDED))} are skipped unless the search begins inside them.",
    "execute": "Run a shell command in the working directory and wait until it ends. Returns its "
    "output, with the lines of stderr marked, and its exit code. A command that takes longer than "
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
    ask_plan: bool = False,
    timeout: int = 120,
    policy: AutoContinue | Callable[[Runtime[Any]], AutoContinue] = AutoContinue(),
    limits: TodoLimits = TodoLimits(),
    tasks: BackgroundTasks | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
    env: Mapping[str, str] | None = None,
    todos_format: TodosFormat = "todo_tools",
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
        ask_plan: Whether a person approves each plan (each call of `write_todos`) in the same way.
            No other tool runs before a plan is approved and one of its items is started.
        timeout: Seconds after which a command is killed.
        policy: When and how the agent is sent back to work, or a function that chooses it per run.
        limits: How much the model may write into the list.
        tasks: The background tasks, if you want to end them yourself. By default they end when the
            agent is no longer used, or when the program ends.
        checkpointer: Where threads are kept.
        env: Variables to pass to commands, besides those that are always passed.
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
    workspace = Workspace(workdir, timeout=timeout, env=env)
    background = tasks or BackgroundTasks(workspace)

    def not_done(item: TodoItem, state: Any) -> str | None:
        return background.running_for(item, state) or (check(item, state) if check else None)

    files = FilesystemMiddleware(
        backend=workspace,
        tools=_FILE_TOOLS,
        custom_tool_descriptions=_DESCRIPTIONS,
        tool_token_limit_before_evict=_TOKENS_OF_A_RESULT,
        human_message_token_limit_before_evict=None,
    )
    todos = TodoMiddleware(
        limits=limits,
        policy=policy,
        todos_format=todos_format,
        check=not_done,
    )
    middleware: list[AgentMiddleware[Any, Any, Any]] = [
        *([TodoGateMiddleware()] if ask_plan else []),
        background,
        todos,
        files,
        *_approval(ask, workspace, ask_plan=ask_plan),
        RecordCommand(),
    ]
    return agents.create_agent(
        model,
        system_prompt=CODING_PROMPT,
        middleware=middleware,
        context_schema=context_schema,
        checkpointer=checkpointer,
    )


def _approval(
    ask: Ask, workspace: Workspace, *, ask_plan: bool
) -> list[AgentMiddleware[Any, Any, Any]]:
    """The middleware that asks a person. Calls that cannot succeed are answered before it."""

    def is_asked_about(request: ToolCallRequest) -> bool:
        return is_open(request) and (ask(request) if callable(ask) else True)

    asked: dict[str, bool | InterruptOnConfig] = {}
    if ask is not False:
        config = InterruptOnConfig(allowed_decisions=_DECISIONS, when=is_asked_about)
        asked = dict.fromkeys(ASKED_ABOUT, config)
    if ask_plan:
        asked[PLANNING] = InterruptOnConfig(
            allowed_decisions=_DECISIONS, description=proposed_plan, when=is_open
        )
    return [*([AskFirst(asked)] if asked else []), RefuseImpossible(workspace)]


def proposed_plan(tool_call: ToolCall, state: Any, runtime: Any) -> str:  # noqa: ARG001  LangChain passes it
    """Show the person who decides the whole list as it would be after a call of `write_todos`.

    Earlier plans of the same message count as approved. Arguments of a wrong form are shown
    unchanged; the tool then returns its error. It also refuses a list that is larger than `limits`
    allow.
    """
    args = tool_call["args"]
    answers = [each for each in messages_in(state) if isinstance(each, AIMessage)]
    calls = answers[-1].tool_calls if answers else []
    earlier = takewhile(lambda call: call["id"] != tool_call["id"], calls)
    plans = [call["args"] for call in earlier if call["name"] == PLANNING]
    try:
        return format_todos(planned_todos(after_plans(todos_in(state), plans), args))
    except CallError as error:
        return f"{error}\n\n{args}"


def after_plans(todos: Sequence[TodoItem], plans: Iterable[Mapping[str, Any]]) -> list[TodoItem]:
    """The list as it would be after several calls of `write_todos`; malformed ones change nothing.

    The tool also refuses a list that is larger than its limits.
    """
    planned = list(todos)
    for args in plans:
        with suppress(CallError):
            planned = planned_todos(planned, args)
    return planned


def planned_todos(todos: Sequence[TodoItem], args: Mapping[str, Any]) -> list[TodoItem]:
    """The list as it would be after a call of `write_todos`.

    Args:
        todos: The list before it.
        args: The arguments of the call.

    Raises:
        CallError: The tool would refuse the arguments.
    """
    texts = read_texts(args.get("todos"))
    if not all(map(str.strip, texts)):
        raise CallError("an item has an empty text")
    new: list[TodoItem] = [{"text": text, "status": "not_started"} for text in texts]
    match args.get("mode"):
        case "replace":
            return new
        case "append":
            return [*todos, *new]
        case "insert":
            start = read_index("index", args.get("index"))
            if not 0 <= start <= len(todos):
                raise CallError(f"index {start} is not in the list")
            return [*todos[:start], *new, *todos[start:]]
        case mode:
            raise CallError(f"unknown mode {brief(mode)}")
