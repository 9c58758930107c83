"""The program of `python -m graphs chat`: a conversation and its list in a terminal."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graphs.model import ModelError
from graphs.terminal.claim import claimed
from graphs.terminal.commands import Model, Plain
from graphs.terminal.conversation import Conversation
from graphs.terminal.lines import (
    open_console,
    print_error,
    said,
    show,
    show_costs,
    show_whole,
    silence_libraries,
)
from graphs.terminal.options import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_UNUSABLE,
    Parser,
    UnusableInputError,
)
from graphs.terminal.session import Session, choose_session, choose_thread, open_saver
from graphs.terminal.thread import Thread, newest_of_threads
from graphs.terminal.thread_views import threads_view
from graphs.terminal.typed import is_terminal
from todo_tools import AutoContinue, asks_user

_RECENT_THREADS = 10


def main(argv: Sequence[str]) -> int:
    """Run the program.

    Args:
        argv: The command line without the program's name and `chat`.

    Returns:
        0 when the user leaves, 2 on unusable input, 130 when a signal interrupts the program.
    """
    silence_libraries()
    try:
        description = "Talk to an agent, with its todo list in view. /help lists the commands."
        options = Parser("python -m graphs chat", description).read(argv)
        if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
            raise UnusableInputError("the chat needs a terminal for its input and output")
        return asyncio.run(_converse(options))
    except (UnusableInputError, ModelError) as error:
        print_error(error)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


async def _converse(options: argparse.Namespace) -> int:
    async with open_saver(options.db) as saver:
        console = open_console()
        others = await newest_of_threads(saver, _RECENT_THREADS)
        if others and not options.newest:
            show(console, *said("Threads, newest first; --thread ID resumes one:"))
            show(console, *threads_view(others).lines)
        while True:
            options.thread = await choose_thread(options, saver)
            with claimed(options.db, options.thread):
                session, change = await choose_session(options, saver), None
                try:
                    change = await _talk(options, session, saver)
                finally:
                    if not change:
                        show(console, *said(session.workdir.leave()))
            if not change:
                return EXIT_DONE
            options = argparse.Namespace(**{**vars(options), **changed(session, change)})


def changed(session: Session, change: Model | Plain) -> dict[str, Any]:
    """The options that change if the chat goes on with another model, or in a new thread."""
    if isinstance(change, Model):
        return {"thread": session.thread, "model": change.name, "workdir": session.workdir}
    kept = {name: getattr(session, name) for name in ("agent", "model", "ask_plan", "checked")}
    return {**kept, "thread": None, "newest": False, "workdir": session.workdir}


def chat_policy(grace: int, waiting: Sequence[str]) -> AutoContinue:
    """The policy of the chat, which never talks over the person in front of it.

    An agent that only talks is not sent back (`max_idle=0`), and neither is one that asks a
    question or for which a message waits.

    Args:
        grace: The seconds of the countdown before a continuation.
        waiting: The messages that were typed while the agent worked.
    """
    return AutoContinue(
        max_idle=0,
        grace_seconds=grace,
        explain=False,
        stop_when=lambda state: bool(waiting) or asks_user(state),
    )


async def _talk(
    options: argparse.Namespace, session: Session, saver: AsyncSqliteSaver
) -> Model | Plain | None:
    waiting: list[str] = []
    policy = chat_policy(options.grace, waiting)
    with session.open_agent(policy, saver) as graph:
        console = open_console()
        for text in session.opening(options.db):
            show_whole(console, text)
        show(console, *said("/help lists the commands."))
        conversation = Conversation(
            Thread(graph, session.config),
            waiting,
            console,
            session,
            f"{options.db}-history",
        )
        try:
            await conversation.talk()
            now = await conversation.thread.now()
            if not now.tasks:  # a stopped step has not stored its results yet
                session.forget_endings()
            if options.costs:
                show_costs(console, now.values)
        finally:
            for text in waiting:
                show_whole(console, f"not sent: {text}")
            if not conversation.change:
                show_whole(console, f"resume with: {session.resume_command}")
    return conversation.change
