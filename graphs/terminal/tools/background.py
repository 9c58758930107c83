"""Commands that run in the background while an agent works; it is told when they end."""

import asyncio
import re
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.config import get_config
from langgraph.prebuilt import ToolRuntime
from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import override

from graphs.terminal.tools.ask_first import answered
from graphs.terminal.tools.run import ShellRun
from graphs.terminal.tools.shell import SECONDS_TO_DIE, Command, LocalShell, shell_answer
from todo_tools import TodoItem
from todo_tools.rendering.lowlevel import one_line
from todo_tools.state import messages_in, todos_in


class BackgroundTasks(AgentMiddleware[AgentState[Any], Any, Any]):
    """Commands in the background: a middleware with the three tools to start, list and fetch them.

    When a task ends, the history gets a message that says so before the next call of the model,
    unless the agent has already fetched the result. It also says so of tasks that ended with an
    earlier program.

    All tasks end, with every process they started, when this object is closed or no longer used, or
    when the program ends. A thread sees only its own tasks; all threads share one limit.

    Args:
        shell: Where and how commands run; its time limit does not apply.
        max_running: How many tasks may run at a time.

    Example:
        >>> with BackgroundTasks(LocalShell(workdir)) as tasks:
        ...     agent = create_agent(model, middleware=[tasks])
    """

    def __init__(self, shell: LocalShell, *, max_running: int = 10) -> None:
        super().__init__()
        self._shell = shell
        self._max_running = max_running
        self._tasks: dict[str, _Task] = {}
        self._lock = threading.Lock()
        self._end_all = weakref.finalize(self, _end, self._tasks, self._lock)
        self.tools = _tools(self)

    def start(self, command: str, thread: str | None = None, item: str = "") -> str:
        """Start a command.

        Args:
            command: A shell command.
            thread: The thread that it belongs to.
            item: The text of the todo that waits for it.

        Returns:
            A sentence with the id of the task.

        Raises:
            ToolException: Too many tasks are running, or the command cannot be started.
        """
        task = _Task(uuid4().hex[:8], self._shell.run(command), thread, item)
        with self._lock:  # tools of one turn run in parallel threads
            self._check_that_one_may_start()
            try:
                task.run.start()
            except (OSError, ValueError) as error:
                raise ToolException(f"Error: the command cannot be started: {error}") from error
            self._tasks[task.id] = task
        return f"Started background task {task.id}. Fetch its result with get_background_task."

    def show(self, thread: str | None = None) -> str:
        """List the tasks of a thread, oldest first, a line `id status: command` each."""
        tasks = self._of(thread)
        lines = (f"{task.id} {task.status}: {one_line(task.run.command)}" for task in tasks)
        return "\n".join(lines) or "No background tasks"

    def fetch(self, task_id: str, thread: str | None = None, wait: int = 0) -> str:
        """Return the output of a task, and how it ended.

        Args:
            task_id: The id that `start` returned.
            thread: The thread that it belongs to.
            wait: Seconds to wait for its end.

        Returns:
            The output and `exit code N`; while it runs, the output so far and `still running`.

        Raises:
            ToolException: The thread has no such task.
        """
        run = self._run(task_id, thread)
        if not run.wait(_bounded(wait)):
            return f"{run.response().output}\n{_RUNNING}"
        return shell_answer(run.response())

    async def afetch(self, task_id: str, thread: str | None = None, wait: int = 0) -> str:
        """Do the same as `fetch`. It can be cancelled, and takes no thread while it waits."""
        run = self._run(task_id, thread)
        with suppress(TimeoutError):
            async with asyncio.timeout(_bounded(wait)):
                while not run.finished:  # noqa: ASYNC110  the event is one of threads
                    await asyncio.sleep(_POLL_SECONDS)
        return await asyncio.to_thread(self.fetch, task_id, thread)

    def running_for(self, item: TodoItem, state: Any) -> str | None:
        """Say why an item is not done: a task of this thread that it waits for is running.

        The calls of one message run at the same time, so the task may be about to start.
        """
        for task in self._of(_thread(get_config())):
            if task.item == item["text"] and not task.run.finished:
                return f"background task {task.id} is still running"
        return "its background task is being started" if item["text"] in _starting(state) else None

    @override
    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        ends = self._ends(request.messages)
        response = handler(request.override(messages=[*request.messages, *ends]))
        return replace(response, result=[*ends, *response.result])

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        ends = self._ends(request.messages)
        response = await handler(request.override(messages=[*request.messages, *ends]))
        return replace(response, result=[*ends, *response.result])

    def _ends(self, history: Sequence[AnyMessage]) -> list[HumanMessage]:
        """The messages about ended tasks that the history lacks; a branch may lack them again."""
        started, fetched = _known_from(history)
        said = {*(message.id for message in history), *map(_end_id, fetched)}
        ends = [task.end for task in self._of(_thread(get_config())) if task.run.finished]
        lost = [_end_of(each, _LOST) for each in started if each not in self._tasks]
        return [end for end in (*lost, *ends) if end.id not in said]

    def _run(self, task_id: str, thread: str | None) -> ShellRun:
        task = self._tasks.get(task_id)
        if task is None or task.thread != thread:
            raise ToolException(
                f"Error: there is no background task {task_id!r:.40}; tasks end with the program "
                "that runs them, and list_background_tasks lists those that exist"
            )
        return task.run

    def _of(self, thread: str | None) -> list["_Task"]:
        with self._lock:
            return [task for task in self._tasks.values() if task.thread == thread]

    def close(self) -> None:
        """End all tasks, with every process they started; no more tasks can be started."""
        self._end_all()

    def _check_that_one_may_start(self) -> None:
        if not self._end_all.alive:
            raise ToolException("Error: background tasks have been closed")
        if sum(not task.run.finished for task in self._tasks.values()) >= self._max_running:
            raise ToolException(
                f"Error: {self._max_running} background tasks are running, which is the limit; "
                "wait until one has ended"
            )

    def __enter__(self) -> "BackgroundTasks":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_RUN_DESCRIPTION = (
    "Start a shell command in the working directory and return a task id at once, without waiting "
    "until it ends. Use it for a server or a long build. You are told when it has ended. The "
    "program ends it when it ends itself."
)
_LIST_DESCRIPTION = "List the background tasks: the id, status and command of each."
_GET_DESCRIPTION = (
    "Fetch the output of a background task by its id: the output so far if it is still running, "
    "otherwise all of it with the exit code on the last line."
)
_LONGEST_WAIT = 600
_POLL_SECONDS = 0.05
_RUNNING = "still running"
_STARTED = re.compile(r"^Started background task (\w+)\.", re.MULTILINE)
_LOST = "is gone: tasks end with the program that runs them. If it is still needed, start it again."

