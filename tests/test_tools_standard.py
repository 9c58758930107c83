"""LangChain's standard tests for tools, without overrides."""

from typing import Any

from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from todo_tools import create_todo_tools

WRITE, LIST, EDIT = create_todo_tools()
WRITE_ARGS: dict[str, Any] = {"mode": "replace", "todos": [{"text": "Write tests"}]}
EDIT_ARGS: dict[str, Any] = {"action": "start", "indices": [0]}


class TestWriteTodosUnit(ToolsUnitTests):
    tool_constructor: Any = WRITE
    tool_invoke_params_example: Any = WRITE_ARGS


class TestWriteTodosIntegration(ToolsIntegrationTests):
    tool_constructor: Any = WRITE
    tool_invoke_params_example: Any = WRITE_ARGS


class TestListTodosUnit(ToolsUnitTests):
    tool_constructor: Any = LIST


class TestListTodosIntegration(ToolsIntegrationTests):
    tool_constructor: Any = LIST


class TestEditTodosUnit(ToolsUnitTests):
    tool_constructor: Any = EDIT
    tool_invoke_params_example: Any = EDIT_ARGS


class TestEditTodosIntegration(ToolsIntegrationTests):
    tool_constructor: Any = EDIT
    tool_invoke_params_example: Any = EDIT_ARGS
