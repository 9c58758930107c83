"""`has_worked` against its rule; here the rule is counted along, without reading a history."""

from copy import deepcopy
from itertools import cycle
from typing import Any
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command

from tests.support import items
from todo_tools import TodoItem, create_todo_tools, has_worked
from todo_tools._list.operations import apply
from todo_tools._list.todos import incomplete
from todo_tools._thread.reading import read
from todo_tools._view.blocks import record_block
from todo_tools.testing import call, turn

TEXTS = ["a", "b", "c"]
STATUS = {"start": "in_progress", "complete": "completed", "abandon": "abandoned"}
ERROR = "is not done: no other tool has worked on it yet"


class Rule:
    """One piece of work completes one item that was not started, and all that were started."""

    def __init__(self) -> None:
        self.worked = False
        self.started: dict[str, bool] = {}
        """Whether there was work since the start, for each item in progress that a call started."""

    def work(self) -> None:
        self.worked = True
        self.started = dict.fromkeys(self.started, True)

    def change(self, action: str, texts: list[str]) -> None:
        """Start, complete or abandon items that had another status."""
        if action == "start":
            self.started.update(dict.fromkeys(texts, False))
            return
        self.worked = self.worked and not texts
        self.started = {text: was for text, was in self.started.items() if text not in texts}

    def replace(self) -> None:
        """A new list."""
        self.worked, self.started = False, {}

    def show(self, todos: list[TodoItem]) -> None:
        """The user's message comes with a list: what is no longer in progress was put aside."""
        going = {each["text"] for each in todos if each["status"] == "in_progress"}
        self.started = {text: was for text, was in self.started.items() if text in going}

    def allows(self, text: str) -> bool:
        return self.started.get(text, self.worked)


class Message:
    """The calls of a message, each of which is answered as if those before it were accepted."""

    def __init__(self, rule: Rule, todos: list[TodoItem]) -> None:
        self.rule = deepcopy(rule)
        self.todos = todos
        self.ticked: dict[str, bool] = {}
        self.was_open = {each["text"] for each in todos if each["status"] != "completed"}

    def accepts(self, made: ToolCall) -> bool:
        """Whether a call of a todo tool is accepted."""
        args = made["args"]
        if made["name"] != "edit_todos" or args["action"] != "complete":
            self._carry_out(made)
            return True
        asked = [text for text in map(self._text, args["indices"]) if text in self.was_open]
        for text in asked:
            # An item is judged by its first tick, because nobody knows whether it is refused.
            self.ticked.setdefault(text, self.rule.allows(text))
            if self._status(text) != "completed":
                self.rule.change("complete", [text])
        self._carry_out(made)
        return all(self.ticked[text] for text in asked)

    def _carry_out(self, made: ToolCall) -> None:
        if made["name"] == "edit_todos":
            self.rule.change(made["args"]["action"], changed_texts(self.todos, made))
        elif made["args"].get("mode") == "replace":
            self.rule.replace()
        self.todos = after(self.todos, made)
        self.was_open |= {each["text"] for each in self.todos if each["status"] != "completed"}

    def _text(self, index: int) -> str:
        return self.todos[index]["text"]

    def _status(self, text: str) -> str:
        return next(each["status"] for each in self.todos if each["text"] == text)


def changed_texts(todos: list[TodoItem], made: ToolCall) -> list[str]:
    """The items whose status an `edit_todos` call changes."""
    found = (todos[index] for index in made["args"]["indices"])
    return [each["text"] for each in found if each["status"] != STATUS[made["args"]["action"]]]


def after(todos: list[TodoItem], made: ToolCall) -> list[TodoItem]:
    """The list after a call that is accepted."""
    if made["args"].get("mode") == "replace":
        return items(*made["args"]["todos"])
    if made["name"] == "write_todos":
        at = 0 if made["args"]["mode"] == "insert" else len(todos)
        return [*todos[:at], *items(*made["args"]["todos"]), *todos[at:]]
    texts = changed_texts(todos, made) if made["name"] == "edit_todos" else []
    status: Any = STATUS.get(made["args"].get("action", ""))
    return [{**each, "status": status} if each["text"] in texts else each for each in todos]


def new_texts() -> list[str]:
    return [f"{text} {uuid4()}" for text in TEXTS]


def worked(made: ToolCall) -> ToolMessage:
    """The result of a call of the other tool."""
    status: Any = "success" if made["args"]["command"] == "ok" else "error"
    return ToolMessage("ran", tool_call_id=made["id"] or "", name="shell", status=status)


