"""The list in clients of AG-UI, through the package ag-ui-langgraph."""

import re
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from tests.support import ROOT, edit
from todo_tools import AutoContinue, TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

core = pytest.importorskip("ag_ui.core")
adapter = pytest.importorskip("ag_ui_langgraph")

# The adapter still calls it.
pytestmark = pytest.mark.filterwarnings("ignore:`get_config_jsonschema` is deprecated")

PAGE = (ROOT / "docs" / "integrations" / "ag-ui.md").read_text(encoding="utf-8")
NAMES: dict[str, Any] = {"LangGraphAgent": adapter.LangGraphAgent}
for block in re.findall(r"^```py(?:thon)?\n(.*?)(?:^todos = .*?)?^```$", PAGE, re.M | re.S):
    exec(block, NAMES)

SHOWN = [
    [("a", "pending"), ("b", "pending")],
    [("a", "completed"), ("b", "pending")],
    [("a", "completed"), ("b", "completed")],
]
"""The list after each turn of the model that changes it."""


def graph(policy: AutoContinue) -> Any:
    """An agent that stops after each item."""
    script: list[AIMessage | str] = [
        turn("", call("write_todos", mode="replace", todos=["a", "b"])),
        "I stop.",
        edit("complete", 0),
        "I stop again.",
        edit("complete", 1),
        "Done.",
        "You are welcome.",
    ]
    todos = TodoMiddleware(policy=policy, todos_format="langchain")
    return create_agent(
        ScriptedChatModel(script=script),
        middleware=[todos, NAMES["SendState"]()],
        checkpointer=InMemorySaver(),
    )


def agent(policy: AutoContinue, kind: str = "ListOfTheAgent", **settings: Any) -> Any:
    settings = {"config": {"recursion_limit": 10_000}, **settings}
    return NAMES[kind](name="agent", graph=graph(policy), **settings)


class Client:
    """An interface that keeps what it was sent."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.messages: list[Any] = []
        self.lists: list[list[tuple[str, str]]] = []
        self.last: Any = None

    async def send(self, text: str, **state: Any) -> None:
        self.messages.append(core.UserMessage(id=f"user-{text}", role="user", content=text))
        await self.run(state=state)

    async def run(self, **given: Any) -> None:
        nothing: Any = {"state": {}, "tools": [], "context": [], "forwarded_props": {}}
        request = core.RunAgentInput(
            thread_id="1", run_id="1", messages=self.messages, **{**nothing, **given}
        )
        async for event in self.agent.run(request):
            if isinstance(event, core.StateSnapshotEvent):
                todos = event.snapshot.get("todos") or []
                self.lists.append([(todo["content"], todo["status"]) for todo in todos])
            elif isinstance(event, core.MessagesSnapshotEvent):
                self.messages = event.messages
            self.last = event

    @property
    def user_texts(self) -> list[str]:
        return [message.content for message in self.messages if message.role == "user"]


async def test_the_list_is_shown_during_the_run() -> None:
    """With the settings of the documentation; continuations are not shown."""
    client = Client(agent(AutoContinue(store=False)))
    await client.send("Begin.")
    seen = [shown for at, shown in enumerate(client.lists) if shown not in client.lists[:at]]
    assert [shown for shown in seen if shown] == SHOWN
    assert client.user_texts == ["Begin."]


async def test_stored_continuations_are_shown_as_the_users() -> None:
    client = Client(agent(AutoContinue()))
    await client.send("Begin.")
    assert len(client.user_texts) == 3


async def test_an_old_list_of_the_client_replaces_nothing() -> None:
    client = Client(agent(AutoContinue(store=False)))
    await client.send("Begin.")
    await client.send("Thanks.", todos=[{"content": "old", "status": "pending"}])
    assert client.lists[-1] == SHOWN[-1]
    assert client.user_texts == ["Begin.", "Thanks."]


async def test_without_the_setting_it_replaces_the_list() -> None:
    """When this test fails, the adapter has changed, and so may the documentation."""
    client = Client(agent(AutoContinue(store=False), "LangGraphAgent"))
    await client.send("Begin.")
    await client.send("Thanks.", todos=[{"content": "old", "status": "pending"}])
    assert client.lists[-1] == [("old", "pending")]


async def test_the_limit_of_the_adapter_is_too_low_for_the_loop() -> None:
    """When this test fails, the adapter has changed, and so may the documentation."""
    client = Client(agent(AutoContinue(store=False), config={}))
    await client.send("Begin.")
    assert client.lists[-1] == SHOWN[0]
    assert "recursion limit" in client.messages[-1].content


async def test_a_notice_is_in_the_last_message() -> None:
    client = Client(agent(AutoContinue(store=False, max_in_turn=1)))
    await client.send("Begin.")
    answer, notice = client.messages[-1].content.split("\n\n")
    assert answer == "I stop again."
    assert notice.startswith("⚠ Stopped after 1 continuation")


@pytest.mark.parametrize("reply", [True, "Be quick."])
async def test_a_question_is_answered_with_resume(reply: object) -> None:
    client = Client(agent(AutoContinue(store=False, ask=True), emit_interrupt_outcome=True))
    await client.send("Begin.")
    for shown in SHOWN[:2]:
        assert client.lists[-1] == shown
        (asked,) = client.last.outcome.interrupts
        entry = core.ResumeEntry(interrupt_id=asked.id, status="resolved", payload=reply)
        await client.run(resume=[entry])
    assert client.lists[-1] == SHOWN[2]
