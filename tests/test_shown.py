"""The list as a component of agent-chat-ui: `graphs/shown.py`."""

from typing import Any

import httpx
from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from graphs.shown import ShowList, app
from todo_tools import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn


def run(*script: AIMessage | str) -> dict[str, Any]:
    agent: Any = create_agent(
        ScriptedChatModel(script=script), middleware=[TodoMiddleware(policy=None), ShowList()]
    )
    final: dict[str, Any] = agent.invoke({"messages": [("user", "Go.")]})
    return final


def test_the_newest_list_is_shown_below_the_answer_that_changed_it() -> None:
    """One component moves down with the conversation, so the state holds one list."""
    write = turn("", call("write_todos", mode="replace", todos=["Measure", "Saw"]))
    final = run(write, turn("", call("edit_todos", action="abandon", indices=[1])), "Done.")
    (shown,) = final["ui"]
    assert shown["props"] == {
        "todos": [
            {"content": "Measure", "status": "pending"},
            {"content": "Saw (abandoned)", "status": "completed", "abandoned": True},
        ]
    }
    assert shown["metadata"]["message_id"] == final["messages"][3].id


def test_without_a_list_nothing_is_shown() -> None:
    assert run(turn("", call("list_todos")), "Nothing to do.")["ui"] == []


async def test_a_component_is_loaded_from_the_address_of_the_server() -> None:
    """A page that is served elsewhere would look at its own address; a foreign page is refused."""
    server = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:1234")
    async with server:
        answer = await server.post("/ui/my-agent", json={"name": "todos"})
        foreign = await server.post("/ui/my-agent", headers={"Origin": "https://example.com"})
    assert foreign.status_code == 403
    assert answer.text == (
        '<script src="http://localhost:1234/ui/my-agent/entrypoint.js" '
        'onload="__LGUI_my_agent.render(&quot;todos&quot;, &quot;{{shadowRootId}}&quot;)"></script>'
    )
