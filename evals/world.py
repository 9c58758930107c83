"""A world in memory, and the tools that work on it."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException


@dataclass
class World:
    """What the tools read and change; the steps of a task are checked here and in no text."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    """Texts by the name of the file."""
    facts: dict[str, str] = field(default_factory=dict[str, str])
    """What can be looked up and never changes."""
    records: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Fields by the name of the record."""
    touched: set[str] = field(default_factory=set[str])
    """The names that a successful call has used."""

    def copy(self) -> "World":
        """Return a world that can be changed without changing this one."""
        return deepcopy(self)

    def read_file(self, path: str) -> str:
        """Return the text of a file."""
        text = self._found(self.files, path, "file")
        return text or "(The file is empty.)"

    def write_file(self, path: str, text: str) -> str:
        """Write a text to a file; an old text is replaced."""
        self.files[path] = text
        self.touched.add(path)
        return f"Wrote {path}."

    def look_up(self, name: str) -> str:
        """Look up a fact, or the fields of a record, by its name."""
        if name in self.records:
            fields = self._found(self.records, name, "record")
            return ", ".join(f"{key}: {value}" for key, value in fields.items())
        return str(self._found(self.facts, name, "entry"))

    def edit_record(self, name: str, field: str, value: str) -> str:
        """Set one field of a record to a new value."""
        fields = self._found(self.records, name, "record")
        if field not in fields:
            raise ToolException(f"Error: {name} has no field {field!r}; it has {', '.join(fields)}")
        fields[field] = value
        return f"{name}: {field} is now {value}."

    def _found(self, things: dict[str, Any], name: str, kind: str) -> Any:
        if name not in things:
            raise ToolException(f"Error: there is no {kind} {name!r}.")
        self.touched.add(name)
        return things[name]


def world_tools(world: World) -> list[BaseTool]:
    """Return the tools of a world; a tool that cannot do its work returns an error."""
    functions: list[Callable[..., str]] = [
        world.read_file,
        world.write_file,
        world.look_up,
        world.edit_record,
    ]
    return [
        StructuredTool.from_function(function, handle_tool_error=True, parse_docstring=False)
        for function in functions
    ]
