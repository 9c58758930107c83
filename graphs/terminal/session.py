"""The settings of a thread: from the command line, or else from its checkpoints."""

import os
import shlex
import shutil
import sqlite3
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph.state import CompiledStateGraph

from graphs.coding_agent import ASKED_ABOUT, PLANNING
from graphs.model import STAND_IN
from graphs.terminal.agents import open_agent
from graphs.terminal.ctrl_c import deaf_to_ctrl_c
from graphs.terminal.options import DEFAULT_GRACE, UnusableInputError
from graphs.terminal.thread import newest_of_threads
from graphs.terminal.tools.endings import FOLDER
from graphs.terminal.tools.shell import command_environment
from graphs.terminal.tools.workspace import Workspace
from todo_tools import AutoContinue, TodoLimits

_GIT = (
    "git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c safe.bareRepository=explicit "
    "-c color.ui=false -c color.diff=false -c color.status=false"
)
_DIFF = (
    f"{_GIT} status --short --ignore-submodules=dirty && "
    f"{_GIT} diff $({_GIT} rev-parse --quiet --verify HEAD) "
    "--no-ext-diff --no-textconv --submodule=short --ignore-submodules=dirty"
)


@dataclass(frozen=True)
class Workdir:
    """The directory in which commands run."""

    path: Path
    temporary: bool = False
    """Whether a program created it for the thread, as a temporary directory."""

    def leave(self) -> str:
        """Remove a temporary directory if it is empty; otherwise return a notice about it."""
        if not self.temporary:
            return ""
        try:
            self.path.rmdir()
        except FileNotFoundError:
            return ""
        except OSError:
            return f"files are left in {self.path}"
        return ""


