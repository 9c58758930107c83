"""Whether an answer ends in a question to the user."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from todo_tools import asks_user


def asks(content: Any) -> bool:
    return asks_user({"messages": [HumanMessage("Begin."), AIMessage(content)]})


@pytest.mark.parametrize(
    "text",
    ["(Which colour?)", "***Which colour?***", "“Which colour?”", "Which?!\n", "どの色ですか？"],  # noqa: RUF001
)
def test_closing_signs_may_follow_the_mark(text: str) -> None:
    assert asks(text)
    assert asks([{"type": "text", "text": text}])


@pytest.mark.parametrize(
    "text", ["", "Done.", "What was wrong? I corrected it.", "Which colour?\n\n1. Red\n2. Blue"]
)
def test_other_answers_are_not_questions(text: str) -> None:
    assert not asks(text)


def test_the_models_last_answer_is_the_one_that_counts() -> None:
    """Later messages do not hide it, and earlier answers do not count."""
    asked, told = AIMessage("Which colour?"), AIMessage("Red it is.")
    assert asks_user({"messages": [told, asked, HumanMessage("Go on.")]})
    assert not asks_user({"messages": [asked, told]})
    assert not asks_user({"messages": [HumanMessage("Which colour?")]})
    assert not asks_user({})


@given(text=st.text())
def test_it_never_raises(text: str) -> None:
    asks(text)
    asks([text, {"type": "text", "text": text}])
