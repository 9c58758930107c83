"""Agents for every variant of the state, and a job that an accident interrupts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from graphs.until_done import build_graph
from tests.support import Graph, checklist
from todo_tools import (
    AutoContinue,
    DeltaTodoState,
    TodoLimits,
    TodoMiddleware,
    TodoState,
    todos_from_messages,
)
from todo_tools._list.formats import TodosFormat
from todo_tools.clients import ClientTodoState
from todo_tools.state import messages_in, todos_in
from todo_tools.testing import checklist_model

Saver = BaseCheckpointSaver[Any]
Durability = Literal["sync", "async", "exit"]

STATES: dict[str, Any] = {
    "TodoState": TodoState,
    "ClientTodoState": ClientTodoState,
    "DeltaTodoState": DeltaTodoState,
}
MIDDLEWARE: dict[str, TodosFormat] = {
    "TodoMiddleware": "todo_tools",
    "TodoMiddleware, langchain": "langchain",
}
VARIANTS = [*STATES, *MIDDLEWARE]
DURABILITIES: list[Durability] = ["sync", "async", "exit"]


def agent(
    variant: str,
    model: BaseChatModel,
    saver: Saver,
    *,
    tools: Sequence[BaseTool] = (),
    policy: AutoContinue = AutoContinue(),
    limits: TodoLimits = TodoLimits(),
    fold: bool = False,
) -> Graph:
    """An agent whose state is one of `VARIANTS`; only the middleware can fold."""
    if variant in STATES:
        builder = build_graph(
            model, tools, policy=policy, limits=limits, state_schema=STATES[variant]
        )
        return builder.compile(checkpointer=saver)
    middleware = TodoMiddleware(
        policy=policy, limits=limits, todos_format=MIDDLEWARE[variant], fold_finished=fold
    )
    built: Any = create_agent(model, list(tools), middleware=[middleware], checkpointer=saver)
    return built  # type: ignore[no-any-return]


@contextmanager
def opened(address: str) -> Iterator[Saver]:
    """A checkpointer for a PostgreSQL address or the path of a SQLite file."""
    if not address.startswith("postgresql"):
        with SqliteSaver.from_conn_string(address) as sqlite:
            sqlite.setup()  # two connections cannot make a new file at the same moment
            yield sqlite
        return
    with PostgresSaver.from_conn_string(address) as postgres:
        postgres.setup()
        yield postgres


@dataclass(frozen=True)
class Job:
    """A checklist that an agent works through in one thread; each step appends a line to a log."""

    variant: str
    durability: Durability
    address: str
    folder: Path
    steps: int = 2
    moment: Callable[[Saver], None] | None = None
    """Called after each step, before its result is returned."""

    @property
    def config(self) -> RunnableConfig:
        """The thread of this job, and far more steps than it needs."""
        return {"configurable": {"thread_id": str(self.folder)}, "recursion_limit": 100}

    @property
    def request(self) -> dict[str, Any]:
        """The checklist as the user's message."""
        text = checklist(*(f"Step {n}, {'long ' * 100}: `{n}`" for n in range(self.steps)))
        return {"messages": [("user", text)]}

    def graph(self, saver: Saver) -> Graph:
        """The agent that does the job; it stops early after each item."""

        @tool
        def work(command: str) -> str:
            """Do a step."""
            with self._log.open("a") as log:
                log.write(f"{command}\n")
            if self.moment:
                self.moment(saver)
            return "exit code 0"

        model = checklist_model(shell="work", rest_after=1)
        return agent(self.variant, model, saver, tools=[work])

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def done(self) -> list[str]:
        """The steps that were done, in order, including repetitions."""
        return self._log.read_text().split() if self._log.exists() else []

    def run(self, saver: Saver, request: Any = None) -> dict[str, Any]:
        """Start the job, or resume it where the thread stopped."""
        return self.graph(saver).invoke(request, self.config, durability=self.durability)

    def go_on(self, saver: Saver) -> dict[str, Any]:
        """Resume after an accident; if nothing was stored, the user asks again."""
        begun = self.graph(saver).get_state(self.config).values.get("messages")
        return self.run(saver, None if begun else self.request)

    def check_finish(self) -> None:
        """Finish the job after an accident: nothing is lost, and no stored step runs again."""
        before = self.done()
        with opened(self.address) as saver:
            kept = stored_steps(self.graph(saver), saver, self.config)
            self.go_on(saver)
            values = self.graph(saver).get_state(self.config).values
        after = self.done()[len(before) :]
        again = kept & set(after)
        assert not again, f"steps {sorted(again)} were stored and done again ({self})"
        assert len(set(after)) == len(after), f"resumed once, but did {after} ({self})"
        if self.durability == "sync":
            lost = set(before) - kept
            assert len(lost) <= 1, f"steps {sorted(lost)} were done and not stored ({self})"
        check_replay(values)
        texts = [todo["text"].split(",")[0] for todo in todos_in(values)]
        assert texts == [f"Step {n}" for n in range(self.steps)], f"{texts} ({self})"
        assert {todo["status"] for todo in todos_in(values)} == {"completed"}, f"{self}"
        assert values["todo_outcome"] == "finished", f"{self}"


def stored_steps(graph: Graph, saver: Saver, config: RunnableConfig) -> set[str]:
    """The steps whose results are in the thread, including pending writes."""
    messages: list[AnyMessage] = list(messages_in(graph.get_state(config).values))
    if not messages:  # LangGraph cannot read an `exit` mode run that was stored only in part
        return set()
    found = saver.get_tuple(config)
    for _, channel, value in (found.pending_writes if found else None) or ():
        if channel == "messages":
            messages += value if isinstance(value, list) else [value]
    done = {m.tool_call_id for m in messages if isinstance(m, ToolMessage) and m.name == "work"}
    calls = [call for m in messages for call in getattr(m, "tool_calls", [])]
    return {call["args"]["command"] for call in calls if call["id"] in done}


def check_replay(values: Any) -> None:
    """Check that the list equals the sum of the results in the history."""
    todos, replayed = todos_in(values), todos_from_messages(messages_in(values))
    assert todos == replayed, f"the list is {todos}, the history says {replayed}"
