"""Whether an answer ends in a question to the user."""

import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from tests.strategies import json_values
from todo_tools import asks_user
from todo_tools._thread.transcript import continuation_message

NO_END = {
    "APL FUNCTIONAL SYMBOL QUAD QUESTION",
    "ADLAM INITIAL QUESTION MARK",
    "ARMENIAN QUESTION MARK",
    "CIRCLED IDEOGRAPH QUESTION",
    "GREATER-THAN WITH QUESTION MARK ABOVE",
    "INVERTED INTERROBANG",
    "INVERTED QUESTION MARK",
    "LESS-THAN WITH QUESTION MARK ABOVE",
    "QUESTIONED EQUAL TO",
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
        if ("QUESTION" in name or "INTERROBANG" in name) and name not in NO_END
    ]


@pytest.mark.parametrize("mark", question_marks(), ids=unicodedata.name)
def test_every_question_mark_of_unicode_ends_a_question(mark: str) -> None:
    assert asks(f"Which colour{mark}")


@pytest.mark.parametrize(
    "text",
    [
        "Ποιο χρώμα θέλετε;",  # the Greek question mark is typed as a semicolon
        "**Ποιο χρώμα;**",
        "Ո՞ր գույնն եք ուզում։",  # noqa: RUF001  the mark is inside the sentence
        "«Какой цвет?»",
        "「どの色ですか？」",  # noqa: RUF001
        "“Which colour?”",
        "(Which colour?)",
        "***Which colour?***",
        "`Which colour?`",
        "Which colour? 😊",
        "Which colour?!",
        "Which colour?\n\n1. Red\n2. Blue",
        "Which colour?\r\n\r\n- Red\r\n- Blue\r\n",
        "**Which colour?**\n\n**A)** Red\n**B)** Blue",
        "Which colour?\n\na) Red,\n   as before\n\nb) Blue",
        "1. Which colour?\n   - Red\n   - Blue",
        "哪个颜色？\n1、红\n2、蓝",  # noqa: RUF001
        "Which colour?\n| name | code |\n| --- | --- |\n| red | f00 |",
        "Which colour?: \n- Red\n- Blue",
    ],
)
def test_signs_and_choices_may_follow_the_mark(text: str) -> None:
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
        "```\nx = 1\n```",
        "Το μήκος: x = 1;",  # noqa: RUF001  no Greek in the last word
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
    assert not asks_user({"messages": 5})


def test_blocks_are_read_as_one_text() -> None:
    assert asks(["Which colour?\n-", {"type": "text", "text": " Red"}])


def test_blanks_at_the_end_hide_no_question() -> None:
    """Only the end of a long text is read, and it begins before them."""
    assert asks("Which colour?" + " " * 20_000)


@given(text=st.text(), state=json_values)
def test_it_never_raises(text: str, state: Any) -> None:
    asks(text)
    asks([text, {"type": "text", "text": text}])
    asks_user(state)
    asks_user({"messages": state})


@pytest.mark.parametrize("part", ["a", "?", ")", "**", "😊", "- a\n", "ώ;", "՞"])
def test_only_the_end_of_a_long_answer_is_read(part: str) -> None:
    """So a megabyte takes no longer than a page, and a question far above it is not seen."""
    text = part * (1_000_000 // len(part))
    assert asks(f"Which?\n{text}") == asks(text)
