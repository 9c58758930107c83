"""The program behind `python -m graphs chat`: a conversation in a terminal, its list in view."""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import StateGraph
from rich.console import Console

from graphs.conversation import Conversation
from graphs.model import ModelError, chat_model
from graphs.notes import NOTES_PROMPT, NotesState, notes_model, notes_tool
from graphs.program import EXIT_DONE, EXIT_INTERRUPTED, EXIT_UNUSABLE, UnusableInputError
from graphs.shell import shell_tool
from graphs.thread import Thread, newest_of_threads, threads_view
from graphs.until_done import build_graph
from todo_tools import AutoContinue
from todo_tools.text import one_line

_LONGEST_GRACE = 60
_RECENT_THREADS = 10
_DEFAULT_GRAPH = "until_done"


def main(argv: Sequence[str]) -> int:
    """Run the program.

    Args:
        argv: The command line without the program's name and `chat`.

    Returns:
        0 when the user has left, 2 on unusable input, 130 when it was interrupted from outside.
    """
    try:
        options = _parser().parse_args(argv)
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UnusableInputError("the chat needs a terminal to type in and to show itself")
        return asyncio.run(_converse(options))
    except (UnusableInputError, ModelError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UnusableInputError(f"{message}; see python -m graphs chat --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m graphs chat",
        description="Talk to an agent, with its todo list in view. /help lists the commands.",
    )
    add = parser.add_argument
    add("--graph", choices=sorted(_GRAPHS), help="default: that of the thread, or until_done")
    add("--model", metavar="PROVIDER:NAME", help="a chat model (default: a stand-in without one)")
    add(
        "--db",
        metavar="FILE",
        default="todo-threads.sqlite",
        help="where threads are kept (default: %(default)s)",
    )
    add("--thread", metavar="ID", help="the thread to begin or to go on with (default: a new one)")
    add(
        "--workdir",
        metavar="DIR",
        type=Path,
        help="where commands run (default: that of the thread, or a new temporary directory)",
    )
    add(
        "--grace",
        metavar="SECONDS",
        type=int,
        choices=range(_LONGEST_GRACE + 1),
        default=3,
        help="how long to wait before a continuation (default: %(default)s)",
    )
    return parser


def _until_done(model: str | None, workdir: Path, policy: AutoContinue) -> StateGraph[Any]:
    return build_graph(chat_model(model), [shell_tool(workdir)], policy=policy)


def _notes(model: str | None, _workdir: Path, policy: AutoContinue) -> StateGraph[Any]:
    return build_graph(
        chat_model(model) if model else notes_model(),
        [notes_tool()],
        system_prompt=NOTES_PROMPT,
        policy=policy,
        state_schema=NotesState,
    )


_GRAPHS: dict[str, Callable[[str | None, Path, AutoContinue], StateGraph[Any]]] = {
    "notes": _notes,
    "until_done": _until_done,
}


async def _converse(options: argparse.Namespace) -> int:
    try:
        with closing(sqlite3.connect(options.db)) as connection:
            connection.execute("pragma schema_version")  # fails on a file that is no database
        async with AsyncSqliteSaver.from_conn_string(options.db) as saver:
            await saver.setup()
            waiting: list[str] = []
            thread = await _thread(options, saver, waiting)
            console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
            others = await newest_of_threads(saver, thread.graph, _RECENT_THREADS)
            if others:
                print("Threads, newest first; --thread ID goes on with one:")
                console.print(threads_view(others))
            print(f"thread {one_line(thread.name)} in {options.db}, graph {thread.graph.name}")
            if not options.model:
                print(
                    "The model is a stand-in that follows simple rules; --model takes a real one."
                )
            print("/help lists the commands.")
            await Conversation(thread, waiting, console).talk()
            print(f"go on with: --db {options.db} --thread {one_line(thread.name)}")
    except sqlite3.Error as error:
        raise UnusableInputError(f"--db {options.db} cannot be used: {error}") from error
    return EXIT_DONE


async def _thread(
    options: argparse.Namespace, saver: AsyncSqliteSaver, waiting: list[str]
) -> Thread:
    """The thread to talk in; its checkpoints carry which graph it is one of and where it works."""
    config: RunnableConfig = {"configurable": {"thread_id": options.thread or uuid4().hex[:8]}}
    saved = await saver.aget_tuple(config)
    kept = cast("dict[str, Any]", saved.metadata) if saved else {}
    name = options.graph or kept.get("agent", _DEFAULT_GRAPH)
    if name not in _GRAPHS or name != kept.get("agent", name):
        raise UnusableInputError(f"thread {options.thread!r} is one of the graph {kept['agent']!r}")
    workdir = _workdir(
        options.workdir or Path(kept.get("workdir") or tempfile.mkdtemp("", "todo-"))
    )
    policy = AutoContinue(grace_seconds=options.grace, stop_when=lambda _: bool(waiting))
    graph = _GRAPHS[name](options.model, workdir, policy).compile(checkpointer=saver, name=name)
    return Thread(graph, {**config, "metadata": {"workdir": str(workdir), "agent": name}})


def _workdir(workdir: Path) -> Path:
    try:
        workdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableInputError(f"--workdir {workdir} cannot be used: {error.strerror}") from None
    return workdir.resolve()
