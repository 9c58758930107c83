"""What a todo list costs: this project's middleware beside LangChain's `TodoListMiddleware`.

Both run in `create_agent` with a SQLite checkpointer. A scripted model plans N items, then starts
and completes each, one change a turn; the two differ in nothing else. Run with `make bench`.
"""

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import convert_to_openai_messages, count_tokens_approximately
from langgraph.checkpoint.sqlite import SqliteSaver

from todo_tools.middleware import TodoMiddleware
from todo_tools.state import DeltaTodoState
from todo_tools.testing import ScriptedChatModel, call, turn

RUNS = 3


@dataclass(frozen=True)
class Cost:
    """What one run took."""

    sent: int
    """Tokens of all prompts, with the tools' schemas."""
    received: int
    """Tokens of all answers."""
    stored: int
    """Bytes of the database."""
    seconds: float


def stock_script(items: int) -> list[AIMessage]:
    """The list is written anew for every change."""
    statuses = ["pending"] * items
    script = [_stock_turn(statuses)]
    for index in range(items):
        for status in ("in_progress", "completed"):
            statuses[index] = status
            script.append(_stock_turn(statuses))
    return [*script, turn("Done.")]


def _stock_turn(statuses: list[str]) -> AIMessage:
    todos = [{"content": text(index), "status": status} for index, status in enumerate(statuses)]
    return turn("", call("write_todos", todos=todos))


def our_script(items: int) -> list[AIMessage]:
    """The list is written once, then changed by index."""
    plan = [{"text": text(index)} for index in range(items)]
    changes = [
        turn("", call("edit_todos", action=action, indices=[index]))
        for index in range(items)
        for action in ("start", "complete")
    ]
    return [turn("", call("write_todos", mode="replace", todos=plan)), *changes, turn("Done.")]


def text(index: int) -> str:
    """A text of usual length."""
    return f"Step {index}: change the module, run its tests and write down what was found"


def measure(script: list[AIMessage], middleware: Any, state_schema: Any = None) -> Cost:
    """Run an agent through a script on an empty database."""
    model = ScriptedChatModel(script=script)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "threads.sqlite"
        with SqliteSaver.from_conn_string(str(path)) as saver:
            agent: Any = create_agent(
                model, middleware=[middleware], state_schema=state_schema, checkpointer=saver
            )
            began = time.perf_counter()
            agent.invoke({"messages": [("user", "Begin.")]}, {"configurable": {"thread_id": "1"}})
            seconds = time.perf_counter() - began
        stored = path.stat().st_size
    schemas = _tokens(model.tools) * len(model.prompts)
    sent = sum(_message_tokens(prompt) for prompt in model.prompts) + schemas
    return Cost(sent, _message_tokens(script), stored, seconds)


def _message_tokens(messages: list[BaseMessage] | list[AIMessage]) -> int:
    return _tokens(convert_to_openai_messages(list(messages)))


def _tokens(data: Any) -> int:
    return count_tokens_approximately([json.dumps(data, ensure_ascii=False)])


def rows(items: int) -> list[tuple[str, Cost]]:
    """The three ways to run the same plan, in turn, each with its median time."""
    runs = [
        [
            ("TodoListMiddleware", measure(stock_script(items), TodoListMiddleware())),
            ("TodoMiddleware", measure(our_script(items), TodoMiddleware())),
            ("with DeltaTodoState", measure(our_script(items), TodoMiddleware(), DeltaTodoState)),
        ]
        for _ in range(RUNS)
    ]
    return [_median(list(row)) for row in zip(*runs, strict=True)]


def _median(row: list[tuple[str, Cost]]) -> tuple[str, Cost]:
    """Of the runs of one row, which differ in nothing but time."""
    return sorted(row, key=lambda named: named[1].seconds)[len(row) // 2]


def table(sizes: tuple[int, ...]) -> str:
    """The measurements as a Markdown table, each with its ratio to the first row."""
    lines = [
        "| items | | tokens sent | tokens received | database | time |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for items in sizes:
        measured = rows(items)
        stock = measured[0][1]
        for name, cost in measured:
            lines.append(
                f"| {items} | {name} | {_cell(f'{cost.sent:,}', stock.sent, cost.sent)} "
                f"| {_cell(f'{cost.received:,}', stock.received, cost.received)} "
                f"| {_cell(f'{cost.stored / 1e6:.1f} MB', stock.stored, cost.stored)} "
                f"| {_cell(f'{cost.seconds:.2f} s', stock.seconds, cost.seconds)} |"
            )
    return "\n".join(lines)


def _cell(shown: str, stock: float, value: float) -> str:
    return shown if stock == value else f"{shown} ({stock / value:.1f}x)"


if __name__ == "__main__":
    print(table((5, 20, 100)))
