"""A shelf: items that outlive their threads, on LangGraph's Store.

The agent of any thread sees which items are free, takes some into its own list, and hands back what
it has done. This file needs only the library and `langchain`, so it can be copied alone.

    agent = create_agent(model, middleware=[ShelfMiddleware(), TodoMiddleware()], store=store, ...)

No write replaces another: items and claims have keys of their own. A thread withdraws its claim if
it then sees another. So no two threads get one item; at the same moment, perhaps neither does.

Not promised: a thread that never runs again keeps its items, until `hand_back(store, thread, {})`
frees them; if it died between work and hand-back, another thread does that work again. Claims need
a store that shows all earlier writes: one PostgreSQL server does, a read replica does not.
"""

import asyncio
from hashlib import sha256
from itertools import takewhile
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.config import get_config, get_store
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.types import Command

from todo_tools.operations import append_items
from todo_tools.rendering.lowlevel import one_line
from todo_tools.state import messages_in, todos_in
from todo_tools.transcript import details_of, pending_calls

ITEMS, CLAIMS, DONE = ("shelf", "items"), ("shelf", "claims"), ("shelf", "done")


def put_up(store: BaseStore, texts: list[str]) -> None:
    """Put up items. Their texts identify them: one that is up stays, one that is done returns."""
    for text in append_items(*texts)["texts"]:  # this checks them
        store.put(ITEMS, _key(text), {"text": text}, index=False)


def free_items(store: BaseStore) -> dict[str, str]:
    """The texts of the items that no thread has taken, by key; the oldest item is first."""
    taken = {claim.namespace[-1] for claim in store.search(CLAIMS, limit=10**6)}
    items = sorted(store.search(ITEMS, limit=10**6), key=lambda item: item.created_at)
    return {item.key: item.value["text"] for item in items if item.key not in taken}


def take(store: BaseStore, key: str, thread: str, older: int = 0) -> str | None:
    """Claim an item for a thread; returns its text, or `None` if the thread cannot have it.

    An item that is done or abandoned may return. So the claim stores how many `older` items with
    this text the list of the thread has.
    """
    claim = store.get((*CLAIMS, key), thread)
    if not (held := claim and not claim.value.get("over")):
        store.put((*CLAIMS, key), thread, {"older": older}, index=False)
    claims = store.search((*CLAIMS, key), limit=2)
    # The item is read after the claims, because a done item is deleted before its claim.
    if [claim.key for claim in claims] == [thread] and (item := store.get(ITEMS, key)):
        return str(item.value["text"])
    if not held:  # a claim that was there before may be valid
        store.delete((*CLAIMS, key), thread)
    return None


def hand_back(store: BaseStore, thread: str, state: Any, *, ends: bool = True) -> None:
    """Record the completed items of a thread as done, leave it the open ones, free the others.

    Without `ends`, only note in the claims what is completed: the model may open an item
    again, or drop it from its list.
    """
    for claim in [each for each in store.search(CLAIMS, limit=10**6) if each.key == thread]:
        key, value = claim.namespace[-1], claim.value
        older = value.get("older", 0)
        listed = value.get("listed", False) or len(_statuses(state, key)) > older
        # If the run broke before the item joined the list, an older one is not this one.
        own = _own_statuses(state, key, older) if listed else []
        is_open = bool({*own} - {"completed", "abandoned"})
        done = ("completed" in own and not is_open) if own else value.get("done", False)
        over = value.get("over")
        if not over and (is_open or not ends):
            noted = {**value, "done": done, "listed": listed}
            if noted != value:
                store.put(claim.namespace, thread, noted, index=False)
            continue
        item = store.get(ITEMS, key)
        if item and done and not over:
            store.put(DONE, key, {**item.value, "thread": thread}, index=False)
            # If this dies before the claim is deleted, an item that returns is another one.
            over = item.created_at.isoformat()
            store.put(claim.namespace, thread, {**value, "over": over}, index=False)
        if item and over == item.created_at.isoformat():
            store.delete(ITEMS, key)
        store.delete(claim.namespace, thread)


def _key(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def _own_statuses(state: Any, key: str, older: int) -> list[str]:
    """The statuses of the items with a claimed item's text, without the `older` ones.

    A call may drop an item that another call of its turn completed. In a list that was written
    again, no item is older.
    """
    turn = takewhile(lambda each: isinstance(each, ToolMessage), reversed(messages_in(state)))
    lists = [state, *filter(None, map(details_of, turn))]
    statuses = next(filter(None, (_statuses(each, key) for each in lists)), list[str]())
    return statuses[min(older, max(len(statuses) - 1, 0)) :]


def _statuses(state: Any, key: str) -> list[str]:
    """The statuses of the items of a list that have the text of a shared item."""
    return [todo["status"] for todo in todos_in(state) if _key(todo["text"]) == key]


@tool
def see_shelf() -> str:
    """See the shared items that nobody works on yet, each with its key."""
    items = free_items(get_store()).items()
    return "\n".join(f"{key}: {one_line(text)}" for key, text in items) or "No free items"


@tool
def take_items(keys: list[str], runtime: ToolRuntime[Any, Any]) -> Command[Any]:
    """Take shared items, by key, into your todo list; complete or abandon them there."""
    thread = get_config().get("configurable", {})["thread_id"]
    store, texts, new = get_store(), dict[str, str | None](), list[str]()
    earlier = pending_calls(runtime.state, runtime.tool_call_id)  # they run at the same time
    taken = str([call["args"] for call in earlier if call["name"] == "take_items"])
    for key in dict.fromkeys(keys):
        if repr(key) in taken:
            continue
        listed = _statuses(runtime.state, key)
        texts[key] = text = take(store, key, thread, len(listed)) if key.isalnum() else None
        claim = store.get((*CLAIMS, key), thread) if text else None
        # The claim of an item that is in the list already counts fewer.
        if text and claim and {*listed[claim.value.get("older", 0) :]} <= {"abandoned"}:
            new.append(text)
    said = "\n".join(f"{key}: {'taken' if text else 'not free'}" for key, text in texts.items())
    result = ToolMessage(said, tool_call_id=runtime.tool_call_id)
    return Command(update={"messages": [result], "todos": append_items(*new)})


class ShelfMiddleware(AgentMiddleware[Any, Any, Any]):
    """Give an agent the two tools, and hand back what is finished."""

    tools = (see_shelf, take_items)

    def before_model(self, state: Any, runtime: Any) -> None:
        """Note what is done, before the model may drop it from its list."""
        hand_back(runtime.store, runtime.execution_info.thread_id, state, ends=False)

    async def abefore_model(self, state: Any, runtime: Any) -> None:
        """Note it, from another thread than the event loop's, as async stores demand."""
        await asyncio.to_thread(self.before_model, state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Hand back what is finished."""
        hand_back(runtime.store, runtime.execution_info.thread_id, state)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """Do the same, from another thread."""
        await asyncio.to_thread(self.after_agent, state, runtime)
