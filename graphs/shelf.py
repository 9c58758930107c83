"""A shelf: items that outlive their threads, on LangGraph's Store. Copy this file alone.

An agent sees which items are free, takes some into the list of its thread, and hands back what it
has done: `create_agent(model, middleware=[ShelfMiddleware(), TodoMiddleware()], store=store, ...)`.
A thread withdraws its claim if it then sees another. So no two threads get one item; at the same
moment, perhaps neither does. The store must show all earlier writes, as one PostgreSQL server does.
Its limit: a thread keeps an item until a run ends with it completed or abandoned in the list; if
the model drops it, or the thread never runs again, delete the claim.
"""

import asyncio
import re
from typing import Any
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.config import get_store
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.types import Command

from todo_tools.operations import append_items
from todo_tools.state import todos_in

ITEMS, CLAIMS, DONE = ("shelf", "items"), ("shelf", "claims"), ("shelf", "done")
_KEY = re.compile(r" #([0-9a-f]{12})$")  # ends a text in a list: `Paint the gate #3f2a9c1b07d4`


def put_up(store: BaseStore, *texts: str) -> None:
    """Put up items; a text that no list takes is a `ValueError`, as for `append_items`."""
    new = {uuid4().hex[:12]: text for text in texts}
    append_items(*(f"{text} #{key}" for key, text in new.items()))
    for key, text in new.items():
        store.put(ITEMS, key, {"text": text}, index=False)


def free_items(store: BaseStore) -> dict[str, str]:
    """The texts of the items that no thread has taken, by key; the oldest item is first."""
    taken = {claim.namespace[-1] for claim in store.search(CLAIMS, limit=10**6)}
    found = sorted(store.search(ITEMS, limit=10**6), key=lambda item: item.created_at)
    return {item.key: item.value["text"] for item in found if item.key not in taken}


def take(store: BaseStore, key: str, thread: str) -> str | None:
    """Claim an item for a thread; returns its text, or `None` if the thread cannot have it."""
    was_claimed = store.get(claims := (*CLAIMS, key), thread)
    store.put(claims, thread, {}, index=False)
    # The item is read after the claims, because a done item is deleted before its claim.
    is_alone = [claim.key for claim in store.search(claims, limit=2)] == [thread]
    if is_alone and (item := store.get(ITEMS, key)):
        return str(item.value["text"])
    if not was_claimed:  # a claim that was there before may be valid
        store.delete(claims, thread)
    return None


def hand_back(store: BaseStore, thread: str, state: Any) -> None:
    """Record what a thread has completed, and free what it has abandoned."""
    found = ((_KEY.search(todo["text"]), todo["status"]) for todo in todos_in(state))
    for key, status in {key[1]: status for key, status in found if key}.items():
        if status in ("completed", "abandoned") and store.get((*CLAIMS, key), thread):
            if status == "completed" and (item := store.get(ITEMS, key)):
                store.put(DONE, key, {**item.value, "thread": thread}, index=False)
                store.delete(ITEMS, key)
            store.delete((*CLAIMS, key), thread)


@tool
def see_shelf() -> str:
    """See the shared items that nobody works on yet, each with its key."""
    lines = [f"{key}: {' '.join(text.split())}" for key, text in free_items(get_store()).items()]
    return "\n".join(lines) or "No free items"


@tool
def take_items(keys: list[str], runtime: ToolRuntime[Any, Any]) -> Command[Any]:
    """Take shared items into your todo list; finish them there. Keep # and key in their texts."""
    thread = str(runtime.config.get("configurable", {})["thread_id"])
    texts = {key: take(get_store(), key, thread) if key.isalnum() else None for key in keys}
    said = "\n".join(f"{key}: {'taken' if text else 'not free'}" for key, text in texts.items())
    own = [todo["text"] for todo in todos_in(runtime.state) if todo["status"] != "abandoned"]
    new = [f"{text} #{key}" for key, text in texts.items() if text and f"{text} #{key}" not in own]
    result = ToolMessage(said or "Error: no keys", tool_call_id=runtime.tool_call_id)
    return Command(update={"messages": [result], "todos": append_items(*new)})


class ShelfMiddleware(AgentMiddleware[Any, Any, Any]):
    """Give an agent the two tools, and hand back what is finished."""

    tools = (see_shelf, take_items)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Hand back what is finished."""
        hand_back(runtime.store, str(runtime.execution_info.thread_id), state)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """Do the same outside the thread of the event loop, as async stores demand."""
        await asyncio.to_thread(self.after_agent, state, runtime)
