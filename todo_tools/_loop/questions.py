"""Detect whether an answer ends in a question to the user."""

from typing import Any
from unicodedata import category

from langchain_core.messages import AIMessage

from todo_tools._thread.state import messages_in

# The question marks that end a sentence, in the scripts that have one.
_MARKS = frozenset(
    "?\u061f\u1367\u1945\u203d\u2047\u2048\u2049\u2e2e\ua60f\ua6f7\ufe16\ufe56\uff1f"
)
# Characters that may follow a mark: blanks, closing quotes and brackets, invisible ones, symbols.
_CLOSING = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Pe", "Pf", "Pi", "Mn", "Me", "Sk", "So"})
_ALSO_CLOSING = frozenset("\"'*_~`!\uff01\u2026")


def asks_user(state: Any) -> bool:
    r"""Return whether the last answer of the model ends in a question mark, in any script.

    Use it as `AutoContinue(stop_when=asks_user)`. Quotes, brackets, emphasis or symbols may follow
    the question mark. A question before a list of choices is not recognised.

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
    while end and text[end - 1] not in _MARKS and _closes(text[end - 1]):
        end -= 1
    return end > 0 and text[end - 1] in _MARKS


def _closes(character: str) -> bool:
    return character in _ALSO_CLOSING or category(character) in _CLOSING
