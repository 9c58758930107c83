"""A shelf: items that outlive their threads, on LangGraph's Store.

The agent of any thread sees which items are free, takes some into its own list, and hands back what
it has done. This file needs only the library and `langchain`, so it can be copied alone.

    middleware = [ShelfMiddleware(), TodoMiddleware()]
    agent = create_agent(model, middleware=middleware, store=store, checkpointer=saver)

An item has a key, which ends its text in a thread's list: `Paint the gate #3f2a9c1b07d4`. No write
replaces another: items and claims have keys of their own. A thread withdraws its claim if it then
sees another. So no two threads get one item; at the same moment, perhaps neither does.

Not promised: a thread that never runs again keeps its items, until `hand_back(store, thread, {})`
frees them. An item that a model drops from its list, or whose key it drops, is free again after
the run, unless the messages show that it was completed. A thread that opens an item again after it
gave it up, or that is forked, has no claim to the item. Give one agent of a thread this middleware,
not its subagents too. Claims need a store that shows all earlier writes: one PostgreSQL server
does, a read replica does not.
"""

import asyncio
import re
from typing import Any
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.config import get_config, get_store
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.types import Command

from todo_tools import TodoItem
from todo_tools.operations import append_items
from todo_tools.rendering.lowlevel import one_line
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import details_of, pending_calls

ITEMS, CLAIMS, DONE = ("shelf", "items"), ("shelf", "claims"), ("shelf", "done")


def put_up(store: BaseStore, texts: list[str]) -> None:
    """Put up items, except for texts that are up already; use one process for that.

    Raises:
        ValueError: A text is empty or too long for a list, as for `append_items`.
    """
    same = [item for item in store.search(ITEMS, limit=10**6) if item.value["text"] in texts]
    up = {item.value["text"] for item in same if not store.get(DONE, item.key)}
    new = {uuid4().hex[:12]: text for text in dict.fromkeys(texts) if text not in up}
    append_items(*texts, *(_in_a_list(key, text) for key, text in new.items()))  # this checks them
    for key, text in new.items():
        store.put(ITEMS, key, {"text": text}, index=False)


def free_items(store: BaseStore) -> dict[str, str]:
    """The texts of the items that no thread has taken, by key; the oldest item is first."""
    taken = {claim.namespace[-1] for claim in store.search(CLAIMS, limit=10**6)}
    items = sorted(store.search(ITEMS, limit=10**6), key=lambda item: item.created_at)
    return {item.key: item.value["text"] for item in items if item.key not in taken}


def take(store: BaseStore, key: str, thread: str) -> str | None:
    """Claim an item for a thread; returns its text, or `None` if the thread cannot have it."""
    if not store.get(ITEMS, key):  # a model can write any key
        return None
    was_claimed = store.get((*CLAIMS, key), thread)
    store.put((*CLAIMS, key), thread, {}, index=False)
    claims = store.search((*CLAIMS, key), limit=2)
    # The item is read after the claims, because a done item is deleted before its claim.
    if [claim.key for claim in claims] == [thread] and (item := store.get(ITEMS, key)):
        return str(item.value["text"])
    if not was_claimed:  # a claim that was there before may be valid
        store.delete((*CLAIMS, key), thread)
    return None


def hand_back(store: BaseStore, thread: str, state: Any) -> None:
    """Record the completed items of a thread as done, leave it the open ones, free the others."""
    for claim in [each for each in store.search(CLAIMS, limit=10**6) if each.key == thread]:
        key = claim.namespace[-1]
        status = _status(state, key)
        if status not in ("completed", "abandoned", None):
            continue
        item = store.get(ITEMS, key)
        is_done = status == "completed" or (status is None and _was_completed(state, key))
        if item and is_done:
            store.put(DONE, key, {**item.value, "thread": thread}, index=False)
        if store.get(DONE, key):  # also if this died here before
            store.delete(ITEMS, key)
        store.delete(claim.namespace, thread)


def _in_a_list(key: str, text: str) -> str:
    """The text of an item in the list of a thread."""
    return f"{text} #{key}"


def _status(state: Any, key: str) -> str | None:
    """The status of an item in a list; the last one counts if it was given up and taken again."""
    own = (todo for todo in reversed(todos_in(state)) if _is_of(todo, key))
    return next((todo["status"] for todo in own), None)


def _is_of(todo: TodoItem, key: str) -> bool:
    return todo["text"].endswith(f" #{key}")


def _was_completed(state: Any, key: str) -> bool:
    """Whether the last result that showed an item has it completed; the model may drop it later.

    A result also shows changes of earlier calls of its message, which may still be refused. So
    the result of the call that completed the item must say so.
    """
    results = [each for each in messages_in(state) if _status(details_of(each), key)]
    if not results or _status(details_of(results[-1]), key) != "completed":
        return False
    changed = (said for each in reversed(results) if (said := _change_of(each, key)))
    return next(changed, "") == "Completed"


def _change_of(result: AnyMessage, key: str) -> str:
    """What a result says that its call did to an item; empty for nothing."""
    said = _CHANGED.search(result.text)
    own = [at for at, todo in enumerate(todos_in(details_of(result))) if _is_of(todo, key)]
    return said[1] if said and str(own[-1]) in said[2].split(", ") else ""


_CHANGED = re.compile(r"^(Started|Completed|Abandoned) \[([\d, ]+)\]", re.MULTILINE)


@tool
def see_shelf() -> str:
    """See the shared items that nobody works on yet, each with its key."""
    items = free_items(get_store()).items()
    return "\n".join(f"{key}: {one_line(text)}" for key, text in items) or "No free items"


@tool
def take_items(keys: list[str], runtime: ToolRuntime[Any, Any]) -> Command[Any]:
    """Take shared items, by key, into your todo list. Complete or abandon them there.

    Keep the # and the key at the end of their texts.
    """
    thread = str(get_config().get("configurable", {})["thread_id"])
    earlier = pending_calls(runtime.state, runtime.tool_call_id)  # they run at the same time
    taken = str([call["args"] for call in earlier if call["name"] == "take_items"])
    own = [key for key in dict.fromkeys(keys) if repr(key) not in taken]
    texts = {key: take(get_store(), key, thread) if key.isalnum() else None for key in own}
    new = [
        _in_a_list(key, text)
        for key, text in texts.items()
        if text and _status(runtime.state, key) in ("abandoned", None)
    ]
    lines = [f"{key}: {'taken' if text else 'not free'}" for key, text in texts.items()]
    said = "\n".join(lines) or "Error: no keys, or an earlier call of this turn takes them"
    result = ToolMessage(said, tool_call_id=runtime.tool_call_id)
    return Command(update={"messages": [result], "todos": append_items(*new)})


class ShelfMiddleware(AgentMiddleware[Any, Any, Any]):
    """Give an agent the two tools, and hand back what is finished."""

    tools = (see_shelf, take_items)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Hand back what is finished."""
        hand_back(runtime.store, str(runtime.execution_info.thread_id), state)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """Do the same, from another thread than the event loop's, as async stores demand."""
        await asyncio.to_thread(self.after_agent, state, runtime)
