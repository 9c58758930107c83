"""Detect whether an answer ends in a question to the user."""

from typing import Any

from langchain_core.messages import AIMessage

from todo_tools._thread.state import messages_in

_MARKS = ("?", "\uff1f", "\u061f", "\u055e", "\u2047", "\u2048")
# What may follow a mark: quotes, brackets, emphasis, an exclamation mark.
_CLOSING = " \n\t\"'*_~`!\uff01)]}>\u00bb\u201d\u2019\u300d\u2026"


def asks_user(state: Any) -> bool:
    """Return whether the last answer of the model ends in a question mark.

    Use it as `AutoContinue(stop_when=asks_user)`. Quotes, brackets or emphasis may follow the
    question mark. A question before a list of choices is not recognised.

    Args:
        state: The graph state.

    Example:
        ```python
        policy = AutoContinue(stop_when=asks_user)
        assert asks_user({"messages": [AIMessage("**Which colour?**")]})
        ```
    """
    answers = (each for each in reversed(messages_in(state)) if isinstance(each, AIMessage))
    last = next(answers, None)
    return last is not None and last.text.rstrip(_CLOSING).endswith(_MARKS)
