"""Commands that run beside an agent, whose results it fetches later."""

import weakref
from collections.abc import Callable, Mapping
from uuid import uuid4

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from graphs.tools.run import ShellRun
from graphs.tools.shell import SECONDS_TO_DIE, LocalShell, shell_answer
from todo_tools.rendering import one_line


class BackgroundTasks:
    """Commands in the background, and the three tools to start, list and fetch them.

    They end, with everything they have started, when this is closed, when it is no longer used, and
    when the program exits: whichever comes first.

    Args:
        shell: Where and how commands run; its time limit does not apply.
        max_running: How many may run at a time.

    Example:
        >>> with BackgroundTasks(LocalShell(workdir)) as tasks:
        ...     agent = create_agent(model, tasks.tools)
    """

    def __init__(self, shell: LocalShell, *, max_running: int = 10) -> None:
        self._shell = shell
        self._max_running = max_running
        self._runs: dict[str, ShellRun] = {}
        self._end_all = weakref.finalize(self, _end, self._runs)
        self.tools: list[BaseTool] = [
            _tool(self.start, "run_in_background", _RUN_DESCRIPTION),
            _tool(self.show, "list_background_tasks", _LIST_DESCRIPTION),
            _tool(self.fetch, "get_background_task", _GET_DESCRIPTION),
        ]

    def start(self, command: str) -> str:
        """Start a command.

        Args:
            command: For the system's shell.

        Returns:
            A sentence that names the id of the task.

        Raises:
            ToolException: Too many run already, or the command cannot be started.
        """
        if not self._end_all.alive:
            raise ToolException("Error: background tasks have been closed")
        if sum(not run.finished for run in self._runs.values()) >= self._max_running:
            raise ToolException(
                f"Error: {self._max_running} background tasks are running, which is the limit; "
                "wait until one has ended"
            )
        run = self._shell.run(command)
        try:
            run.start()
        except (OSError, ValueError) as error:
            raise ToolException(f"Error: the command cannot be started: {error}") from error
        task_id = uuid4().hex[:8]
        self._runs[task_id] = run
        return f"Started background task {task_id}. Fetch its result with get_background_task."

    def show(self) -> str:
        """List the tasks, oldest first, a line `id status: command` each."""
        lines = (f"{key} {_status(run)}: {one_line(run.command)}" for key, run in self._list())
        return "\n".join(lines) or "No background tasks"

    def fetch(self, task_id: str) -> str:
        """Give what a task has put out, and how it ended.

        Args:
            task_id: As `start` named it.

        Returns:
            The output and `exit code N`; while it runs, the output so far and `still running`.

        Raises:
            ToolException: There is no such task.
        """
        run = self._runs.get(task_id)
        if run is None:
            raise ToolException(
                f"Error: there is no background task {task_id!r:.40}; tasks end with the program "
                "that runs them, and list_background_tasks shows those there are"
            )
        return shell_answer(run.response()) if run.finished else f"{run.response().output}\n{_RUNS}"

    def close(self) -> None:
        """End all tasks, with everything they have started; no more can be started."""
        self._end_all()

    def _list(self) -> list[tuple[str, ShellRun]]:
        return list(self._runs.items())  # a copy: tools of one turn run in parallel threads

    def __enter__(self) -> "BackgroundTasks":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_RUNS = "still running"
_RUN_DESCRIPTION = (
    "Start a shell command in the working directory without waiting for its end, such as a server "
    "or a long build. Answers at once with a task id. It ends with the program at the latest."
)
_LIST_DESCRIPTION = "List the background tasks: id, whether it is running, and its command."
_GET_DESCRIPTION = (
    "Fetch the output of a background task by its id: so far while it is still running, otherwise "
    "all of it with the exit code on the last line."
)


def _status(run: ShellRun) -> str:
    return "finished" if run.finished else "running"


def _end(runs: Mapping[str, ShellRun]) -> None:
    for run in list(runs.values()):
        run.end()
    for run in list(runs.values()):
        run.wait(SECONDS_TO_DIE)


def _tool(function: Callable[..., str], name: str, description: str) -> BaseTool:
    return StructuredTool.from_function(
        function, name=name, description=description, handle_tool_error=True
    )
