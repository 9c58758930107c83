"""The specification of todo_tools, as tests.

LangGraph reads its strict mode once, when it is imported: the whole suite runs in it, since
applications that care about their data do.
"""

import os

os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
