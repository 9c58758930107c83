"""Detect whether an answer ends in a question to the user."""

import re
from collections.abc import Sequence
from typing import Any
from unicodedata import category

from langchain_core.messages import AIMessage

from todo_tools._list.todos import is_list, is_mapping
from todo_tools.state import messages_in

# Every Unicode question mark that ends a sentence, including double and ornamental ones.
_MARKS = frozenset(
    "?\u037e\u061f\u1367\u1945\u203d\u2047\u2048\u2049\u2753\u2754\u2cfa\u2cfb\u2e2e\u2e54\ua60f"
    "\ua6f7\ufe16\ufe56\uff1f\U00011143\U0001f679\U0001f67a\U0001f67b\U0001fbc4"
)
# Characters that may follow a mark: blanks, closing quotes and brackets, invisible ones, symbols.
_CLOSING = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Pe", "Pf", "Pi", "Mn", "Me", "Sk", "So"})
_ALSO_CLOSING = frozenset("\"'*_~`|\\<>!\uff01\u0021\u2026\u201e\u201a\u301d")
_ARMENIAN_MARK, _ARMENIAN_STOP = "\u055e", "\u0589"
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]")
# The beginning of a list item: a bullet, a table row, or a number or letter.
_CHOICE = re.compile(
    r"[-*+\u2013\u2014\u00b7]\s|[\u2022\u2023\u25e6\u25aa\u25cf\u25cb|]"
    r"|[*_]{0,3}[(\[\uff08]?\w{1,3}[.):\]\uff09\u3001\uff0e\uff1a]"
    r"|[\u2460-\u24ff\u2776-\u2793]|\d\ufe0f?\u20e3"
)
# A list longer than this is not a list of choices.
_SEEN_CHARACTERS = 10_000


def asks_user(state: Any) -> bool:
    r"""Return whether the last answer of the model ends in a question, in any script.

    Use it as `AutoContinue(stop_when=asks_user)`. Quotes, brackets, emphasis, symbols or a list of
    choices may follow the question mark.

    Args:
        state: The graph state.

    Example:
        ```python
        policy = AutoContinue(stop_when=asks_user)
        assert asks_user({"messages": [AIMessage("**Which colour?**\n1. Red\n2. Blue")]})
        ```
    """
    messages: object = messages_in(state)
    if not isinstance(messages, Sequence):
        return False
    last = next((each for each in reversed(messages) if isinstance(each, AIMessage)), None)
    return last is not None and _ends_in_question(_text(last.content))


def _text(content: object) -> str:
    """Return the text of an answer; blocks of other types are ignored."""
    if isinstance(content, str):
        return content
    blocks = content if is_list(content) else []
    texts = (block.get("text") if is_mapping(block) else block for block in blocks)
    return "".join(text for text in texts if isinstance(text, str))


def _ends_in_question(text: str) -> bool:
    """Whether the last line is a question; a list of choices may follow it."""
    lines = reversed(text.rstrip()[-_SEEN_CHARACTERS:].splitlines())
    for line in lines:
        if _is_question(line):
            return True
        if not _is_in_choices(line):
            break
    return False


def _is_in_choices(line: str) -> bool:
    """Whether a line belongs to a list of choices, or is empty."""
    return not line.strip() or line[0] in " \t" or _CHOICE.match(line) is not None


def _is_question(line: str) -> bool:
    line = line.rstrip().rstrip(":\uff1a")
    end = len(line)
    while end and _closes(line[end - 1]):
        end -= 1
    if not end:
        return False
    if line[end - 1] == ";":  # a Greek question mark; other scripts do not end a sentence with it
        return _GREEK.search(line[:end].rpartition(" ")[2]) is not None
    return line[end - 1] in _MARKS or _is_armenian_question(line[:end])


def _closes(character: str) -> bool:
    if character in _MARKS:
        return False
    return character in _ALSO_CLOSING or category(character) in _CLOSING


def _is_armenian_question(line: str) -> bool:
    """Whether a sentence contains the Armenian question mark, which can be inside any word."""
    sentence = line.rstrip(_ARMENIAN_STOP + ":").rpartition(_ARMENIAN_STOP)[2]
    return _ARMENIAN_MARK in sentence
