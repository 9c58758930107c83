"""The program of `python -m graphs chat`: a conversation and its list in a terminal."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from graphs.model import ModelError
from graphs.terminal.agents import open_agent
from graphs.terminal.conversation import Conversation
from graphs.terminal.lines import open_console, print_error, said, show, silence_libraries
from graphs.terminal.options import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_UNUSABLE,
    Parser,
    UnusableInputError,
)
from graphs.terminal.session import choose_session, open_saver
from graphs.terminal.thread import Thread
from todo_tools import AutoContinue, asks_user


def main(argv: Sequence[str]) -> int:
    """Run the program and return its exit code: 0 when the user leaves."""
    silence_libraries()
    try:
        description = "Talk to an agent, with its todo list in view. /help lists the commands."
        options = Parser("python -m graphs chat", description).parse_args(argv)
        if not all(stream and stream.isatty() for stream in (sys.stdin, sys.stdout)):
            raise UnusableInputError("the chat needs a terminal for its input and output")
        return asyncio.run(_converse(options))
    except (UnusableInputError, ModelError) as error:
        print_error(error)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


async def _converse(options: argparse.Namespace) -> int:
    signal.signal(signal.SIGINT, _do_nothing)  # between two prompts, so that Ctrl-C ends nothing
    waiting, console = list[str](), open_console()
    async with open_saver(options.db) as saver:
        session = await choose_session(options, saver)
        with open_agent(session, chat_policy(options.grace, waiting), saver) as graph:
            show(console, *said(session.opening), *said("/help lists the commands."))
            try:
                await Conversation(Thread(graph, session.config), waiting, console).talk()
            finally:
                show(console, *(line for text in waiting for line in said(f"not sent: {text}")))
                print(f"resume with:\n{session.resume_command}")
                show(console, *said(session.leave()))
    return EXIT_DONE


def chat_policy(grace: int, waiting: Sequence[str]) -> AutoContinue:
    """The policy of the chat, which never talks over the person in front of it.

    An agent that only talks is not sent back (`max_idle=0`), and neither is one that asks a
    question or for which a message of `waiting` is kept.
    """
    return AutoContinue(
        max_idle=0,
        grace_seconds=grace,
        explain=False,
        stop_when=lambda state: bool(waiting) or asks_user(state),
    )


def _do_nothing(*_: object) -> None:
    pass
