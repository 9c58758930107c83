"""Convert lists to and from the format of LangChain's clients.

Interfaces made for LangChain's own todo middleware, such as deep-agents-ui, read `todos` as items
with `content` and one of three statuses. They can show an agent's list if the agent stores it in
this format. To do so, use `TodoMiddleware(todos_format="langchain")`, or a graph whose state is
`ClientTodoState`. This package reads both formats.
"""

from todo_tools._list.formats import to_client_todos
from todo_tools._thread.state import ClientTodoState

__all__ = ["ClientTodoState", "to_client_todos"]
