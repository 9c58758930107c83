"""The benchmark's price lists, and the runs that it compares."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import SecretStr

from benchmarks import plots
from benchmarks.blocks import message_blocks, read_prompts
from benchmarks.compare import PLANNING, SMALL, UNUSED, WORK, Comparison, compare_work
from benchmarks.goals import goals
from benchmarks.lists import (
    CLEARED,
    FOLDED,
    KINDS,
    LANGCHAIN,
    LIGHT,
    LIGHT_FOLDED,
    LISTS,
    NO_LIST,
    PACK,
    SAME_ANSWERS,
    ListKind,
)
from benchmarks.prices import PRICE_LISTS, Block, Prompt, automatic, marked, uncached
from benchmarks.results import Results
from benchmarks.run import Figures, run_talk, run_work
from benchmarks.run import figures as figures_of
from benchmarks.scripts import script
from benchmarks.speed import SIZES, Speed, history
from benchmarks.speed import measure as measure_speed
from benchmarks.storage import CASES, DELTA, PLAIN_NO_LIST, VARIANTS, Stored, Variant
from benchmarks.storage import measure as measure_storage
from benchmarks.tables import report
from benchmarks.trace import GRAPHS, JOURNEYS, Budget, Call, Journey, main, trace
from benchmarks.work import STYLES, Case, Style, working_tool
from todo_tools import model_view, todos_from_messages
from todo_tools.testing import call, turn

A, B, C, D = (Block(name, 100) for name in "abcd")
CASE = Case(items=3, calls=2, chars=50)


def blocks(count: int) -> tuple[Block, ...]:
    return tuple(Block(str(number), 100) for number in range(count))


class TestUncached:
    def test_every_token_costs_one(self) -> None:
        assert uncached([Prompt((A, B)), Prompt((A, B, C))]) == 500


class TestAutomatic:
    def test_the_first_prompt_costs_its_tokens(self) -> None:
        assert automatic([Prompt((A, B))]) == 200

    def test_a_shared_prefix_is_read_at_a_tenth(self) -> None:
        assert automatic([Prompt((A, B)), Prompt((A, B, C))]) == 200 + 20 + 100

    def test_nothing_is_read_after_the_first_difference(self) -> None:
        assert automatic([Prompt((A, B, C)), Prompt((A, D, C))]) == 300 + 10 + 200

    def test_the_longest_prefix_of_any_earlier_prompt_is_read(self) -> None:
        assert automatic([Prompt((A, B, C)), Prompt((D,)), Prompt((A, B, D))]) == 400 + 20 + 100

    def test_a_prefix_of_too_few_tokens_is_not_read(self) -> None:
        prompts = [Prompt((A, B)), Prompt((A, B, C))]
        assert automatic(prompts, smallest=200) == 200 + 20 + 100
        assert automatic(prompts, smallest=201) == 200 + 300


class TestMarked:
    def test_without_a_mark_every_token_costs_one(self) -> None:
        assert marked([Prompt((A, B)), Prompt((A, B))]) == 400

    def test_what_ends_at_a_mark_is_written(self) -> None:
        assert marked([Prompt((A, B, C), marks=(1,))]) == pytest.approx(250 + 100)

    def test_an_entry_is_read_and_what_is_new_is_written(self) -> None:
        prompts = [Prompt((A, B), marks=(1,)), Prompt((A, B, C), marks=(2,))]
        assert marked(prompts) == pytest.approx(250 + 20 + 125)

    def test_no_entry_is_found_where_no_mark_was(self) -> None:
        """If the marked block vanishes from the next prompt, nothing can be read."""
        prompts = [Prompt((A, B, D), marks=(2,)), Prompt((A, B, C, D), marks=(3,))]
        assert marked(prompts) == pytest.approx(375 + 500)

    def test_the_mark_after_the_system_prompt_is_still_read(self) -> None:
        prompts = [Prompt((A, B, D), marks=(0, 2)), Prompt((A, B, C, D), marks=(0, 3))]
        assert marked(prompts) == pytest.approx(375 + 10 + 375)

    @pytest.mark.parametrize(
        ("added", "cost"), [(19, 125 + 10 + 19 * 125), (20, 125 + 21 * 125)], ids=["near", "far"]
    )
    def test_a_mark_looks_back_over_twenty_blocks(self, added: int, cost: float) -> None:
        """Its own block is the first of them."""
        prompts = [Prompt(blocks(1), marks=(0,)), Prompt(blocks(1 + added), marks=(added,))]
        assert marked(prompts) == pytest.approx(cost)

    def test_a_mark_behind_too_few_tokens_does_nothing(self) -> None:
        prompts = [Prompt((A, B, C), marks=(0, 2)), Prompt((A, B, D), marks=(0, 2))]
        assert marked(prompts, smallest=100) == pytest.approx(375 + 10 + 250)
        assert marked(prompts, smallest=101) == pytest.approx(375 + 375)
        assert marked(prompts, smallest=301) == 600

    def test_five_marks_are_refused(self) -> None:
        with pytest.raises(ValueError, match="a prompt may have at most 4 marks, got 5"):
            marked([Prompt(blocks(5), marks=(0, 1, 2, 3, 4))])


BLOCK = st.builds(Block, st.sampled_from("abc"), st.just(10))
MARKED_AT_END = st.lists(BLOCK, min_size=1, max_size=8).map(
    lambda drawn: Prompt(tuple(drawn), marks=(len(drawn) - 1,))
)
RUNS = st.lists(MARKED_AT_END, max_size=8)
GROWTH = st.lists(st.integers(1, 15), min_size=1, max_size=10)


class TestEveryRun:
    @given(RUNS)
    def test_an_automatic_cache_never_costs_more_than_none(self, prompts: list[Prompt]) -> None:
        assert automatic(prompts) <= uncached(prompts) + 1e-6

    @given(RUNS)
    def test_a_marked_cache_costs_at_most_a_quarter_more_than_none(
        self, prompts: list[Prompt]
    ) -> None:
        assert marked(prompts) <= 1.25 * uncached(prompts) + 1e-6

    @given(RUNS)
    def test_a_marked_cache_never_reads_more_than_an_automatic_one(
        self, prompts: list[Prompt]
    ) -> None:
        assert marked(prompts) >= automatic(prompts) - 1e-6

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

    def test_what_is_not_sent_makes_no_difference(self) -> None:
        bare = HumanMessage("Begin.")
        kept = HumanMessage("Begin.", id="1", additional_kwargs={"lc_source": "x"})
        assert list(message_blocks(bare)) == list(message_blocks(kept))

    def test_one_changed_character_makes_another_block(self) -> None:
        assert list(message_blocks(AIMessage("a."))) != list(message_blocks(AIMessage("a,")))

    def test_the_tools_the_system_prompt_and_the_end_are_marked(self) -> None:
        messages = [SystemMessage("Be brief."), HumanMessage("Begin."), AIMessage("Done.")]
        tools = [{"type": "function", "function": {"name": name}} for name in "ab"]
        [prompt] = read_prompts([messages], tools)
        assert (len(prompt.blocks), prompt.marks) == (5, (1, 2, 4))

    def test_without_tools_and_system_prompt_only_the_end_is_marked(self) -> None:
        [prompt] = read_prompts([[HumanMessage("Begin."), AIMessage("Done.")]], [])
        assert prompt.marks == (1,)

    def test_langchain_marks_the_tools_the_system_prompt_and_the_end(self) -> None:
        """The model of a marked cache puts its marks where LangChain's middleware puts them."""
        model = ChatAnthropic(model_name="claude-sonnet-4-5", api_key=SecretStr("none"))  # type: ignore[call-arg]
        sent = list[ModelRequest[Any]]()

        def handler(request: ModelRequest[Any]) -> ModelResponse[Any]:
            sent.append(request)
            return ModelResponse(result=[AIMessage("Done.")])

        AnthropicPromptCachingMiddleware().wrap_model_call(
            ModelRequest(
                model=model,
                messages=[HumanMessage("Begin.")],
                system_message=SystemMessage("Be brief."),
                tools=[working_tool(10), working_tool(20)],
            ),
            handler,
        )
        tools: list[Any] = sent[0].tools
        assert [bool(tool.extras) for tool in tools] == [False, True]
        assert "cache_control" in sent[0].system_message.content[-1]  # type: ignore[union-attr]
        assert "cache_control" in sent[0].model_settings  # the provider marks the last block


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

    @pytest.mark.parametrize("style", STYLES)
    @pytest.mark.parametrize("kind", LISTS, ids=lambda kind: kind.name)
    def test_no_todo_call_is_refused_and_the_agent_is_never_sent_back(
        self, kind: ListKind, style: Style
    ) -> None:
        run = run_work(CASE, style, kind)
        assert not [m for m in run.messages if isinstance(m, ToolMessage) and m.status == "error"]
        assert len(run.prompts) == len(script(CASE, style, kind.calls))

    @pytest.mark.parametrize(("style", "more"), [("beside", 1), ("alone", 4), ("apart", 7)])
    def test_a_list_takes_as_many_more_turns_as_its_style_says(
        self, style: Style, more: int
    ) -> None:
        """With three items, a style adds one turn, four turns or seven turns."""
        without = script(CASE, style, NO_LIST.calls)
        assert len(without) == CASE.items * CASE.calls + 1
        for kind in LISTS:
            started = 0 if kind in (LIGHT, LIGHT_FOLDED) and style == "apart" else CASE.items
            expected = more - CASE.items + started
            assert len(script(CASE, style, kind.calls)) == len(without) + expected

    def test_both_lists_show_the_same_statuses_when_they_are_finished(self) -> None:
        steps = script(CASE, "beside", LANGCHAIN.calls)
        [last] = steps[-2].tool_calls
        assert [todo["status"] for todo in last["args"]["todos"]] == ["completed"] * 3
        [last] = script(CASE, "beside", PACK.calls)[-2].tool_calls
        assert last["args"] == {"action": "complete", "indices": [2]}

    def test_without_a_list_every_prompt_begins_with_the_one_before(self) -> None:
        prompts = [prompt.blocks for prompt in run_work(CASE, "beside", NO_LIST).prompts]
        assert all(later[: len(first)] == first for first, later in pairwise(prompts))

    def test_the_same_work_is_done_in_deepagents(self) -> None:
        without = run_work(CASE, "beside", NO_LIST, create_deep_agent).messages
        messages = run_work(CASE, "beside", PACK, create_deep_agent).messages
        assert work_of(messages) == work_of(without) != []

    @pytest.mark.parametrize("kind", [NO_LIST, *KINDS], ids=lambda kind: kind.name)
    def test_a_conversation_uses_no_tool(self, kind: ListKind) -> None:
        run = run_talk(kind)
        assert len(run.prompts) == 20
        assert {m.type for m in run.messages} == {"human", "ai"}


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

    @pytest.mark.parametrize(("share", "expected"), [(0, 0), (0.25, 2), (0.5, 5), (1, 9)])
    def test_a_share_of_the_items_fetches_a_result_of_the_one_before_again(
        self, share: float, expected: int
    ) -> None:
        """The first item has none before it."""
        case = replace(CASE, items=10, again=share)
        done = work_of(run_work(case, "beside", LIGHT_FOLDED).messages)
        twice = [pair for pair in done if done.count(pair) == 2]
        assert len(twice) == 2 * expected
        assert work_of(run_work(case, "beside", LIGHT).messages) == list(
            {str(pair): pair for pair in done}.values()
        )

    def test_finished_items_make_the_prompts_smaller(self) -> None:
        case = Case(5)
        largest = [largest_of(case, kind) for kind in (LIGHT_FOLDED, NO_LIST, LIGHT)]
        assert largest == sorted(largest)

    def test_the_same_answers_are_compared_without_folding(self) -> None:
        for folded in (FOLDED, LIGHT_FOLDED):
            same = SAME_ANSWERS[folded.name]
            assert self.texts(CASE, same) == self.texts(CASE, folded)
            with_fold, without = (run_work(CASE, "beside", kind) for kind in (folded, same))
            assert with_fold.received == without.received
            assert with_fold.prompts[0] == without.prompts[0]

    def test_without_a_list_langchains_middleware_clears_old_results(self) -> None:
        case = Case(10, 3)
        largest = [largest_of(case, kind) for kind in (CLEARED[0], NO_LIST)]
        assert largest[0] < 10_000 < largest[1]


