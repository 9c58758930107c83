"""An agent whose list agent-chat-ui shows, and what its server needs: `langgraph-ui.json`.

agent-chat-ui cuts the results of tools, but shows React components from the channel `ui`. To copy:
`ShowList`, `component`, `graphs/ui/todos.tsx`, and `"ui"` and `"http"` of `langgraph-ui.json`.
Its limit: there is one component, below the newest answer, so older lists are not shown.
"""

import html
import json
import os
import re
from collections.abc import Sequence
from typing import Annotated, Any, NotRequired

from langchain import agents
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.messages import AIMessage
from langgraph.graph.ui import AnyUIMessage, push_ui_message, ui_message_reducer
from langgraph.runtime import Runtime
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from typing_extensions import override

from graphs.app import CHECKS
from graphs.context import RunContext, policy_of
from graphs.model import chat_model
from todo_tools import TodoMiddleware
from todo_tools.clients import to_client_todos
from todo_tools.state import todos_in


class ShownState(AgentState[Any]):
    """A state with the channel that agent-chat-ui reads components from."""

    ui: NotRequired[Annotated[Sequence[AnyUIMessage], ui_message_reducer]]


class ShowList(AgentMiddleware[Any, Any, Any]):
    """Show the list as a component below the model's newest answer that called a tool."""

    state_schema = ShownState

    @override
    def before_model(self, state: Any, runtime: Runtime[Any]) -> None:
        answers = (each for each in reversed(state["messages"]) if isinstance(each, AIMessage))
        answer, todos = next(answers, None), to_client_todos(todos_in(state))
        if answer and (todos or state.get("ui")):
            # One id, so the list moves down with the conversation.
            push_ui_message("todos", {"todos": todos}, id="todos", message=answer)


async def component(request: Request) -> HTMLResponse:
    """Load a component from the server's address, which its own answer (0.16.7) leaves out."""
    graph, name = request.path_params["graph"], (await request.json())["name"]
    script = f"{request.base_url}ui/{graph}/entrypoint.js"
    bundle = re.sub("[^a-zA-Z0-9]", "_", f"__LGUI_{graph}")
    loaded = f'{bundle}.render({json.dumps(name)}, "{{{{shadowRootId}}}}")'
    tag = f'<script src="{html.escape(script)}" onload="{html.escape(loaded)}"></script>'
    return HTMLResponse(tag)


routes = [Route("/ui/{graph:str}", component, methods=["POST"])]
app = Starlette(routes=routes, middleware=CHECKS)
with_list = agents.create_agent(
    chat_model(os.environ.get("TODO_MODEL")),
    middleware=[TodoMiddleware(policy=policy_of, todos_format="langchain"), ShowList()],
    context_schema=RunContext,
)
with_list.name = "with_list"  # `create_agent(name=...)` would also set the name of every message
