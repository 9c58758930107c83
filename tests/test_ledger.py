"""The ledger: the cost of each item, computed from the history."""

from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.messages.tool import ToolCall
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode

from todo_tools import (
    TodoItem,
    TodoState,
    create_todo_tools,
    model_view,
    todos_from_messages,
)
from todo_tools.ledger import Cost, Ledger, ledger
from todo_tools.rendering import show_ledger
from todo_tools.testing import call


def usage(given: int, made: int = 10, cached: int = 0) -> UsageMetadata:
    return UsageMetadata(
        input_tokens=given,
        output_tokens=made,
        total_tokens=given + made,
        input_token_details={"cache_read": cached},
    )


def answer(
    *calls: ToolCall, tokens: int = 100, made_at: object = None, text: str = ""
) -> AIMessage:
    stamp = {} if made_at is None else {"created_at": made_at}
    return AIMessage(
        text, tool_calls=list(calls), usage_metadata=usage(tokens), response_metadata=stamp
    )


def history(*answers: AIMessage) -> list[AnyMessage]:
    """A history in which the real tools answer the todo calls, and any other tool says "ok"."""
    builder = StateGraph(TodoState)
    builder.add_node("tools", ToolNode(create_todo_tools()))
    builder.add_edge(START, "tools")
    graph = builder.compile()
    messages: list[Any] = [HumanMessage("Do it.")]
    todos: list[TodoItem] = []
    for message in answers:
        own = [call for call in message.tool_calls if call["name"].endswith("_todos")]
        others = [call for call in message.tool_calls if call not in own]
        messages.append(message)
        if own:
            asked = message.model_copy(update={"tool_calls": own})
            after = graph.invoke({"messages": [*messages[:-1], asked], "todos": todos})
            messages += after["messages"][len(messages) :]
            todos = after["todos"]
        messages += [ToolMessage("ok", tool_call_id=other["id"]) for other in others]
    return messages


def plan(*texts: str) -> ToolCall:
    return call("write_todos", mode="replace", todos=[{"text": text} for text in texts])


def edit(action: str, *indices: int) -> ToolCall:
    return call("edit_todos", action=action, indices=list(indices))


def tokens_of(costs: Ledger) -> list[int]:
    return [item.cost.usage["input_tokens"] for item in costs.items]


def test_a_model_call_belongs_to_the_item_in_progress() -> None:
    costs = ledger(
        history(
            answer(plan("Measure", "Report"), edit("start", 0), tokens=1),
            answer(call("shell"), tokens=10),
            answer(edit("complete", 0), edit("start", 1), tokens=100),
            answer(call("shell"), tokens=1_000),
            answer(edit("complete", 1), tokens=10_000),
            answer(text="Done.", tokens=100_000),
        )
    )
    assert tokens_of(costs) == [110, 11_000]
    assert costs.other.usage["input_tokens"] == 100_001
    assert costs.total.usage["input_tokens"] == 111_111
    assert costs.total.calls == 6


def test_a_tool_call_belongs_to_the_item_that_calls_before_it_started() -> None:
    costs = ledger(history(answer(plan("Measure"), edit("start", 0), call("shell"))))
    assert costs.items[0].cost == Cost(tools={"shell": 1})
    assert costs.other.tools == {"write_todos": 1, "edit_todos": 1}


def test_with_several_items_in_progress_the_first_one_gets_the_cost() -> None:
    costs = ledger(history(answer(plan("A", "B"), edit("start", 1, 0)), answer(call("shell"))))
    assert tokens_of(costs) == [100, 0]


def test_bookkeeping_is_the_turns_with_only_todo_calls() -> None:
    costs = ledger(
        history(
            answer(plan("Measure"), tokens=1),
            answer(edit("start", 0), call("shell"), tokens=10),
            answer(edit("complete", 0), tokens=100),
            answer(text="Done.", tokens=1_000),
        )
    )
    assert costs.bookkeeping.usage["input_tokens"] == 101
    assert costs.bookkeeping.calls == 2


def test_an_item_keeps_its_costs_when_others_are_inserted_before_it() -> None:
    insert = call("write_todos", mode="insert", index=0, todos=[{"text": "First"}])
    costs = ledger(
        history(answer(plan("A"), edit("start", 0)), answer(insert), answer(call("shell")))
    )
    assert [(item.index, item.todo["text"]) for item in costs.items] == [(0, "First"), (1, "A")]
    assert tokens_of(costs) == [0, 200]


