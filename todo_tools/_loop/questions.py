"""Detect whether an answer ends in a question to the user."""

from typing import Any
from unicodedata import category, name

from langchain_core.messages import AIMessage

from todo_tools._thread.state import messages_in

# Characters that may follow a mark: blanks, closing quotes and brackets, invisible ones, symbols.
_CLOSING = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Pe", "Pf", "Pi", "Mn", "Me", "Sk", "So"})
_ALSO_CLOSING = frozenset("\"'*_~`!\uff01\u2026")


def asks_user(state: Any) -> bool:
    """Return whether the last answer of the model ends in the question mark of any script.

    Use it as `AutoContinue(stop_when=asks_user)`. Quotes, brackets, emphasis or symbols may follow
    the question mark. A question before a list of choices is not recognised, nor is a Greek one
    that ends in a semicolon.

    Args:
        state: The graph state.

    Example:
        ```python
        policy = AutoContinue(stop_when=asks_user)
        assert asks_user({"messages": [AIMessage("**Which colour?**")]})
        ```
    """
    last = next(
        (each for each in reversed(messages_in(state)) if isinstance(each, AIMessage)), None
    )
    return last is not None and _ends_in_question(last.text)


def _ends_in_question(text: str) -> bool:
    end = len(text)
    while end and not _is_question_mark(text[end - 1]) and _closes(text[end - 1]):
        end -= 1
    return end > 0 and _is_question_mark(text[end - 1])


def _is_question_mark(character: str) -> bool:
    """Whether the Unicode name of a character says so; most scripts have a mark of their own."""
    called = name(character, "")
    return "QUESTION MARK" in called or "INTERROBANG" in called


def _closes(character: str) -> bool:
    return character in _ALSO_CLOSING or category(character) in _CLOSING