TaskId = Annotated[str, Field(description="The id that run_in_background returned.")]
Wait = Annotated[int, Field(description=f"Seconds to wait for its end, at most {_LONGEST_WAIT}.")]
Item = Annotated[
    int | None, Field(description="The index of a todo that cannot be completed before it ends.")
]

_ITEM = TypeAdapter[int | None](Item)
"""Reads an index as LangChain does for the tool; a model may write it as `0.0`."""


@dataclass
class _Task:
    id: str
    run: ShellRun
    thread: str | None
    item: str

    @property
    def end(self) -> HumanMessage:
        """What the agent is told when it has ended; clients do not show it as the user's words."""
        code = self.run.response().exit_code
        return _end_of(
            self.id,
            f"has ended with exit code {code}: {one_line(self.run.command)}\n"
            "get_background_task returns its output.",
        )

    @property
    def status(self) -> str:
        return "finished" if self.run.finished else "running"


def _end_of(task_id: str, how: str) -> HumanMessage:
    return HumanMessage(
        f"Background task {task_id} {how}",
        id=_end_id(task_id),
        additional_kwargs={"lc_source": "background_tasks"},
    )


def _end_id(task_id: str) -> str:
    return f"do-not-render-task-{task_id}"


def _known_from(history: Sequence[AnyMessage]) -> tuple[list[str], list[str]]:
    """The ids of the tasks that were started, as a history says, and of those fetched at their end.

    A program before this one may have started them.
    """
    asked, started, fetched = dict[str | None, Any](), list[str](), list[str]()
    for message in history:
        if isinstance(message, AIMessage):
            asked = {made["id"]: made["args"].get("task_id") for made in message.tool_calls}
        elif not isinstance(message, ToolMessage):
            continue
        elif message.name == "run_in_background" and (said := _STARTED.search(message.text)):
            started.append(said[1])
        elif message.name == "get_background_task" and not message.text.endswith(_RUNNING):
            fetched.append(str(asked.get(message.tool_call_id)))
    return started, fetched


