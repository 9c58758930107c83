"""Parallel work on one list: a planner writes it, and workers do its items in parallel.

This file needs only the library, so it can be copied alone.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from operator import add, itemgetter
from typing import Annotated, Any, Literal, cast
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.errors import NodeError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, Send
from typing_extensions import TypedDict

from todo_tools import (
    TodoLimits,
    TodoState,
    TodoStatus,
    asks_user,
    create_todo_tools,
    model_view,
)
from todo_tools.operations import Operation, start_items
from todo_tools.rendering.lowlevel import one_line
from todo_tools.state import todos_in
from todo_tools.transcript import is_from_user, last_user_message

PLANNER_PROMPT = (
    "You plan; workers do the work. Write a todo list for the user's request with write_todos: one "
    "item for each part that one worker can do alone, with all that the worker must know. Workers "
    "do all open items at the same time, so no item may need the result of another one. When the "
    "list is written, answer with one sentence. You then get the workers' reports: append items "
    "if the request needs more work, otherwise answer the user. After a later message of the user, "
    "all open items are done if you write or append items; without the old ones, write a new list."
)
WORKER_PROMPT = (
    "You do one part of a larger task; others do the rest. Do only your part, and report its "
    "result in a few sentences. If you cannot do it, answer with 'Failed:' and the reason."
)
FAILED = "Failed:"
"""How a worker's answer begins if it could not do its part."""
_SAYS_FAILED = re.compile(r"[\W_]*failed[*_`\s]*[:：][*_`\s]*", re.IGNORECASE)  # noqa: RUF001
"""The same as models write it, for example in bold or with a full-width colon."""
_REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
_CUT_OFF = re.compile(
    "length|limit|max_|exceeded|incomplete|malformed|error|fail|cancel|abort|interrupt|timeout"
    "|filter|safety|sensitive|block|prohibited|recitation|refusal|guardrail|jailbreak|armor|spii"
    "|resource|other|pause|progress|queued|not_finished|language|unexpected|too_many"
)
"""Parts of finish reasons that mean that an answer is not whole; each provider has its own."""

MAX_ROUNDS = 3
"""How often the planner can have open items done for one message of the user."""


class Report(TypedDict):
    """The report on one item: the worker's result, or the reason why the item was abandoned."""

    index: int
    text: str
    round: str
    """The name of its round, the same for all items that were done together."""


class WorkersState(TodoState):
    """`TodoState` with the workers' reports, in the order of the rounds."""

    reports: Annotated[list[Report], add]


class Task(TypedDict):
    """The input of a worker."""

    index: int
    item: str
    request: str
    round: str


class Result(TypedDict):
    """The output of a worker: an operation, because other workers change the list meanwhile."""

    todos: Operation
    reports: list[Report]


class WorkerState(MessagesState):
    """The state of one worker. The parent graph does not get its messages."""

    index: int
    item: str
    request: str
    round: str
    todos: Operation
    reports: list[Report]


