"""The benchmark's price lists, and the runs that it compares."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from benchmarks import runner
from benchmarks.__main__ import replaced
from benchmarks.blocks import message_blocks, read_prompts
from benchmarks.changed import KINDS, MOST, measure
from benchmarks.lists import LISTS, NO_LIST, ListKind
from benchmarks.prices import Block, Prompt, automatic, marked
from benchmarks.run import run_work
from benchmarks.runner import ONE_LINE, PLAIN, RUNNER, THREADS, Way
from benchmarks.tables import ITEM_RUNS
from benchmarks.trace import GRAPHS, JOURNEYS, main, trace
from benchmarks.work import STYLES, Case, Style
from todo_tools.testing import call, turn

A, B, C, D = (Block(name, 100) for name in "abcd")
CASE = Case(items=3, calls=2, chars=50)


def blocks(count: int) -> tuple[Block, ...]:
    return tuple(Block(str(number), 100) for number in range(count))


class TestAutomatic:
    def test_a_shared_prefix_is_read_at_a_tenth(self) -> None:
        assert automatic([Prompt((A, B)), Prompt((A, B, C))]) == 200 + 20 + 100


class TestMarked:
    def test_an_entry_is_read_and_what_is_new_is_written(self) -> None:
        prompts = [Prompt((A, B), marks=(1,)), Prompt((A, B, C), marks=(2,))]
        assert marked(prompts) == pytest.approx(250 + 20 + 125)

    @pytest.mark.parametrize(
        ("added", "cost"), [(19, 125 + 10 + 19 * 125), (20, 125 + 21 * 125)], ids=["near", "far"]
    )
    def test_a_mark_looks_back_over_twenty_blocks(self, added: int, cost: float) -> None:
        """Its own block is the first of them."""
        prompts = [Prompt(blocks(1), marks=(0,)), Prompt(blocks(1 + added), marks=(added,))]
        assert marked(prompts) == pytest.approx(cost)


GROWTH = st.lists(st.integers(1, 15), min_size=1, max_size=10)


class TestEveryRun:
    @given(GROWTH)
    def test_a_prompt_that_only_grows_pays_once_for_each_token(self, growth: list[int]) -> None:
        """The rest is read from the cache; this is the exact cost of an append-only prompt."""
        sizes = [sum(growth[: nth + 1]) for nth in range(len(growth))]
        prompts = [Prompt(blocks(size), marks=(size - 1,)) for size in sizes]
        new, read = 100 * sizes[-1], 100 * sum(sizes[:-1])
        assert automatic(prompts) == pytest.approx(new + 0.1 * read)
        assert marked(prompts) == pytest.approx(1.25 * new + 0.1 * read)


class TestBlocks:
    def test_each_text_call_and_result_is_a_block(self) -> None:
        answer = turn("Starting.", call("a"), call("b"))
        assert len(list(message_blocks(answer))) == 3
        assert len(list(message_blocks(HumanMessage(["One.", "Two."])))) == 2
        result = ToolMessage([{"type": "text", "text": "x"}] * 2, tool_call_id="1")
        assert len(list(message_blocks(result))) == 1

    def test_the_tools_the_system_prompt_and_the_end_are_marked(self) -> None:
        messages = [SystemMessage("Be brief."), HumanMessage("Begin."), AIMessage("Done.")]
        tools = [{"type": "function", "function": {"name": name}} for name in "ab"]
        [prompt] = read_prompts([messages], tools)
        assert (len(prompt.blocks), prompt.marks) == (5, (1, 2, 4))


def work_of(messages: list[AnyMessage]) -> list[tuple[object, object]]:
    """The working calls with their results, in order."""
    results = {m.tool_call_id: m.content for m in messages if isinstance(m, ToolMessage)}
    calls = [made for m in messages if isinstance(m, AIMessage) for made in m.tool_calls]
    return [(made["args"], results[str(made["id"])]) for made in calls if made["name"] == "work"]


class TestRuns:
    @pytest.mark.parametrize("style", STYLES)
    @pytest.mark.parametrize("kind", LISTS, ids=lambda kind: kind.name)
    def test_the_same_work_is_done_with_every_list_and_without(
        self, kind: ListKind, style: Style
    ) -> None:
        """The calls, the results and the answer are the same."""
        without = run_work(CASE, style, NO_LIST).messages
        messages = run_work(CASE, style, kind).messages
        assert len(work_of(without)) == CASE.items * CASE.calls
        assert work_of(messages) == work_of(without)
        assert messages[-1].content == without[-1].content


class TestFoldedRuns:
    """What the model says and calls where finished items leave the prompt."""

    SAID = 30

    def texts(self, case: Case, kind: ListKind) -> list[str]:
        messages = run_work(case, "beside", kind).messages
        return [str(m.text) for m in messages if isinstance(m, AIMessage)][:-1]

    def test_only_there_the_model_says_something_beside_each_tick(self) -> None:
        case = replace(CASE, said=self.SAID)
        for kind in LISTS:
            said = [text for text in self.texts(case, kind) if text]
            assert len(said) == (CASE.items if kind.folds else 0)
            assert all(len(text) == 4 * self.SAID for text in said)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tick_costs_a_line_whatever_changes_the_results(kind: str) -> None:
    assert 0 < measure(kind) <= MOST


class TestItemRuns:
    """The bytes of a runner and of loops, and their place on the page."""

    @pytest.mark.slow
    def test_the_bytes_are_in_the_threads_and_the_namespaces_that_store_them(self) -> None:
        ways = [
            *(Way(name, base, items=2) for name in (RUNNER, THREADS) for base in runner.BYTES),
            Way(RUNNER, "SQLite", items=2, prompt=ONE_LINE),
            Way(PLAIN, items=2),
        ]
        costs = runner.measure(ways, times=1)
        *stored, short, plain = [costs[way].kept for way in ways]
        for way, kept in zip(ways, stored, strict=False):
            values = {name: size for name, size in kept.items() if name != "database"}
            places = {"outer", "inner"} if way.name == RUNNER else {"outer"}
            assert {name.split()[0] for name in values} == places
            assert min(values.values()) > 0
            assert sum(values.values()) < kept["database"]
        assert short["inner checkpoints"] < stored[0]["inner checkpoints"]
        assert plain == {}

    def test_a_new_part_replaces_the_old_one_and_nothing_else(self) -> None:
        page = "# Page\n\n## Before\n\nA\n\n## {}\n\n{}\n\n## After\n\nB\n\n## End\n\nC\n"
        old = page.format(ITEM_RUNS, "| old |\n\n- old")
        assert replaced(old, "| new |") == page.format(ITEM_RUNS, "| new |")


class TestJourneys:
    def test_the_table_names_each_journey_in_each_graph(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main([])
        printed = capsys.readouterr().out
        starts = [f"| {graph} | {journey} |" for graph in GRAPHS for journey in JOURNEYS]
        assert len(starts) == 6
        assert [start for start in starts if printed.count(start) != 1] == []

    def test_each_journey_is_within_its_budget(self) -> None:
        over = [journey for journey in trace() if not journey.within_budget]
        assert [f"{journey.graph}, {journey.name}" for journey in over] == []
