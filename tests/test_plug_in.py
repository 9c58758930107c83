"""What is ready to plug in: the template, the extension, the profile of deepagents."""

import json
import runpy
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from deepagents import HarnessProfile, create_deep_agent, register_harness_profile
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from graphs.extension import extension
from tests.server import serving, user
from tests.support import BEGIN, ROOT, edit, items, plan
from tests.test_deepagents import CodexStandIn
from todo_tools import TodoMiddleware
from todo_tools._agent.state import ClientAgentState
from todo_tools._list.formats import from_client_todos
from todo_tools.testing import ScriptedChatModel

TEMPLATE = ROOT / "template"
MODEL = "gpt-of-the-tests"
"""No other test uses this model, because a profile stays registered."""


class TestTemplate:
    def test_the_agent_finishes_its_list(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.delenv("MODEL", raising=False)
        runpy.run_path(str(TEMPLATE / "agent.py"), run_name="__main__")
        assert capsys.readouterr().out == "✓ [0] Name three rivers\n✓ [1] Sort them\n"

    def test_it_requires_this_package(self) -> None:
        project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text("utf-8"))
        own = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        assert project["project"]["dependencies"] == [f"{own['name']}[langchain]"]
        assert project["project"]["requires-python"] == own["requires-python"]
        (served,) = json.loads((TEMPLATE / "langgraph.json").read_text("utf-8"))["graphs"].values()
        assert served == f"./{project['tool']['setuptools']['py-modules'][0]}.py:agent"

    @pytest.mark.slow
    def test_the_server_serves_it(self, tmp_path: Path) -> None:
        shutil.copytree(TEMPLATE, tmp_path / "project")
        with serving(tmp_path / "project") as server:
            thread = server.new_thread()
            server.client.runs.wait(thread, "agent", input=user("- [ ] Measure"))
            todos = server.values_of(thread)["todos"]
            assert from_client_todos(todos) == items("Measure", status="completed")
            assert [item["content"] for item in todos] == ["Measure"]
            assert server.blocking_calls == set()


class TestExtension:
    async def test_it_registers_the_middleware(self) -> None:
        """One instance, with LangChain's format, which the interfaces of deepagents read."""
        registered: list[Any] = []

        class Registrar:
            def register_middleware(self, middleware: Any) -> None:
                registered.append(middleware)

        await extension(Registrar())
        (middleware,) = registered
        assert isinstance(middleware, TodoMiddleware)
        assert middleware.state_schema is ClientAgentState


def test_a_profile_gives_an_agent_a_list_without_being_given_one(config: RunnableConfig) -> None:
    """The loop sends it back to work."""
    profile = HarnessProfile(extra_middleware=lambda: [TodoMiddleware()])
    register_harness_profile(f"openai:{MODEL}", profile)
    script: list[Any] = [plan("a"), "Too early.", edit("complete", 0), "Done."]
    scripted, key = ScriptedChatModel(script=script), SecretStr("none")
    model = CodexStandIn(model=MODEL, api_key=key, use_responses_api=False, scripted=scripted)
    agent: Any = create_deep_agent(model, checkpointer=InMemorySaver())
    assert agent.invoke(BEGIN, config)["todos"] == items("a", status="completed")
