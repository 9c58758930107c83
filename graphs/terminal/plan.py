"""Show a plan to the person who approves it, and let them edit it."""

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graphs.coding_agent import PLANNING, planned_todos
from graphs.terminal.ctrl_c import deaf_to_ctrl_c
from todo_tools import TodoItem
from todo_tools.rendering import show_todos
from todo_tools.rendering.lowlevel import Line, Span, one_line
from todo_tools.schemas import CallError, read_texts


class NotEditedError(Exception):
    """A plan was not changed; the message is a one-line reason."""


def is_plan(action: Mapping[str, Any]) -> bool:
    """Whether a call that waits for approval is a plan."""
    return bool(action["name"] == PLANNING)


def plan_of(action: Mapping[str, Any], todos: Sequence[TodoItem]) -> list[TodoItem] | None:
    """Return the whole list as it would be after a plan.

    Args:
        action: The call with its `name` and `args`.
        todos: The list before it.

    Returns:
        The list; `None` if the call is not a plan or if the tool would refuse its arguments.
    """
    try:
        return planned_todos(todos, action["args"]) if is_plan(action) else None
    except CallError:
        return None


def plan_lines(planned: Sequence[TodoItem]) -> Iterator[Line]:
    """Show a planned list, one item a line, indented like the arguments of other calls."""
    return (replace(line, lead=(Span("    "), *line.lead)) for line in show_todos(planned).lines)


def edit_plan(args: Mapping[str, Any]) -> dict[str, Any]:
    """Let a person change the texts of a plan in their editor, one item a line.

    Args:
        args: The arguments of `write_todos`.

    Returns:
        The arguments with the new texts. An unchanged item keeps its text, even if that has several
        lines.

    Raises:
        NotEditedError: There is no editor, it failed, or it left the plan unchanged or empty.
    """
    try:
        texts = read_texts(args.get("todos"))
    except CallError as error:
        raise NotEditedError(f"Not edited: {one_line(str(error))}") from None
    before = [one_line(text).strip() for text in texts]
    after = [line.strip() for line in _edit("\n".join(before)).splitlines() if line.strip()]
    if not after or after == before:
        raise NotEditedError("Not edited: the plan was not changed")
    whole = dict(zip(before, texts, strict=True))
    return {**args, "todos": [{"text": whole.get(line, line)} for line in after]}


def _edit(text: str) -> str:
    """Return a text as the person's editor saved it."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not chosen:
        raise NotEditedError("Not edited: no editor is set in $VISUAL or $EDITOR")
    with TemporaryDirectory(prefix="todo-") as folder:
        file = Path(folder, "plan.txt")
        file.write_text(f"{text}\n", "utf-8")
        try:
            with deaf_to_ctrl_c():
                subprocess.run([*shlex.split(chosen), file], check=True)  # noqa: S603  theirs
            return file.read_text("utf-8")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise NotEditedError(f"Not edited: {one_line(str(error))}") from None
