"""The program behind `python -m graphs`: a checklist in, a finished list and an exit code out."""

import argparse
import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn, cast
from uuid import uuid4

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import StateSnapshot

from graphs.model import ModelError, chat_model
from graphs.report import report
from graphs.shell import shell_tool
from graphs.until_done import build_graph
from todo_tools import AutoContinue, TodoLimits, format_status
from todo_tools.checklist import read_checklist

EXIT_DONE, EXIT_NOT_DONE, EXIT_UNUSABLE, EXIT_INTERRUPTED = 0, 1, 2, 130

_DEMO = Path(__file__).with_name("checklist.md")
_LIMITS = TodoLimits()
_LONGEST_GRACE = 60


class UnusableInputError(Exception):
    """The program cannot start on what it was given; the message is the one-line reason."""


def main(argv: Sequence[str]) -> int:
    """Run the program.

    Args:
        argv: The command line without the program's name.

    Returns:
        0 when every item is completed, 1 when something was abandoned or is left, 2 on unusable
        input, 130 when interrupted.
    """
    try:
        options = _parser().parse_args(argv)
        return asyncio.run(_work_off(options))
    except (UnusableInputError, ModelError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_UNUSABLE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


async def _work_off(options: argparse.Namespace) -> int:
    plan = _read_plan(options.plan, resuming=bool(options.thread))
    model = chat_model(options.model)
    try:
        _check_database(options.db)
        async with AsyncSqliteSaver.from_conn_string(options.db) as saver:
            await saver.setup()
            return await _run(options, plan, model, saver)
    except sqlite3.Error as error:
        raise UnusableInputError(f"--db {options.db} cannot be used: {error}") from error


def _check_database(path: str) -> None:
    """Fail early on a file that is no database: a connection thread would fail too late."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma schema_version")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UnusableInputError(f"{message}; see python -m graphs --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m graphs",
        description="An agent works off a Markdown checklist until every step is finished.",
        epilog="Exit code: 0 all completed, 1 something abandoned or left, 2 unusable input. "
        "Commands run with your rights: give it only checklists that you would run yourself.",
    )
    parser.add_argument(
        "plan",
        nargs="?",
        metavar="PLAN.md",
        help="the checklist, - for standard input (default: a demonstration)",
    )
    parser.add_argument(
        "--model", metavar="PROVIDER:NAME", help="a chat model (default: a stand-in without one)"
    )
    parser.add_argument(
        "--db",
        metavar="FILE",
        default="todo-threads.sqlite",
        help="where threads are kept (default: %(default)s)",
    )
    parser.add_argument(
        "--thread", metavar="ID", help="the thread to begin or to resume (default: a new one)"
    )
    parser.add_argument(
        "--grace",
        metavar="SECONDS",
        type=int,
        choices=range(_LONGEST_GRACE + 1),
        default=3,
        help="how long to wait before a continuation (default: %(default)s)",
    )
    parser.add_argument(
        "--workdir",
        metavar="DIR",
        type=Path,
        help="where commands run (default: that of the thread, or a new temporary directory)",
    )
    return parser


def _read_plan(source: str | None, *, resuming: bool) -> str | None:
    """The checklist as text; `None` where a thread is to be resumed as it stands."""
    if source is None and resuming:
        return None
    name = {None: str(_DEMO), "-": "standard input"}.get(source, source)
    try:
        plan = sys.stdin.read() if source == "-" else Path(source or _DEMO).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UnusableInputError(f"cannot read {name}: {reason}") from None
    steps = read_checklist(plan)
    if not steps:
        raise UnusableInputError(f"{name} has no open step such as '- [ ] Build it: `make`'")
    if len(steps) > _LIMITS.max_todos:
        raise UnusableInputError(f"{name} has {len(steps)} steps, at most {_LIMITS.max_todos} fit")
    if any(len(step) > _LIMITS.max_text_length for step in steps):
        raise UnusableInputError(
            f"{name} has a step of more than {_LIMITS.max_text_length} characters"
        )
    return plan


async def _run(
    options: argparse.Namespace, plan: str | None, model: BaseChatModel, saver: AsyncSqliteSaver
) -> int:
    thread = options.thread or uuid4().hex[:8]
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    workdir = _workdir(options.workdir, await saver.aget_tuple(config))
    errors = _ModelErrors()
    config |= {"metadata": {"workdir": str(workdir)}, "callbacks": [errors]}
    policy = AutoContinue(grace_seconds=options.grace)
    builder = build_graph(model, [shell_tool(workdir)], policy=policy)
    graph = builder.compile(checkpointer=saver)
    request = _request(await graph.aget_state(config), plan, thread)

    print(f"thread {thread} in {options.db}, working in {workdir}")
    if not options.model:
        print("The model is a stand-in that follows simple rules; --model takes a real one.")
    try:
        stream = graph.astream(request, config, stream_mode=["updates", "custom"])
        async for line in report(cast("AsyncIterator[tuple[str, Any]]", stream)):
            print(line, flush=True)
    except asyncio.CancelledError:
        print(f"\ninterrupted; go on with: --db {options.db} --thread {thread}", file=sys.stderr)
        raise
    except Exception as error:
        if error is not errors.last:
            raise
        raise ModelError(options.model, error) from error
    return _conclude(await graph.aget_state(config))


class _ModelErrors(BaseCallbackHandler):
    """Tells an error of the model, such as a missing key, from a mistake of ours."""

    last: BaseException | None = None

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        self.last = error


def _workdir(given: Path | None, saved: CheckpointTuple | None) -> Path:
    kept = cast("dict[str, Any]", saved.metadata).get("workdir") if saved else None
    workdir = given or Path(kept or tempfile.mkdtemp(prefix="todo-"))
    try:
        workdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableInputError(f"--workdir {workdir} cannot be used: {error.strerror}") from None
    return workdir.resolve()


def _request(snapshot: StateSnapshot, plan: str | None, thread: str) -> dict[str, Any] | None:
    """What to send to the thread: a new checklist, or `None` to go on where it stopped."""
    messages: list[BaseMessage] = snapshot.values.get("messages", [])
    if not messages:
        if plan is None:
            raise UnusableInputError(f"there is no thread {thread!r} to resume; give a checklist")
        return {"messages": [("user", plan)]}
    latest = next((m.text for m in reversed(messages) if read_checklist(m.text)), None)
    unfinished = bool(snapshot.next) or snapshot.values["todo_loop"].get("outcome") != "finished"
    if plan is not None and plan != latest:
        if unfinished:
            raise UnusableInputError(f"thread {thread!r} is still at another checklist")
        return {"messages": [("user", plan)]}
    if unfinished and not snapshot.next:  # let go by a limit: a word from the user re-arms it
        return {"messages": [("user", "Go on.")]}
    return None


def _conclude(snapshot: StateSnapshot) -> int:
    values = snapshot.values
    statuses = [todo["status"] for todo in values.get("todos", [])]
    completed = statuses.count("completed")
    outcome = values.get("todo_loop", {}).get("outcome")
    print(
        f"\n{format_status(values.get('todos', [])) or 'No todos'} — {completed} completed, "
        f"{statuses.count('abandoned')} abandoned; stopped because: {outcome}"
    )
    return EXIT_DONE if statuses and completed == len(statuses) else EXIT_NOT_DONE
