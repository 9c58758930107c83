"""Demonstrate an agent that stops too early, is sent back, and finishes its list."""

import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode

from todo_tools._calls.records import TOOLS
from todo_tools._loop.node import add_auto_continue
from todo_tools._thread.state import TodoState
from todo_tools._tools.build import create_todo_tools
from todo_tools._view.view import model_view
from todo_tools.rendering import follow_in_terminal, show_messages
from todo_tools.testing import ScriptedChatModel, call, turn

__all__: list[str] = []

_STEPS = ["Write slugify.py", "Write its tests", "Run the tests", "Fix what fails"]
_BROKEN = 'def slugify(title):\n    return "-".join(title.split())\n'
_FIXED = 'def slugify(title):\n    return "-".join(title.lower().split())\n'
_TESTS = (
    "import unittest\nfrom slugify import slugify\n\nclass Slugify(unittest.TestCase):\n"
    '    def test_title(self):\n        self.assertEqual(slugify("Hello World"), "hello-world")\n'
)


def _edit(action: str, index: int) -> ToolCall:
    return call("edit_todos", action=action, indices=[index])


def _script() -> list[AIMessage | str]:
    plan = call("write_todos", mode="replace", todos=[*_STEPS, "Run the tests again"])
    return [
        turn("I have a plan.", plan, _edit("start", 0)),
        turn("", call("write_file", path="slugify.py", text=_BROKEN)),
        turn("", _edit("complete", 0), _edit("start", 1)),
        turn("", call("write_file", path="test_slugify.py", text=_TESTS)),
        turn("", _edit("complete", 1), _edit("start", 2)),
        turn("", call("run", command="python -m unittest test_slugify")),
        turn("", _edit("complete", 2)),
        "All done! The function is written and tested.",
        turn("Two items are open: a test failed.", _edit("start", 3)),
        turn("", call("write_file", path="slugify.py", text=_FIXED)),
        turn("", _edit("complete", 3), _edit("start", 4)),
        turn("", call("run", command="python -m unittest test_slugify")),
        turn("", _edit("complete", 4)),
        "The function is written, and its test passes.",
    ]


def build_demo(workdir: Path, *, pause: float = 0.0) -> Any:
    """Build the agent, for one run; `pause` is the seconds that the model takes for an answer."""

    @tool(description="Write a file.")
    def write_file(path: str, text: str) -> str:
        (workdir / path).write_text(text, encoding="utf-8")
        return f"wrote {len(text.splitlines())} lines"

    @tool(description="Run a command.")
    def run(command: str) -> str:
        program = [sys.executable, *command.split()[1:]]  # each command of the script is Python's
        done = subprocess.run(program, cwd=workdir, capture_output=True, text=True, check=False)  # noqa: S603
        lines = [line for line in done.stderr.splitlines() if "Error:" in line]
        return "\n".join([*lines, f"exit code {done.returncode}"])

    tools = [*create_todo_tools(), write_file, run]
    model = ScriptedChatModel(_script()).bind_tools(tools)

    def agent(state: TodoState) -> dict[str, Any]:
        time.sleep(pause)
        return {"messages": [model.invoke(model_view(state))]}

    builder = StateGraph(TodoState).add_node("agent", agent).add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent").add_edge("tools", "agent")
    return add_auto_continue(builder).compile()


def main(argv: Sequence[str] = ()) -> int:
    """Run the demonstration in the terminal; `argv` is the command line without the program."""
    ArgumentParser("python -m todo_tools.demo", description="Runs an agent.").parse_args(argv)
    print("The model is a script. All else is real.\n")
    with tempfile.TemporaryDirectory() as workdir:
        request: Any = {"messages": [("user", "Write a function slugify and test it.")]}
        graph, said = build_demo(Path(workdir), pause=0.5), 0
        stream: Iterator[Any] = graph.stream(request, stream_mode=["values", "custom", "messages"])
        for mode, chunk in follow_in_terminal(stream):
            if mode == "values":
                for message in filter(None, map(_without_list, chunk["messages"][said:])):
                    print(show_messages([message]))
                said = len(chunk["messages"])
    print("\nIn your agent: middleware=[TodoMiddleware()]")
    return 0


def _without_list(message: AnyMessage) -> AnyMessage | None:
    """Return a message without what the list shows, and without the texts of files, if any is."""
    if not isinstance(message, AIMessage):
        return None if message.name in TOOLS else message
    shown = [made for made in message.tool_calls if made["name"] not in TOOLS]
    calls = [{**made, "args": dict([*made["args"].items()][:1])} for made in shown]
    return message.model_copy(update={"tool_calls": calls}) if calls or message.text else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
