"""Models: random models, and people who interrupt, edit, fork and cancel.

After each action, the history decides: whether the loop kept its limits and sent the agent back
only after work, and whether each prompt began with the one before it and showed the list.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained, GraphRecursionError
from langgraph.runtime import RunControl
from langgraph.types import Command

from campaigns.agents import MIDDLEWARE, STATES, agent
from campaigns.cases import Case, Trial
from tests.prompt_reader import read_list
from tests.support import Graph
from todo_tools import AutoContinue, TodoItem
from todo_tools._thread.state import loop_in
from todo_tools._thread.transcript import is_injected, list_after
from todo_tools.state import messages_in, todos_in
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_from_user

MOVES = 12
CALLS_IN_A_RUN = 12
"""After how many answers the random model stops calling tools.

The recursion limit, not the loop, stops a model that calls tools without end.
"""

_NOTE = {"lc_source": "campaign"}


class ProviderError(Exception):
    """An error that a provider may raise."""


@dataclass
class Person:
    """A random person and a random model on one thread."""

    random: Random
    variant: str
    policy: AutoContinue
    said: list[str] = field(default_factory=list)
    control: RunControl | None = None
    task: asyncio.Task[Any] | None = None
    asked: int = 0
    fold: bool = False
    prompts: dict[str, list[BaseMessage]] = field(default_factory=dict[str, list[BaseMessage]])
    """The prompt of each answer since somebody rewrote the history, by the answer's id."""
    accident: tuple[int, str] = (-1, "")
    """After how many answers of a run an accident happens, and which one."""

    def __post_init__(self) -> None:
        @tool
        def work(command: str) -> str:
            """Do a piece of work."""
            return f"exit code {len(command) % 2}"

        model = ScriptedChatModel(script=self._answer)
        self.graph: Graph = agent(
            self.variant, model, InMemorySaver(), tools=[work], policy=self.policy, fold=self.fold
        )
        self.config: RunnableConfig = {"configurable": {"thread_id": "1"}}

    @property
    def values(self) -> dict[str, Any]:
        """The state of the checkpoint at which the person is."""
        return self.graph.get_state(self.config).values

    def _answer(self, prompt: list[BaseMessage]) -> AIMessage:
        self.asked += 1
        if self.asked == self.accident[0]:
            self._happen(self.accident[1])
        answer = random_answer(self.random, talks=self.asked > CALLS_IN_A_RUN)
        answer.id = f"answer-{self.random.random()}"
        self.prompts[answer.id] = prompt
        return answer

    def _happen(self, accident: str) -> None:
        if accident == "failure":
            raise ProviderError
        if accident == "cancellation" and self.task:
            self.task.cancel()
        if accident == "drain" and self.control:
            self.control.request_drain()

    async def run(self, request: Any) -> None:
        """Run the agent; any accident may interrupt it."""
        self.asked = 0
        accident = self.random.choice(["", "", "failure", "cancellation", "drain"])
        self.accident = (self.random.randint(1, 6), accident)
        self.control = RunControl()
        pauses = self.random.choice([{}, {}, *_pauses(self.graph)])
        limit = self.random.choice([4, 9, 25, 400])
        config: RunnableConfig = {**self.config, "recursion_limit": limit}
        run = self.graph.ainvoke(request, config, control=self.control, **pauses)
        self.task = asyncio.ensure_future(run)
        with suppress(asyncio.CancelledError, ProviderError, GraphDrained, GraphRecursionError):
            await asyncio.wait_for(self.task, 60)
        self.config = {"configurable": {"thread_id": "1"}}

    async def move(self) -> None:
        """Do one random action of a person, and check the promises afterwards."""
        moves = [self.speak, self.speak, self.go_on, self.fork]
        if not self.graph.get_state(self.config).next:
            # Otherwise a message could come between a tool call and its result.
            moves += [self.seed, self.summarize]
        await self.random.choice(moves)()
        check_thread(self.values, self.policy, self.said)
        check_prompts(messages_in(self.values), self.prompts, fold=self.fold)

    async def speak(self) -> None:
        """Send a new message; if the loop asks, it is the answer."""
        text = f"message {self.random.random()}"
        snapshot = self.graph.get_state(self.config)
        if self.variant in STATES and snapshot.next:
            # Neither a tool nor the loop has noted where the last prompt showed the list.
            self.prompts.clear()
        waits = bool(snapshot.interrupts)
        if waits and self.policy.ask:
            answer = self.random.choice(["yes", "no", text, 7])
            await self.run(Command(resume=answer))
        else:
            await self.run({"messages": [HumanMessage(text, id=text)]})
        if any(is_from_user(m) and m.text == text for m in messages_in(self.values)):
            self.said.append(text)

    async def go_on(self) -> None:
        """Resume without a message."""
        if self.values:
            await self.run(None)

    async def seed(self) -> None:
        """Change the list from outside; a note in the history has the new list."""
        todos: list[TodoItem] = [
            {"text": f"seed {n}", "status": self.random.choice(["not_started", "completed"])}
            for n in range(self.random.randrange(4))
        ]
        self._write({"todos": todos, "messages": [_note(todos)]})

    async def fork(self) -> None:
        """Go back to any checkpoint, and continue from there."""
        past = [s for s in self.graph.get_state_history(self.config) if s.values.get("messages")]
        if past:
            moment = self.random.choice(past)
            if isinstance(messages_in(moment.values)[-1], ToolMessage):
                # LangGraph takes the edit for the model's, so the loop runs without an answer.
                self.prompts.clear()
            # An edit turns the checkpoint into a new branch, which is the newest.
            self.config = self.graph.update_state(
                moment.config, {"messages": [_note(todos_in(moment.values))]}
            )
            self.said = [m.text for m in messages_in(moment.values) if is_from_user(m)]
            if self.random.random() < 0.5:
                await self.run(None)
            self.config = {"configurable": {"thread_id": "1"}}

    async def summarize(self) -> None:
        """Remove all messages before the user's last one, or change a text of the model."""
        self.prompts.clear()
        messages = messages_in(self.values)
        spoken = [at for at, message in enumerate(messages) if is_from_user(message)]
        if not spoken:
            return
        if self.random.random() < 0.5:
            answers = [m for m in messages if isinstance(m, AIMessage) and not m.tool_calls]
            edited = [m.model_copy(update={"content": "edited"}) for m in answers[-1:]]
            self._write({"messages": [*edited]})
            return
        removed = [RemoveMessage(id=str(m.id)) for m in messages[: spoken[-1]]]
        self._write({"messages": [*removed, _note(todos_in(self.values))]})
        self.said = self.said[-1:]

    def _write(self, update: dict[str, Any]) -> None:
        self.graph.update_state(self.config, update)


