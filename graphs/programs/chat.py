"""The program of `python -m graphs chat`: a conversation in a terminal, its list in view."""

import argparse
import asyncio
import sqlite3
import sys
from collections.abc import Sequence
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphs.model import ModelError
from graphs.programs.agents import open_agent
from graphs.programs.conversation import Conversation
from graphs.programs.lines import open_console, show
from graphs.programs.options import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_UNUSABLE,
    Parser,
    UnusableInputError,
    check_database,
    choose_agent,
    choose_workdir,
    saved_metadata,
)
from graphs.programs.thread import Thread, newest_of_threads
from graphs.programs.thread_views import threads_view
from todo_tools import AutoContinue
from todo_tools.rendering import one_line

_RECENT_THREADS = 10


def main(argv: Sequence[str]) -> int:
    """Run the program.

    Args:
        argv: The command line without the program's name and `chat`.

    Returns:
        0 when the user has left, 2 on unusable input, 130 when it was interrupted from outside.
    """
    try:
        description = "Talk to an agent, with its todo list in view. /help lists the commands."
        options = Parser("python -m graphs chat", description).parse_args(argv)
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UnusableInputError("the chat needs a terminal for its input and output")
        return asyncio.run(_converse(options))
    except (UnusableInputError, ModelError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


async def _converse(options: argparse.Namespace) -> int:
    try:
        check_database(options.db)
        async with AsyncSqliteSaver.from_conn_string(options.db) as saver:
            await saver.setup()
            await _talk(options, saver)
    except sqlite3.Error as error:
        raise UnusableInputError(f"--db {options.db} cannot be used: {error}") from error
    return EXIT_DONE


async def _talk(options: argparse.Namespace, saver: AsyncSqliteSaver) -> None:
    name = options.thread or uuid4().hex[:8]
    config: RunnableConfig = {"configurable": {"thread_id": name}}
    saved = saved_metadata(await saver.aget_tuple(config))
    agent = choose_agent(options.agent, saved, name)
    workdir = choose_workdir(options.workdir, saved)
    config["metadata"] = {"workdir": str(workdir), "agent": agent}
    waiting: list[str] = []
    policy = AutoContinue(grace_seconds=options.grace, stop_when=lambda _: bool(waiting))
    with open_agent(agent, options.model, workdir, policy, saver) as graph:
        console = open_console()
        others = await newest_of_threads(saver, graph, _RECENT_THREADS)
        if others:
            print("Threads, newest first; --thread ID resumes one:")
            show(console, *threads_view(others).lines)
        print(f"thread {one_line(name)} in {options.db}, agent {agent}, working in {workdir}")
        if not options.model:
            print("The model is a stand-in that follows simple rules; --model takes a real one.")
        print("/help lists the commands.")
        await Conversation(Thread(graph, config), waiting, console).talk()
    print(f"resume with: --db {options.db} --thread {one_line(name)}")