def _tools(tasks: BackgroundTasks) -> list[BaseTool]:
    """The tools. LangChain passes `config`; the model neither sees nor sets it."""

    def run_in_background(
        command: Command, runtime: ToolRuntime[Any, Any], item: Item = None
    ) -> str:
        todos = todos_in(runtime.state)
        if item is not None and not 0 <= item < len(todos):
            raise ToolException(f"Error: there is no todo [{item}]; write the list first")
        # A person may reject or edit the list, so its indices are not known yet.
        if item is not None and any(made["name"] == "write_todos" for made in _made(runtime.state)):
            raise ToolException("Error: the list is being written; call again after its result")
        text = "" if item is None else todos[item]["text"]
        return tasks.start(command, _thread(runtime.config), text)

    def list_background_tasks(config: RunnableConfig) -> str:
        return tasks.show(_thread(config))

    def get_background_task(task_id: TaskId, config: RunnableConfig, wait: Wait = 0) -> str:
        return tasks.fetch(task_id, _thread(config), wait)

    async def aget_background_task(task_id: TaskId, config: RunnableConfig, wait: Wait = 0) -> str:
        return await tasks.afetch(task_id, _thread(config), wait)

    described: list[tuple[Callable[..., str], Callable[..., Any] | None, str, str]] = [
        (run_in_background, None, "Run in background", _RUN_DESCRIPTION),
        (list_background_tasks, None, "Background tasks", _LIST_DESCRIPTION),
        (get_background_task, aget_background_task, "Background task", _GET_DESCRIPTION),
    ]
    return [
        StructuredTool.from_function(
            tool, atool, description=description, handle_tool_error=True, metadata={"label": label}
        )
        for tool, atool, label, description in described
    ]


def _starting(state: Any) -> Iterator[str]:
    """The texts of the items that wait for a task which a call without a result starts."""
    todos, messages = todos_in(state), messages_in(state)
    for made in _made(state):
        if made["name"] == "run_in_background" and made["id"] not in answered(messages):
            with suppress(ValidationError):  # then the tool refuses the call
                item = _ITEM.validate_python(made["args"].get("item"))
                yield from (todo["text"] for at, todo in enumerate(todos) if at == item)


def _made(state: Any) -> Sequence[ToolCall]:
    """The calls of the last answer of the model."""
    answers = [message for message in messages_in(state) if isinstance(message, AIMessage)]
    return answers[-1].tool_calls if answers else ()


def _bounded(wait: int) -> int:
    return min(max(wait, 0), _LONGEST_WAIT)


def _thread(config: RunnableConfig) -> str | None:
    return config.get("configurable", {}).get("thread_id")


def _end(tasks: Mapping[str, _Task], lock: threading.Lock) -> None:
    with lock:  # wait for a task that is being started, and end it with the others
        runs = [task.run for task in tasks.values()]
    for run in runs:
        run.end()
    for run in runs:
        if not run.wait(SECONDS_TO_DIE):
            run.give_up()  # a tool may wait for it, and the program for the tool
