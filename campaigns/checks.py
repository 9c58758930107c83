"""Checks: an item is completed only if its check was asked and agreed, or there was work."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from typing_extensions import override

from campaigns.agents import STATES
from campaigns.cases import Case, Trial
from tests.prompt_reader import read_list
from tests.support import Graph, results_in, tool_graph
from todo_tools import TodoItem, TodoMiddleware, create_todo_tools, has_worked, model_view
from todo_tools._list.formats import TodosFormat
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, turn

TURNS = 6
Result = ToolMessage | Command[Any]
_CONFIG: Any = {"configurable": {"thread_id": "1"}}


class Wrapping(AgentMiddleware[Any, Any, Any]):
    """Refuses, changes, repeats and replaces calls and their results, at random."""

    def __init__(self, random: Random, texts: Iterator[int]) -> None:
        super().__init__()
        self.random = random
        self.texts = texts

    @override
    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        kind = self.random.choice(["refuse", "change", "repeat", "replace", *[""] * 4])
        if kind == "refuse":
            return _instead(request)
        result = handler(self._changed(request) if kind == "change" else request)
        result = handler(request) if kind == "repeat" else result
        return self._replaced(request, result) if kind == "replace" else result

    def _changed(self, request: ToolCallRequest) -> ToolCallRequest:
        """The call with the arguments of another one."""
        name, made = request.tool_call["name"], random_call(self.random, self.texts)
        args = made["args"] if made["name"] == name else request.tool_call["args"]
        return request.override(tool_call={**request.tool_call, "args": args})

    def _replaced(self, request: ToolCallRequest, result: Result) -> Result:
        """Another text for the model, with the change of the list or without it."""
        if isinstance(result, ToolMessage) or self.random.random() < 0.5:
            return _instead(request)
        return Command(update={**(result.update or {}), "messages": [_instead(request)]})


def _instead(request: ToolCallRequest) -> ToolMessage:
    made = request.tool_call
    return ToolMessage("Not now.", name=made["name"], tool_call_id=made["id"])


@dataclass
class Examiner:
    """A check that agrees at random."""

    random: Random
    agreed: set[str] = field(default_factory=set[str])
    """The items that it agreed to in the running step."""

    def check(self, item: TodoItem, state: Any) -> str | None:
        """Say whether an item is done."""
        if self.random.random() < 0.5:
            return "it is not done"
        self.agreed.add(item["text"])
        return None


def checked_node(case: Case) -> None:
    """A hand-built graph, whose tool node has a wrapper."""
    check, texts = Examiner(case.random), count()
    wrapping, todos = Wrapping(case.random, texts), _new_items(texts)
    tools = ToolNode(create_todo_tools(check=check.check), wrap_tool_call=wrapping.wrap_tool_call)
    builder = StateGraph(case.random.choice(list(STATES.values())))
    graph: Graph = builder.add_node("tools", tools).add_edge(START, "tools").compile()
    values: dict[str, Any] = {"messages": [HumanMessage("Go.")], "todos": todos}
    for _ in range(TURNS):
        check.agreed.clear()
        given = {**values, "messages": [*values["messages"], _answer(case.random, texts)]}
        values = graph.invoke(given)
        check_step(todos, todos_in(values), check.agreed)
        todos = todos_in(values)
        check_prompt(model_view(values), todos)
        case.tried += 1


def checked_agent(case: Case) -> None:
    """LangChain's agent, with two other middleware around the tools."""
    check, texts = Examiner(case.random), count()
    seen = [_new_items(texts)]

    def answer(prompt: list[BaseMessage]) -> AIMessage | str:
        todos = todos_in(graph.get_state(_CONFIG).values)
        check_step(seen[-1], todos, check.agreed)
        check_prompt(prompt, todos)
        seen.append(todos)
        check.agreed.clear()
        case.tried += 1
        return _answer(case.random, texts) if len(seen) <= TURNS else "Done."

    formats: list[TodosFormat] = ["todo_tools", "langchain"]
    todos = TodoMiddleware(check=check.check, policy=None, todos_format=case.random.choice(formats))
    built: Any = create_agent(
        ScriptedChatModel(script=answer),
        middleware=[Wrapping(case.random, texts), todos, _Second(case.random, texts)],
        checkpointer=InMemorySaver(),
    )
    graph: Graph = built
    given = {"messages": [HumanMessage("Go.")], "todos": seen[0]}
    graph.invoke(given, _CONFIG, durability="sync")


class _Second(Wrapping):
    """Another one; an agent refuses two of one name."""


def edited_list(case: Case) -> None:
    """A person changes the list while the calls of an answer wait."""
    texts = count()
    formats: list[TodosFormat] = ["todo_tools", "langchain"]
    todos = TodoMiddleware(policy=None, todos_format=case.random.choice(formats))
    script: list[AIMessage | str] = [_answer(case.random, texts) for _ in range(TURNS)]
    built: Any = create_agent(
        ScriptedChatModel(script=[*script, "Done."]),
        middleware=[todos],
        checkpointer=InMemorySaver(),
        interrupt_before=["tools"],
    )
    graph: Graph = built
    values = graph.invoke({"messages": [HumanMessage("Go.")], "todos": _new_items(texts)}, _CONFIG)
    for _ in range(TURNS):
        read, number = todos_in(values), len(values["messages"])
        graph.update_state(_CONFIG, {"todos": _edit(case.random, read, texts)})
        waiting = todos_in(graph.get_state(_CONFIG).values)
        values = graph.invoke(None, _CONFIG)
        results = [each.text for each in values["messages"][number:]]
        refused = [text for text in results if "after you read it" in text]
        if waiting != read:
            assert todos_in(values) == waiting, f"{results} changed the list of a person"
        else:
            assert not refused, "a call was refused although nobody changed the list"
        case.tried += 1


