"""Applying operations to lists."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from tests.strategies import operations, todo_lists
from tests.support import items
from todo_tools import TodoItem
from todo_tools._operations import Operation, apply
from todo_tools._todos import validate_todos


def test_replace_leaves_nothing_of_the_old_list() -> None:
    after = apply(items("a", status="completed"), {"op": "replace", "texts": ["b"]})
    assert after == items("b")


def test_append_keeps_what_is_there() -> None:
    """New items are not started, and old ones keep their status."""
    after = apply(items("a", status="completed"), {"op": "append", "texts": ["b"]})
    assert after == [*items("a", status="completed"), *items("b")]


def test_insert_puts_items_before_an_index() -> None:
    """The items from that index on move on."""
    after = apply(items("a", "b"), {"op": "insert", "index": 1, "texts": ["x", "y"]})
    assert after == items("a", "x", "y", "b")


def test_a_status_is_set_whatever_it_was() -> None:
    """A finished item may be started again; an index given twice counts once."""
    todos = [*items("a", status="completed"), *items("b")]
    operation: Operation = {"op": "set_status", "status": "in_progress", "indices": [0, 0]}
    assert apply(todos, operation) == [*items("a", status="in_progress"), *items("b")]


def test_what_no_longer_applies_is_ignored() -> None:
    """A list that the application changed in the same step breaks nothing."""
    assert apply([], {"op": "insert", "index": 5, "texts": ["a"]}) == items("a")
    assert apply([], {"op": "set_status", "status": "completed", "indices": [3]}) == []


def test_a_dict_that_is_no_operation_is_refused() -> None:
    """The error says what was given and what to do."""
    with pytest.raises(ValueError, match=r"a dict with \['op'\]; give the whole list"):
        apply([], {"op": "shuffle"})


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "append", "texts": [1]},
        {"op": "replace", "texts": [" "]},
        {"op": "insert", "index": "0", "texts": ["a"]},
        {"op": "set_status", "status": "done", "indices": [0]},
    ],
)
def test_an_operation_of_wrong_content_is_refused(operation: Any) -> None:
    """The stored list stays valid, whoever made the operation."""
    with pytest.raises(ValueError, match="operation of the tools"):
        apply(items("a"), operation)


@given(todo_lists, operations)
def test_every_operation_yields_a_valid_list_and_leaves_the_old_one(
    todos: list[TodoItem], operation: Operation
) -> None:
    """Lists are replaced, never changed."""
    before = deepcopy(todos)
    after = apply(todos, operation)
    assert validate_todos(after) == after
    assert todos == before
