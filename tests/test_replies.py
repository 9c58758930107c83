"""A person's replies to the question whether to continue."""

from typing import Any, get_args

import pytest
from langchain.agents.middleware.human_in_the_loop import DecisionType, HITLRequest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import TypeAdapter

from graphs.until_done import build_graph
from tests.support import BEGIN, MIXED, Graph, outcome_of
from todo_tools import AutoContinue
from todo_tools._thread.transcript import is_injected
from todo_tools.testing import ScriptedChatModel
from todo_tools.transcript import is_from_user

EDITED: dict[str, Any] = {"name": "Items remain. Continue?", "args": {"message": "Tests first."}}
UNCHANGED: dict[str, Any] = {"name": "Items remain. Continue?", "args": {"message": ""}}


def asked(config: RunnableConfig) -> tuple[Graph, Any]:
    """A graph that asks whether to continue, and its question."""
    policy = AutoContinue(max_idle=None, ask=True)
    builder = build_graph(ScriptedChatModel(script=lambda _: "I stop."), policy=policy)
    graph = builder.compile(checkpointer=InMemorySaver())
    (question,) = graph.invoke({**BEGIN, "todos": MIXED}, config)["__interrupt__"]
    return graph, question.value


@pytest.mark.parametrize(
    ("reply", "continues", "words"),
    [
        (True, True, []),
        (" Y ", True, []),
        (False, False, []),
        ("No", False, []),
        ("Yes, but skip the tests.", True, ["Yes, but skip the tests."]),
        ({"type": "approve"}, True, []),
        ({"type": "reject"}, False, []),
        ({"type": "reject", "message": "Enough."}, False, ["Enough."]),
        ({"type": "respond", "message": "Tests first."}, True, ["Tests first."]),
        ({"type": "edit", "edited_action": EDITED}, True, ["Tests first."]),
        ({"type": "edit", "edited_action": UNCHANGED}, True, []),
    ],
)
def test_yes_no_messages_and_langchains_decisions_are_understood(
    reply: Any, continues: bool, words: list[str], config: RunnableConfig
) -> None:
    """Words of one's own replace the continuation; after a no, the next run has them."""
    graph, _ = asked(config)
    resume = {"decisions": [reply]} if isinstance(reply, dict) else reply
    final = graph.invoke(Command(resume=resume), config)
    assert ("__interrupt__" in final) == continues  # it asks again after the next answer
    assert outcome_of(final) == (None if continues else "declined")
    said = [message.text for message in final["messages"] if is_from_user(message)]
    assert said == ["Begin.", *words]
    assert any(map(is_injected, final["messages"])) == (continues and not words)
    assert sum(message.type == "ai" for message in final["messages"]) == 1 + continues


@pytest.mark.parametrize(
    "reply", ["", 1, {"type": "approve"}, {"decisions": []}, {"decisions": [{"type": "maybe"}]}]
)
def test_the_question_is_repeated_after_anything_else(reply: Any, config: RunnableConfig) -> None:
    """It says what is allowed, and nothing is decided meanwhile."""
    graph, _ = asked(config)
    (again,) = graph.invoke(Command(resume=reply), config)["__interrupt__"]
    assert again.value["question"].startswith("That could not be read.")
    assert '"approve" | "reject"' in again.value["action_requests"][0]["description"]
    assert outcome_of(graph.invoke(Command(resume=False), config)) == "declined"


def test_the_question_is_a_request_of_langchains_human_in_the_loop(config: RunnableConfig) -> None:
    """Interfaces for such requests can answer it with every kind of decision."""
    _, question = asked(config)
    assert (question["type"], question["status"]) == ("todo_continue", "📋 2/4")
    assert question["todos"] == MIXED
    request = TypeAdapter(HITLRequest).validate_python(question)
    (action,), (review,) = request["action_requests"], request["review_configs"]
    assert review["action_name"] == action["name"]
    assert set(review["allowed_decisions"]) == set(get_args(DecisionType))
    assert "📋 2/4" in action["description"]