def largest_of(case: Case, kind: ListKind) -> int:
    return figures_of(run_work(case, "beside", kind)).largest


class TestComparison:
    def test_a_case_is_compared_with_every_list_in_every_style(self) -> None:
        comparison = compare_work(replace(CASE, items=1, calls=1))
        assert set(comparison.runs) == {(k.name, style) for k in KINDS for style in STYLES}
        assert set(comparison.unfolded) == {(name, s) for name in SAME_ANSWERS for s in STYLES}

    def test_what_is_added_is_a_share_of_the_run_without_a_list(self) -> None:
        with_list = Figures(calls=3, sent=150, largest=60, received=10, costs={"no cache": 220})
        without = Figures(calls=2, sent=100, largest=60, received=2, costs={"no cache": 110})
        comparison = Comparison(without, {("mine", "beside"): with_list})
        assert comparison.added("mine", "beside", "no cache") == 1.0
        assert comparison.added_sent("mine", "beside") == 0.5


def figures(cost: float) -> Figures:
    return Figures(1, round(cost), round(cost), 0, dict.fromkeys(PRICE_LISTS, cost))


def compared(added: float, styles: tuple[str, ...] = STYLES) -> Comparison:
    """LangChain's list doubles the cost; the others add a share of it."""
    costs = {LANGCHAIN: 200.0}
    runs = {
        (kind.name, style): figures(costs.get(kind, 100 + 100 * added))
        for kind in KINDS
        for style in styles
    }
    unfolded = {(name, style): figures(100) for name in SAME_ANSWERS for style in styles}
    return Comparison(figures(100), runs, unfolded)


