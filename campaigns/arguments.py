"""Arguments: calls of the three tools with any arguments, in a real graph."""

from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, ToolMessage

from campaigns.cases import Case, Trial
from tests.strategies import edit_calls, json_values, texts, todo_lists, write_calls
from tests.support import Graph, results_in, tool_graph
from todo_tools import (
    TodoItem,
    create_todo_tools,
    format_todos,
    todos_from_messages,
)
from todo_tools._thread.transcript import details_of, list_after

LONGEST_ERROR = 300

# No JSON parser returns these values, but a provider's package or an application may pass them.
_odd: st.SearchStrategy[Any] = st.one_of(
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.binary(max_size=50),
    st.tuples(st.integers(), st.text()),
    st.frozensets(st.integers(), max_size=3),
    st.complex_numbers(),
    st.text(st.characters(categories=["Cs", "Cf", "Cc"]), max_size=200),
    st.integers(1, 3_000).map("x".__mul__),
    st.integers(1, 2_000).map(lambda depth: "[" * depth + "]" * depth),
    st.integers(1, 150).map(lambda count: [{"text": "x"}] * count),
    st.integers(1, 60).map(lambda count: [999_999_999] * count),
)
_values = json_values | _odd
_indices = st.lists(st.integers(0, 3), min_size=1, max_size=3)
_calls: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    # Valid calls are included, so that the list changes between the others.
    st.tuples(
        st.just("write_todos"),
        st.fixed_dictionaries(
            {
                "mode": st.sampled_from(["replace", "append", "insert"]),
                "todos": st.lists(texts, min_size=1, max_size=4),
                "index": st.integers(0, 2),
            }
        ),
    ),
    st.tuples(
        st.just("edit_todos"),
        st.fixed_dictionaries(
            {"action": st.sampled_from(["start", "complete", "abandon"]), "indices": _indices}
        ),
    ),
    st.tuples(st.just("write_todos"), write_calls),
    st.tuples(st.just("edit_todos"), edit_calls),
    st.tuples(
        st.just("write_todos"),
        st.fixed_dictionaries({"mode": st.just("append"), "todos": _values}),
    ),
    st.tuples(
        st.just("edit_todos"), st.fixed_dictionaries({"action": st.just("start"), "indices": _odd})
    ),
    st.tuples(
        st.sampled_from(["write_todos", "list_todos", "edit_todos"]),
        st.dictionaries(
            st.sampled_from(["mode", "todos", "index", "action", "indices"]) | st.text(), _values
        ),
    ),
)
_ids = st.sampled_from(["a", "b", "c", "call_0"])
_turns = st.lists(st.tuples(_calls, _ids), min_size=1, max_size=4)
_scenes = st.tuples(todo_lists, _turns)


def tool_node(case: Case) -> None:
    """One AI message with up to four calls, in a graph with LangGraph's `ToolNode`."""
    graph = tool_graph(create_todo_tools())

    case.examples(lambda scene: check_calls(scene, graph), _scenes)


TRIALS: tuple[Trial, ...] = (tool_node,)


def check_calls(scene: tuple[list[TodoItem], list[Any]], graph: Graph) -> None:
    """Check that each call has a short result, and that the results show the list."""
    todos, turn = scene
    calls = [
        {"name": name, "args": args, "id": call_id, "type": "tool_call"}
        for (name, args), call_id in turn
    ]
    asked = [AIMessage("", tool_calls=calls)]
    values = graph.invoke({"messages": asked, "todos": todos})
    results = results_in(values)
    assert len(results) == len(calls), f"{len(calls)} calls have {len(results)} results"
    for result in results:
        check_result(result)
    changed = any(list_after(result) is not None for result in results)
    expected = todos_from_messages(values["messages"]) if changed else todos
    assert values["todos"] == expected, f"{values['todos']} is not {expected}"


def check_result(result: ToolMessage) -> None:
    """Check that an error is short, and that the text of any other result matches its details."""
    details = details_of(result)
    assert details is not None, "a result without details"
    if result.status == "error":
        assert len(result.text) <= LONGEST_ERROR, f"an error of {len(result.text)} characters"
        assert list_after(result) is None, "an error that changes the list"
    elif result.name != "list_todos":
        assert result.text.endswith(f"\n\n{format_todos(details['todos'])}"), result.text
