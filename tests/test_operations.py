"""Operations: how nodes make them, and how they change a list."""

from copy import deepcopy
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from tests.strategies import operations, todo_lists
from tests.support import items
from todo_tools import DeltaTodoState, TodoItem, TodoState
from todo_tools._list.operations import Operation, apply
from todo_tools._list.todos import TodoStatus, validate_todos
from todo_tools.operations import (
    append_items,
    set_status,
)

DONE = items("a", status="completed")


@pytest.mark.parametrize(
    ("todos", "operation", "after"),
    [
        (DONE, {"op": "replace", "texts": ["b"]}, items("b")),
        (DONE, {"op": "append", "texts": ["b"]}, [*DONE, *items("b")]),
        (items("a", "b"), {"op": "insert", "index": 1, "texts": ["x"]}, items("a", "x", "b")),
        (
            [*DONE, *items("b")],
            {"op": "set_status", "status": "in_progress", "indices": [0, 0]},
            [*items("a", status="in_progress"), *items("b")],
        ),
        # The application may have changed the list in the same step.
        ([], {"op": "insert", "index": 5, "texts": ["a"]}, items("a")),
        ([], {"op": "set_status", "status": "completed", "indices": [3]}, []),
        # A call that would have finished an open item may have been refused.
        (items("a"), {"op": "replace", "texts": ["b"], "keep_open": True}, items("a")),
        (DONE, {"op": "replace", "texts": ["b"], "keep_open": True}, items("b")),
    ],
)
def test_each_operation_changes_the_list_as_it_says(todos: Any, operation: Any, after: Any) -> None:
    """A status is set whatever it was; an index that no longer exists is ignored."""
    assert apply(todos, operation) == after


def test_a_dict_that_is_not_an_operation_is_refused() -> None:
    """The error names the value and says what to do."""
    with pytest.raises(ValueError, match=r"a dict with \['op'\]; give the whole list"):
        apply([], {"op": "shuffle"})


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "append", "texts": [1]},
        {"op": "replace", "texts": [" "]},
        {"op": "insert", "index": "0", "texts": ["a"]},
        {"op": "set_status", "status": "done", "indices": [0]},
        {"op": "set_status", "status": "completed", "indices": ["0", None, -1]},
        {"op": "set_status", "status": "completed", "indices": [[0]]},
        {"op": "set_status", "status": "completed", "indices": [True]},
        {"op": "set_status", "status": "completed", "indices": [0], "texts": "a"},
        {"op": "insert", "index": True, "texts": ["a"]},
        {"op": "insert", "index": -1, "texts": ["a"]},
        {"op": "append", "texts": ["a" * 100_001]},
    ],
)
def test_an_operation_with_wrong_content_is_refused(operation: Any) -> None:
    """The stored list stays valid, whatever code made the operation."""
    with pytest.raises(ValueError, match="operation of the tools"):
        apply(items("a"), operation)


@pytest.mark.parametrize("op", ["append", "insert"])
def test_items_that_do_not_fit_are_left_out(op: str) -> None:
    """An error would come back whenever the thread is read; the tools refuse such calls before."""
    todos = items("a") * 9_999
    after = apply(todos, {"op": op, "index": 9_999, "texts": ["b", "c"]})
    assert after == [*todos, *items("b")]
    assert apply(after, {"op": op, "index": 0, "texts": ["d"]}) == after


@given(todo_lists, operations)
def test_every_operation_yields_a_valid_list_and_leaves_the_old_one(
    todos: list[TodoItem], operation: Operation
) -> None:
    """Lists are replaced, never changed."""
    before = deepcopy(todos)
    after = apply(todos, operation)
    assert validate_todos(after) == after
    assert todos == before


@pytest.mark.parametrize("before", [[], ["new"], ["new", "a"]])
def test_a_change_with_texts_never_moves_to_another_item(before: list[str]) -> None:
    """Whatever is inserted first, it hits an item with the expected text or none."""
    todos = apply(items("a", "b"), {"op": "insert", "index": 0, "texts": before})
    complete: Operation = {
        "op": "set_status",
        "status": "completed",
        "indices": [0, 1],
        "texts": ["a", "b"],
    }
    changed = [item["text"] for item in apply(todos, complete) if item["status"] == "completed"]
    assert changed == ([] if before else ["a", "b"])


def test_indices_are_checked_when_it_is_made() -> None:
    """The error is raised in the node, not when the updates of the step are applied."""
    with pytest.raises(ValueError, match="unknown status 'done'; use one of not_started"):
        set_status("done", 0)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(ValueError, match="index must be 0 to 1000000000, got -1"):
        set_status("completed", 0, -1)
    with pytest.raises(TypeError, match=r"index must be a whole number, got \[0\]"):
        set_status("completed", [0])  # type: ignore[arg-type]  # the mistake under test


def test_texts_are_checked_when_it_is_made() -> None:
    with pytest.raises(ValueError, match=r"todos\[0\]\['text'\] must be a string"):
        append_items(" ")
    with pytest.raises(ValueError, match=r"todos\[0\]\['text'\] must be a string"):
        append_items(["a", "b"])  # type: ignore[arg-type]  # the mistake under test


@pytest.mark.parametrize("state", [TodoState, DeltaTodoState])
@given(statuses=st.lists(st.sampled_from(get_args(TodoStatus)), min_size=1, max_size=5))
def test_operations_of_parallel_nodes_add_up(state: Any, statuses: list[TodoStatus]) -> None:
    """Each node sets the status of one item; every status is kept and stored."""
    builder = StateGraph(state)
    for at, status in enumerate(statuses):
        builder.add_node(str(at), lambda _, at=at, status=status: {"todos": set_status(status, at)})
        builder.add_edge(START, str(at))
    graph = builder.compile(checkpointer=InMemorySaver())
    todos = items(*map(str, range(len(statuses))))
    graph.invoke({"messages": [], "todos": todos}, {"configurable": {"thread_id": "1"}})
    stored = graph.get_state({"configurable": {"thread_id": "1"}}).values["todos"]
    assert [todo["status"] for todo in stored] == statuses
