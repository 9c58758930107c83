"""An agent that builds a shelf and is continued once, for tests of live views."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from graphs.until_done import build_graph
from tests.support import Graph, edit
from todo_tools import AutoContinue
from todo_tools.testing import ScriptedChatModel, call, turn

REQUEST: Any = {"messages": [("user", "Make a shelf.")]}
MODES: Any = ["updates", "custom"]
FINAL = "✓ [0] Measure\n✗ [1] Cut\n✓ 1 completed, ✗ 1 abandoned"
"""The list at the end, and its status."""


def shelf_graph() -> Graph:
    """The agent's graph, with a script for one run."""
    model = ScriptedChatModel(
        script=[
            turn(
                "",
                call("write_todos", mode="replace", todos=["Measure", "Cut"]),
                call("edit_todos", action="start", indices=[0]),
            ),
            edit("complete", 0),
            "Enough.",
            edit("abandon", 1),
            "Done.",
        ]
    )
    builder = build_graph(model, policy=AutoContinue(max_in_a_row=1))
    return builder.compile(checkpointer=InMemorySaver())
