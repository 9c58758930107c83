"""A person's replies to the question whether to continue."""

import re
from typing import Any, get_args

import pytest
from langchain.agents.middleware.human_in_the_loop import DecisionType, HITLRequest
from pydantic import TypeAdapter

from tests.support import MIXED
from todo_tools._loop.said import Reply, read_reply
from todo_tools._thread.events import continue_question

YES, NO = Reply(continues=True), Reply(continues=False)
SAID = Reply(continues=True, words="Tests first.")
EDITED: dict[str, Any] = {"name": "Items remain. Continue?", "args": {"message": "Tests first."}}
UNCHANGED: dict[str, Any] = {"name": "Items remain. Continue?", "args": {"message": ""}}


@pytest.mark.parametrize(
    ("reply", "meaning"),
    [
        (True, YES),
        (False, NO),
        ("yes", YES),
        (" Y ", YES),
        ("No", NO),
        ("n", NO),
        ("Tests first.", SAID),
        ("Yes, but skip the tests.", Reply(continues=True, words="Yes, but skip the tests.")),
    ],
)
def test_yes_no_and_messages_are_understood(reply: object, meaning: Reply) -> None:
    """Any other text is the person's own message."""
    assert read_reply(reply) == meaning


@pytest.mark.parametrize(
    ("decision", "meaning"),
    [
        ({"type": "approve"}, YES),
        ({"type": "reject"}, NO),
        ({"type": "reject", "message": " "}, NO),
        ({"type": "reject", "message": "Enough."}, Reply(continues=False, words="Enough.")),
        ({"type": "respond", "message": "Tests first."}, SAID),
        ({"type": "edit", "edited_action": EDITED}, SAID),
        ({"type": "edit", "edited_action": UNCHANGED}, YES),
    ],
)
def test_each_of_langchains_decisions_is_accepted(decision: dict[str, Any], meaning: Reply) -> None:
    """An edit without changes is an approval."""
    assert read_reply({"decisions": [decision]}) == meaning


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "'' is not an answer"),
        (None, "null is not an answer"),
        (1, "1 is not an answer"),
        ({"type": "approve"}, "an object is not an answer"),
        ({"decisions": []}, "must be a list of one decision, got a list of 0"),
        ({"decisions": ["approve"]}, "must be a list of one decision, got a list of 1"),
        ({"decisions": {"type": "approve"}}, "must be a list of one decision, got an object"),
        ({"decisions": [{"type": "maybe"}]}, "'maybe' is not a decision type"),
        ({"decisions": [{"type": "respond"}]}, "message must be a text, got null"),
        ({"decisions": [{"type": "reject", "message": 7}]}, "message must be a text, got 7"),
        ({"decisions": [{"type": "edit"}]}, "edited_action must have args with a message"),
    ],
)
def test_anything_else_is_an_error_that_says_what_is_allowed(reply: object, problem: str) -> None:
    """The error is shown with the repeated question."""
    with pytest.raises(ValueError, match=re.escape(problem)) as raised:
        read_reply(reply)
    assert '"approve" | "reject" | "edit" | "respond"' in str(raised.value)


def test_the_question_is_a_request_of_langchains_human_in_the_loop() -> None:
    """Interfaces for such requests can answer it with every kind of decision."""
    question = continue_question(MIXED)
    request = TypeAdapter(HITLRequest).validate_python(question)
    (action,), (config,) = request["action_requests"], request["review_configs"]
    assert config["action_name"] == action["name"]
    assert set(config["allowed_decisions"]) == set(get_args(DecisionType))
    assert "📋 2/4" in action["description"]