def results(added: float) -> Results:
    """The results of the benchmark if the pack added the same share everywhere."""
    stored = Stored(size=100, cpu=1, peak=1, load=1, fork=1)
    delta = replace(stored, size=round(100 * (0.5 + added)))
    sizes = {variant.name: delta if variant == DELTA else stored for variant in VARIANTS}
    return Results(
        work={case: compared(added) for case in WORK},
        small={case: compared(added) for case in SMALL},
        planning={case: compared(added, STYLES[1:]) for case in PLANNING},
        talk=compared(added, (UNUSED,)),
        in_deepagents=compared(added),
        stored=dict.fromkeys(CASES, sizes),
        speed={size: Speed(messages=size, view=added, converted=1) for size in SIZES},
    )


class TestGoals:
    def test_a_list_that_costs_nothing_meets_all_but_the_savings_in_planning(self) -> None:
        """To save twenty times, it would have to cost less than no list; so would folding."""
        missed = [goal.text for goal in goals(results(0)) if not goal.met]
        assert missed
        assert [
            text
            for text in missed
            if not ("100 planned items" in text or "folded" in text or "largest prompt" in text)
        ] == []

    def test_a_list_dearer_than_langchains_misses_every_goal(self) -> None:
        assert not [goal.text for goal in goals(results(1.1)) if goal.met]

    def test_a_missed_goal_says_by_how_much(self) -> None:
        goal = goals(results(0.5))[0]
        assert (goal.limit, goal.measured, goal.missed_by) == ("at most 42%", "50.0%", "8.0 points")

    def test_the_report_shows_each_goal_and_each_run(self) -> None:
        shown = report(results(0.1))
        assert all(goal.text in shown for goal in goals(results(0.1)))
        assert shown.count("| no list |  |") == len(WORK) + len(SMALL) + len(PLANNING) + 2
        assert "| 5,000 | 100.0 ms | 1,000.0 ms | 10% | 20.0 µs |" in shown


