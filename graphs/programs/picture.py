"""The picture at the top of the README: a real run, drawn by rich. `make picture` makes it anew."""

import io
import re
import tempfile
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolMessage
from rich.console import Console
from rich.text import Text

from graphs.tools.shell import shell_tool
from graphs.until_done import build_graph
from todo_tools import format_status
from todo_tools.rendering import show_call, show_result
from todo_tools.testing import checklist_model
from todo_tools.transcript import details_of

PICTURE = Path(__file__).parent.parent / "demo.svg"
PLAN = """\
- [ ] Write the greeting: `echo Hello > greeting`
- [ ] Look for an echo: `grep echo greeting`
- [ ] Show it: `cat greeting`
"""


def draw() -> str:
    """Run the agent on a small checklist in a fresh directory, and draw what it did as SVG."""
    console = Console(record=True, width=80, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as workdir:
        tools = [shell_tool(Path(workdir))]
        graph = build_graph(checklist_model(rest_after=2), tools).compile()
        state: Any = {"messages": [("user", PLAN)]}
        for mode, chunk in graph.stream(state, stream_mode=["updates", "custom"]):
            _show(console, mode, chunk)
    # A fixed id, so that the same run makes the same file; and no fonts fetched from elsewhere.
    svg = console.export_svg(title="An agent works off its list", unique_id="todo-tools")
    return re.sub(r"@font-face \{.*?\}\n*", "", svg, flags=re.DOTALL)


def _show(console: Console, mode: str, chunk: Any) -> None:
    if mode == "custom":
        if chunk["type"] == "todo_loop" and chunk["outcome"] is None:
            console.print(Text("↻ not finished: sent back to work", style="bold cyan"))
        return
    answered: dict[str, Any] = chunk.get("agent") or {}
    for message in answered.get("messages", []):
        _show_turn(console, message)
    results = _results(chunk.get("tools"))
    for result in results:
        if details_of(result) is None:
            console.print(Text(f"  {result.text.splitlines()[-1]}", style="dim"))
    lists = [result for result in results if details_of(result)]
    if lists:
        console.print(show_result(lists[-1]))
        console.print(Text(format_status(lists[-1].artifact["todos"]), style="bold"))
        console.print()


def _show_turn(console: Console, message: AIMessage) -> None:
    if message.text:
        console.print(Text(message.text, style="italic"))
    for call in message.tool_calls:
        console.print(Text("→ "), end="")
        console.print(show_call(call["name"], call["args"]))


def _results(update: Any) -> list[ToolMessage]:
    parts = cast("list[dict[str, Any]]", update if isinstance(update, list) else [update or {}])
    return [message for part in parts for message in part.get("messages", [])]


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"wrote {PICTURE}")