def test_an_item_that_was_removed_keeps_what_it_cost() -> None:
    costs = ledger(history(answer(plan("Old"), edit("start", 0)), answer(plan("New"))))
    assert [(item.index, item.todo["text"]) for item in costs.items] == [(0, "New"), (None, "Old")]
    assert tokens_of(costs) == [0, 100]


def test_every_item_that_was_removed_is_listed() -> None:
    plans = [answer(plan(text), edit("start", 0)) for text in ("Old", "Older", "New")]
    costs = ledger(history(*plans))
    assert [(item.index, item.todo["text"]) for item in costs.items] == [
        (0, "New"),
        (None, "Old"),
        (None, "Older"),
    ]


def test_errors_are_counted_where_they_happened() -> None:
    broken = answer()
    broken.invalid_tool_calls = [
        {"type": "invalid_tool_call", "name": "shell", "args": "{", "id": "1", "error": "JSON"}
    ]
    costs = ledger(history(answer(plan("A"), edit("start", 0)), answer(edit("start", 7)), broken))
    assert costs.items[0].cost.errors == 2


def test_time_is_read_where_the_provider_dates_its_answers() -> None:
    """The date may be in seconds or in ISO 8601; the time a person takes is not counted."""
    messages = history(
        answer(plan("A"), edit("start", 0), made_at=100),
        answer(call("shell"), made_at=107.5),
        answer(edit("complete", 0), made_at="1970-01-01T00:01:50Z"),
        answer(text="Done.", made_at="not a date"),
    )
    later: list[AnyMessage] = [HumanMessage("Thanks."), answer(text="Bye.", made_at=9_999)]
    costs = ledger([*messages, *later])
    assert costs.items[0].cost.seconds == 10
    assert costs.total.seconds == 10


def test_an_answer_without_a_date_belongs_to_the_time_around_it() -> None:
    messages = history(
        answer(plan("A"), edit("start", 0), made_at=100),
        answer(call("shell")),
        answer(text="Done.", made_at=107),
    )
    assert ledger(messages).total.seconds == 7


def test_no_time_is_below_zero() -> None:
    """Clocks are set back."""
    assert ledger(history(answer(made_at=100), answer(made_at=99))).total.seconds == 0


def test_a_thread_of_langchains_list_is_read_from_its_arguments() -> None:
    """Its results have no list, but its calls have the whole list."""

    def write(status: str) -> ToolCall:
        return call("write_todos", todos=[{"content": "Measure", "status": status}])

    def answered(message: AIMessage) -> list[AnyMessage]:
        results = [ToolMessage("ok", tool_call_id=call["id"]) for call in message.tool_calls]
        return [message, *results]

    turns = [write("in_progress"), call("shell"), write("completed"), write("nonsense")]
    costs = ledger([message for given in turns for message in answered(answer(given))])
    assert costs.items[0].todo == {"text": "Measure", "status": "completed"}
    assert tokens_of(costs) == [200]


def langchain_write(*texts: str) -> ToolCall:
    return call("write_todos", todos=[{"content": text, "status": "in_progress"} for text in texts])


@pytest.mark.parametrize("made", [plan("A"), langchain_write("A")], ids=["pack", "langchain"])
def test_a_call_that_has_no_result_changes_no_list(made: ToolCall) -> None:
    """A run that was cut off leaves such calls."""
    assert ledger([answer(made)]).items == ()


def test_a_refused_call_of_langchains_list_changes_nothing() -> None:
    made = langchain_write("A")
    refused = ToolMessage("No.", tool_call_id=made["id"], status="error")
    assert ledger([answer(made), refused]).items == ()


def test_in_a_long_list_of_equal_texts_each_item_keeps_its_costs() -> None:
    first, second = langchain_write(*["A"] * 300), langchain_write("First", *["A"] * 300)
    results = [ToolMessage("ok", tool_call_id=made["id"]) for made in (first, second)]
    messages: list[AnyMessage] = [answer(first), results[0], answer(second), results[1]]
    messages.append(answer(tokens=7))
    assert tokens_of(ledger(messages))[:3] == [7, 100, 0]


@pytest.mark.parametrize("made_at", [float("inf"), float("nan"), 10**400, True, [], "soon"])
def test_a_time_that_is_none_is_no_time(made_at: object) -> None:
    costs = ledger([answer(made_at=1), answer(made_at=made_at)])
    assert costs.total.seconds == 0


