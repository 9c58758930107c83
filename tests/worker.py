"""A process for `tests/test_processes.py` that works on a thread shared with other processes.

`python -m tests.worker (sync|async) URI THREAD WORKDIR`, with a request as JSON on standard input.
The request is the graph's input (`null` resumes the thread), or `{"edit": [...]}` to write a list
to the thread. The process prints the state of the thread as JSON.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from graphs.terminal.tools.shell import shell_tool
from graphs.until_done import build_graph
from todo_tools.testing import checklist_model


def work(uri: str, config: RunnableConfig, workdir: Path, request: Any) -> StateSnapshot:
    with PostgresSaver.from_conn_string(uri) as saver:
        saver.setup()
        graph = graph_on(saver, workdir)
        if request and "edit" in request:
            graph.update_state(config, {"todos": request["edit"]})
        else:
            graph.invoke(request, config, durability="sync")
        return graph.get_state(config)


async def awork(uri: str, config: RunnableConfig, workdir: Path, request: Any) -> StateSnapshot:
    async with AsyncPostgresSaver.from_conn_string(uri) as saver:
        await saver.setup()
        graph = graph_on(saver, workdir)
        if request and "edit" in request:
            await graph.aupdate_state(config, {"todos": request["edit"]})
        else:
            await graph.ainvoke(request, config, durability="sync")
        return await graph.aget_state(config)


def graph_on(
    saver: BaseCheckpointSaver[Any], workdir: Path
) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = build_graph(checklist_model(rest_after=1), [shell_tool(workdir)])
    return builder.compile(checkpointer=saver)


def main(form: str, uri: str, thread: str, workdir: str) -> None:
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    request = json.load(sys.stdin)
    if form == "async":
        snapshot = asyncio.run(awork(uri, config, Path(workdir), request))
    else:
        snapshot = work(uri, config, Path(workdir), request)
    values = snapshot.values
    print(
        json.dumps(
            {
                "todos": values["todos"],
                "loop": values["todo_loop"],
                "outcome": values["todo_outcome"],
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