def _edit(random: Random, todos: list[TodoItem], texts: Iterator[int]) -> list[TodoItem] | None:
    """What a person makes of a list; often nothing."""
    new, at = _new_items(texts)[:1], random.randrange(len(todos) + 1)
    edits = [None, None, todos, [*todos, *new], [*todos[:at], *new, *todos[at:]]]
    edits += [todos[at:], [*reversed(todos)]]
    started: list[TodoItem] = [{**todo, "status": "in_progress"} for todo in todos[at:]]
    return random.choice([*edits, [*todos[:at], *started]])


def worked(case: Case) -> None:
    """Compare `has_worked` with its rule; a message has one todo call, before or after others."""

    @tool
    def work(command: str) -> str:
        """Do a piece of work."""
        if command == "fail":
            raise ToolException("It failed.")
        return "It worked."

    work.handle_tool_error = True
    random, texts = case.random, count()
    graph = tool_graph([*create_todo_tools(check=has_worked), work])
    values: dict[str, Any] = {"messages": [HumanMessage("Go.")], "todos": _new_items(texts)}
    happened: list[tuple[str, set[str]]] = []
    for _ in range(4 * TURNS):
        before = todos_in(values)
        works = [
            call("work", command=random.choice(["do", "fail"]))
            for _ in range(random.choice([0, 0, 1]))
        ]
        calls = [random_call(random, texts), *works]
        random.shuffle(calls)
        values = graph.invoke({**values, "messages": [*values["messages"], turn("", *calls)]})
        is_known = calls[0]["name"] != "work"  # otherwise the work may be running
        happens = happened if is_known else [*happened, ("work", set[str]())]
        after = todos_in(values)
        done = {new["text"] for new in after if new["status"] == "completed"}
        done -= {old["text"] for old in before if old["status"] == "completed"}
        changed = {new["text"] for new in after if new not in before}
        unworked = [text for text in done if not may_complete(text, before, happens)]
        assert not unworked, f"completed without work: {unworked}, after {happens}"
        args = next(each["args"] for each in calls if each["name"] != "work")
        named = {before[at]["text"] for at in args.get("indices", []) if at < len(before)}
        for result in results_in(values)[-len(calls) :]:
            if result.status != "error":
                kind = "work" if result.name == "work" else args.get("action") or args["mode"]
                happened.append((kind, {text for text in named if text in changed}))
            elif "is not done" in result.text and len(named) == 1:
                [text] = named
                assert not may_complete(text, before, happens), f"refused, after {happens}"
        case.tried += 1


def may_complete(text: str, todos: list[TodoItem], happened: list[tuple[str, set[str]]]) -> bool:
    """Whether the newest event that decides about an item is work."""
    is_started = {"text": text, "status": "in_progress"} in todos
    for kind, texts in reversed(happened):
        if kind == "work":
            return True
        is_start = kind == "start" and text in texts
        is_tick = kind in ("complete", "abandon") and bool(texts)
        if kind == "replace" or (is_start if is_started else is_tick):
            return False
    return False


TRIALS: tuple[Trial, ...] = (checked_node, checked_agent, edited_list, worked)


def check_step(before: list[TodoItem], after: list[TodoItem], agreed: set[str]) -> None:
    """Check that the check of each item that a step completed has accepted it in this step."""
    was = {todo["text"] for todo in before if todo["status"] == "completed"}
    done = {todo["text"] for todo in after if todo["status"] == "completed"}
    assert done <= was | agreed, f"completed without a check that agreed: {done - was - agreed}"


def check_prompt(prompt: list[Any], todos: list[TodoItem]) -> None:
    """Check that the model reads the list of the state, whatever the results say."""
    read, expected = read_list(prompt), [(todo["text"], todo["status"]) for todo in todos]
    assert read == expected, f"the prompt has {read}, the state {expected}"


def _answer(random: Random, texts: Iterator[int]) -> AIMessage:
    return turn("", *(random_call(random, texts) for _ in range(random.choice([1, 2, 3, 4]))))


def random_call(random: Random, texts: Iterator[int]) -> Any:
    """A call that changes the list; each item has a text of its own."""
    if random.random() < 0.7:
        actions = ["complete", "complete", "complete", "start", "abandon"]
        indices = [random.randrange(5) for _ in range(random.choice([1, 1, 2]))]
        return call("edit_todos", action=random.choice(actions), indices=indices)
    new = [todo["text"] for todo in _new_items(texts)[: random.randint(1, 3)]]
    modes = ["insert", "insert", "insert", "append", "replace"]
    return call("write_todos", mode=random.choice(modes), index=random.randrange(3), todos=new)


def _new_items(texts: Iterator[int]) -> list[TodoItem]:
    return [{"text": f"item {next(texts)}", "status": "not_started"} for _ in range(4)]
