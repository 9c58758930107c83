"""Read tool calls that a model wrote as text.

Some small models write a call as bare or fenced JSON, without the tags that their server looks for.
So the answer arrives as text, and the agent would stop.
"""

import json
from collections.abc import Collection, Iterator
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import ToolCall, tool_call


def with_call_in_text(answer: AIMessage, tools: Collection[str]) -> AIMessage:
    """Return an answer whose text has a tool call as an answer with that call.

    A JSON object is a call if its `name` is that of a tool and it has `arguments`. Only the first
    one counts; what follows it is often made up, such as the results of the calls.

    Args:
        answer: The answer of the model.
        tools: The names of the tools that the model has.

    Returns:
        The same answer if it has calls already, or if no call is in its text.
    """
    if answer.tool_calls or not isinstance(answer.content, str):
        return answer
    for start, found in _objects(answer.content):
        if (call := _call(found, tools)) is not None:
            said = answer.content[:start].removesuffix("```json\n").removesuffix("<tool_call>\n")
            return answer.model_copy(update={"content": said.strip(), "tool_calls": [call]})
    return answer


def _objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects in a text, with their places; objects inside others are left out."""
    decoder, at = json.JSONDecoder(strict=False), 0
    while (start := text.find("{", at)) >= 0:
        try:
            found, at = decoder.raw_decode(text, start)
        except ValueError:
            at = start + 1
        else:
            yield start, found


def _call(found: dict[str, Any], tools: Collection[str]) -> ToolCall | None:
    name, args = found.get("name"), found.get("arguments")
    if not isinstance(name, str) or name not in tools or not isinstance(args, dict):
        return None
    return tool_call(name=name, args=found["arguments"], id=f"call_{uuid4().hex[:12]}")
