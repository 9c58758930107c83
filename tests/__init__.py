"""The tests of todo_tools.

The whole suite runs in LangGraph's strict mode, because careful applications do. LangGraph reads
the setting once, at import.
"""

import os

os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
