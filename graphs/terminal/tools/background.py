"""Commands that run in the background while an agent works; it is told when they end."""

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.config import get_config
from pydantic import Field
from typing_extensions import override

from graphs.terminal.tools.run import ShellRun
from graphs.terminal.tools.shell import SECONDS_TO_DIE, Command, LocalShell, shell_answer
from todo_tools.rendering.lowlevel import one_line


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

    def start(self, command: str, thread: str | None = None) -> str:
        """Start a command.

        Args:
            command: A shell command.
            thread: The thread that it belongs to.

        Returns:
            A sentence with the id of the task.

        Raises:
            ToolException: Too many tasks are running, or the command cannot be started.
        """
        task = _Task(uuid4().hex[:8], self._shell.run(command), thread)
        with self._lock:  # tools of one turn run in parallel threads
            if not self._end_all.alive:
                raise ToolException("Error: background tasks have been closed")
            if sum(not each.run.finished for each in self._tasks.values()) >= self._max_running:
                raise ToolException(
                    f"Error: {self._max_running} background tasks are running, which is the limit; "
                    "wait until one has ended"
                )
            try:
                task.run.start()
            except (OSError, ValueError) as error:
                raise ToolException(f"Error: the command cannot be started: {error}") from error
            self._tasks[task.id] = task
        return f"Started background task {task.id}. Fetch its result with get_background_task."

    def show(self, thread: str | None = None) -> str:
        """List the tasks of a thread, oldest first, a line `id status: command` each."""
        lines = (
            f"{task.id} {'finished' if task.run.finished else 'running'}: "
            f"{one_line(task.run.command)}"
            for task in self._of(thread)
        )
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
        started, fetched = (set(_ids_in(history, key)) for key in ("started", "fetched"))
        said = {*(message.id for message in history), *map(_end_id, fetched)}
        ends = [task.end for task in self._of(_thread(get_config())) if task.run.finished]
        lost = [_end_of(each, _LOST) for each in sorted(started - self._tasks.keys())]
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
_LOST = "is gone: tasks end with the program that runs them. If it is still needed, start it again."

TaskId = Annotated[str, Field(description="The id that run_in_background returned.")]
Answer = tuple[str, dict[str, str] | None]
"""A text for the model, and what the history shows programs."""
Wait = Annotated[int, Field(description=f"Seconds to wait for its end, at most {_LONGEST_WAIT}.")]


@dataclass
class _Task:
    id: str
    run: ShellRun
    thread: str | None

    @property
    def end(self) -> HumanMessage:
        """What the agent is told when it has ended; clients do not show it as the user's words."""
        code = self.run.response().exit_code
        return _end_of(
            self.id,
            f"has ended with exit code {code}: {one_line(self.run.command)}\n"
            "get_background_task returns its output.",
        )


def _end_of(task_id: str, how: str) -> HumanMessage:
    return HumanMessage(
        f"Background task {task_id} {how}",
        id=_end_id(task_id),
        additional_kwargs={"lc_source": "background_tasks"},
    )


def _end_id(task_id: str) -> str:
    return f"do-not-render-task-{task_id}"


def _ids_in(history: Sequence[AnyMessage], key: str) -> Iterator[str]:
    """The tasks that results name by this key; a program before this one may have run them."""
    for message in history:
        artifact: Any = message.artifact if isinstance(message, ToolMessage) else None
        if isinstance(artifact, dict) and key in artifact:
            yield artifact[key]


def _tools(tasks: BackgroundTasks) -> list[BaseTool]:
    """The tools. LangChain passes `config`; the model neither sees nor sets it."""

    def run_in_background(command: Command, config: RunnableConfig) -> Answer:
        said = tasks.start(command, _thread(config))
        return said, {"command": command, "started": said.split()[3].rstrip(".")}

    def list_background_tasks(config: RunnableConfig) -> Answer:
        return tasks.show(_thread(config)), None

    def get_background_task(task_id: TaskId, config: RunnableConfig, wait: Wait = 0) -> Answer:
        return _fetched(task_id, tasks.fetch(task_id, _thread(config), wait))

    async def aget_background_task(
        task_id: TaskId, config: RunnableConfig, wait: Wait = 0
    ) -> Answer:
        return _fetched(task_id, await tasks.afetch(task_id, _thread(config), wait))

    described: list[tuple[Callable[..., Answer], Callable[..., Any] | None, str, str]] = [
        (run_in_background, None, "Run in background", _RUN_DESCRIPTION),
        (list_background_tasks, None, "Background tasks", _LIST_DESCRIPTION),
        (get_background_task, aget_background_task, "Background task", _GET_DESCRIPTION),
    ]
    return [
        StructuredTool.from_function(
            tool,
            atool,
            description=description,
            handle_tool_error=True,
            metadata={"label": label},
            response_format="content_and_artifact",
        )
        for tool, atool, label, description in described
    ]


def _fetched(task_id: str, answer: str) -> Answer:
    return answer, None if answer.endswith(_RUNNING) else {"fetched": task_id}


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