@dataclass(frozen=True)
class Session:
    """The settings that a thread runs with."""

    thread: str
    agent: str
    model: str
    workdir: Workdir
    env: Mapping[str, str]
    ask_plan: bool
    """Whether a person approves each plan before any work."""
    checked: bool
    """Whether a step can only be completed if its command succeeded."""
    endings: Path
    """The folder for the results of its commands, until the thread has stored them."""
    command: str
    """The program with the database, the thread, and options that no thread keeps."""

    @property
    def config(self) -> RunnableConfig:
        """The config of its runs; the checkpoints keep its metadata."""
        kept = {
            "agent": self.agent,
            "model": self.model,
            "workdir": str(self.workdir.path),
            "temporary": self.workdir.temporary,
            "ask_plan": self.ask_plan,
            "checked": self.checked,
        }
        configurable = {"thread_id": self.thread, FOLDER: str(self.endings)}
        return {"configurable": configurable, "metadata": kept}

    @property
    def resume_command(self) -> str:
        """A complete command that resumes the thread, quoted for the shell.

        It repeats the settings: the thread has not kept those of a run that stored nothing, and
        without them the command could lead to an agent that does not ask.
        """
        words = [self.command, _option("--agent", self.agent), _option("--model", self.model)]
        if not self.workdir.temporary:
            words.append(_option("--workdir", str(self.workdir.path)))
        flags = {"--ask-plan": self.ask_plan, "--checked": self.checked}
        return " ".join([*words, *(flag for flag, is_set in flags.items() if is_set)])

    @property
    def asked_about(self) -> frozenset[str]:
        """The tools that a person is asked about."""
        if self.agent != "coding":
            return frozenset()
        return frozenset({*ASKED_ABOUT, *([PLANNING] if self.ask_plan else [])})

    def text_before(self, action: Mapping[str, Any]) -> str:
        """The text of the file that an edit changes; empty if it cannot be read."""
        path = action["args"].get("file_path")
        if action["name"] != "edit_file" or not isinstance(path, str):
            return ""
        (file,) = Workspace(self.workdir.path).download_files([path])
        return (file.content or b"").decode(errors="replace").replace("\r\n", "\n")

    def run(self, command: str) -> None:
        """Run a person's own command where the agent runs its commands."""
        with deaf_to_ctrl_c():
            subprocess.run(command, shell=True, cwd=self.workdir.path, check=False)  # noqa: S602
        # The prompt would replace a last line without a line break. A row of blanks ends only that.
        os.write(1, b" " * os.get_terminal_size(1).columns + b"\r")

    def diff(self) -> str:
        """What has changed in its directory since the last commit, as git says it.

        The agent may have written the repository, so git starts no diff program that the
        repository names, and gets no more variables than the agent's commands.
        """
        with deaf_to_ctrl_c():
            said = subprocess.run(  # noqa: S602
                _DIFF,
                shell=True,
                cwd=self.workdir.path,
                env={**command_environment(), "GIT_ALLOW_PROTOCOL": ""},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
        ended = f"git ended with exit code {said.returncode}"
        nothing = ended if said.returncode else "Nothing has changed."
        return said.stdout.decode(errors="replace") or nothing

    def open_agent(
        self,
        policy: AutoContinue,
        checkpointer: BaseCheckpointSaver[Any],
        limits: TodoLimits = TodoLimits(),
    ) -> AbstractContextManager[CompiledStateGraph[Any, Any, Any, Any]]:
        """Build its agent, whose commands end when the block ends."""
        return open_agent(
            self.agent,
            self.model,
            self.workdir.path,
            policy,
            checkpointer,
            limits=limits,
            env=self.env,
            ask_plan=self.ask_plan,
            checked=self.checked,
        )

    def forget_endings(self) -> None:
        """Remove the kept results of commands once the thread has stored all of them."""
        shutil.rmtree(self.endings, ignore_errors=True)
        with suppress(OSError):  # another thread still has results there
            self.endings.parent.rmdir()

    def opening(self, db: str) -> Iterator[str]:
        """The lines that a program prints first."""
        yield (
            f"thread {self.thread} in {db}, agent {self.agent}, model {self.model}, "
            f"working in {self.workdir.path}"
        )
        if self.model == STAND_IN:
            yield "The model is a stand-in that follows simple rules; --model takes a real one."


@asynccontextmanager
async def open_saver(db: str) -> AsyncGenerator[AsyncSqliteSaver, None]:
    """Open the database of the threads; if it is new, only the user can read it.

    Raises:
        UnusableInputError: The database cannot be used, now or during the block.
    """
    with suppress(OSError):  # SQLite says what is wrong. It gives its other files the same mode.
        os.close(os.open(db, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        # This fails at once if the file is not a database; the connection's thread would fail
        # later.
        with closing(sqlite3.connect(db)) as connection:
            connection.execute("pragma schema_version")
        async with AsyncSqliteSaver.from_conn_string(db) as saver:
            await saver.setup()
            yield saver
    except sqlite3.Error as error:
        raise UnusableInputError(f"--db {db} cannot be used: {error}") from error


async def choose_thread(options: Namespace, saver: AsyncSqliteSaver) -> str:
    """The thread that is given, the one that was used last, or a new one.

    Raises:
        UnusableInputError: There is no thread to continue.
    """
    if not options.newest or options.thread:
        return options.thread or uuid4().hex[:8]
    for snapshot in await newest_of_threads(saver, 1):
        return str(snapshot.config.get("configurable", {}).get("thread_id"))
    raise UnusableInputError(f"--continue: there is no thread in {options.db}")


async def choose_session(options: Namespace, saver: BaseCheckpointSaver[Any]) -> Session:
    """Choose the settings of a thread.

    Args:
        options: The command line of a program.
        saver: The checkpointer of the thread, if there is one.

    Raises:
        UnusableInputError: The command line does not fit the thread or this machine.
    """
    thread = options.thread or uuid4().hex[:8]
    saved = await saver.aget_tuple({"configurable": {"thread_id": thread}})
    kept = cast("Mapping[str, Any]", saved.metadata if saved else {})
    agent = _choose_agent(options.agent, kept.get("agent"), thread)
    env = _read_environment(options.env)
    return Session(
        thread,
        agent,
        options.model or kept.get("model") or STAND_IN,
        _choose_workdir(options.workdir, kept, thread, create=options.create),
        env,
        _choose_ask_plan(options.ask_plan, kept, agent),
        _choose_checked(options.checked, kept, agent),
        _endings_folder(options.db, thread),
        _command(options, thread),
    )


def _choose_agent(given: str | None, kept: str | None, thread: str) -> str:
    if given and kept and given != kept:
        raise UnusableInputError(f"thread {thread!r} belongs to --agent {kept}")
    return given or kept or "until_done"


def _choose_ask_plan(given: bool, kept: Mapping[str, Any], agent: str) -> bool:  # noqa: FBT001
    if given and agent != "coding":
        raise UnusableInputError(f"--ask-plan is for --agent coding, not {agent}")
    return given or bool(kept.get("ask_plan"))


def _choose_checked(given: bool, kept: Mapping[str, Any], agent: str) -> bool:  # noqa: FBT001
    if given and agent == "notes":
        raise UnusableInputError(
            "--checked is for agents that run commands; --agent notes runs none"
        )
    return given or bool(kept.get("checked"))


def _read_environment(names: Sequence[str]) -> dict[str, str]:
    for name in names:
        if name not in os.environ:
            raise UnusableInputError(f"--env {name}: there is no such environment variable")
    return {name: os.environ[name] for name in names}


def _choose_workdir(
    given: Path | Workdir | None, kept: Mapping[str, Any], thread: str, *, create: bool
) -> Workdir:
    if isinstance(given, Workdir):  # that of the thread before, which may be temporary
        return given
    if given:
        _check_directory(given, f"--workdir {given}", "--create makes it", create=create)
        return Workdir(given.resolve())
    path = Path(kept["workdir"]) if kept.get("workdir") else None
    if path is None or (kept.get("temporary") and not path.is_dir()):
        return Workdir(Path(tempfile.mkdtemp(prefix="todo-")).resolve(), temporary=True)
    what = f"the directory of thread {thread!r}, {path},"
    hint = "--create makes it again, --workdir names another"
    _check_directory(path, what, hint, create=create)
    return Workdir(path, temporary=bool(kept.get("temporary")))


def _check_directory(path: Path, what: str, hint: str, *, create: bool) -> None:
    try:
        if create:
            path.mkdir(parents=True, exist_ok=True)
        with os.scandir(path):
            return
    except FileNotFoundError:
        raise UnusableInputError(f"{what} does not exist; {hint}") from None
    except OSError as error:
        raise UnusableInputError(f"{what} cannot be used: {error.strerror}") from None


def _endings_folder(db: str, thread: str) -> Path:
    return Path(f"{db}-endings", sha256(thread.encode()).hexdigest()[:16]).resolve()


def _command(options: Namespace, thread: str) -> str:
    """Repeat the options that the thread does not remember."""
    words = [_option("--db", options.db), _option("--thread", thread)]
    words += [_option("--env", name) for name in options.env]
    if options.grace != DEFAULT_GRACE or os.environ.get("TODO_OPTIONS"):
        words.append(_option("--grace", str(options.grace)))
    words += [f"--{flag}" for flag in ("costs", "yes") if getattr(options, flag, False)]
    return " ".join([options.program, *words])


def _option(name: str, value: str) -> str:
    return f"{name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"
