"""For changes that cannot succeed, the model gets an error and no person is asked."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphs.coding_agent import build_coding_agent
from tests.support import BEGIN, Graph, results_in
from todo_tools.testing import ScriptedChatModel, call, turn

ONE = call("edit_file", file_path="file", old_string="one", new_string="three")
IMPOSSIBLE = {
    "no match": call("edit_file", file_path="file", old_string="x", new_string="y"),
    "several matches": call("edit_file", file_path="file", old_string="two", new_string="y"),
    "no file": call("edit_file", file_path="absent", old_string="x", new_string="y"),
    "an edit outside": call("edit_file", file_path="link/file", old_string="x", new_string="y"),
    "a write outside": call("write_file", file_path="link/file", content="x"),
    "a write to a directory": call("write_file", file_path="folder", content="x"),
    "a write below a file": call("write_file", file_path="file/below", content="x"),
    "a write in .git": call("write_file", file_path=".git/config", content="x"),
    "an edit in .git": call("edit_file", file_path="sub/.GIT/a", old_string="x", new_string="y"),
}


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "folder").mkdir(parents=True)
    (folder / "file").write_text("one two two")
    (folder / "link").symlink_to(tmp_path)
    (folder / "sub" / ".GIT").mkdir(parents=True)
    (folder / "sub" / ".GIT" / "a").write_text("x")
    return folder


def agent_of(workdir: Path, *turns: AIMessage | str, ask: Any = True) -> Graph:
    model = ScriptedChatModel(script=turns)
    return build_coding_agent(model, workdir, ask=ask, checkpointer=InMemorySaver())


@pytest.mark.parametrize("form", ["sync", "async"])
@pytest.mark.parametrize("made", IMPOSSIBLE.values(), ids=list(IMPOSSIBLE))
async def test_a_call_that_cannot_succeed_is_answered_without_a_question(
    made: Any, form: str, workdir: Path, config: RunnableConfig
) -> None:
    """The model reads the error, and nothing has changed."""
    agent = agent_of(workdir, turn("", made), "I see.")
    final = agent.invoke(BEGIN, config) if form == "sync" else await agent.ainvoke(BEGIN, config)
    assert "__interrupt__" not in final
    (result,) = results_in(final)
    assert result.status == "error"
    assert final["messages"][-1].text == "I see."
    assert (workdir / "file").read_text() == "one two two"


def test_only_the_possible_calls_of_a_turn_are_asked_about(
    workdir: Path, config: RunnableConfig
) -> None:
    """They are carried out once approved; each call has one result."""
    agent = agent_of(workdir, turn("", IMPOSSIBLE["no file"], ONE), "Done.")
    (asked,) = agent.invoke(BEGIN, config)["__interrupt__"]
    assert [each["args"] for each in asked.value["action_requests"]] == [ONE["args"]]
    approval: Any = Command(resume={"decisions": [{"type": "approve"}]})
    results = results_in(agent.invoke(approval, config))
    assert sorted(each.status for each in results) == ["error", "success"]
    assert (workdir / "file").read_text() == "three two two"


@pytest.mark.parametrize("ask", [True, False])
@pytest.mark.parametrize(
    "reason",
    [
        {"finish_reason": "length"},
        {"finish_reason": "MAX_TOKENS"},
        {"stop_reason": "model_context_window_exceeded"},
        {"stopReason": "max_tokens"},
        {"finish_reason": "lengthlength"},  # a server repeated it, and LangChain joined it
    ],
)
def test_a_call_that_a_limit_of_tokens_cut_off_is_refused(
    reason: dict[str, str], ask: bool, workdir: Path, config: RunnableConfig
) -> None:
    """The last one of the answer; LangChain has completed its arguments as far as they came."""
    whole, cut = (call("write_file", file_path=name, content="x") for name in ("whole", "cut"))
    answer = turn("", whole, cut)
    answer.response_metadata = reason
    agent = agent_of(workdir, answer, "I see.", ask=ask)
    final = agent.invoke(BEGIN, config)
    if ask:
        (asked,) = final["__interrupt__"]
        assert [each["args"] for each in asked.value["action_requests"]] == [whole["args"]]
        final = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert sorted(each.status for each in results_in(final)) == ["error", "success"]
    assert (workdir / "whole").exists()
    assert not (workdir / "cut").exists()


def test_a_plan_that_was_cut_off_is_not_asked_about(workdir: Path, config: RunnableConfig) -> None:
    """A person's answer would come too late, and the call has its result."""
    answer = turn("", call("write_todos", mode="replace", todos=["One"]))
    answer.response_metadata = {"finish_reason": "length"}
    model = ScriptedChatModel(script=[answer, "I see."])
    agent = build_coding_agent(model, workdir, ask_plan=True, checkpointer=InMemorySaver())
    final = agent.invoke(BEGIN, config)
    assert "__interrupt__" not in final
    (result,) = results_in(final)
    assert result.status == "error"


def test_an_approved_edit_is_checked_again(workdir: Path, config: RunnableConfig) -> None:
    """The file may have changed while the person was thinking."""
    agent = agent_of(workdir, turn("", ONE), "I see.")
    agent.invoke(BEGIN, config)
    (workdir / "file").write_text("changed")
    approval: Any = Command(resume={"decisions": [{"type": "approve"}]})
    (result,) = results_in(agent.invoke(approval, config))
    assert result.status == "error" or "not found" in result.text
    assert (workdir / "file").read_text() == "changed"


def test_a_call_that_was_refused_is_not_carried_out_later(
    workdir: Path, config: RunnableConfig
) -> None:
    """Even if another call makes it possible, it does not run without approval."""
    fix = call("execute", command="echo x > file")
    agent = agent_of(workdir, turn("", fix, IMPOSSIBLE["no match"]), "Done.")
    agent.invoke(BEGIN, config)
    (workdir / "file").write_text("x")
    rejection: Any = Command(resume={"decisions": [{"type": "reject"}]})
    agent.invoke(rejection, config)
    assert (workdir / "file").read_text() == "x"


def test_a_function_still_decides_about_the_others(workdir: Path, config: RunnableConfig) -> None:
    agent = agent_of(workdir, turn("", ONE), "Done.", ask=lambda _: False)
    assert "__interrupt__" not in agent.invoke(BEGIN, config)
    assert (workdir / "file").read_text() == "three two two"
