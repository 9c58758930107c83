"""The graphs that `langgraph.json` serves; the server adds the checkpointer.

`TODO_MODEL` names the chat model (`provider:name`); without it a stand-in answers. `TODO_WORKDIR`
is where the coding agent works; without it a new temporary directory. No graph here runs a command
unless a person approves it: only the coding agent has a shell, and it asks.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from langgraph.graph.state import CompiledStateGraph

import graphs.notes
import graphs.until_done
from graphs.coding_agent import build_coding_agent
from graphs.model import chat_model

Graph = CompiledStateGraph[Any, Any, Any, Any]


def serve_coding_agent() -> Graph:
    """The coding agent; a person approves each command and each write."""
    workdir = os.environ.get("TODO_WORKDIR") or tempfile.mkdtemp(prefix="todo-")
    return build_coding_agent(_model("execute"), Path(workdir))


def serve_notes() -> Graph:
    """The agent with notes and todos."""
    name = os.environ.get("TODO_MODEL")
    model = chat_model(name) if name else graphs.notes.notes_model()
    return graphs.notes.build_graph(model).compile()


def serve_until_done() -> Graph:
    """The hand-built loop, without a shell: nobody is asked there."""
    return graphs.until_done.build_graph(_model("shell")).compile()


def _model(command_tool: str) -> Any:
    return chat_model(os.environ.get("TODO_MODEL"), command_tool=command_tool)


# Built once, when the server imports this module. The server would call a function on its event
# loop for every run and for every look at a thread.
coding_agent = serve_coding_agent()
notes = serve_notes()
until_done = serve_until_done()
