"""Growth: the work and the bytes of the last of many turns, beside those of the first."""

import asyncio
from random import Random
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from typing_extensions import override

from campaigns.agents import VARIANTS, agent
from campaigns.cases import Case, Trial
from tests.support import Graph, calls_in_the_library, items
from todo_tools import AutoContinue
from todo_tools.testing import ScriptedChatModel, call, turn

TURNS = 10
"""How many turns are compared with the same number of later ones."""
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

    def cost_of_turns(self, number: int) -> dict[str, int]:
        """Calls of functions of this package in some turns, and bytes that are serialized."""
        self.sizes.clear()
        calls = sum(calls_in_the_library(self.take_turn) for _ in range(number))
        return {"calls": calls, "bytes": sum(self.sizes)}


def real_turns(case: Case) -> None:
    """The last 10 of 100 turns, in threads 19 times as long, cost at most 19 times as much.

    LangGraph stores a whole delta channel with every hundredth update: about once in 10 turns.
    """
    variant, seed = case.random.choice(VARIANTS), case.random.randrange(10**6)
    thread = Thread(variant, seed)
    first = thread.cost_of_turns(TURNS)
    for _ in range(TURNS * 8):
        thread.take_turn()
    for name, cost in thread.cost_of_turns(TURNS).items():
        most = SLACK * 19 * first[name]
        assert cost <= most, f"{variant}: its {name} rise from {first[name]} to {cost}"
    case.tried = TURNS * 10


TRIALS: tuple[Trial, ...] = (real_turns,)
