"""Run each item of a list as a run of its own: a new conversation, a check, then the tick."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.config import get_config, get_stream_writer
from langgraph.errors import GraphBubbleUp, GraphInterrupt, GraphRecursionError
from langgraph.func import task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.pregel import Pregel
from langgraph.types import Command, RetryPolicy, Send, interrupt

from todo_tools._list.todos import TodoStatus, incomplete, require_whole_number
from todo_tools._loop.said import asks_user
from todo_tools._runner.jobs import (
    ItemReport,
    ItemsState,
    Job,
    item_prompt,
    next_jobs,
    places_of_jobs,
    reports_in,
)
from todo_tools._thread.events import todos_event
from todo_tools._thread.notes import SOURCE_KEY
from todo_tools._thread.state import messages_in, todos_in
from todo_tools._tools.checks import Check, averdict, require_check, verdict

_REFUSED = "This is not done: {}. Go on, and end with a new report."
_NOBODY = "nobody can answer a question here; decide yourself, or say what cannot be done"


def create_item_runner(
    agent: Runnable[Any, Any],
    *,
    check: Check | None = None,
    at_once: int = 1,
    attempts: int = 2,
    max_steps: int = 500,
    prompt: Callable[[Any, int], str] = item_prompt,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] = (),
    on_error: Literal["raise", "abandon"] = "raise",
    planner: Any = None,
    answer: Any = None,
    state_schema: type[Any] = ItemsState,
) -> StateGraph[Any, Any, Any, Any]:
    """Create a graph that does each item of the list in a new conversation; compile it yourself.

    Run it with a checkpointer and `durability="sync"`. After a crash, `invoke(None, config)` goes
    on: what is finished never runs again. The page "Each item a run" has the limits.

    Args:
        agent: Any runnable from `{"messages": ...}` to `{"messages": ...}`, without a checkpointer.
        check: A sync or async function of an item and the agent's result, such as `has_worked`. It
            returns `None`, or the reason why the item is not done.
        at_once: The most items to do at the same time. The next ones begin when all have ended.
        attempts: The answers that may be refused; the agent reads why. Then the item is abandoned.
        max_steps: The `recursion_limit` of each attempt; at the limit the item is abandoned.
        prompt: Writes the message that begins an item, from the state and the index of the item.
        retry_policy: Repeats only the step that failed; for LangGraph agents.
        on_error: Raise an error that remains, or abandon the item.
        planner: A node that runs first, for example to write the list.
        answer: A node that runs last, for example to tell the user what `reports` says.
        state_schema: `ItemsState`, `DeltaItemsState`, or a state derived from one of them.

    Returns:
        A graph whose input has `messages` and, without a planner, `todos`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of its range, or `agent` does not fit.

    Example:
        ```python
        runner = create_item_runner(agent, check=has_worked, at_once=3)
        graph = runner.compile(checkpointer=InMemorySaver())
        ```
    """
    for name, value in (("at_once", at_once), ("attempts", attempts), ("max_steps", max_steps)):
        require_whole_number(name, value, minimum=1)
    require_check(check)
    if on_error not in ("raise", "abandon"):
        raise ValueError(f"on_error must be 'raise' or 'abandon', got {on_error!r}")
    inner = _stored_with_runner(agent, retry_policy).with_config(recursion_limit=max_steps)
    # A task stores its verdict.
    judge: Any = check and task(name="check")(partial(verdict, check))
    ajudge: Any = check and task(name="check")(cast("Any", partial(averdict, check)))

    def work(job: Job) -> dict[str, Any]:
        with (run := _Run(job, attempts)).errors(on_error):
            while run.status == "in_progress":
                if run.heard(inner.invoke(run.input)):
                    run.judged(judge and judge(job["item"], run.result).result())
        return run.ended()

    async def awork(job: Job) -> dict[str, Any]:
        with (run := _Run(job, attempts)).errors(on_error):
            while run.status == "in_progress":
                if run.heard(await inner.ainvoke(run.input)):
                    run.judged(ajudge and await ajudge(job["item"], run.result))
        return run.ended()

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state_schema)
    # Runnables, since the annotations of a function would add its channels to the state.
    builder.add_node("hand_out", RunnableLambda(partial(_hand_out, at_once=at_once)))
    builder.add_node("item", RunnableLambda(work, awork)).add_edge("item", "hand_out")
    end = "answer" if answer else END
    route = partial(_next_nodes, prompt=prompt, end=end)
    builder.add_conditional_edges("hand_out", route, ["item", "hand_out", end])
    builder.add_edge(START, "planner" if planner else "hand_out")
    if planner:
        builder.add_node("planner", planner).add_edge("planner", "hand_out")
    return builder.add_node("answer", answer) if answer else builder


def _hand_out(state: Any, at_once: int) -> Command[Any]:
    """Tick what has ended, against the list of this moment, and start the next items."""
    after, jobs = next_jobs(state, at_once, time.time())
    get_stream_writer()(todos_event(after))
    ticks = [
        {"op": "set_status", "status": new["status"], "indices": [at], "texts": [new["text"]]}
        for at, (old, new) in enumerate(zip(todos_in(state), after, strict=True))
        if old != new
    ]
    return Command(update=[*(("todos", tick) for tick in ticks), ("running", jobs)])


def _next_nodes(state: Any, prompt: Callable[[Any, int], str], end: str) -> list[Send] | str:
    """Send the items that were handed out to their nodes."""
    sends = [
        Send("item", {**job, "index": at, "prompt": prompt(state, at)})
        for at, job in places_of_jobs(state).items()
        if job["id"] not in reports_in(state)
    ]
    return sends or ("hand_out" if incomplete(todos_in(state)) else end)


def _stored_with_runner(
    agent: Runnable[Any, Any], retry_policy: RetryPolicy | Sequence[RetryPolicy]
) -> Any:
    """Return the agent as a graph whose checkpoints belong to the thread of the runner."""
    policies = [retry_policy] if isinstance(retry_policy, RetryPolicy) else [*retry_policy]
    if isinstance(agent, Pregel):
        graph = cast("Any", agent)
        if graph.checkpointer is None:
            # A retry of the node `item` would begin the conversation again.
            return graph.copy({"retry_policy": [*policies, *graph.retry_policy]})
        raise ValueError(
            f"the agent has checkpointer={graph.checkpointer!r}, and its runs are stored with the "
            "runner; build it without a checkpointer"
        )
    if policies:
        raise ValueError(
            f"retry_policy repeats steps of a LangGraph agent, got a {type(agent).__name__}; leave "
            "retry_policy out, and retry in the agent"
        )
    builder: Any = StateGraph(MessagesState).add_node("agent", agent)
    return builder.add_edge(START, "agent").compile()


class _Run:
    """The run of an item: its attempts, and what became of them."""

    def __init__(self, job: Job, attempts: int) -> None:
        self.job, self.attempts, self.reasons = job, attempts, list[str]()
        self.text = job["item"]["text"]
        self.item = {"id": job["id"], "index": job["index"], "text": self.text}
        self.result: dict[str, Any] = {}
        self.say(job.get("prompt", ""))
        self.turns_to("in_progress")

    def turns_to(self, status: TodoStatus) -> None:
        """Send an event with the path of what the agent streams for this item."""
        self.status: TodoStatus = status
        ns = get_config().get("configurable", {}).get("checkpoint_ns")
        get_stream_writer()({"type": "todo_item", **self.item, "status": status, "ns": ns})

    @property
    def messages(self) -> Sequence[AnyMessage]:
        """The conversation so far."""
        return messages_in(self.result)

    @property
    def report(self) -> str:
        """The text at the end of the conversation, if the agent added one."""
        new = (each for each in self.messages[-1:] if not isinstance(each, HumanMessage))
        return "".join(each.text for each in new)

    def say(self, text: str, source: str = "item_runner") -> None:
        """Add a message for the agent; LangChain's tag says that no person wrote it."""
        message = HumanMessage(text, additional_kwargs={SOURCE_KEY: source} if source else {})
        self.input = {**self.result, "messages": [*self.messages, message]}

    def heard(self, result: dict[str, Any]) -> bool:
        """Take a result; pass a question on to a person. Return whether it is a report."""
        self.result = result or {}
        if not asks_user({"messages": self.messages[-1:]}):
            return True
        if get_config().get("configurable", {}).get("__pregel_checkpointer") is None:
            self.refuse(_NOBODY)
        else:
            question = {"type": "todo_question", "question": self.report}
            self.say(str(interrupt({**question, "item": self.item})), source="")
        return False

    def judged(self, verdict: str | None) -> None:
        """Take the verdict on the last answer; an empty answer is no report."""
        if reason := verdict or ("" if self.report.strip() else "the report is empty"):
            self.refuse(reason)
        else:
            self.turns_to("completed")

    def refuse(self, reason: str) -> None:
        """Let the agent read why its answer does not count, or give the item up."""
        self.reasons.append(reason)
        self.say(_REFUSED.format(reason))
        if len(self.reasons) == self.attempts:
            self.turns_to("abandoned")

    @contextmanager
    def errors(self, on_error: str) -> Generator[None]:
        """Say in a question which item asks, and let an error end the run or the item."""
        try:
            yield
        except GraphBubbleUp as stop:
            for asked in stop.args[0] if isinstance(stop, GraphInterrupt) else ():
                if isinstance(asked.value, dict):
                    asked.value = {**asked.value, "item": self.item}
            raise
        except GraphRecursionError:
            self.reasons.append("it reached max_steps")
            self.turns_to("abandoned")
        except Exception as error:
            if on_error == "raise":
                error.add_note(f"This was item [{self.item['index']}] {self.text}.")
                raise
            self.reasons.append(f"{type(error).__name__}: {error}")
            self.turns_to("abandoned")

    def ended(self) -> dict[str, Any]:
        """Return the report. The tick follows in the next step, with the list of that moment."""
        answers = [each for each in self.messages if isinstance(each, AIMessage)]
        usages = [each.usage_metadata for each in answers if each.usage_metadata]
        report = ItemReport(
            text=self.text,
            status=self.status,
            report=self.report,
            reasons=self.reasons,
            calls=len(answers),
            tokens=sum(usage["total_tokens"] for usage in usages),
            seconds=time.time() - self.job["started"],
        )
        return {"reports": {self.job["id"]: report}}
