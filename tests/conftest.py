"""What several test modules share."""

import pytest
from hypothesis import settings
from langchain_core.runnables import RunnableConfig

from todo_tools import TodoItem, TodoStatus

settings.register_profile("default", deadline=None)
settings.load_profile("default")


def items(*texts: str, status: TodoStatus = "not_started") -> list[TodoItem]:
    """A list of todos that all have one status."""
    return [{"text": text, "status": status} for text in texts]


@pytest.fixture
def config() -> RunnableConfig:
    """The config of a thread."""
    return {"configurable": {"thread_id": "thread"}}
