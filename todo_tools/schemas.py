"""Create argument schemas for tools that check their arguments themselves.

If arguments fail validation, langchain-core returns an error that repeats all of them. A tool with
such a schema receives the arguments as the model wrote them, so it can return a short error.
"""

from todo_tools._tools.schemas import lenient_schema

__all__ = ["lenient_schema"]
