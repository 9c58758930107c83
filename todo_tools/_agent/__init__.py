"""The middleware for LangChain's `create_agent`."""

try:
    import langchain.agents.middleware as _  # noqa: F401  the extra
except ImportError as error:
    raise ImportError(
        "todo_tools.middleware needs langchain; pip install 'langgraph-todo-tools[langchain]'"
    ) from error
