"""Split the chunks of a stream into path, mode and payload."""

from collections.abc import Iterator
from typing import Any, TypeGuard

Path = tuple[str, ...]
"""LangGraph's path of a subgraph, such as `("worker:1f0…",)`; `()` is the graph itself."""

NOTHING_TO_SHOW = 'This stream does not contain the list; use stream_mode=["updates", "custom"].'


def can_be_shown(chunk: Any) -> bool:
    """Whether chunks of this form can contain the list."""
    return any(mode in ("custom", "updates", "values") for _, mode, _ in parts_of(chunk))


def _is_path(value: object) -> TypeGuard[Path]:
    return isinstance(value, tuple)


def parts_of(chunk: Any) -> Iterator[tuple[Path, str, Any]]:
    """Yield the path, mode and payload of a chunk; every form of LangGraph's chunks works."""
    match chunk:
        case (path, str() as mode, payload) if _is_path(path):  # stream(..., subgraphs=True)
            yield path, mode, payload
        case (path, payload) if _is_path(path):
            yield from ((path, mode, part) for _, mode, part in parts_of(payload))
        case (str() as mode, payload):
            yield (), mode, payload
        case {"type": str() as mode, "ns": path, "data": payload} if _is_path(path):  # version="v2"
            yield path, mode, payload
        case tuple() | {"ns": _, "data": _} | {"event": str(), "data": _}:  # `astream_events(...)`
            return
        case {"type": "checkpoint" | "task" | "task_result", "payload": _}:  # debug
            return
        case {"type": str()}:
            yield (), "custom", chunk
        case {"messages": _}:
            yield (), "values", chunk
        case _:
            yield (), "updates", chunk
