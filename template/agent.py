"""An agent with a todo list. `langgraph.json` names it; `python agent.py` runs it once."""

import os

from langchain.agents import create_agent

from todo_tools import TodoMiddleware, format_todos
from todo_tools.testing import checklist_model


def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


agent = create_agent(
    os.environ.get("MODEL") or checklist_model(),  # such as "openai:gpt-5"; or the stand-in
    tools=[count_words],  # your own tools
    middleware=[TodoMiddleware(todos_format="langchain")],  # last; the format is for interfaces
)

if __name__ == "__main__":
    result = agent.invoke({"messages": [("user", "- [ ] Name three rivers\n- [ ] Sort them")]})
    print(format_todos(result["todos"]))
