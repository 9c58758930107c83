"""The picture at the top of the README: a real run, drawn by rich. `make picture` updates it."""

import io
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from graphs.programs.lines import show
from graphs.programs.run_lines import RunLines
from graphs.tools.shell import shell_tool
from graphs.until_done import build_graph
from todo_tools.testing import checklist_model

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
        stream: Iterator[Any] = graph.stream(state, stream_mode=["updates", "custom"])
        run = RunLines()
        for mode, chunk in stream:
            show(console, *run.after(mode, chunk), *run.changed_list())
    # A fixed id, so that the same run makes the same file; and no fonts fetched from elsewhere.
    svg = console.export_svg(title="An agent works through its list", unique_id="todo-tools")
    return re.sub(r"@font-face \{.*?\}\n*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"wrote {PICTURE}")
