"""Run a demonstration: an agent stops too early, is sent back, and finishes its list.

Start it with `python -m todo_tools.demo`. The model is a script, so no API key is needed.
Everything else is real: the graph, the tools, the files that are written and the tests that run.
The files are in a temporary directory that is removed at the end.
"""

import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.messages.tool import ToolCall
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from typing_extensions import override

from todo_tools._calls.records import TOOLS
from todo_tools._loop.node import add_auto_continue
from todo_tools._thread.state import TodoState
from todo_tools._tools.build import create_todo_tools
from todo_tools._view.view import model_view
from todo_tools.rendering import follow_in_terminal, show_messages
from todo_tools.testing import ScriptedChatModel, call, turn

__all__ = ["build_demo", "main"]

_DESCRIPTION = (
    "An agent stops too early, is sent back, and finishes its list. The model is a script, so no "
    "key is needed; the files are in a temporary directory."
)
_SECONDS_PER_ANSWER = 0.5
_SECONDS_PER_COMMAND = 60

_TASK = "Write a function slugify and test it."
_STEPS = [
    "Write slugify.py",
    "Write its tests",
    "Run the tests",
    "Fix what fails",
    "Run the tests again",
]
_BROKEN = 'def slugify(title):\n    return "-".join(title.split())\n'
_FIXED = 'def slugify(title):\n    return "-".join(title.lower().split())\n'
_TESTS = """\
import unittest
from slugify import slugify

class Slugify(unittest.TestCase):
    def test_title(self):
        self.assertEqual(slugify("Hello World"), "hello-world")
"""
_RUN_TESTS = "python -m unittest test_slugify"


def _script() -> list[AIMessage | str]:
    return [
        turn(
            "I have a plan.",
            call("write_todos", mode="replace", todos=[{"text": step} for step in _STEPS]),
            _edit("start", 0),
        ),
        turn("", call("write_file", path="slugify.py", text=_BROKEN)),
        turn("", _edit("complete", 0), _edit("start", 1)),
        turn("", call("write_file", path="test_slugify.py", text=_TESTS)),
        turn("", _edit("complete", 1), _edit("start", 2)),
        turn("", call("run", command=_RUN_TESTS)),
        turn("", _edit("complete", 2)),
        "All done! The function is written and tested.",
        turn("Two items are open: a test failed.", _edit("start", 3)),
        turn("", call("write_file", path="slugify.py", text=_FIXED)),
        turn("", _edit("complete", 3), _edit("start", 4)),
        turn("", call("run", command=_RUN_TESTS)),
        turn("", _edit("complete", 4)),
        "The function is written, and its test passes.",
    ]


def _edit(action: str, index: int) -> ToolCall:
    return call("edit_todos", action=action, indices=[index])


class _PacedModel(ScriptedChatModel):
    """A scripted model that waits before each answer, so that people can follow the run."""

    pause: float

    @override
    def _answer(self, messages: list[BaseMessage]) -> AIMessage | str:
        time.sleep(self.pause)
        return super()._answer(messages)


def build_demo(workdir: Path, *, pause: float = 0.0) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the agent of the demonstration.

    Args:
        workdir: The directory for the agent's files.
        pause: The seconds that the model waits before each answer.

    Returns:
        The compiled graph, for one run.
    """

    def write_file(path: str, text: str) -> str:
        """Write a file."""
        (workdir / path).write_text(text, encoding="utf-8")
        return f"wrote {len(text.splitlines())} lines"

    def run(command: str) -> str:
        """Run a command."""
        _python, *args = command.split()  # each command of the script begins with it
        done = subprocess.run(  # noqa: S603  the command is from the script above
            [sys.executable, *args],
            cwd=workdir,
            capture_output=True,
            text=True,
            timeout=_SECONDS_PER_COMMAND,
            check=False,
        )
        lines = [line for line in done.stderr.splitlines() if "Error:" in line]
        return "\n".join([*lines, f"exit code {done.returncode}"])

    tools: list[Any] = [*create_todo_tools(), write_file, run]
    model = _PacedModel(script=_script(), pause=pause)

    def agent(state: TodoState) -> dict[str, Any]:
        return {"messages": [model.bind_tools(tools).invoke(model_view(state))]}

    builder = StateGraph(TodoState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    return add_auto_continue(builder).compile()


def main(argv: Sequence[str] = ()) -> int:
    """Run the demonstration in the terminal.

    Args:
        argv: The command line without the program's name; only `--help` is known.

    Returns:
        The exit code, always 0; errors are raised.

    Raises:
        SystemExit: `argv` asks for help, or is not empty.
    """
    ArgumentParser("python -m todo_tools.demo", description=_DESCRIPTION).parse_args(argv)
    print("The model is a script. All else is real.\n")
    with tempfile.TemporaryDirectory() as workdir:
        graph = build_demo(Path(workdir), pause=_SECONDS_PER_ANSWER)
        request: Any = {"messages": [HumanMessage(_TASK)]}
        stream: Iterator[Any] = graph.stream(request, stream_mode=["values", "custom", "messages"])
        said = 0
        for mode, chunk in follow_in_terminal(stream):
            if mode == "values":
                for message in filter(None, map(_without_list, chunk["messages"][said:])):
                    print(show_messages([message]))
                said = len(chunk["messages"])
    print("\nIn your agent: middleware=[TodoMiddleware()]")
    return 0


def _without_list(message: AnyMessage) -> AnyMessage | None:
    """Remove todo calls from a message, as the list shows them; `None` if nothing is left."""
    if isinstance(message, AIMessage):
        calls = [_short(made) for made in message.tool_calls if made["name"] not in TOOLS]
        left = message.model_copy(update={"tool_calls": calls})
        return left if calls or message.text else None
    return None if message.name in TOOLS else message


def _short(made: ToolCall) -> ToolCall:
    """Return a call without the argument that holds the text of a file."""
    return {**made, "args": {name: value for name, value in made["args"].items() if name != "text"}}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