class TestStorage:
    @pytest.mark.parametrize("variant", [PLAIN_NO_LIST, DELTA], ids=lambda variant: variant.name)
    def test_every_figure_is_measured(self, variant: Variant) -> None:
        stored = measure_storage(CASE, variant)
        assert min(stored.size, stored.cpu, stored.peak, stored.load, stored.fork) > 0


class TestSpeed:
    def test_every_figure_is_measured(self) -> None:
        timed = measure_speed(20)
        assert min(timed.messages, timed.view, timed.converted) > 0
        assert timed.share == timed.view / timed.converted

    @pytest.mark.parametrize("size", [20, 100, 1000])
    def test_a_history_is_as_long_as_asked_for_except_for_its_last_turn(self, size: int) -> None:
        assert size - 4 <= len(history(size)) <= size

    def test_each_message_and_each_call_of_a_history_has_an_id_of_its_own(self) -> None:
        messages = history(1000)
        results = [m.tool_call_id for m in messages if isinstance(m, ToolMessage)]
        assert len({message.id for message in messages}) == len(messages)
        assert len(set(results)) == len(results)

    def test_the_view_of_a_history_adds_no_message(self) -> None:
        """Each call has its result, and the results show the list."""
        messages = history(1000)
        state = {"messages": messages, "todos": todos_from_messages(messages)}
        assert [m.id for m in model_view(state)] == [m.id for m in messages]


