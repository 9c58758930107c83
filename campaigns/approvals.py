"""Approvals: the coding agent, a person who decides at random, and files that say what ran.

Each call writes one mark into a file of its own. Nothing else writes there, so the file knows how
often the call ran, whatever the thread says.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command, Interrupt, Send

from campaigns.cases import Case, Trial
from graphs.coding_agent import build_coding_agent
from tests.support import BEGIN, Graph
from todo_tools.state import messages_in
from todo_tools.testing import ScriptedChatModel, call, turn

MOVES = 20
_QUESTION = "HumanInTheLoopMiddleware.after_model"
_CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}


@dataclass
class Person:
    """A person at a thread of the coding agent, whose model answers at random.

    Args:
        random: What decides.
        folder: Where the agent works.
    """

    random: Random
    folder: Path
    granted: Counter[str] = field(default_factory=Counter[str])
    """How often the person approved each call, by the file that it writes to."""

    def __post_init__(self) -> None:
        self._saver = InMemorySaver()
        self._names = (f"file-{number}" for number in count())
        self.restart()

    def restart(self) -> None:
        """Another program opens the thread; no approval outlives the one before."""
        model = ScriptedChatModel(script=lambda _: self._answer())
        self.graph: Graph = build_coding_agent(model, self.folder, checkpointer=self._saver)

    @property
    def questions(self) -> tuple[Interrupt, ...]:
        """What waits for the person."""
        return self.graph.get_state(_CONFIG).interrupts

    def ran(self) -> Counter[str]:
        """How often each call ran."""
        return Counter({each.name: each.read_text().count("x") for each in self.folder.iterdir()})

    def move(self) -> None:
        """Do one random action, and check the promises afterwards."""
        moves: list[Callable[[], None]] = [self.fork, self.change, self.jump, self.restart]
        waits = bool(self.questions)
        moves += [self.decide] * 8 if waits else [self.speak, self.speak, self.go_on]
        self.random.choice(moves)()
        unasked = self.ran() - self.granted
        assert not unasked, f"ran without an approval, or once too often: {dict(unasked)}"

    def speak(self) -> None:
        """Send a message, to which the model answers with calls."""
        self.graph.invoke(BEGIN, _CONFIG)

    def go_on(self) -> None:
        """Run the thread without input."""
        if self.graph.get_state(_CONFIG).next:
            self.graph.invoke(None, _CONFIG)

    def decide(self) -> None:
        """Answer all questions; sometimes, the run stops before the tools."""
        approved: list[str] = []
        resume = {
            asked.id: {"decisions": [self._decision(each, approved) for each in _actions(asked)]}
            for asked in self.questions
        }
        self.granted.update(approved)
        stops = self.random.random() < 0.2
        pauses: dict[str, Any] = {"interrupt_before": ["tools"]} if stops else {}
        self.graph.invoke(Command(resume=resume), _CONFIG, **pauses)

    def _decision(self, action: dict[str, Any], approved: list[str]) -> dict[str, Any]:
        name = action["name"]
        match self.random.choice(["approve", "approve", "reject", "edit"]):
            case "approve":
                approved.append(_file_in(action))
                return {"type": "approve"}
            case "edit":
                file = self._new_file()
                approved.append(file)
                edited = {"name": name, "args": _call(name, file)["args"]}
                return {"type": "edit", "edited_action": edited}
            case _:
                return {"type": "reject"}

    def fork(self) -> None:
        """Go back to any checkpoint, and continue from there."""
        past = [each for each in self.graph.get_state_history(_CONFIG) if each.next]
        if past:
            config = self.random.choice(past).config
            if self.random.random() < 0.5:
                with suppress(InvalidUpdateError):  # several nodes wrote last; nothing changes
                    config = self.graph.update_state(config, None)
            self.graph.invoke(None, config)

    def change(self) -> None:
        """Change the last call of the model, in the name of the node that asks, or of none."""
        messages = messages_in(self.graph.get_state(_CONFIG).values)
        answer = messages[-1] if messages else None
        if isinstance(answer, AIMessage) and answer.tool_calls:
            made = answer.tool_calls[-1]
            other = {**made, "args": _call(made["name"], self._new_file())["args"]}
            calls = [*answer.tool_calls[:-1], other]
            changed = {"messages": [answer.model_copy(update={"tool_calls": calls})]}
            with suppress(InvalidUpdateError):  # as in `fork`
                self.graph.update_state(_CONFIG, changed, self.random.choice([_QUESTION, None]))
            self.go_on()

    def jump(self) -> None:
        """Send calls to the tools, with or without an answer of the model around them."""
        if self.graph.get_state(_CONFIG).values:
            known = self._last_calls() if self.random.random() < 0.3 else []
            made = [*known, self._new_call()][-self.random.choice([1, 2]) :]
            brought = {"messages": [turn("", *made)]} if self.random.random() < 0.5 else made
            self.graph.invoke(Command(goto=Send("tools", brought)), _CONFIG)

    def _last_calls(self) -> list[ToolCall]:
        messages = messages_in(self.graph.get_state(_CONFIG).values)
        answers = [each for each in messages if isinstance(each, AIMessage)]
        return answers[-1].tool_calls if answers else []

    def _answer(self) -> AIMessage | str:
        if self.random.random() < 0.4:
            return "Done."
        return turn("", *(self._new_call() for _ in range(self.random.choice([1, 1, 2, 3]))))

    def _new_call(self) -> ToolCall:
        """A call for a new file or, sometimes, for one that there is; ids may come again."""
        known = sorted(path.name for path in self.folder.iterdir())
        again = bool(known) and self.random.random() < 0.2
        file = self.random.choice(known) if again else self._new_file()
        made = _call(self.random.choice(["execute", "edit_file", "edit_file"]), file)
        repeated = f"call_{self.random.randrange(3)}"
        return {**made, "id": self.random.choice([made["id"], repeated])}

    def _new_file(self) -> str:
        file = next(self._names)
        (self.folder / file).write_text("END")
        return file


def coding_agent(case: Case) -> None:
    """A thread with several actions; what ran was approved, and once for each approval."""
    person = Person(case.random, case.folder)
    for _ in range(MOVES):
        person.move()
        case.tried += 1


TRIALS: tuple[Trial, ...] = (coding_agent,)


def _call(name: str, file: str) -> ToolCall:
    """A call that writes one mark into a file, also when it runs again."""
    if name == "execute":
        return call(name, command=f"printf x >> {file}")
    return call(name, file_path=file, old_string="END", new_string="xEND")


def _file_in(made: Mapping[str, Any]) -> str:
    return str(made["args"].get("file_path") or made["args"]["command"].split()[-1])


def _actions(asked: Interrupt) -> list[dict[str, Any]]:
    actions: list[dict[str, Any]] = asked.value["action_requests"]
    return actions
