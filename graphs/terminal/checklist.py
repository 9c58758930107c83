"""The program of `python -m graphs`: it works through a checklist and returns an exit code."""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot
from rich.console import Console

from graphs.model import ModelError
from graphs.terminal.approval import (
    Answer,
    Approval,
    Approved,
    answer_about,
    question_about,
    wants_all,
)
from graphs.terminal.claim import claimed
from graphs.terminal.cut_off import cut_off_lines
from graphs.terminal.lines import (
    OutputError,
    close_output,
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
    EXIT_NOT_DONE,
    EXIT_UNUSABLE,
    Parser,
    UnusableInputError,
)
from graphs.terminal.plan import NotEditedError, plan_of
from graphs.terminal.question import Room, call_rows, is_cut
from graphs.terminal.region import Region
from graphs.terminal.request import commandless_steps, dropped_steps, read_plan, request_of
from graphs.terminal.run_lines import RunLines
from graphs.terminal.session import Session, choose_session, choose_thread, open_saver
from graphs.terminal.typed import drop_typed, is_terminal
from todo_tools import AutoContinue, TodoItem, TodoLimits
from todo_tools._thread.state import loop_in
from todo_tools.rendering import show_status, show_todos
from todo_tools.rendering.lowlevel import Line, Span, note_lines
from todo_tools.state import todos_in

_NOBODY = "nobody could be asked: there is no terminal, and --yes was not given"
_NOTHING_TO_DO = (
    "nothing to do: the list of this thread is finished. To begin the checklist again, name "
    "another --thread; to do one item again, use /redo or /edit in python -m graphs chat."
)
_LONGEST_LINE = 4096
"""The bytes of the longest line that a terminal gives."""
_TAKE_BACK = "to be asked again, press Ctrl-C and resume"

_Graph = CompiledStateGraph[Any, Any, Any, Any]


def main(argv: Sequence[str]) -> int:
    """Run the program.

    Args:
        argv: The command line without the program's name.

    Returns:
        0 if all items are completed, 1 if some are abandoned or incomplete or the run failed, 2 on
        unusable input, 130 if interrupted.
    """
    silence_libraries()
    try:
        options = _parser().read(argv)
        return asyncio.run(_work_through(options))
    except (UnusableInputError, ModelError) as error:
        print_error(error)
        return EXIT_UNUSABLE
    except (KeyboardInterrupt, EOFError):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return close_output()
    except OutputError as error:
        close_output()
        print_error(error)
        return EXIT_NOT_DONE
    except Exception as error:  # for example, an answer that cannot be stored
        print_error(error, kind=f"{type(error).__name__}: ")
        return EXIT_NOT_DONE


async def _work_through(options: argparse.Namespace) -> int:
    plan = read_plan(options.plan, resuming=bool(options.thread or options.newest))
    async with open_saver(options.db) as saver:
        options.thread = await choose_thread(options, saver)
        with claimed(options.db, options.thread):
            session = await choose_session(options, saver)
            try:
                code = await _run(options, session, plan, saver)
                session.forget_endings()
                return code
            finally:
                if left := session.workdir.leave():
                    show(open_console(), *said(left))


def _parser() -> Parser:
    parser = Parser(
        "python -m graphs",
        "An agent works through a Markdown checklist until every step is finished. "
        "To talk to an agent instead: python -m graphs chat; see python -m graphs chat --help.",
        "Exit code: 0 all items completed, 1 some abandoned or incomplete, or the run failed, "
        "2 unusable input. "
        "Commands run with your rights: use only checklists that you would run yourself.",
    )
    parser.add_argument(
        "plan",
        nargs="?",
        metavar="PLAN.md",
        help="the checklist; - reads standard input (default: a demonstration)",
    )
    parser.add_argument(
        "--yes", action="store_true", help="with --agent coding, approve every call without asking"
    )
    return parser


def checklist_policy(grace: int) -> AutoContinue:
    """The policy of the program: nobody is there to answer the agent.

    So an agent that only talks is sent back up to three times in a row (`max_idle=3`).

    Args:
        grace: The seconds of the countdown before a continuation.
    """
    return AutoContinue(max_idle=3, grace_seconds=grace, explain=False)


async def _run(
    options: argparse.Namespace, session: Session, plan: str | None, saver: AsyncSqliteSaver
) -> int:
    errors = _ModelErrors()
    config: RunnableConfig = {**session.config, "callbacks": [errors]}
    policy = checklist_policy(options.grace)
    # A person gave the list, so the model may not drop a step. An approved plan is a person's word.
    limits = TodoLimits(keep_open=not session.ask_plan)
    with session.open_agent(policy, saver, limits) as graph:
        before = await graph.aget_state(config)
        request = request_of(before, plan, session)
        console = open_console()
        for text in session.opening(options.db):
            show_whole(console, text)
        if request is None and not before.tasks:
            show(console, *said(_NOTHING_TO_DO))
        if session.checked:
            for step in commandless_steps(plan, before.values):
                show(console, *said(f"not checked, because it has no command: {step}"))
        try:
            approved = Approved(options.yes)
            snapshot = await _until_it_ends(graph, request, config, session, approved)
        except BrokenPipeError:
            raise
        except (asyncio.CancelledError, EOFError, OutputError):
            print(f"\ninterrupted; resume with: {session.resume_command}", file=sys.stderr)
            raise
        except Exception as error:
            show_whole(open_console(), f"stopped; resume with: {session.resume_command}")
            if error is not errors.last:
                raise
            raise ModelError(session.model, error) from error
    # A person who approves the list may leave out steps.
    code = _conclude(snapshot, [] if session.ask_plan else dropped_steps(snapshot.values))
    if options.costs:
        show_costs(open_console(), snapshot.values)
    return code


