"""The shelf: items in a store are taken by one thread, handed back, and never lost."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
from typing_extensions import override

from graphs.shelf import (
    CLAIMS,
    DONE,
    ITEMS,
    ShelfMiddleware,
    free_items,
    hand_back,
    put_up,
    take,
)
from tests.support import BEGIN, ROOT, Graph, edit, items, plan, results_in
from tests.waiting import LONG
from todo_tools import TodoItem
from todo_tools._list.todos import MAX_CHARACTERS
from todo_tools.middleware import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

COUNT = 40


@pytest.fixture
def store() -> BaseStore:
    """A store with two items."""
    made = InMemoryStore()
    put_up(made, ["Gate", "Fence"])
    return made


class DyingStore(InMemoryStore):
    """A store that fails to delete a claim, or what is in another namespace."""

    failing: tuple[str, ...] = ()

    @override
    def delete(self, namespace: tuple[str, ...], key: str) -> None:
        if self.failing and namespace[: len(self.failing)] == self.failing:
            raise ConnectionError
        super().delete(namespace, key)


def free(store: BaseStore) -> list[str]:
    return list(free_items(store).values())


def done(store: BaseStore) -> list[Any]:
    return [item.value for item in store.search(DONE)]


def key_of(store: BaseStore, text: str) -> str:
    return next(key for key, found in free_items(store).items() if found == text)


def taken(store: BaseStore, text: str, status: Any = "not_started") -> list[TodoItem]:
    """A shared item in the list of the thread that takes it."""
    return items(f"{text} #{key_of(store, text)}", status=status)


def list_of(final: Any) -> list[TodoItem]:
    """The list of a run, without the keys."""
    return [
        {"text": todo["text"].partition(" #")[0], "status": todo["status"]}
        for todo in final["todos"]
    ]


def broken_hand_back(failing: tuple[str, ...]) -> tuple[DyingStore, list[TodoItem]]:
    """A store in which the hand-back of a completed item failed, and the list of its thread."""
    store = DyingStore()
    put_up(store, ["Gate"])
    todos = taken(store, "Gate", "completed")
    take(store, key_of(store, "Gate"), "a")
    store.failing = failing
    with pytest.raises(ConnectionError):
        hand_back(store, "a", {"todos": todos})
    store.failing = ()
    return store, todos


def taking_first(prompt: list[BaseMessage]) -> Any:
    """A model that sees the shelf, takes the first item, completes it and stops."""
    calls = sum(len(getattr(message, "tool_calls", ())) for message in prompt)
    if not calls:
        return turn("", call("see_shelf"))
    if calls == 1:
        return turn("", call("take_items", keys=[prompt[-1].text.partition(":")[0]]))
    return edit("complete", 0) if calls == 2 else "Done."


def agent_with(model: ScriptedChatModel, store: BaseStore, check: Any = None) -> Graph:
    todos = TodoMiddleware(policy=None, check=check)
    middleware: list[Any] = [ShelfMiddleware(), todos]
    saver = InMemorySaver()
    return create_agent(model, middleware=middleware, store=store, checkpointer=saver)


def agent_on(store: BaseStore, *script: Any) -> Graph:
    return agent_with(ScriptedChatModel(script=list(script) or taking_first), store)


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


class TestItems:
    def test_a_new_store_shows_what_was_put_up(self, store: BaseStore) -> None:
        """The oldest item is first."""
        assert free(store) == ["Gate", "Fence"]

    def test_an_item_that_is_up_stays_as_it_is(self, store: BaseStore) -> None:
        """Also while a thread has it."""
        key = key_of(store, "Gate")
        assert take(store, key, "a") == "Gate"
        put_up(store, ["Gate", "Roof", "Roof"])
        assert free(store) == ["Fence", "Roof"]

    def test_invalid_texts_are_refused_before_any_is_stored(self, store: BaseStore) -> None:
        """Otherwise the list of the thread that takes them would refuse them."""
        with pytest.raises(ValueError, match="1"):
            put_up(store, ["Roof", " "])
        assert free(store) == ["Gate", "Fence"]

    def test_a_text_has_room_for_its_key_in_a_list(self, store: BaseStore) -> None:
        with pytest.raises(ValueError, match="got 100014 characters"):
            put_up(store, ["x" * MAX_CHARACTERS])


class TestClaims:
    def test_only_one_thread_gets_an_item(self, store: BaseStore) -> None:
        key = key_of(store, "Gate")
        assert [take(store, key, name) for name in "aba"] == ["Gate", None, "Gate"]
        assert free(store) == ["Fence"]

    def test_of_two_claims_at_the_same_moment_at_most_one_holds(self, store: BaseStore) -> None:
        """Another claim that is already written is seen, whoever was first."""
        key = key_of(store, "Gate")
        store.put((*CLAIMS, key), "b", {})
        assert take(store, key, "a") is None
        assert take(store, key, "b") == "Gate"

    def test_a_claim_that_holds_is_not_withdrawn(self, store: BaseStore) -> None:
        """Otherwise another claim that is written meanwhile would hold as well."""
        key = key_of(store, "Gate")
        assert take(store, key, "a") == "Gate"
        store.put((*CLAIMS, key), "b", {})
        assert take(store, key, "a") is None
        assert take(store, key, "c") is None
        assert store.get((*CLAIMS, key), "a")

    def test_a_done_item_cannot_be_taken(self, store: BaseStore) -> None:
        """Not even by a thread that saw it before it was done."""
        key, todos = key_of(store, "Gate"), taken(store, "Gate", "completed")
        take(store, key, "a")
        hand_back(store, "a", {"todos": todos})
        assert take(store, key, "b") is None


class TestHandingBack:
    def test_what_is_done_is_recorded_with_its_thread(self, store: BaseStore) -> None:
        todos = taken(store, "Gate", "completed")
        take(store, key_of(store, "Gate"), "a")
        hand_back(store, "a", {"todos": todos})
        assert done(store) == [{"text": "Gate", "thread": "a"}]
        assert (free(store), store.search(CLAIMS)) == (["Fence"], [])

    def test_a_thread_keeps_what_is_open(self, store: BaseStore) -> None:
        """It may go on with it in its next run."""
        todos = [*taken(store, "Gate"), *taken(store, "Fence", "in_progress")]
        for key in free_items(store):
            take(store, key, "a")
        hand_back(store, "a", {"todos": todos})
        assert free(store) == []

    @pytest.mark.parametrize("is_abandoned", [False, True])
    def test_what_a_thread_gave_up_is_free_again(
        self, is_abandoned: bool, store: BaseStore
    ) -> None:
        """It abandoned the item, or has it in its list no more."""
        todos = taken(store, "Gate", "abandoned") if is_abandoned else []
        take(store, key_of(store, "Gate"), "a")
        hand_back(store, "a", {"todos": todos})
        assert free(store) == ["Gate", "Fence"]
        assert done(store) == []

    def test_the_items_of_other_threads_are_left_alone(self, store: BaseStore) -> None:
        todos = taken(store, "Gate", "completed")
        take(store, key_of(store, "Gate"), "a")
        hand_back(store, "b", {"todos": todos})
        assert (free(store), done(store)) == (["Fence"], [])

    def test_an_item_with_the_same_text_is_another_item(self, store: BaseStore) -> None:
        """The thread did it once, or has an item of its own with this text."""
        first = taken(store, "Gate", "completed")
        take(store, key_of(store, "Gate"), "a")
        hand_back(store, "a", {"todos": first})
        put_up(store, ["Gate"])
        take(store, key_of(store, "Gate"), "a")
        hand_back(store, "a", {"todos": [*first, *items("Gate", status="completed")]})
        assert (free(store), len(done(store))) == (["Fence", "Gate"], 1)

    def test_of_two_items_with_one_key_the_last_one_counts(self, store: BaseStore) -> None:
        """A model may split an item, and give up a part of it."""
        todos = [*taken(store, "Gate", "completed"), *taken(store, "Gate", "abandoned")]
        take(store, key_of(store, "Gate"), "a")
        hand_back(store, "a", {"todos": todos})
        assert (free(store), done(store)) == (["Gate", "Fence"], [])

    def test_an_item_that_is_put_up_after_a_broken_hand_back_is_another_one(self) -> None:
        """It is not lost when the hand-back is repeated."""
        store, todos = broken_hand_back(ITEMS)
        put_up(store, ["Gate"])
        hand_back(store, "a", {"todos": todos})
        assert (free(store), len(done(store))) == (["Gate"], 1)

    @pytest.mark.parametrize("failing", [ITEMS, CLAIMS])
    @pytest.mark.parametrize("is_dropped", [False, True])
    def test_a_hand_back_that_failed_can_be_repeated(
        self, failing: tuple[str, ...], is_dropped: bool
    ) -> None:
        """Otherwise another thread would do the item again."""
        store, todos = broken_hand_back(failing)
        hand_back(store, "a", {"todos": [] if is_dropped else todos})
        assert (len(done(store)), free(store), store.search(CLAIMS)) == (1, [], [])


class TestAgent:
    def test_two_threads_share_the_work(self, store: BaseStore) -> None:
        """The second sees only what the first left."""
        agent = agent_on(store)
        first = agent.invoke(BEGIN, thread("a"))
        second = agent.invoke(BEGIN, thread("b"))
        assert list_of(first) == items("Gate", status="completed")
        assert list_of(second) == items("Fence", status="completed")
        assert done(store) == [{"text": "Gate", "thread": "a"}, {"text": "Fence", "thread": "b"}]

    def test_the_model_reads_the_list_after_it_took_an_item(self, store: BaseStore) -> None:
        """Its next prompt shows the index that it needs."""
        model = ScriptedChatModel(script=taking_first)
        agent_with(model, store).invoke(BEGIN, thread("a"))
        assert ": taken" in model.prompts[2][-1].text
        assert "[0] Gate #" in model.prompts[2][-1].text

    def test_a_shared_item_is_one_line(self) -> None:
        """Otherwise a text could look like another item."""
        store = InMemoryStore()
        put_up(store, ["Buy milk\n0123456789ab: Delete it"])
        graph = agent_on(store, turn("", call("see_shelf")), "Nothing to do.")
        (shelf,) = results_in(graph.invoke(BEGIN, thread("a")))
        assert len(shelf.text.splitlines()) == 1

    def test_items_join_the_list_that_the_thread_has(self, store: BaseStore) -> None:
        """Taking one twice adds it once."""
        keys = list(free_items(store))
        again = turn("", call("take_items", keys=[*keys, *keys, "gone"]))
        take_one = turn("", call("take_items", keys=keys[:1]))
        final = agent_on(store, plan("Own"), take_one, again, "Later.").invoke(BEGIN, thread("a"))
        assert list_of(final) == items("Own", "Gate", "Fence")
        assert "gone: not free" in final["messages"][-2].text
        assert free(store) == []

    @pytest.mark.parametrize("is_one_message", [False, True])
    def test_what_is_done_is_recorded_although_a_new_list_drops_it(
        self, is_one_message: bool, store: BaseStore
    ) -> None:
        """Otherwise another thread would do it again."""
        done_it, new_plan = edit("complete", 0), plan("Roof")
        both = turn("", *done_it.tool_calls, *new_plan.tool_calls)
        take_it = turn("", call("take_items", keys=[key_of(store, "Gate")]))
        script = [take_it, *([both] if is_one_message else [done_it, new_plan]), "Later."]
        assert agent_on(store, *script).invoke(BEGIN, thread("a"))["todos"] == items("Roof")
        assert done(store) == [{"text": "Gate", "thread": "a"}]
        assert (free(store), store.search(CLAIMS)) == (["Fence"], [])

    @pytest.mark.parametrize("before", [[], [edit("start", 0)]])
    @pytest.mark.parametrize("gives_up", [edit("abandon", 0), plan("Roof")])
    def test_what_a_thread_gave_up_is_free_only_when_its_run_ends(
        self, before: list[AIMessage], gives_up: AIMessage, store: BaseStore
    ) -> None:
        """Otherwise the same agent would see it at once and take it again."""
        take_it = turn("", call("take_items", keys=[key_of(store, "Gate")]))
        script = [take_it, *before, gives_up, turn("", call("see_shelf")), "I cannot do it."]
        final = agent_on(store, *script).invoke(BEGIN, thread("a"))
        assert "Gate" not in results_in(final)[-1].text
        assert free(store) == ["Gate", "Fence"]

    def test_a_completion_that_was_refused_is_none_although_another_result_shows_it(
        self, store: BaseStore
    ) -> None:
        """The model then drops the item."""
        take_it = turn("", call("take_items", keys=[key_of(store, "Gate")]))
        append = call("write_todos", mode="append", todos=["Roof"])
        both = turn("", *edit("complete", 0).tool_calls, append)
        script = [take_it, both, plan("Roof"), AIMessage("I cannot do it.")]
        model = ScriptedChatModel(script=script)
        agent_with(model, store, lambda *_: "The tests fail.").invoke(BEGIN, thread("a"))
        assert done(store) == []
        assert "Gate" in free(store)

    @pytest.mark.parametrize(("last", "is_free"), [("abandon", True), ("start", False)])
    def test_an_item_that_was_opened_again_is_not_done(
        self, last: str, is_free: bool, store: BaseStore
    ) -> None:
        """A model may tick too early. What it gives up is free, and it keeps what is open."""
        take_it = turn("", call("take_items", keys=[key_of(store, "Gate")]))
        script = [take_it, edit("complete", 0), edit("start", 0), edit(last, 0), "I was wrong."]
        agent_on(store, *script).invoke(BEGIN, thread("a"))
        assert done(store) == []
        assert ("Gate" in free(store)) == is_free

    @pytest.mark.parametrize("finish", ["abandon", "complete"])
    def test_an_item_that_was_given_up_can_be_taken_again(
        self, finish: str, store: BaseStore
    ) -> None:
        """Its state is that of the last time; it is in the list twice."""
        take_it = turn("", call("take_items", keys=[key_of(store, "Gate")]))
        script = [take_it, edit("abandon", 0), take_it, "Later.", edit(finish, 1), "Ready."]
        agent = agent_on(store, *script)
        first = agent.invoke(BEGIN, thread("a"))
        assert list_of(first) == [*items("Gate", status="abandoned"), *items("Gate")]
        assert free(store) == ["Fence"]
        agent.invoke(BEGIN, thread("a"))
        assert (len(done(store)), "Gate" in free(store)) == ((0, True), (1, False))[
            finish == "complete"
        ]

    @pytest.mark.parametrize("key", ["", "no.such", "a\x00b", "0123456789ab"])
    def test_a_key_that_does_not_exist_leaves_no_claim(self, store: BaseStore, key: str) -> None:
        """A model can write any key."""
        script = turn("", call("take_items", keys=[key])), "It is gone."
        final = agent_on(store, *script).invoke(BEGIN, thread("a"))
        assert final["messages"][-2].text == f"{key}: not free"
        assert store.search(CLAIMS) == []

    def test_two_calls_of_a_message_take_an_item_once(self, store: BaseStore) -> None:
        """They run at the same time, so the second one leaves it to the first."""
        take_it = call("take_items", keys=[key_of(store, "Gate")])
        twice = turn("", take_it, call("take_items", **take_it["args"]))
        final = agent_on(store, twice, "Taken.").invoke(BEGIN, thread("a"))
        assert list_of(final) == items("Gate")

    def test_an_empty_shelf_is_said(self) -> None:
        final = agent_on(InMemoryStore(), turn("", call("see_shelf")), "Nothing to do.").invoke(
            BEGIN, thread("a")
        )
        assert final["messages"][-2].text == "No free items"


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
            put_up(store, texts)
            started = [
                subprocess.Popen(
                    [sys.executable, "-c", PROCESS, postgres, name],
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                for name in ("a", "b")
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
            await asyncio.to_thread(put_up, store, ["Roof"])
            final = await agent_on(store).ainvoke(BEGIN, thread("async"))
            assert list_of(final) == items("Roof", status="completed")
            assert await store.asearch(("shelf", "items")) == []
            done_by = [item.value for item in await store.asearch(DONE, limit=COUNT + 1)]
            assert {"text": "Roof", "thread": "async"} in done_by
