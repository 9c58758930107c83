"""Threads that an older version stored; `tests/threads/README.md` says how they were made."""

import json
import lzma
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from tests.support import ROOT, edit
from tests.threads.agents import AGENTS, PERMISSION, as_sent
from todo_tools import todos_from_messages
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel

FOLDER = ROOT / "tests" / "threads"
CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}
FINISHED = {"completed", "abandoned"}

RESUMES: dict[str, Command[Any] | None] = {
    "hand_built_asking": Command(resume=True),
    "hand_built_paused": None,
    "middleware_asking": Command(resume=True),
    "middleware_approval": Command(resume={"decisions": [{"type": "approve"}]}),
    "middleware_paused": None,
    "middleware_tool_asking": Command(resume=PERMISSION),
}
"""What continues the threads whose last run has not ended."""
MESSAGE = {"messages": [("user", PERMISSION)]}
"""What continues the others."""


@dataclass(frozen=True)
class Thread:
    """A copy of a stored thread."""

    name: str
    graph: Any
    model: ScriptedChatModel
    facts: Mapping[str, Any]
    """What was true of it when it was made."""

    @property
    def values(self) -> Mapping[str, Any]:
        """Its newest state."""
        values: Mapping[str, Any] = self.graph.get_state(CONFIG).values
        return values

    def finish(self) -> dict[str, Any]:
        """Continue it with a model that completes what is left."""
        todos = todos_in(self.values)
        left = [at for at, todo in enumerate(todos) if todo["status"] not in FINISHED]
        self.model.script = [edit("complete", *left), "Done."]
        final: dict[str, Any] = self.graph.invoke(RESUMES.get(self.name, MESSAGE), CONFIG)
        while "__interrupt__" in final:  # the last call may need an approval, too
            final = self.graph.invoke(RESUMES[self.name], CONFIG)
        return final

    def fork(self) -> dict[str, Any]:
        """Go back to the end of the first run, and say something else; the model does nothing."""
        self.model.script = lambda _: "I stop."
        checkpoint = self.facts["runs"][0]["checkpoint"]
        past = {**CONFIG["configurable"], "checkpoint_id": checkpoint}
        final: dict[str, Any] = self.graph.invoke(MESSAGE, {"configurable": past})
        return final


@pytest.fixture(params=list(AGENTS))
def thread(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Thread]:
    """One of the stored threads, opened as after an upgrade."""
    name: str = request.param
    path = tmp_path / "threads.sqlite"
    path.write_bytes(lzma.decompress((FOLDER / f"{name}.sqlite.xz").read_bytes()))
    facts = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    model = ScriptedChatModel(script=[])
    with SqliteSaver.from_conn_string(str(path)) as saver:
        yield Thread(name, AGENTS[name](model, saver), model, facts)


_WORDS = re.compile(r"\n*(\d+/\d+ done\.|The list is in place|Nothing changed:)[^\n]*")


def without_words(prompt: Any) -> Any:
    """A prompt without the lines of progress, whose words have changed since that version."""
    if isinstance(prompt, str):
        return _WORDS.sub("", prompt)
    if isinstance(prompt, list):
        return [without_words(part) for part in prompt]
    if isinstance(prompt, dict):
        return {key: without_words(value) for key, value in prompt.items()}
    return prompt


def test_it_has_its_list(thread: Thread) -> None:
    assert thread.values["todos"] == thread.facts["todos"]


def test_it_has_its_outcome_and_its_counts(thread: Thread) -> None:
    """A limit that was nearly reached is reached at the same place."""
    stored, known = thread.values["todo_loop"], thread.facts["todo_loop"]
    for key in ("outcome", "in_a_row", "in_turn"):
        assert stored.get(key) == known.get(key)


def test_every_checkpoint_has_the_list_of_its_moment(thread: Thread) -> None:
    """`DeltaTodoState` reads the list of most checkpoints from the changes before them."""
    known = {id_: each["todos"] for each in thread.facts["lists"] for id_ in each["checkpoints"]}
    history = list(thread.graph.get_state_history(CONFIG))
    assert len(history) == len(known)
    for state in history:
        checkpoint = state.config["configurable"]["checkpoint_id"]
        assert state.values.get("todos") == known[checkpoint]


def test_it_holds_only_what_langgraph_can_read_in_strict_mode(thread: Thread) -> None:
    """It is set by `LANGGRAPH_STRICT_MSGPACK=true`; other types would come back as plain data."""
    values = thread.values
    thread.graph.checkpointer.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    assert thread.values == values


def test_the_list_can_be_rebuilt_from_its_results(thread: Thread) -> None:
    assert todos_from_messages(thread.values["messages"]) == thread.facts["rebuilt"]


def test_its_next_run_finishes_the_list(thread: Thread) -> None:
    final = thread.finish()
    assert final["messages"][-1].text == "Done."
    assert {todo["status"] for todo in todos_in(final)} <= FINISHED
    assert thread.values["todo_loop"]["outcome"] == "finished"


@pytest.mark.parametrize(
    ("thread", "index", "status"),
    [
        ("hand_built_paused", 1, "completed"),
        ("middleware_paused", 1, "completed"),
        ("middleware_approval", 1, "in_progress"),
        ("middleware_tool_asking", 0, "completed"),
    ],
    indirect=["thread"],
)
def test_a_change_that_was_pending_is_made(thread: Thread, index: int, status: str) -> None:
    """The call had not run yet, or its step was waiting for another call."""
    thread.model.script = lambda _: "I stop."
    final = thread.graph.invoke(RESUMES[thread.name], CONFIG)
    assert final["todos"][index]["status"] == status


def test_its_next_prompt_begins_with_the_last_one(thread: Thread) -> None:
    """List blocks, reminders, short results and continuations are where the model has read them."""
    thread.finish()
    *sent, _ = thread.facts["sent"]
    assert without_words(as_sent(thread.model.prompts[0])[: len(sent)]) == without_words(sent)


def test_its_next_prompt_goes_on_with_the_answer_that_the_model_gave(thread: Thread) -> None:
    """The loop's notice, which is stored with the answer, is for people."""
    thread.finish()
    *sent, answer = thread.facts["sent"]
    assert as_sent(thread.model.prompts[0])[len(sent)] == answer


def test_a_fork_has_the_list_of_its_moment(thread: Thread) -> None:
    first = thread.facts["runs"][0]
    assert thread.fork()["todos"] == first["todos"] != thread.facts["todos"]


def test_a_forks_prompt_begins_with_the_last_one_before_it(thread: Thread) -> None:
    """It has the answer after that prompt, too."""
    thread.fork()
    sent = thread.facts["sent"][: thread.facts["runs"][0]["prompts"][-1] + 1]
    assert without_words(as_sent(thread.model.prompts[0])[: len(sent)]) == without_words(sent)