def hand_built(case: Case) -> None:
    """A hand-built graph with the loop as a conditional edge."""
    play(case, case.random.choice(list(STATES)))


def middleware(case: Case) -> None:
    """A `create_agent` agent with the loop as a hook."""
    play(case, case.random.choice(list(MIDDLEWARE)))


TRIALS: tuple[Trial, ...] = (hand_built, middleware)


def play(case: Case, variant: str) -> None:
    """A thread with several actions."""
    chance = case.random
    policy = AutoContinue(
        max_in_a_row=chance.choice([0, 1, 3, 20]),
        max_in_turn=chance.choice([0, 2, 5, 100]),
        max_idle=chance.choice([None, 0, 1, 3]),
        ask=chance.random() < 0.2,
    )
    person = Person(chance, variant, policy, fold=variant in MIDDLEWARE and chance.random() < 0.3)

    async def moves() -> None:
        for _ in range(MOVES):
            await person.move()
            case.tried += 1

    asyncio.run(moves())


def random_answer(chance: Random, *, talks: bool = False) -> AIMessage:
    """A random answer: calls of any kind, a text, nothing, or half of an answer."""
    if talks or chance.random() < 0.35:
        reasons = [{}, {}, {}, {"finish_reason": "length"}, {"finish_reason": "content_filter"}]
        text = chance.choice(["Done.", "", "Shall I go on?", "- [ ] x\n✓ [0] forged"])
        return AIMessage(text, response_metadata=chance.choice(reasons))
    answer = turn("", *(_random_call(chance) for _ in range(chance.choice([1, 1, 2, 4]))))
    if chance.random() < 0.1:  # some servers number their calls from zero in each turn
        for number, each in enumerate(answer.tool_calls):
            each["id"] = f"call_{number * chance.randrange(2)}"
    if chance.random() < 0.1:
        broken = {"name": "edit_todos", "args": "{", "id": "broken", "error": "no JSON"}
        answer.invalid_tool_calls.append({**broken, "type": "invalid_tool_call"})  # type: ignore[typeddict-item]
    return answer


def _random_call(chance: Random) -> Any:
    texts = [f"item {chance.randrange(100)}" for _ in range(chance.randrange(4))]
    indices = [chance.randrange(-1, 6) for _ in range(chance.randrange(1, 3))]
    modes, actions = ["replace", "append", "insert", "no"], ["start", "complete", "abandon", "no"]
    calls: list[Callable[[], Any]] = [
        lambda: call("write_todos", mode=chance.choice(modes), index=0, todos=texts),
        lambda: call("edit_todos", action=chance.choice(actions), indices=indices),
        lambda: call("edit_todos", action=chance.choice(actions), indices=indices),
        lambda: call("list_todos"),
        lambda: call("work", command="x" * chance.randrange(5)),
        lambda: call("unknown", todos=texts),
    ]
    return chance.choice(calls)()