def walk(*rooms: str) -> Journey:
    return Journey("graph", "journey", [Call(room, "function") for room in rooms], Budget(2, 2))


class TestJourneys:
    def test_a_move_is_a_change_of_room(self) -> None:
        """Calls within a room are none."""
        journey = walk("state", "state", "view", "state")
        assert (journey.rooms, journey.moves) == (2, 2)

    @pytest.mark.parametrize(("rooms", "within"), [("aba", True), ("abc", False), ("abab", False)])
    def test_a_budget_limits_both_rooms_and_moves(self, rooms: str, within: bool) -> None:
        assert walk(*rooms).within_budget is within

    def test_the_table_names_each_journey_in_each_graph(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        main([])
        printed = capsys.readouterr().out
        starts = [f"| {graph} | {journey} |" for graph in GRAPHS for journey in JOURNEYS]
        assert len(starts) == 6
        assert [start for start in starts if printed.count(start) != 1] == []

    def test_the_called_functions_can_be_listed(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A tool runs in a thread, and its functions are listed too."""
        main(["--calls"])
        printed = capsys.readouterr().out
        assert "_view.view: model_view" in printed
        assert "apply" in printed

    def test_each_journey_is_within_its_budget(self) -> None:
        over = [journey for journey in trace() if not journey.within_budget]
        assert [f"{journey.graph}, {journey.name}" for journey in over] == []


@pytest.mark.slow  # matplotlib lists the fonts of a new machine in a process
class TestPlots:
    def test_the_same_numbers_make_the_same_small_file(self, tmp_path: Path) -> None:
        percents = {name: [float(n) for n in plots.ITEMS] for name in plots.COLORS}
        for name in ("first.svg", "second.svg"):
            plots.draw(percents, "marked", tmp_path / name)
        first = (tmp_path / "first.svg").read_bytes()
        assert first == (tmp_path / "second.svg").read_bytes()
        assert len(first) < 60_000