INDICES = st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True)
CALLS = st.one_of(
    st.builds(lambda command: call("shell", command=command), st.sampled_from(["ok", "fail"])),
    st.builds(
        lambda action, at: call("edit_todos", action=action, indices=at),
        st.sampled_from(["start", "complete", "complete", "abandon"]),
        INDICES,
    ),
    st.builds(lambda: call("list_todos")),
    st.builds(
        lambda mode: call("write_todos", mode=mode, index=0, todos=new_texts()),
        st.sampled_from(["append", "insert", "replace"]),
    ),
)
MESSAGES = st.tuples(st.lists(CALLS, min_size=1, max_size=4), st.booleans())


class Thread:
    """A thread whose model makes the calls; the tools run in it as in a graph."""

    def __init__(self) -> None:
        self.tools = {tool.name: tool for tool in create_todo_tools(check=has_worked)}
        self.messages: list[AnyMessage] = [HumanMessage("Begin.", id="begin")]
        self.todos = items(*TEXTS)
        self.blocks: dict[str, Any] = {}
        self.rule = Rule()

    def say(self, statuses: list[Any]) -> None:
        """The loop ends, and the user writes, and may give a list.

        Args:
            statuses: What the items are set to, in turn. `None` stands for new items; without
                statuses, no list is given.
        """
        self.messages.append(AIMessage("Done."))
        self._store(record_block(read(self._state())))
        self.messages.append(HumanMessage("Go on.", id=f"said-{len(self.messages)}"))
        if not statuses:
            return
        before, pairs = self.todos, zip(self.todos, cycle(statuses), strict=False)
        self.todos = [{**each, "status": status} for each, status in pairs if status]
        self.todos = self.todos or items(*new_texts())
        still_open = {each["text"] for _, each in incomplete(before)}
        if self.todos != before and not any(each["text"] in still_open for each in self.todos):
            self.rule.replace()
        self.rule.show(self.todos)

    def run(self, calls: list[ToolCall], *, work_first: bool) -> None:
        """Carry out the calls of a message, and see that each is answered as the rule says.

        Args:
            calls: The calls.
            work_first: Whether the other tools have answered before a todo tool runs, as if a
                person did.
        """
        self.messages.append(turn("", *calls))
        work = [worked(each) for each in calls if each["name"] == "shell"]
        self.messages += work if work_first else []
        state = self._state()
        expected = Message(self.rule, self.todos)
        for made in calls:
            if made["name"] != "shell":
                accepted = expected.accepts(made)
                self._run_todo_call(made, state)
                assert (ERROR not in self.messages[-1].text) == accepted, self.messages[-1].text
                continue
            result = worked(made)
            self.messages += [] if work_first else [result]
            if result.status != "error":
                self.rule.work()
            if result.status != "error" or not work_first:
                expected.rule.work()

    def _state(self) -> dict[str, Any]:
        return {"messages": [*self.messages], "todos": self.todos}

    def _store(self, messages: list[AnyMessage]) -> None:
        for each in messages:
            ids = [known.id for known in self.messages]
            if each.id and each.id in ids:
                self.messages[ids.index(each.id)] = each
            else:
                self.messages.append(each)

    def _run_todo_call(self, made: ToolCall, state: dict[str, Any]) -> None:
        runtime: Any = ToolRuntime(state, {}, {}, lambda _: None, made["id"], None)
        args = {**made["args"], "runtime": runtime}
        reply = self.tools[made["name"]].invoke({**made, "args": args})
        update: Any = reply.update if isinstance(reply, Command) else {"messages": [reply]}
        self._store(update["messages"])
        if "todos" not in update:
            return
        before, self.todos = self.todos, apply(self.todos, update["todos"])
        if made["name"] == "edit_todos":
            pairs = zip(before, self.todos, strict=True)
            changed = [new["text"] for old, new in pairs if old != new]
            self.rule.change(made["args"]["action"], changed)
        elif made["args"]["mode"] == "replace":
            self.rule.replace()


STATUSES_GIVEN = st.one_of(
    st.just([None]), st.lists(st.sampled_from(["not_started", *STATUS.values()]), max_size=3)
)


@given(st.lists(MESSAGES | STATUSES_GIVEN, max_size=10))
def test_each_tick_is_accepted_or_refused_as_the_rule_says(
    happens: list[tuple[list[ToolCall], bool] | list[Any]],
) -> None:
    thread = Thread()
    for each in happens:
        if isinstance(each, list):
            thread.say(each)
        else:
            calls, work_first = each
            thread.run(calls, work_first=work_first)