def _pauses(graph: Graph) -> list[dict[str, Any]]:
    names = [name for name in graph.nodes if not name.startswith("__")]
    return [{kind: [name]} for name in names for kind in ("interrupt_before", "interrupt_after")]


def _note(todos: list[TodoItem]) -> HumanMessage:
    """A message of the application with the list that it has written."""
    return HumanMessage("(edited)", additional_kwargs={**_NOTE, "list": todos})


def check_thread(values: dict[str, Any], policy: AutoContinue, said: list[str]) -> None:
    """Check that list and history match, the loop kept its limits, and every message was read."""
    messages = messages_in(values)
    expected = _list_said(messages)
    assert todos_in(values) == expected, f"the list is {todos_in(values)}, not {expected}"
    heard = [message.text for message in messages if is_from_user(message)]
    assert heard == said, f"the user said {said}, the history has {heard}"
    in_turn = in_a_row = 0
    for at, message in enumerate(messages):
        if is_from_user(message):
            in_turn = in_a_row = 0
        elif list_after(message) is not None or _is_note(message):
            in_a_row = 0
        elif is_injected(message):
            in_turn, in_a_row = in_turn + 1, in_a_row + 1
            before = messages[at - 1]
            # LangGraph attributes an update of the application to a node, here to the model.
            answered = isinstance(before, AIMessage) or _is_note(before)
            assert answered, f"sent back to work after {before!r}"
        assert in_turn <= policy.max_in_turn, f"{in_turn} continuations in a turn, {policy}"
        assert in_a_row <= policy.max_in_a_row, f"{in_a_row} continuations in a row, {policy}"
    assert loop_in(values).get("in_turn", 0) <= policy.max_in_turn
    check_work(messages, policy)


def check_work(messages: Sequence[AnyMessage], policy: AutoContinue) -> None:
    """Check how often the agent was sent back without work since it was told anything.

    Work is a new successful result of another tool, or a todo call that changed the list.
    """
    idle, worked, todos = 0, False, list[TodoItem]()
    known, args = set[tuple[str, str]](), dict[str | None, str]()
    for message in messages:
        if isinstance(message, AIMessage):
            args = {each["id"]: repr(each["args"]) for each in message.tool_calls}
        elif _is_note(message):
            todos = list(message.additional_kwargs["list"])
        elif isinstance(message, ToolMessage):
            after, result = list_after(message), (args.get(message.tool_call_id, ""), message.text)
            if after is not None:
                worked, todos = worked or after != todos, after
            elif message.name == "work" and message.status != "error":
                worked = worked or result not in known
                known.add(result)
        elif is_from_user(message):
            idle, worked = 0, False
            known.clear()
        elif is_injected(message):
            idle, worked = (0 if worked else idle + 1), False
            allowed = policy.max_idle is None or idle <= policy.max_idle
            assert allowed, f"sent back {idle} times in a row without work, {policy}"


def check_prompts(
    messages: Sequence[AnyMessage], prompts: dict[str, list[BaseMessage]], *, fold: bool
) -> None:
    """Check that each prompt shows the list and, unless it is folded, begins with the one before.

    A list without open items need not be shown.
    """
    before: list[BaseMessage] = []
    for at, message in enumerate(messages):
        prompt = prompts.get(message.id or "")
        if prompt is None:
            continue
        expected = [(todo["text"], todo["status"]) for todo in _list_said(messages[:at])]
        read = read_list(prompt)
        is_shown = read == expected or not {"not_started", "in_progress"} & {
            status for _, status in [*read, *expected]
        }
        assert is_shown, f"the prompt shows {read}, the list is {expected}"
        if not fold:
            for sent, shown in zip(before, prompt, strict=False):
                assert sent == shown, f"sent {sent.text[-300:]!r}, later {shown.text[-300:]!r}"
            assert len(before) < len(prompt), "a prompt lost messages"
        before = prompt


def _is_note(message: BaseMessage) -> bool:
    return message.additional_kwargs.get("lc_source") == "campaign"


def _list_said(messages: Any) -> list[TodoItem]:
    """The list after the newest result or note."""
    for message in reversed(list[AnyMessage](messages)):
        if _is_note(message):
            return list(message.additional_kwargs["list"])
        after = list_after(message)
        if after is not None:
            return after
    return []
