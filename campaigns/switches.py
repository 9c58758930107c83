"""Switches: one thread with changing states, limits, formats and serializers."""

import sqlite3
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from campaigns.agents import VARIANTS, Saver, agent, check_replay
from campaigns.cases import Case, Trial
from tests.support import BEGIN, Graph
from todo_tools import AutoContinue, TodoItem, TodoLimits
from todo_tools.state import messages_in, todos_in
from todo_tools.testing import ScriptedChatModel, call, turn

TURNS = 8
KEY = b"sixteen bytes 16"
_CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}
_FOREIGN = "TodoListMiddleware"


def states(case: Case) -> None:
    """Any agent of this package continues with the list of any other."""
    with SqliteSaver.from_conn_string(str(case.folder / "threads.sqlite")) as saver:
        live(case, saver, [*VARIANTS, _FOREIGN])


def encrypted(case: Case) -> None:
    """The same with an encrypted database that contains no readable text."""
    path = case.folder / "threads.sqlite"
    serde = EncryptedSerializer.from_pycryptodome_aes(key=KEY)
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        texts = live(case, SqliteSaver(connection, serde=serde), VARIANTS)
    finally:
        connection.close()
    stored = path.read_bytes()
    assert texts, "nothing was written"
    assert not [text for text in texts if text.encode() in stored], "a text was stored in the clear"


TRIALS: tuple[Trial, ...] = (states, encrypted)


def live(case: Case, saver: Saver, variants: list[str]) -> list[str]:
    """Run turns on one thread, each with another agent; returns the texts that were written."""
    known: list[TodoItem] = []
    texts: list[str] = []
    for number in range(TURNS):
        variant = case.random.choice(variants)
        limits = TodoLimits(
            max_todos=case.random.choice([3, 100]), max_indices=case.random.choice([1, 50])
        )
        text = f"item {case.number} {number}, quite confidential"
        before = known
        known = take_turn(variant, saver, text, limits)
        texts.append(text)
        check_turn(variant, before, known, text, limits)
        case.tried += 1
    return texts


def take_turn(variant: str, saver: Saver, text: str, limits: TodoLimits) -> list[TodoItem]:
    """One run: append an item and complete the first one; or rewrite the list, in LangChain's."""
    if variant == _FOREIGN:
        return _foreign_turn(saver, text)
    answers: list[AIMessage | str] = [
        turn("", call("write_todos", mode="append", todos=[text])),
        turn("", call("edit_todos", action="complete", indices=[0])),
        "Done.",
    ]
    graph = agent(
        variant,
        ScriptedChatModel(script=answers),
        saver,
        policy=AutoContinue(max_in_a_row=0),
        limits=limits,
    )
    graph.invoke(BEGIN, _CONFIG)
    values = graph.get_state(_CONFIG).values
    check_replay(values)
    users = [message for message in messages_in(values) if message.type == "human"]
    assert users, "the history is lost"
    return todos_in(values)


def _foreign_turn(saver: Saver, text: str) -> list[TodoItem]:
    """LangChain's own middleware, whose lists have another format."""
    written = call("write_todos", todos=[{"content": text, "status": "pending"}])
    model = ScriptedChatModel(script=[turn("", written), "Done."])
    built: Any = create_agent(model, [], middleware=[TodoListMiddleware()], checkpointer=saver)
    foreign: Graph = built
    foreign.invoke(BEGIN, _CONFIG)
    return todos_in(foreign.get_state(_CONFIG).values)


def check_turn(
    variant: str, before: list[TodoItem], after: list[TodoItem], text: str, limits: TodoLimits
) -> None:
    """Check that one item was appended and the first one completed."""
    expected: list[TodoItem] = [{"text": text, "status": "not_started"}]
    if variant != _FOREIGN:
        expected = [*before, *expected] if len(before) < limits.max_todos else [*before]
        expected = [{**expected[0], "status": "completed"}, *expected[1:]]
    assert after == expected, f"{variant}: {after} is not {expected}"
