"""The tool schemas are small, and every provider's conversion keeps them."""

from typing import Any, ClassVar

import pytest
from langchain_anthropic.chat_models import convert_to_anthropic_tool
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_google_genai._function_utils import convert_to_genai_function_declarations
from langchain_openai import ChatOpenAI

from todo_tools import TodoLimits, create_todo_tools

TOOLS = create_todo_tools()


def parameters(tool: BaseTool) -> dict[str, Any]:
    """The JSON schema of the tool."""
    schema: dict[str, Any] = convert_to_openai_tool(tool)["function"]["parameters"]
    return schema


def bound(model: Any) -> Any:
    """The tools as the model's own binding converts them for the wire."""
    return model.bind_tools(TOOLS).kwargs["tools"]


def without_strictness(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: without_strictness(value)
            for key, value in schema.items()
            if key != "additionalProperties"
        }
    return schema


class TestSchemas:
    def test_the_model_reads_the_descriptions_of_the_specification(self) -> None:
        """They name the limits in force."""
        write, _, edit = create_todo_tools(
            TodoLimits(max_todos=7, max_text_length=80, max_indices=3)
        )
        text = {"type": "string", "description": "Description of the task, at most 80 characters"}
        assert parameters(write) == {
            "type": "object",
            "properties": {
                "mode": {
                    "type": "string",
                    "enum": ["replace", "append", "insert"],
                    "description": "Mode: 'replace' clears and replaces the entire list, 'append' "
                    "adds to the end, 'insert' inserts at a specific index",
                },
                "index": {
                    "type": "integer",
                    "description": "0-based index to insert at (required for 'insert' mode)",
                },
                "todos": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"text": text}, "required": ["text"]},
                    "description": "Ordered list of todo items, at most 7",
                },
            },
            "required": ["mode", "todos"],
        }
        assert parameters(edit) == {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["start", "complete", "abandon"],
                    "description": "Action to apply to the todo items",
                },
                "indices": {
                    "type": "array",
                    "items": {"type": "integer"},
                    "description": "0-based indices to apply the action to, 1 to 3",
                },
            },
            "required": ["action", "indices"],
        }


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
class TestStrict:
    def test_strict_openai_schemas_have_only_what_is_supported(self, tool: BaseTool) -> None:
        """Every object is closed, every property is required, and every keyword is supported."""
        function = convert_to_openai_tool(tool, strict=True)["function"]
        schema = function["parameters"]
        assert function["strict"] is True
        assert schema.get("required", []) == list(schema["properties"])
        keywords = {key for value in schema["properties"].values() for key in value}
        assert keywords <= {"type", "description", "enum", "items"}


class TestProviders:
    """Every conversion keeps the types, choices, descriptions and requirements."""

    expected: ClassVar = {tool.name: parameters(tool) for tool in TOOLS}

    def test_openai(self) -> None:
        """A strict schema has the same properties."""
        model = ChatOpenAI(model="gpt-5", api_key="none")  # type: ignore[arg-type]
        for tool in bound(model):
            assert tool["function"]["parameters"] == self.expected[tool["function"]["name"]]
        for tool in model.bind_tools(TOOLS, strict=True).kwargs["tools"]:  # type: ignore[attr-defined]
            name, schema = tool["function"]["name"], tool["function"]["parameters"]
            relaxed = without_strictness(schema)
            assert relaxed["properties"] == self.expected[name]["properties"]

    def test_anthropic(self) -> None:
        for tool in TOOLS:
            assert convert_to_anthropic_tool(tool)["input_schema"] == self.expected[tool.name]

    def test_google(self) -> None:
        """Google has its own names for the types."""
        model = ChatGoogleGenerativeAI(model="gemini-2.5-pro", google_api_key="none")
        (tools,) = convert_to_genai_function_declarations(bound(model))
        declarations = tools.model_dump(mode="json", exclude_none=True)["function_declarations"]
        assert len(declarations) == 3
        for declaration in declarations:
            schema = lowered(declaration.get("parameters", {}))  # absent if nothing is required
            expected = self.expected[declaration["name"]]
            assert schema.get("properties", {}) == expected["properties"]
            assert schema.get("required", []) == expected.get("required", [])


def lowered(schema: Any) -> Any:
    """A Google schema as JSON schema: types in lower case, without titles."""
    if not isinstance(schema, dict):
        return schema
    return {
        key: value.lower() if key == "type" and isinstance(value, str) else lowered(value)
        for key, value in schema.items()
        if key != "title" or isinstance(value, dict)
    }