async def _until_it_ends(
    graph: _Graph, request: Any, config: RunnableConfig, session: Session, approved: Approved
) -> StateSnapshot:
    """Run the thread and show it; when it waits for a person, ask and resume."""
    snapshot = await graph.aget_state(config)
    run = RunLines(
        snapshot.values,
        output=not Region(open_console()).is_live,
        asks=lambda name: name in session.asked_about and name not in approved,
    )
    if request is None:
        show(open_console(), *cut_off_lines(snapshot))
    while True:
        # Each step is stored before the next one begins, so a kill repeats no finished step.
        stream = graph.astream(
            request, config, stream_mode=["updates", "custom", "messages"], durability="sync"
        )
        await _show_run(stream, run)
        snapshot = await graph.aget_state(config)
        if not snapshot.interrupts:
            return snapshot
        approval = Approval().of(snapshot.interrupts)
        request = (await _decided(approval, approved, run, session)).command
        show(open_console(), *run.shown_now())


async def _decided(
    approval: Approval, approved: Approved, run: RunLines, session: Session
) -> Approval:
    """Ask a person about each call that is not approved yet."""
    console = open_console()
    while not (approval := approval.passing(approved)).complete:
        action = approval.next_call
        if is_terminal(sys.stdin):
            todos = approval.list_before_next(run.followed.todos or [])
            run.has_asked(action)
            answer = await _ask(console, action, todos, session.text_before(action))
            if answer.approved and not answer.edited:
                run.has_shown(plan_of(action, todos))
        else:
            show(console, *run.shown_now())
            answer = Answer(approved=False, reason=_NOBODY)
        show(console, *approved.after(answer, action["name"], _TAKE_BACK))
        approval = approval.decided(answer)
    return approval


async def _ask(
    console: Console, action: Mapping[str, Any], todos: Sequence[TodoItem], before: str
) -> Answer:
    """Ask on the terminal until there is an answer; an empty line is not an answer."""
    room = Room.of(console)
    show(console, *call_rows(action, todos, room, before))
    cut = is_cut(action, todos, room, before)
    while True:
        drop_typed(sys.stdin.fileno())
        show(console, question_about(action, cut=cut))
        console.print("> ", end="")
        text = await _read_line()
        if wants_all(text):
            show(console, *call_rows(action, todos, room.whole, before))
            continue
        try:
            if answer := answer_about(action, text):
                return answer
        except NotEditedError as error:
            show(console, *said(str(error)))


async def _read_line() -> str:
    """Read from the terminal. Unlike `input` this can be cancelled, so that Ctrl-C works."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin)
    # Not `readline`, which waits for the rest if Ctrl-D ends a line, and takes that for an answer.
    line = os.read(sys.stdin.fileno(), _LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise EOFError
    # Python would keep a byte that is no text, and neither a model nor the database takes it.
    return line.decode(sys.stdin.encoding, "replace")


async def _show_run(stream: AsyncIterator[Any], run: RunLines) -> None:
    """Print a run as it happens, with the list below it or, in a pipe, after each change."""
    console = open_console()
    with Region(console) as region:
        region.see(run.followed)
        async for mode, chunk in stream:
            show(console, *run.after(mode, chunk))
            region.see(run.followed)
            if not region.is_live:
                show(console, *_countdown(mode, chunk), *run.changed_list())


def _countdown(mode: str, chunk: Any) -> tuple[Line, ...]:
    """Show a second of the countdown, and how to stop it in this program."""
    if mode == "custom" and chunk.get("type") == "todo_countdown":
        return note_lines(f"⏳ Auto-continuing in {chunk['seconds']}s... (Ctrl-C to interrupt)")
    return ()


class _ModelErrors(BaseCallbackHandler):
    """Tells errors of the model, for example a missing key, from bugs of the program."""

    last: BaseException | None = None

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        self.last = error


def _conclude(snapshot: StateSnapshot, dropped: Sequence[str]) -> int:
    todos = todos_in(snapshot.values)
    status, *_ = show_status(todos).lines or show_todos([]).lines
    reason = f"; stopped because: {loop_in(snapshot.values).get('outcome')}"
    console = open_console()
    if console.is_terminal and not console.is_dumb_terminal:
        show(console, Line(()), *(show_todos(todos).lines if todos else ()))
    else:
        show(console, Line(()))
    for step in dropped:
        show(console, *said(f"abandoned, and left out of the list: {step}"))
    show(console, replace(status, body=(*status.body, Span(reason, "muted"))))
    done = bool(todos) and not dropped and all(todo["status"] == "completed" for todo in todos)
    return EXIT_DONE if done else EXIT_NOT_DONE
