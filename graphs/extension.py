"""An extension for `dcode`, the terminal agent of deepagents: its agent gets the list and the loop.

    pip install "langgraph-todo-tools[langchain]"  # into the environment of dcode
    DEEPAGENTS_CODE_EXPERIMENTAL=1 dcode --extension extension.py

Extensions of `dcode` are experimental. The file needs only this package, so it can be copied alone.
"""

from typing import Any

from todo_tools import TodoMiddleware


async def extension(dcode: Any) -> None:
    """Register the middleware.

    Args:
        dcode: What `dcode` gives to an extension, a `deepagents_code.extensions.ExtensionAPI`.
    """
    dcode.register_middleware(TodoMiddleware(todos_format="langchain"))