def build_graph(
    planner: BaseChatModel,
    worker: BaseChatModel | None = None,
    tools: Sequence[BaseTool] = (),
    *,
    planner_prompt: str = PLANNER_PROMPT,
    worker_prompt: str = WORKER_PROMPT,
    retry_policy: RetryPolicy | None = None,
    limits: TodoLimits = TodoLimits(),
    state_schema: type[Any] = WorkersState,
) -> StateGraph[Any, Any, Any, Any]:
    """Build the uncompiled graph, so that you choose its checkpointer.

    Args:
        planner: Any chat model that can call tools; it writes the list and answers the user.
        worker: The chat model of the workers; `planner` if it is not given.
        tools: The tools of the workers. They may ask a person with `interrupt()`: each call is a
            task of its own.
        planner_prompt: The planner's system prompt.
        worker_prompt: The workers' system prompt; it must name `Failed:`.
        retry_policy: How often a worker is retried after an error before its item is abandoned.
        limits: How much the planner may write into the list.
        state_schema: `WorkersState`, or a state with the same channels.

    Returns:
        The builder; call `.compile(checkpointer=...)` on it.
    """
    write_todos = create_todo_tools(limits)[:1]
    system = SystemMessage(planner_prompt)

    def prompt(state: WorkersState) -> list[AnyMessage]:
        return [system, *model_view(state)]

    before = RunnableLambda(prompt).with_config(_HIDDEN)
    hand = _build_worker(worker or planner, tools, worker_prompt).compile()
    builder = StateGraph(state_schema)
    builder.add_node("planner", before | planner.bind_tools(write_todos) | _ADDED)
    builder.add_node("tools", ToolNode(write_todos))
    # As runnables, because LangGraph would add the channels of `WorkersState` to `state_schema`.
    dispatch, gather = RunnableLambda(_dispatch), RunnableLambda(_gather)
    builder.add_node("dispatch", dispatch, destinations=("worker", "planner"))
    # A cast, because LangGraph's types lack the `NodeError` that it passes to error handlers.
    on_error = cast("Any", _abandon)
    builder.add_node("worker", hand, retry_policy=retry_policy, error_handler=on_error)
    builder.add_node("gather", gather)
    builder.add_edge(START, "planner")
    builder.add_conditional_edges("planner", _after_planner)
    builder.add_edge("tools", "planner")
    builder.add_edge("worker", "gather")
    builder.add_edge("gather", "planner")
    return builder


def _build_worker(
    model: BaseChatModel, tools: Sequence[BaseTool], system_prompt: str
) -> StateGraph[Any, Any, Any, Any]:
    """The graph of one worker: a model that calls tools until it answers."""
    system = SystemMessage(system_prompt)

    def prompt(state: WorkerState) -> list[AnyMessage]:
        part = f"The whole request:\n{state['request']}\n\nYour part:\n{one_line(state['item'])}"
        return [system, HumanMessage(part), *state["messages"]]

    bound = model.bind_tools(tools) if tools else model
    builder = StateGraph(WorkerState, input_schema=Task, output_schema=Result)
    before = RunnableLambda(prompt).with_config(_HIDDEN)
    builder.add_node("agent", before | bound | _ADDED)
    builder.add_node("tools", ToolNode(tools))
    builder.add_node("report", _report)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", _after_worker, ["tools", "report"])
    builder.add_edge("tools", "agent")
    return builder


def _after_worker(state: WorkerState) -> list[Send] | Literal["report"]:
    """Run each call as a task of its own, so that a person's reply reaches its call."""
    calls = getattr(state["messages"][-1], "tool_calls", [])
    return [Send("tools", [call]) for call in calls] or "report"


def _add(answer: BaseMessage) -> dict[str, list[BaseMessage]]:
    return {"messages": [answer]}


_HIDDEN: RunnableConfig = {"tags": ["langsmith:hidden"]}
"""For helpers that a reader of a trace need not see."""
_ADDED = RunnableLambda(_add).with_config(_HIDDEN)


def _open_items(state: object) -> list[tuple[int, str]]:
    return [
        (index, todo["text"])
        for index, todo in enumerate(todos_in(state))
        if todo["status"] not in ("completed", "abandoned")
    ]


def _after_planner(state: Mapping[str, Any]) -> Literal["tools", "dispatch", "__end__"]:
    messages = state["messages"]
    if not messages:  # an update of the application removed them
        return "__end__"
    answer = messages[-1]
    if isinstance(answer, AIMessage) and answer.tool_calls:
        return "tools"
    spoken = last_user_message(messages) or 0
    # What counts begins with the next answer: the user may have spoken in the middle of a round.
    since = [*dropwhile(lambda message: not isinstance(message, AIMessage), messages[spoken:])]
    rounds = sum(_REPORTS in message.additional_kwargs for message in since)
    # A later message of the user may be "stop". A planner that goes on writes a list first.
    # A summary may have replaced the messages before it.
    may_start = rounds or _has_planned(since) or not messages[:spoken]
    if rounds >= MAX_ROUNDS or asks_user(state) or _is_cut_off(answer) or not may_start:
        return "__end__"
    return "dispatch" if _open_items(state) else "__end__"


