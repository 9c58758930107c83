"""What a run looks like in a terminal: plain lines, made from the stream of a graph."""

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from todo_tools import format_todos
from todo_tools.rendering import one_line, show_call
from todo_tools.transcript import details_of

_MODEL_NODES = ("agent", "model")
_OUTPUT_LINES = 12


async def report(stream: AsyncIterator[tuple[str, Any]]) -> AsyncIterator[str]:
    """Turn a run into lines.

    Args:
        stream: `graph.astream(..., stream_mode=["updates", "custom"])` of a graph whose model
            answers in the node `agent` or `model`, and whose tools are the node `tools`.

    Yields:
        Lines to print, as soon as they are known.
    """
    changed: dict[str, Any] | None = None
    async for mode, chunk in stream:
        if mode == "custom" and chunk["type"] == "todos":
            # Several changes of one turn are shown once, as the last one left them.
            if changed is None or chunk["position"] > changed["position"]:
                changed = chunk
        elif mode == "custom":
            for line in _loop_lines(chunk):
                yield line
        else:
            for message in _messages(chunk):
                for line in _message_lines(message):
                    yield line
            if changed and "tools" in chunk:
                for line in _list_lines(changed):
                    yield line
                changed = None


def _messages(chunk: dict[str, Any]) -> Iterator[BaseMessage]:
    for node, update in chunk.items():
        # A node that waits for a person, or that wrote nothing, has no dict.
        parts = update if isinstance(update, list) else [update]
        updates = [part for part in parts if isinstance(part, Mapping)]
        for message in (message for part in updates for message in part.get("messages", [])):
            # Other nodes repeat the model's answer, such as the one that asks for approval.
            if node in _MODEL_NODES or isinstance(message, ToolMessage):
                yield message


def _message_lines(message: BaseMessage) -> Iterator[str]:
    if isinstance(message, AIMessage):
        if message.text:
            yield f"\n💬 {one_line(message.text)}"
        yield from (f"→ {show_call(call['name'], call['args'])}" for call in message.tool_calls)
    elif isinstance(message, ToolMessage) and (
        details_of(message) is None or message.status == "error"
    ):
        lines = message.text.splitlines()
        if len(lines) > _OUTPUT_LINES:
            lines = [f"… {len(lines) - _OUTPUT_LINES} more lines", *lines[-_OUTPUT_LINES:]]
        yield from (f"  │ {one_line(line)}" for line in lines)


def _list_lines(event: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield from (f"  {line}" for line in format_todos(event["todos"]).splitlines())
    yield f"  {event['status']}"
    yield ""


def _loop_lines(event: dict[str, Any]) -> Iterator[str]:
    if event["type"] == "todo_loop" and event["outcome"] is None:
        yield f"↻ not finished: sent back to work ({event['in_turn']} in this turn)\n"
    elif event["type"] == "todo_countdown":
        yield f"⏳ Auto-continuing in {event['seconds']}s... (Ctrl-C to interrupt)"
    elif event.get("text"):
        yield event["text"]
