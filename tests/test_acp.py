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
from todo_tools import AutoContinue, TodoMiddleware
from todo_tools._list.formats import TodosFormat
from todo_tools.testing import ScriptedChatModel, call, turn

server = pytest.importorskip("deepagents_acp.server")
schema = pytest.importorskip("acp.schema")

PAGE = (ROOT / "docs" / "integrations" / "acp.md").read_text(encoding="utf-8")

SHOWN = [
    [("a", "pending"), ("b", "pending")],
    [("a", "in_progress"), ("b", "pending")],
    [("a", "completed"), ("b", "completed")],
]
"""The plan after each turn of the model that changes the list."""


class Client:
    """An editor that keeps what it is sent, and answers each question in the same way."""

    def __init__(self, answer: str = "approve") -> None:
        self.answer = answer
        self.plans: list[list[tuple[str, str]]] = []
        self.said: list[str] = []
        self.options: list[list[str]] = []

    async def session_update(self, *, update: Any, **_: Any) -> None:
        if isinstance(update, schema.AgentPlanUpdate):
            self.plans.append([(entry.content, entry.status) for entry in update.entries])
        elif isinstance(update, schema.AgentMessageChunk):
            self.said.append(update.content.text)

    async def request_permission(self, *, options: list[Any], **_: Any) -> Any:
        self.options.append([option.name for option in options])
        outcome = schema.AllowedOutcome(outcome="selected", option_id=self.answer)
        return schema.RequestPermissionResponse(outcome=outcome)


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


async def prompt(bridge: Any, client: Client) -> Client:
    """Send one prompt in a new session."""
    bridge.on_connect(client)
    session = await bridge.new_session(cwd=str(ROOT), mcp_servers=[])
    text = schema.TextContentBlock(type="text", text="Begin.")
    await bridge.prompt(prompt=[text], session_id=session.session_id)
    return client


async def plans_of(module: Any, served: Any) -> list[list[tuple[str, str]]]:
    """The plans that a client gets during one prompt, without repetitions."""
    return (await prompt(module.AgentServerACP(lambda _: served), Client())).plans


def documented(name: str) -> Any:
    """A class of the documentation."""
    names: dict[str, Any] = {"AgentServerACP": server.AgentServerACP}
    blocks = re.findall(r"^```py(?:thon)?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    exec(next(block for block in blocks if f"class {name}" in block), names)
    return names[name]


def stopping(policy: AutoContinue) -> Any:
    """A server of an agent that stops after each item."""
    script: list[AIMessage | str] = [
        turn("", call("write_todos", mode="replace", todos=["a", "b"])),
        "I stop.",
        edit("complete", 0),
        "I stop again.",
        edit("complete", 1),
        "Done.",
    ]
    served = create_deep_agent(
        ScriptedChatModel(script=script),
        middleware=[TodoMiddleware(policy=policy)],
        checkpointer=InMemorySaver(),
    )
    return documented("AskingServer")(lambda _: documented("ShownInACP")(served))


@pytest.mark.parametrize("todos_format", get_args(TodosFormat))
async def test_the_adapter_of_the_documentation_shows_the_list(todos_format: TodosFormat) -> None:
    """The newest plan is the list of the state, after each turn."""
    plans = await plans_of(server, documented("ShownInACP")(agent(todos_format)))
    assert [plan for plan in plans if plan in SHOWN] == SHOWN
    assert plans[-1] == SHOWN[-1]


async def test_a_continuation_is_not_shown() -> None:
    client = await prompt(stopping(AutoContinue(store=False)), Client())
    assert client.said == ["I stop.", "I stop again.", "Done."]


async def test_a_notice_is_shown_below_the_last_answer() -> None:
    client = await prompt(stopping(AutoContinue(store=False, max_in_turn=1)), Client())
    *_, answer, notice = client.said
    assert answer == "I stop again."
    assert notice.startswith("\n\n⚠ Stopped after 1 continuation")


@pytest.mark.parametrize(
    ("answer", "asked", "said"),
    [("approve", 2, "Done."), ("approve_always", 1, "Done."), ("reject", 1, "I stop.")],
)
async def test_the_question_has_words_that_fit(answer: str, asked: int, said: str) -> None:
    """A person may also say not to be asked again."""
    client = await prompt(stopping(AutoContinue(store=False, ask=True)), Client(answer))
    assert client.options == [["Continue", "Stop", "Do not ask again"]] * asked
    assert client.said[-1] == said


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
