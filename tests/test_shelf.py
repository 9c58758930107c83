"""The shelf: items in a store are taken by one thread, handed back, and never lost."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore

from graphs.shelf import CLAIMS, DONE, ShelfMiddleware, free_items, hand_back, put_up, take
from tests.support import BEGIN, ROOT, Graph, edit, items, plan
from tests.waiting import LONG
from todo_tools import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

COUNT = 40


@pytest.fixture
def store() -> BaseStore:
    """A store with two items."""
    made = InMemoryStore()
    put_up(made, "Gate", "Fence")
    return made


def free(store: BaseStore) -> list[str]:
    return list(free_items(store).values())


def done(store: BaseStore) -> list[Any]:
    return [item.value for item in store.search(DONE)]


def key_of(store: BaseStore, text: str) -> str:
    return next(key for key, found in free_items(store).items() if found == text)


def list_of(final: Any) -> list[Any]:
    """The list of a run, without the keys."""
    return [{**todo, "text": todo["text"].partition(" #")[0]} for todo in final["todos"]]


def taking_first(prompt: list[BaseMessage]) -> Any:
    """A model that sees the shelf, takes the first item, completes it and stops."""
    calls = sum(len(getattr(message, "tool_calls", ())) for message in prompt)
    if not calls:
        return turn("", call("see_shelf"))
    if calls == 1:
        return turn("", call("take_items", keys=[prompt[-1].text.partition(":")[0]]))
    return edit("complete", 0) if calls == 2 else "Done."


def agent_on(store: BaseStore, *script: Any) -> Graph:
    model = ScriptedChatModel(script=list(script) or taking_first)
    middleware: list[Any] = [ShelfMiddleware(), TodoMiddleware(policy=None)]
    return create_agent(model, middleware=middleware, store=store, checkpointer=InMemorySaver())


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def test_only_one_thread_gets_an_item(store: BaseStore) -> None:
    """A claim that holds is not withdrawn, or one of the same moment would hold as well."""
    key = key_of(store, "Gate")
    assert [take(store, key, name) for name in "aba"] == ["Gate", None, "Gate"]
    store.put((*CLAIMS, key), "b", {})
    assert [take(store, key, name) for name in "ac"] == [None, None]
    assert store.get((*CLAIMS, key), "a")


@pytest.mark.parametrize("key", ["", "no.such", "0123456789ab"])
def test_a_key_that_does_not_exist_leaves_no_claim(store: BaseStore, key: str) -> None:
    """A model can write any key."""
    agent = agent_on(store, turn("", call("take_items", keys=[key])), "Gone.")
    final = agent.invoke(BEGIN, thread("a"))
    assert final["messages"][-2].text == f"{key}: not free"
    assert store.search(CLAIMS) == []


def test_two_threads_share_the_work(store: BaseStore) -> None:
    """The second sees only what the first left, and what is done cannot be taken."""
    agent, keys = agent_on(store), list(free_items(store))
    finals = [agent.invoke(BEGIN, thread(name)) for name in "ab"]
    assert [list_of(final) for final in finals] == [
        items("Gate", status="completed"),
        items("Fence", status="completed"),
    ]
    assert done(store) == [{"text": "Gate", "thread": "a"}, {"text": "Fence", "thread": "b"}]
    assert [take(store, key, "c") for key in keys] == [None, None]
    assert store.search(CLAIMS) == []


def test_a_thread_keeps_what_is_open_and_frees_what_it_abandoned(store: BaseStore) -> None:
    """Items join the list that the thread has, and taking one twice adds it once."""
    take_all = turn("", call("take_items", keys=list(free_items(store))))
    give_up = edit("abandon", 1)
    agent = agent_on(store, plan("Own"), take_all, take_all, give_up, "Later.")
    final = agent.invoke(BEGIN, thread("a"))
    gate = items("Gate", status="abandoned")
    assert list_of(final) == [*items("Own"), *gate, *items("Fence")]
    assert (free(store), done(store)) == (["Gate"], [])


PROCESS = """
import json, random, sys
from langgraph.store.postgres import PostgresStore
from graphs.shelf import free_items, hand_back, take

thread, mine = sys.argv[2], []
with PostgresStore.from_conn_string(sys.argv[1]) as store:
    while free := list(free_items(store)):
        key = random.choice(free)
        if text := take(store, key, thread):
            mine.append(f"{text} #{key}")
            if len(mine) % 2:  # some are done while others are still being taken
                done = [{"text": each, "status": "completed"} for each in mine]
                hand_back(store, thread, {"todos": done})
print(json.dumps(mine))
"""


@pytest.mark.slow
class TestPostgres:
    def test_two_processes_at_once_lose_nothing_and_share_nothing(self, postgres: str) -> None:
        """Each item is taken by exactly one of them."""
        texts = [f"Item {number}" for number in range(COUNT)]
        with PostgresStore.from_conn_string(postgres) as store:
            store.setup()
            put_up(store, *texts)
            program, out = [sys.executable, "-c", PROCESS, postgres], subprocess.PIPE
            started = [
                subprocess.Popen([*program, name], cwd=ROOT, stdout=out, text=True) for name in "ab"
            ]
            each = [json.loads(process.communicate(timeout=LONG)[0]) for process in started]
            assert sorted(item.partition(" #")[0] for item in each[0] + each[1]) == sorted(texts)
            for name, mine in zip("ab", each, strict=True):
                hand_back(store, name, {"todos": items(*mine, status="completed")})
            recorded = {item.value["text"] for item in store.search(DONE, limit=COUNT + 1)}
            assert recorded == set(texts)
            assert (free(store), store.search(CLAIMS)) == ([], [])

    async def test_an_async_agent_works_on_an_async_store(self, postgres: str) -> None:
        """Its tools and its hook are sync; LangGraph runs them in other threads."""
        async with AsyncPostgresStore.from_conn_string(postgres) as store:
            await store.setup()
            await asyncio.to_thread(put_up, store, "Roof")
            final = await agent_on(store).ainvoke(BEGIN, thread("async"))
            assert list_of(final) == items("Roof", status="completed")
            done_by = [item.value for item in await store.asearch(DONE, limit=COUNT + 1)]
            assert {"text": "Roof", "thread": "async"} in done_by
