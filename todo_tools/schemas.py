"""Create argument schemas for tools that check their arguments themselves.

If arguments fail validation, langchain-core returns an error that repeats all of them. A tool with
these schemas receives the arguments as the model wrote them, so it can return a short error.

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

from todo_tools._tools.build import LenientArgs, argument

__all__ = ["LenientArgs", "argument"]
