"""Finished items leave the prompt, beside other parts of an agent: forks, approval, summaries."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarization
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from tests.messages_rules import check_order
from tests.payloads import anthropic_request
from tests.prompt_reader import read_list
from tests.support import edits, writes
from tests.test_folding import work, works
from todo_tools import TodoMiddleware, count_folded_tokens
from todo_tools.testing import ScriptedChatModel, turn

BEGIN = {"messages": [("user", "Begin.".ljust(3_000, "x"))]}
"""A request that fills the smallest prompt that providers cache."""


def tick(item: int, items: int) -> AIMessage:
    """Complete an item and start the next one."""
    starts = [edits("start", item + 1)] if item + 1 < items else []
    return turn(f"Item {item} gave {item * 7}.", edits("complete", item), *starts)


def script(items: int, *, size: int = 2_000) -> Iterator[AIMessage | str]:
    """Work on items one after the other, two results for each."""
    texts = [f"Item {nth}" for nth in range(items)]
    yield turn("", writes(*texts), edits("start", 0))
    for item in range(items):
        yield turn("", works(f"{item}a", size=size))
        yield turn("", works(f"{item}b", size=size))
        yield tick(item, items)
    yield "Over."


def agent(model: Any, before: Sequence[Any] = (), after: Sequence[Any] = ()) -> Any:
    middleware = [*before, TodoMiddleware(fold_finished=True, policy=None), *after]
    return create_agent(model, [work], middleware=middleware, checkpointer=InMemorySaver())


def parts(prompt: Sequence[BaseMessage]) -> list[str]:
    """Whose results a prompt shows."""
    return [
        message.text.split()[0]
        for message in prompt
        if isinstance(message, ToolMessage) and message.name == "work"
    ]


def without_system(prompt: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [message for message in prompt if not isinstance(message, SystemMessage)]


def check(model: ScriptedChatModel, items: int, stays: Sequence[str] = ()) -> None:
    """Every prompt is valid, the last one is short, and says what each item gave."""
    for prompt in model.prompts:
        check_order(anthropic_request(without_system(prompt)))
    last = model.prompts[-1]
    assert parts(last) == [*stays]
    said = " ".join(message.text for message in last)
    assert [item for item in range(items) if f"gave {item * 7}." not in said] == []


class TestContextEditing:
    """LangChain's middleware, which clears old results by size."""

    @pytest.mark.parametrize("place", ["before", "after"])
    def test_both_work_together(self, place: str) -> None:
        """Before, it clears the history; after, only what is left of it."""
        clears = ClearToolUsesEdit(trigger=1_500, keep=2)
        editing: Any = {place: [ContextEditingMiddleware(edits=[clears])]}
        model = ScriptedChatModel(script=[*script(8)])
        agent(model, **editing).invoke(BEGIN, {"configurable": {"thread_id": "1"}})
        for prompt in model.prompts:
            check_order(anthropic_request(without_system(prompt)))
        said = " ".join(message.text for message in model.prompts[-1])
        assert all(f"gave {item * 7}." in said for item in range(8))
        if place == "before":
            done = [(f"Item {nth}", "completed") for nth in range(8)]
            assert read_list(model.prompts[-1]) == done


Build = Callable[..., Any]

TRIGGER: Any = ("tokens", 25_000)


def in_create_agent(model: Any, writer: Any, counter: Any) -> Any:
    summarizes = SummarizationMiddleware(
        writer, trigger=TRIGGER, token_counter=counter, trim_tokens_to_summarize=None
    )
    return agent(model, [summarizes])


def in_deepagents(model: Any, writer: Any, counter: Any) -> Any:
    """Its own summarizer takes the place of the one in the default stack."""
    summarizes = DeepSummarization(
        writer,
        backend=StateBackend(),
        trigger=TRIGGER,
        token_counter=counter,
        trim_tokens_to_summarize=None,
    )
    folding = TodoMiddleware(fold_finished=True, policy=None)
    return create_deep_agent(model, [work], middleware=[summarizes, folding])


def summaries(build: Build, counter: Any, items: int, size: int) -> tuple[ScriptedChatModel, int]:
    """The model of a run, and how often its history was summarized."""
    writer = ScriptedChatModel(script=lambda _: "In short: nothing.")
    model = ScriptedChatModel(script=[*script(items, size=size)])
    build(model, writer, counter).invoke(
        BEGIN, {"configurable": {"thread_id": "1"}, "recursion_limit": 1_000}
    )
    return model, len(writer.prompts)


@pytest.mark.parametrize("build", [in_create_agent, in_deepagents])
class TestSummaries:
    @pytest.mark.slow
    def test_a_long_run_that_fits_is_never_summarized(self, build: Build) -> None:
        """Its folded prompts are below the limit; the history has 60,000 tokens."""
        model, times = summaries(build, count_folded_tokens, 30, size=4_000)
        assert times == 0
        assert max(count_tokens_approximately(prompt) for prompt in model.prompts) < TRIGGER[1]
        check(model, 30)

    def test_langchains_own_counter_counts_the_whole_history(self, build: Build) -> None:
        """So the same run is summarized, though it would fit."""
        assert summaries(build, count_tokens_approximately, 12, size=8_000)[1]
        assert not summaries(build, count_folded_tokens, 12, size=8_000)[1]

    def test_what_does_not_fit_is_summarized(self, build: Build) -> None:
        """The list is shown again after it."""
        model, times = summaries(build, count_folded_tokens, 3, size=60_000)
        assert times
        done = [(f"Item {nth}", "completed") for nth in range(3)]
        assert read_list(model.prompts[-1]) == done


class TestCount:
    def test_it_counts_what_would_be_sent(self) -> None:
        """LangChain counts the same of the folded view."""
        model = ScriptedChatModel(script=[*script(3)])
        graph = agent(model)
        config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        graph.invoke(BEGIN, config)
        history = graph.get_state(config).values["messages"][:-1]
        sent = without_system(model.prompts[-1])
        assert count_folded_tokens(history) == count_tokens_approximately(sent)
        assert count_folded_tokens(history) < count_tokens_approximately(history) / 3
