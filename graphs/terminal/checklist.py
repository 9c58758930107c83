"""The program of `python -m graphs`: it works through a checklist and returns an exit code."""

import argparse
import asyncio
import errno
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import StateSnapshot
from prompt_toolkit import PromptSession
from rich.console import Console

from graphs.model import ModelError
from graphs.terminal.agents import open_agent
from graphs.terminal.approval import Answer, Approval, question_lines, read_answer
from graphs.terminal.lines import (
    drop_typed,
    open_console,
    print_error,
    said,
    show,
    silence_libraries,
)
from graphs.terminal.options import (
    EXIT_DONE,
    EXIT_INTERRUPTED,
    EXIT_NOT_DONE,
    EXIT_UNUSABLE,
    Parser,
    UnusableInputError,
)
from graphs.terminal.run_lines import RunLines
from graphs.terminal.session import Session, choose_session, open_saver
from graphs.terminal.thread import Thread
from todo_tools import AutoContinue, TodoItem, TodoLimits
from todo_tools.rendering import follow_in_terminal
from todo_tools.state import messages_in, todos_in
from todo_tools.testing import read_checklist
from todo_tools.transcript import is_from_user

_DEMO = Path(__file__).with_name("checklist.md")
_OPEN = ("not_started", "in_progress")
# A person gave the list, so the model may not drop a step.
_LIMITS = TodoLimits(keep_open=True)
_NOBODY = "nobody could be asked: there is no terminal, and --yes was not given"
_NOTHING_TO_DO = (
    "nothing to do: the list of this thread is finished. To begin the checklist again, name "
    "another --thread; to do one item again, use /redo or /edit in python -m graphs chat."
)


def main(argv: Sequence[str]) -> int:
    """Run the program and return its exit code; `--help` says what each one means."""
    silence_libraries()
    try:
        return asyncio.run(_work_through(_parser().parse_args(argv)))
    except (UnusableInputError, ModelError) as error:
        print_error(error)
        return EXIT_UNUSABLE
    except (KeyboardInterrupt, EOFError):
        return EXIT_INTERRUPTED
    except Exception as error:  # for example, the model does not answer
        print_error(error)
        return EXIT_NOT_DONE


def _parser() -> Parser:
    parser = Parser(
        "python -m graphs",
        "An agent works through a Markdown checklist until every step is finished. "
        "To talk to an agent instead: python -m graphs chat; see python -m graphs chat --help.",
        "Exit code: 0 all items completed, 1 some abandoned or open, or the run failed, "
        "2 unusable input, 130 interrupted. "
        "Commands run with your rights: use only checklists that you would run yourself.",
    )
    parser.add_argument(
        "plan",
        nargs="?",
        metavar="LIST.md",
        help="the checklist; - reads standard input (default: a demonstration)",
    )
    parser.add_argument(
        "--yes", action="store_true", help="with --agent coding, approve every call without asking"
    )
    return parser


async def _work_through(options: argparse.Namespace) -> int:
    plan = _read_plan(options.plan, resuming=bool(options.thread or options.newest))
    async with open_saver(options.db) as saver:
        session = await choose_session(options, saver)
        try:
            return await _run(options, session, plan, saver)
        finally:
            show(open_console(), *said(session.leave()))


async def _run(
    options: argparse.Namespace, session: Session, plan: str | None, saver: AsyncSqliteSaver
) -> int:
    # Nobody is there to answer, so an agent that only talks is sent back three times in a row.
    policy = AutoContinue(max_idle=3, grace_seconds=options.grace, explain=False)
    console = open_console()
    with open_agent(session, policy, saver, limits=_LIMITS) as graph:
        thread = Thread(graph, session.config)
        before = await thread.now()
        request = request_of(before, plan, session.thread)
        show(console, *said(session.opening))
        if request is None and not before.tasks:
            show(console, *said(_NOTHING_TO_DO))
        try:
            after = await _until_it_ends(thread, request, console, approve_all=options.yes)
        except BaseException:
            print(f"\nstopped; resume with:\n{session.resume_command}", file=sys.stderr)
            raise
    todos = todos_in(after.values)
    show(console, *said(f"stopped because: {after.values.get('todo_outcome')}"))
    done = bool(todos) and all(todo["status"] == "completed" for todo in todos)
    return EXIT_DONE if done else EXIT_NOT_DONE


