"""Whether an answer ends in a question to the user."""

import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from todo_tools import asks_user
from todo_tools._thread.notes import continuation_message

NO_END = {
    "ADLAM INITIAL QUESTION MARK",
    "ARMENIAN QUESTION MARK",
    "GREATER-THAN WITH QUESTION MARK ABOVE",
    "INVERTED INTERROBANG",
    "INVERTED QUESTION MARK",
    "LESS-THAN WITH QUESTION MARK ABOVE",
    "TAG QUESTION MARK",
}
"""Characters with QUESTION MARK in their name that do not end a sentence."""


def asks(content: Any) -> bool:
    return asks_user({"messages": [HumanMessage("Begin."), AIMessage(content)]})


def question_marks() -> list[str]:
    names = {chr(code): unicodedata.name(chr(code), "") for code in range(sys.maxunicode + 1)}
    return [
        character
        for character, name in names.items()
        if ("QUESTION MARK" in name or "INTERROBANG" in name) and name not in NO_END
    ]


def test_every_question_mark_of_unicode_ends_a_question() -> None:
    marks = question_marks()
    assert {"?", "؟", "‽"} <= set(marks)
    assert [mark for mark in marks if not asks(f"Which colour{mark}")] == []


@pytest.mark.parametrize(
    "text",
    [
        "«Какой цвет?»",
        "「どの色ですか？」",  # noqa: RUF001
        "“Which colour?”",
        "(Which colour?)",
        "***Which colour?***",
        "`Which colour?`",
        "Which colour? 😊",
        "Which colour?!",
        "Which colour?\n",
    ],
)
def test_closing_signs_may_follow_the_mark(text: str) -> None:
    assert asks(text)
    assert asks([{"type": "text", "text": text}])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Done.",
        "What was wrong? The path. I corrected it.",
        "x = 1;",
        "Done:\n- Red\n- Blue",
        "You asked which colour?\nIt is red.",
        "Which colour?\n\n1. Red\n2. Blue",
        "```\nx = 1\n```",
    ],
)
def test_other_answers_are_not_questions(text: str) -> None:
    assert not asks(text)


def test_the_models_last_answer_is_the_one_that_counts() -> None:
    """Later messages do not hide it, and earlier answers do not count."""
    asked, told = AIMessage("Which colour?"), AIMessage("Red it is.")
    assert asks_user({"messages": [told, asked, continuation_message("Go on.")]})
    assert not asks_user({"messages": [asked, told]})
    assert not asks_user({"messages": [HumanMessage("Which colour?")]})
    assert not asks_user({})


def test_blocks_are_read_as_one_text() -> None:
    assert asks(["Which colour", {"type": "text", "text": "?"}])


@given(text=st.text())
def test_it_never_raises(text: str) -> None:
    asks(text)
    asks([text, {"type": "text", "text": text}])
