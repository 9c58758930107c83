"""Show one run as text."""

import json
from collections.abc import Iterator

from evals.results import Result, Said


def shown(result: Result, *, history: bool = False) -> str:
    """Return a run as text.

    Args:
        result: The run.
        history: Show the stored history and not what the model read at the end.
    """
    return "\n".join([*_head(result), "", *_messages(result["history" if history else "prompt"])])


def _head(result: Result) -> Iterator[str]:
    job = result["job"]
    yield f"{job['family']}, {job['n']} steps, seed {job['seed']}, arm {job['arm']}"
    yield f"{result['model']}, {result['date']}, {result['seconds']} s: {result['outcome']}"
    yield ", ".join(f"{name} {number}" for name, number in result["usage"].items())
    yield ", ".join(f"{name} {number}" for name, number in result["figures"].items())
    for step in result["steps"]:
        kind = "" if step["kind"] == "work" else f" ({step['kind']})"
        yield f"{'✓' if step['done'] else '✗'} {step['text']}{kind}"
    for todo in result["todos"]:
        yield f"  todo: {todo['status']}: {todo.get('text', todo.get('content'))}"


def _messages(messages: list[Said]) -> Iterator[str]:
    for number, message in enumerate(messages):
        yield f"--- {number} {message['role']}"
        if message["text"]:
            yield message["text"]
        for call in message["calls"]:
            yield f"→ {call['name']}({json.dumps(call['args'], ensure_ascii=False)})"
