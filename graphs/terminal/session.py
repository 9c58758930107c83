"""The settings of a thread: from the command line, or else from its checkpoints."""

import os
import shlex
import sqlite3
import tempfile
from argparse import Namespace
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphs.model import STAND_IN
from graphs.terminal.options import DEFAULT_AGENT, DEFAULT_DB, DEFAULT_GRACE, UnusableInputError

_COLUMNS = 80
_ABOUT_THE_STAND_IN = "The model is a stand-in with simple rules; --model takes a real one."


@dataclass(frozen=True)
class Session:
    """The settings that a thread runs with."""

    thread: str
    agent: str
    model: str
    workdir: Path
    temporary: bool
    """Whether the directory was made for the thread."""
    words: tuple[str, ...]
    """The program, and its options that no thread keeps."""

    @property
    def config(self) -> RunnableConfig:
        """The config of its runs; the checkpoints keep its metadata."""
        kept = {"agent": self.agent, "model": self.model, "temporary": self.temporary}
        metadata = {**kept, "workdir": str(self.workdir)}
        return {"configurable": {"thread_id": self.thread}, "metadata": metadata}

    @property
    def resume_command(self) -> str:
        """A command for the shell that resumes the thread; a long one is broken between options.

        It repeats the agent, because a thread that has stored nothing has not kept which one asks.
        """
        words = [*self.words, _option("--thread", self.thread)]
        if self.agent != DEFAULT_AGENT:
            words.append(_option("--agent", self.agent))
        line = " ".join(words)
        return line if len(line) < _COLUMNS else " \\\n    ".join(words)

    @property
    def opening(self) -> str:
        """What a program prints first."""
        text = f"thread {self.thread}, agent {self.agent}, model {self.model}, in {self.workdir}"
        return text if self.model != STAND_IN else f"{text}\n{_ABOUT_THE_STAND_IN}"

    def leave(self) -> str:
        """Remove a temporary directory if it is empty; otherwise return a notice about it."""
        if self.temporary and self.workdir.exists():
            try:
                self.workdir.rmdir()
            except OSError:
                return f"files are left in {self.workdir}"
        return ""


@asynccontextmanager
async def open_saver(db: str) -> AsyncGenerator[AsyncSqliteSaver, None]:
    """Open the database of the threads; if it is new, only the user can read it.

    Raises:
        UnusableInputError: The database cannot be used.
    """
    with suppress(OSError):  # SQLite says what is wrong; it gives its other files the same mode
        os.close(os.open(db, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        # This fails at once if the file is not a database.
        with closing(sqlite3.connect(db)) as connection:
            connection.execute("pragma schema_version")
        async with AsyncSqliteSaver.from_conn_string(db) as saver:
            await saver.setup()
            yield saver
    except sqlite3.Error as error:
        raise UnusableInputError(f"--db {db} cannot be used: {error}") from error


async def choose_session(options: Namespace, saver: AsyncSqliteSaver) -> Session:
    """Choose the settings of a thread: the given one, the newest one, or a new one.

    Raises:
        UnusableInputError: The command line does not fit the thread or this machine.
    """
    thread = options.thread or uuid4().hex[:8]
    if options.newest and not options.thread:
        thread = await _newest_thread(saver)
        if not thread:
            raise UnusableInputError(f"--continue: there is no thread in {options.db}")
    saved = await saver.aget_tuple({"configurable": {"thread_id": thread}})
    kept: Mapping[str, Any] = {**saved.metadata} if saved else {}
    if options.agent and options.agent != kept.get("agent", options.agent):
        raise UnusableInputError(f"thread {thread!r} belongs to --agent {kept['agent']}")
    workdir, temporary = _choose_workdir(options, kept)
    return Session(
        thread,
        options.agent or kept.get("agent") or DEFAULT_AGENT,
        options.model or kept.get("model") or STAND_IN,
        workdir,
        temporary,
        tuple(_words(options)),
    )


async def _newest_thread(saver: AsyncSqliteSaver) -> str:
    # The saver's own method lists all checkpoints of all threads.
    query = "select thread_id from checkpoints order by checkpoint_id desc limit 1"
    async with saver.lock, saver.conn.execute(query) as rows:
        return "".join([str(row[0]) async for row in rows])


def _choose_workdir(options: Namespace, kept: Mapping[str, Any]) -> tuple[Path, bool]:
    """The directory, and whether it is temporary."""
    path: Path | None = options.workdir or (Path(kept["workdir"]) if "workdir" in kept else None)
    temporary = not options.workdir and bool(kept.get("temporary", True))
    if path is None or (temporary and not path.is_dir()):
        return Path(tempfile.mkdtemp(prefix="todo-")).resolve(), True
    try:
        if options.create:
            path.mkdir(parents=True, exist_ok=True)
        with os.scandir(path):
            return path.resolve(), temporary
    except FileNotFoundError:
        raise UnusableInputError(f"--workdir {path} does not exist; --create makes it") from None
    except OSError as error:
        raise UnusableInputError(f"--workdir {path} cannot be used: {error.strerror}") from None


def _words(options: Namespace) -> list[str]:
    """The program, and the options that the thread does not keep."""
    words = [options.program]
    if options.db != DEFAULT_DB:
        words.append(_option("--db", options.db))
    if options.grace != DEFAULT_GRACE:
        words.append(_option("--grace", str(options.grace)))
    return [*words, "--yes"] if options.yes else words


def _option(name: str, value: str) -> str:
    return f"{name}{'=' if value.startswith('-') else ' '}{shlex.quote(value)}"