def test_usage_may_have_more_than_numbers_of_tokens() -> None:
    """Some providers add, for example, a service tier or a price, or leave a detail empty."""
    message = answer()
    details = {"cache_read": 3, "audio": None, "cached_share": 0.4}
    given: Any = {**usage(7), "input_token_details": details, "service_tier": "flex", "cost": 0.5}
    message.usage_metadata = given
    total = ledger([message, message]).total.usage
    assert total["input_tokens"] == 14
    assert total["input_token_details"] == {"cache_read": 6}


def test_an_empty_history_costs_nothing() -> None:
    assert ledger([]) == Ledger((), Cost(), Cost())


CALLS = st.one_of(
    st.builds(plan, st.sampled_from("ABC"), st.sampled_from("BCD")),
    st.builds(edit, st.sampled_from(["start", "complete", "reset"]), st.integers(0, 3)),
    st.builds(call, st.sampled_from(["shell", "search"])),
)
ANSWERS = st.builds(
    lambda calls, tokens: answer(*calls, tokens=tokens),
    st.lists(CALLS, max_size=3),
    st.integers(0, 999),
)


@given(answers=st.lists(ANSWERS, max_size=8))
def test_the_parts_sum_up_to_the_usage_of_the_run(answers: list[AIMessage]) -> None:
    """The sum is exact, whatever the model called, and every call is in exactly one part."""
    costs = ledger(history(*answers))
    usages = [message.usage_metadata for message in answers]
    assert costs.total.usage == reduce(add_usage, usages, add_usage(None, None))
    assert costs.total.calls == len(answers)
    assert sum(costs.total.tools.values()) == sum(len(a.tool_calls) for a in answers)


def test_it_is_shown_as_a_table() -> None:
    """There is one line for each item, then lines for no item, all, and bookkeeping."""
    costs = ledger(
        history(
            answer(plan("Measure", "Re\nport"), edit("start", 0), tokens=90),
            answer(call("shell"), edit("complete", 0), tokens=890),
            answer(text="Done.", tokens=1_990),
        )
    )
    assert str(show_ledger(costs)).splitlines() == [
        "share  calls     in  out  tools  item",
        "  30%      1    890   10      2  [0] Measure",
        "   0%                            [1] Re␊port",
        "  70%      2  2,080   20      2  no item",
        " 100%      3  2,970   30      4  all",
        "   3%      1     90   10         bookkeeping (included above)",
    ]


def worked_through(count: int) -> list[AnyMessage]:
    """A history in which each item has a turn of work with a long result."""
    turns = [answer(plan(*(f"Item {nth}" for nth in range(count))))]
    for nth in range(count):
        turns += [answer(call("read")), answer(edit("complete", nth))]
    messages = history(*turns, answer(text="Done."))
    return [
        m.model_copy(update={"content": "x" * 40_000}) if m.text == "ok" else m for m in messages
    ]


def test_what_folding_saved_is_counted_in_each_later_call() -> None:
    """A result of 10,000 tokens leaves out as many in each prompt after its item was finished."""
    messages = worked_through(3)
    assert ledger(messages).left_out == 0
    saved = ledger(messages, fold_finished=True)
    assert saved.left_out == pytest.approx((5 + 3 + 1) * 10_000, rel=0.01)
    assert saved.total == ledger(messages).total


def test_what_folding_saved_is_what_the_prompts_lack() -> None:
    """The folded prompts of the run together are shorter by as much."""
    messages = worked_through(3)
    answers = [at for at, message in enumerate(messages) if isinstance(message, AIMessage)]
    lacking = 0
    for at in answers:
        state = {"messages": messages[:at], "todos": todos_from_messages(messages[:at])}
        whole, folded = model_view(state), model_view(state, fold_finished=True)
        lacking += count_tokens_approximately(whole) - count_tokens_approximately(folded)
    assert ledger(messages, fold_finished=True).left_out == pytest.approx(lacking, rel=0.01)


def test_what_folding_saved_is_shown_below_the_table() -> None:
    shown = str(show_ledger(ledger(worked_through(2), fold_finished=True))).splitlines()
    assert [" ".join(line.split()) for line in shown[-2:]] == [
        "50% 3 300 30 bookkeeping (included above)",
        "~40,136 left out of prompts (not included)",
    ]
    assert shown[-1].index("left out") == shown[-2].index("bookkeeping")


def test_a_history_without_calls_is_shown_without_columns() -> None:
    shown = str(show_ledger(ledger([]))).splitlines()
    assert shown == ["item", "no item", "all", "bookkeeping (included above)"]
