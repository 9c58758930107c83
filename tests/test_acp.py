"""The list in clients of the Agent Client Protocol, through the package deepagents-acp."""

import inspect
import re
import sys
from types import ModuleType
from typing import Any, get_args

import pytest
from deepagents import create_deep_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from tests.support import ROOT, edit
from todo_tools._list.formats import TodosFormat
from todo_tools.middleware import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

server = pytest.importorskip("deepagents_acp.server")
schema = pytest.importorskip("acp.schema")

PAGE = (ROOT / "docs" / "acp.md").read_text(encoding="utf-8")

SHOWN = [
    [("a", "pending"), ("b", "pending")],
    [("a", "in_progress"), ("b", "pending")],
    [("a", "completed"), ("b", "completed")],
]
"""The plan after each turn of the model that changes the list."""


class Client:
    """An editor that keeps the plans it is sent."""

    def __init__(self) -> None:
        self.plans: list[list[tuple[str, str]]] = []

    async def session_update(self, *, update: Any, **_: Any) -> None:
        if isinstance(update, schema.AgentPlanUpdate):
            self.plans.append([(entry.content, entry.status) for entry in update.entries])


def agent(todos_format: TodosFormat) -> Any:
    texts = [{"text": "a"}, {"text": "b"}]
    script: list[AIMessage | str] = [
        turn("", call("write_todos", mode="replace", todos=texts)),
        edit("start", 0),
        turn(
            "",
            call("edit_todos", action="complete", indices=[0]),
            call("edit_todos", action="complete", indices=[1]),
        ),
        "Done.",
    ]
    middleware = [TodoMiddleware(todos_format=todos_format)]
    model = ScriptedChatModel(script=script)
    return create_deep_agent(model, middleware=middleware, checkpointer=InMemorySaver())


async def plans_of(module: Any, served: Any) -> list[list[tuple[str, str]]]:
    """The plans that a client gets during one prompt, without repetitions."""
    bridge, client = module.AgentServerACP(lambda _: served), Client()
    bridge.on_connect(client)
    session = await bridge.new_session(cwd=str(ROOT), mcp_servers=[])
    text = schema.TextContentBlock(type="text", text="Begin.")
    await bridge.prompt(prompt=[text], session_id=session.session_id)
    return client.plans


@pytest.mark.parametrize("todos_format", get_args(TodosFormat))
async def test_the_adapter_of_the_documentation_shows_the_list(todos_format: TodosFormat) -> None:
    """The newest plan is the list of the state, after each turn."""
    names: dict[str, Any] = {}
    exec(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0], names)
    plans = await plans_of(server, names["ShownInACP"](agent(todos_format)))
    assert [plan for plan in plans if plan in SHOWN] == SHOWN
    assert plans[-1] == SHOWN[-1]


async def test_without_it_a_run_fails() -> None:
    """When this test fails, the bridge has changed, and so may the documentation."""
    with pytest.raises(AttributeError, match="'str' object has no attribute 'get'"):
        await plans_of(server, agent("langchain"))


async def test_the_patch_of_the_documentation_needs_no_adapter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The patch fits the installed version, and sends exactly the lists of the state."""
    patched = ModuleType("patched")
    patched.__package__ = server.__package__
    monkeypatch.setitem(sys.modules, patched.__name__, patched)
    exec(_patched(inspect.getsource(server)), vars(patched))
    assert await plans_of(patched, agent("langchain")) == SHOWN


def _patched(source: str) -> str:
    diff = re.findall(r"^```diff\n.*?^@@\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    for hunk in diff.split("@@\n"):
        lines = [line or " " for line in hunk.splitlines()]
        before = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
        after = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    return source
