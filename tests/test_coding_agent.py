"""The coding agent in a real directory: its files, and the approval of a person."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphs.coding_agent import ASKED_ABOUT, build_coding_agent
from todo_tools.testing import ScriptedChatModel, call, turn

Use = Callable[..., Awaitable[list[ToolMessage]]]
BEGIN: Any = {"messages": [("user", "Begin.")]}


def agent_for(workdir: Path, *turns: Any, **settings: Any) -> Any:
    model = ScriptedChatModel(script=[*turns, "Done."])
    return build_coding_agent(model, workdir, **settings)


def answers_in(state: dict[str, Any]) -> list[ToolMessage]:
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


@pytest.fixture(params=["sync", "async"])
def use(request: pytest.FixtureRequest, tmp_path: Path) -> Use:
    """Have the agent make calls, one in each AI message, and return the results."""

    async def use(*calls: Any) -> list[ToolMessage]:
        agent = agent_for(tmp_path, *(turn("", made) for made in calls), ask=False)
        final = agent.invoke(BEGIN) if request.param == "sync" else await agent.ainvoke(BEGIN)
        return answers_in(final)

    return use


class TestPaths:
    @pytest.mark.parametrize("form", ["src/a.py", "./src/a.py", "/src/a.py", "{workdir}/src/a.py"])
    async def test_every_form_of_a_path_means_the_same_file(
        self, form: str, use: Use, tmp_path: Path
    ) -> None:
        """It can be relative, start at the directory as the root, or be absolute."""
        path = form.format(workdir=tmp_path)
        written, read = await use(
            call("write_file", file_path=path, content="x = 1\n"),
            call("read_file", file_path=path),
        )
        assert written.content == "Updated file src/a.py"
        assert (tmp_path / "src" / "a.py").read_text() == "x = 1\n"
        assert "x = 1" in read.text


class TestReading:
    @pytest.mark.parametrize("name", ["missing", "binary", "folder"])
    async def test_an_unreadable_file_is_an_error_result(
        self, name: str, use: Use, tmp_path: Path
    ) -> None:
        (tmp_path / "binary").write_bytes(b"\xff\xfe\xfd")
        (tmp_path / "folder").mkdir()
        (answer,) = await use(call("read_file", file_path=name))
        assert answer.status == "error"
        assert name in answer.text


class TestWriting:
    async def test_a_failed_write_is_an_error_result(self, use: Use, tmp_path: Path) -> None:
        """Here the parent directory is a file."""
        (tmp_path / "a").write_text("a file")
        (answer,) = await use(call("write_file", file_path="a/b", content="x"))
        assert answer.status == "error"
        assert "a/b" in answer.text


class TestEditing:
    CONTENT = "def f():\n    return 1\n\n\ndef g():\n    return 1\n"

    async def edited(self, use: Use, tmp_path: Path, **arguments: Any) -> tuple[ToolMessage, str]:
        path = tmp_path / "a.py"
        path.write_text(self.CONTENT)
        (answer,) = await use(call("edit_file", file_path="a.py", **arguments))
        return answer, path.read_text()

    async def test_a_text_that_occurs_once_is_replaced(self, use: Use, tmp_path: Path) -> None:
        """Nothing else changes."""
        answer, content = await self.edited(
            use, tmp_path, old_string="def g():\n    return 1", new_string="def g():\n    return 2"
        )
        assert answer.status == "success"
        assert content == "def f():\n    return 1\n\n\ndef g():\n    return 2\n"

    @pytest.mark.parametrize("old", ["return 3", "", "return  1", "return 1"])
    async def test_a_text_that_does_not_occur_once_is_refused(
        self, old: str, use: Use, tmp_path: Path
    ) -> None:
        """The tool does not guess, and the file is not changed."""
        answer, content = await self.edited(use, tmp_path, old_string=old, new_string="x")
        assert answer.status == "error"
        assert content == self.CONTENT

    async def test_line_endings_are_kept(self, use: Use, tmp_path: Path) -> None:
        """Windows files keep CRLF, whichever line ends the model writes."""
        (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
        await use(
            call("edit_file", file_path="a.txt", old_string="one\ntwo", new_string="1\n2"),
            call("edit_file", file_path="a.txt", old_string="three", new_string="3"),
        )
        assert (tmp_path / "a.txt").read_bytes() == b"1\r\n2\r\n3\r\n"


class TestFinding:
    @pytest.fixture(autouse=True)
    def project(self, tmp_path: Path) -> None:
        """A project with dependencies and a history."""
        for name in ("src/app.ts", "src/deep/part.ts", "node_modules/lib/index.ts", ".git/x.ts"):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("needle\n")

    async def test_dependencies_and_history_are_left_out(self, use: Use) -> None:
        """This includes their subdirectories."""
        found, searched = await use(
            call("glob", pattern="*.ts"),
            call("grep", pattern="needle"),
        )
        assert found.text == str(["src/app.ts", "src/deep/part.ts"])
        assert set(searched.text.split()) == {"src/app.ts", "src/deep/part.ts"}

    @pytest.mark.slow
    async def test_found_paths_can_be_passed_on(self, use: Use) -> None:
        """File tools and commands accept the paths unchanged."""
        found, read, ran = await use(
            call("glob", pattern="deep/*.ts", path="src"),
            call("read_file", file_path="src/deep/part.ts"),
            call("execute", command="cat src/deep/part.ts"),
        )
        assert found.text == str(["src/deep/part.ts"])
        assert "needle" in read.text
        assert "needle" in ran.text

    async def test_at_most_a_thousand_files_are_named(self, use: Use, tmp_path: Path) -> None:
        for n in range(1_001):
            (tmp_path / f"{n:04}.txt").touch()
        (answer,) = await use(call("glob", pattern="*.txt"))
        assert "0999.txt" in answer.text
        assert "1000.txt" not in answer.text
        assert "incomplete" in answer.text


CHANGES = {
    "write_file": {"file_path": "made", "content": "x"},
    "edit_file": {"file_path": "there", "old_string": "old", "new_string": "new"},
    "execute": {"command": "touch made"},
    "run_in_background": {"command": "touch made"},
}


class TestApproval:
    """A person decides before anything is changed."""

    @pytest.fixture
    def agent(self, tmp_path: Path) -> Callable[..., Any]:
        (tmp_path / "there").write_text("old")

        def agent(*calls: Any, **settings: Any) -> Any:
            saver = InMemorySaver()
            return agent_for(tmp_path, turn("", *calls), checkpointer=saver, **settings)

        return agent

    def resume(self, *decisions: dict[str, Any]) -> Any:
        return Command(resume={"decisions": list(decisions)})

    @pytest.mark.slow
    @pytest.mark.parametrize("form", ["sync", "async"])
    async def test_an_approved_change_is_carried_out(
        self, form: str, agent: Any, config: RunnableConfig, tmp_path: Path
    ) -> None:
        """It happens once."""
        graph = agent(call("execute", command="echo x >> made"))
        approval = self.resume({"type": "approve"})
        if form == "sync":
            graph.invoke(BEGIN, config)
            state = graph.invoke(approval, config)
        else:
            await graph.ainvoke(BEGIN, config)
            state = await graph.ainvoke(approval, config)
        assert (tmp_path / "made").read_text() == "x\n"
        assert state["messages"][-1].text == "Done."

    @pytest.mark.parametrize("tool", ASKED_ABOUT)
    def test_a_change_waits_and_is_not_carried_out_if_it_is_denied(
        self, tool: str, agent: Any, config: RunnableConfig, tmp_path: Path
    ) -> None:
        """The person sees the whole call, and the agent reads the reason and continues."""
        graph = agent(call(tool, **CHANGES[tool]))
        (asked,) = graph.invoke(BEGIN, config)["__interrupt__"]
        (request,) = asked.value["action_requests"]
        assert (request["name"], request["args"]) == (tool, CHANGES[tool])
        state = graph.invoke(self.resume({"type": "reject", "message": "too risky"}), config)
        (answer,) = answers_in(state)
        assert answer.status == "error"
        assert answer.text.endswith("with reason: too risky")
        assert [path.name for path in tmp_path.iterdir()] == ["there"]
        assert (tmp_path / "there").read_text() == "old"
        assert state["messages"][-1].text == "Done."

    def test_reading_and_planning_need_no_approval(
        self, agent: Any, config: RunnableConfig
    ) -> None:
        """Neither the todo tools nor tools that only read need approval."""
        state = agent(
            call("write_todos", mode="replace", todos=["Look"]),
            call("edit_todos", action="complete", indices=[0]),
            call("list_todos"),
            call("ls", path="/"),
            call("read_file", file_path="there"),
            call("glob", pattern="*"),
            call("grep", pattern="old"),
            call("list_background_tasks"),
        ).invoke(BEGIN, config)
        assert "__interrupt__" not in state
        assert all(answer.status == "success" for answer in answers_in(state))

    @pytest.mark.slow
    def test_decisions_of_one_turn_are_independent(
        self, agent: Any, config: RunnableConfig, tmp_path: Path
    ) -> None:
        """A denied command affects neither its approved neighbour nor the todos."""
        graph = agent(
            call("write_todos", mode="replace", todos=["Build"]),
            call("execute", command="touch one"),
            call("edit_todos", action="complete", indices=[0]),
            call("execute", command="touch two"),
        )
        graph.invoke(BEGIN, config)
        state = graph.invoke(self.resume({"type": "reject"}, {"type": "approve"}), config)
        assert {path.name for path in tmp_path.iterdir()} == {"there", "two"}
        assert state["todos"] == [{"text": "Build", "status": "completed"}]

    def test_the_application_may_decide_what_to_ask(
        self, agent: Any, config: RunnableConfig, tmp_path: Path
    ) -> None:
        """It passes a function of the call."""
        graph = agent(
            call("execute", command="touch made"),
            call("execute", command="rm there"),
            ask=lambda request: request.tool_call["args"]["command"].startswith("rm"),
        )
        state = graph.invoke(BEGIN, config)
        (request,) = state["__interrupt__"][0].value["action_requests"]
        assert request["args"] == {"command": "rm there"}