def _read_plan(source: str | None, *, resuming: bool) -> str | None:
    """The checklist as text; `None` if the thread is resumed without one."""
    if source is None and resuming:
        return None
    name = {None: str(_DEMO), "-": "standard input"}.get(source, source)
    try:
        if source == "-" and not sys.stdin:
            raise OSError(errno.EBADF, "it is closed")
        # Many containers have no locale; `sys.stdin` then takes bytes that are not UTF-8.
        given = sys.stdin.fileno() if source == "-" else source or _DEMO
        with open(given, encoding="utf-8-sig", closefd=source != "-") as file:
            plan = file.read()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UnusableInputError(f"cannot read {name}: {reason}") from None
    if fault := _fault_in(read_checklist(plan)):
        raise UnusableInputError(f"{name} has {fault}")
    return plan


def _fault_in(steps: Sequence[str]) -> str:
    most, longest = _LIMITS.max_todos, _LIMITS.max_text_length
    if not steps:
        return "no open step, for example '- [ ] Build it: `make`'"
    if len(steps) > most:
        return f"{len(steps)} steps, at most {most} fit"
    return f"a step of more than {longest} characters" if max(map(len, steps)) > longest else ""


def request_of(snapshot: StateSnapshot, plan: str | None, thread: str) -> dict[str, Any] | None:
    """What to send to the thread: a checklist, or `None` to resume where it stopped.

    Raises:
        UnusableInputError: There is no such thread, or it works on another list.
    """
    messages, todos = messages_in(snapshot.values), todos_in(snapshot.values)
    is_open = any(todo["status"] in _OPEN for todo in todos)
    if plan is None and not (messages or todos):
        raise UnusableInputError(f"there is no thread {thread!r} to resume; give a checklist")
    if plan is not None and read_checklist(plan) != _steps_given(snapshot.values):
        if is_open or snapshot.tasks:
            raise UnusableInputError(
                f"thread {thread!r} is still working on another list; resume it without a "
                "checklist, or name another --thread"
            )
        steps = read_checklist(plan)
        todos = [TodoItem(text=step, status="not_started") for step in steps]
        return {"messages": [("user", plan)], "todos": todos}
    # `next` would be empty if all results of a step are stored but its checkpoint is not.
    if snapshot.tasks and messages:
        return None
    return {"messages": [("user", "Go on.")]} if is_open else None


def _steps_given(state: Mapping[str, Any]) -> list[str]:
    """The steps of the newest checklist that the user sent."""
    asked = (read_checklist(m.text) for m in reversed(messages_in(state)) if is_from_user(m))
    return next((steps for steps in asked if steps), list[str]())


async def _until_it_ends(
    thread: Thread, request: Any, console: Console, *, approve_all: bool
) -> StateSnapshot:
    """Run the thread and show it; when it waits for a person, ask and resume."""
    approval, now = Approval(), await thread.now()
    run = RunLines(messages_in(now.values))
    while True:
        stream, todos = _for_this_program(thread.run(request)), todos_in(now.values) or None
        async with aclosing(follow_in_terminal(stream, console=console, todos=todos)) as shown:
            async for mode, chunk in shown:
                show(console, *(run.after(mode, chunk) if mode == "updates" else ()))
        now = await thread.now()
        if not now.interrupts:
            return now
        approval = approval.of(now.interrupts)
        while call := approval.next_call:
            answer = Answer(approved=True) if approve_all else await _ask(console, call)
            approval = approval.decided(answer)
        request = approval.command


async def _for_this_program(stream: AsyncIterator[Any]) -> AsyncIterator[tuple[str, Any]]:
    """Say how to stop the countdown here."""
    async for mode, chunk in stream:
        if mode == "custom" and chunk.get("type") == "todo_countdown":
            yield mode, {**chunk, "text": f"{chunk['text'].partition(' (')[0]} (Ctrl-C stops it)"}
        else:
            yield mode, chunk


async def _ask(console: Console, call: Mapping[str, Any]) -> Answer:
    """Ask on the terminal until there is an answer; an empty line is not an answer."""
    if not (sys.stdin and sys.stdin.isatty()):
        return Answer(approved=False, reason=_NOBODY)
    show(console, *question_lines(call))
    drop_typed()
    while True:
        text = await PromptSession[str]().prompt_async("> ")
        if answer := read_answer(text.encode(errors="replace").decode()):
            show(console, answer.line)
            return answer
