"""Growth: the work and the bytes of one turn after 10, 100 and 1,000 turns, at most linear."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from typing_extensions import override

from campaigns.agents import VARIANTS, agent
from campaigns.cases import Case, Trial
from tests.support import Graph, calls_in_the_library, items
from todo_tools import AutoContinue
from todo_tools.state import messages_in
from todo_tools.testing import ScriptedChatModel, call, turn

REAL_TURNS = 10
"""How many turns are run; longer threads repeat them."""
TIMES = (1, 10, 100)
SLACK = 1.1
"""By how much more the cost may rise than the number of turns."""


class Counting(JsonPlusSerializer):
    """A serializer that notes the sizes of what it writes; LangGraph copies it."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes

    @override
    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        self.sizes.append(len(data))
        return kind, data


class Thread:
    """A thread with a seed of its own; the same seed gives the same turns.

    Args:
        variant: The kind of agent.
        seed: Decides what each turn does.
    """

    def __init__(self, variant: str, seed: int) -> None:
        @tool
        def work(size: int) -> str:
            """Do a piece of work."""
            return "x" * size

        self.random = Random(seed)
        self.sizes: list[int] = []
        model = ScriptedChatModel(script=self._answer)
        saver = InMemorySaver(serde=Counting(self.sizes))
        policy = AutoContinue(max_in_turn=1)
        self.graph: Graph = agent(variant, model, saver, tools=[work], policy=policy)
        self.config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        self.left: list[AIMessage] = []

    def _answer(self, _: list[BaseMessage]) -> AIMessage | str:
        return self.left.pop() if self.left else "I stop."

    def take_turn(self) -> None:
        """The application edits the list, the user speaks, and the agent works."""
        name = f"step {self.random.randrange(10**6)}"
        self.left = [
            turn("", call("edit_todos", action=action, indices=[0]), call("work", size=50))
            for action in ("complete", "start")
        ]
        given: dict[str, Any] = {"messages": [HumanMessage("Go on.")]}
        if self.random.random() < 0.5:
            given["todos"] = items(name, "last")
        else:
            written = call("write_todos", mode="replace", todos=[name, "last"])
            self.left.append(turn("", written))
        asyncio.run(self.graph.ainvoke(given, self.config))

    def repeat(self, times: int) -> None:
        """Make the history as many times as long; notes are repeated with their messages."""
        values = self.graph.get_state(self.config).values
        messages = messages_in(values)
        more: list[AnyMessage] = []
        for number in range(1, times):
            more += renamed(messages, f"{number}-")
        self.graph.update_state(self.config, {"messages": more})

    def cost_of_turns(self, number: int) -> dict[str, int]:
        """Calls of functions of the library in some turns, and bytes that are serialized."""
        self.sizes.clear()
        calls = sum(calls_in_the_library(self.take_turn) for _ in range(number))
        return {"calls": calls, "bytes": sum(self.sizes)}


def renamed(messages: Sequence[AnyMessage], prefix: str) -> list[AnyMessage]:
    """Copies of messages with ids of their own, also those of calls."""
    copies: list[AnyMessage] = []
    for message in messages:
        update: dict[str, Any] = {"id": f"{prefix}{message.id}"}
        if isinstance(message, AIMessage):
            update["tool_calls"] = [
                {**each, "id": f"{prefix}{each['id']}"} for each in message.tool_calls
            ]
        if isinstance(message, ToolMessage):
            update["tool_call_id"] = f"{prefix}{message.tool_call_id}"
        copies.append(message.model_copy(update=update))
    return copies


def turns(case: Case) -> None:
    """Ten times the turns make a turn at most ten times as expensive; also at 1,000."""
    variant, seed = case.random.choice(VARIANTS), case.random.randrange(10**6)
    costs: list[dict[str, int]] = []
    for times in TIMES:
        thread = Thread(variant, seed)
        for _ in range(REAL_TURNS):
            thread.take_turn()
        thread.repeat(times)
        costs.append(thread.cost_of_turns(1))
        case.tried += 1
    check_growth(variant, costs, TIMES)


def real_turns(case: Case) -> None:
    """The same for the first 10 and the last 10 of 100 turns that are all run.

    LangGraph stores a whole delta channel with every hundredth update: about once in 10 turns.
    """
    variant, seed = case.random.choice(VARIANTS), case.random.randrange(10**6)
    thread = Thread(variant, seed)
    first = thread.cost_of_turns(REAL_TURNS)
    for _ in range(REAL_TURNS * 8):
        thread.take_turn()
    check_growth(variant, [first, thread.cost_of_turns(REAL_TURNS)], [1, 19])
    case.tried = REAL_TURNS * 10


TRIALS: dict[Trial, int] = {turns: 1, real_turns: 1}


def check_growth(variant: str, costs: Sequence[dict[str, int]], sizes: Sequence[int]) -> None:
    """Check that each cost grows at most as much as the thread."""
    for (before, small), (after, large) in pairwise(zip(costs, sizes, strict=True)):
        for name, cost in after.items():
            most = SLACK * before[name] * large / small
            assert cost <= most, f"{variant}: its {name} rise from {before[name]} to {cost}"
