"""Create argument schemas for tools that validate their arguments themselves.

If arguments fail validation, langchain-core returns an error that repeats all of them. A tool with
these schemas receives the arguments exactly as the model wrote them, so it can return a short
error. The `read_*` functions parse such arguments; their `CallError` has a text for the model.

Example:
    ```python
    args = create_model(
        "search",
        __base__=LenientArgs,
        query=argument(type="string", description="What to look for"),
        limit=argument(optional=True, type="integer", description="The most results"),
    )
    ```
"""

from todo_tools._calls.arguments import (
    CallError,
    brief,
    read_index,
    read_texts,
)
from todo_tools._tools.build import LenientArgs, argument

__all__ = [
    "CallError",
    "LenientArgs",
    "argument",
    "brief",
    "read_index",
    "read_texts",
]