def _has_planned(messages: Sequence[AnyMessage]) -> bool:
    """Whether a call of the planner has written items."""
    return any(isinstance(each, ToolMessage) and _WROTE.match(each.text) for each in messages)


_WROTE = re.compile("(Wrote|Appended|Inserted) [1-9]")
"""How results of `write_todos`, the planner's only tool, begin if it added items."""


def _dispatch(state: WorkersState) -> Command[Any]:
    """Start all open items. Workers only set statuses, so the indices stay valid."""
    if is_from_user(state["messages"][-1]):  # at a breakpoint
        return Command(goto="planner")
    at = last_user_message(state["messages"])
    request = "" if at is None else state["messages"][at].text
    opened, name = _open_items(state), str(uuid4())
    return Command(
        update={"todos": start_items(*(index for index, _ in opened))},
        goto=[
            Send("worker", {"index": index, "item": item, "request": request, "round": name})
            for index, item in opened
        ],
    )


def _report(state: WorkerState) -> Result:
    answer = state["messages"][-1]
    text = answer.text.strip()
    if _is_cut_off(answer):
        return _result(state, f"{FAILED} its answer was cut off: {text}", "abandoned")
    failed = _SAYS_FAILED.match(text)
    if text and not failed:
        return _result(state, text, "completed")
    reason = text[failed.end() :] if failed else ""
    return _result(state, f"{FAILED} {reason or 'the worker gave no reason'}", "abandoned")


def _is_cut_off(answer: AnyMessage) -> bool:
    """Whether a limit, a filter or broken JSON ended an answer, and not the model."""
    reasons = [str(answer.response_metadata.get(key)).lower() for key in _REASON_KEYS]
    invalid = isinstance(answer, AIMessage) and answer.invalid_tool_calls
    return bool(invalid) or any(map(_CUT_OFF.search, reasons))


def _abandon(task: Task, error: NodeError) -> Command[Any]:
    """The output of a worker that raised an error; the other workers continue.

    LangGraph does not follow the edge of a worker whose error was handled.
    """
    reason = str(error.error) or type(error.error).__name__
    return Command(update=_result(task, f"{FAILED} {reason}", "abandoned"), goto="gather")


def _result(task: Task | WorkerState, text: str, status: TodoStatus) -> Result:
    """Finish the item; its text makes sure that it is this one, if a person changed the list."""
    index, item = task["index"], task["item"]
    return {
        "todos": {"op": "set_status", "status": status, "indices": [index], "texts": [item]},
        "reports": [{"index": index, "text": text, "round": task.get("round", "")}],
    }


def _gather(state: WorkersState) -> dict[str, Any]:
    """Send the planner the reports of the round that has just ended, followed by the list.

    The messages cannot tell how many reports are older: a graph around this one or a client may
    keep messages and reports apart, and a summary may have removed messages. A round that began
    with an older version of this file has no name.
    """
    name = state["reports"][-1].get("round", "")
    ended = (report for report in state["reports"] if report.get("round", "") == name)
    new = sorted(ended, key=itemgetter("index"))
    text = "\n\n".join(
        f"Report on [{report['index']}]: {_indented(report['text'])}" for report in new
    )
    # LangChain marks messages that no person wrote with `lc_source`.
    marks = {"lc_source": "workers", _REPORTS: len(new)}
    message = HumanMessage(text, additional_kwargs=marks, id=str(uuid4()))
    # No tool result shows what the workers did, so this makes the prompt show the list here.
    return {"messages": [message], "todo_blocks": {message.id: todos_in(state)}}


def _indented(text: str) -> str:
    """Indent the further lines of a report, so that none can be the heading of another report."""
    return "\n    ".join(text.splitlines())


_REPORTS = "reports"
