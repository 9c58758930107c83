"""The todo, its limits, and the validation of whole lists."""

from typing import Any

import pytest
from hypothesis import given

from tests.strategies import todo_lists
from tests.support import items
from todo_tools import TodoItem, TodoLimits, TodoStatus
from todo_tools._list.todos import STATUSES, incomplete, is_todo, require_rows, validate_todos


def limits(name: str, value: int) -> TodoLimits:
    settings: dict[str, Any] = {name: value}
    return TodoLimits(**settings)


class TestLimits:
    def test_defaults_are_those_of_the_specification(self) -> None:
        limits = TodoLimits()
        assert (limits.max_todos, limits.max_text_length, limits.max_indices) == (100, 1000, 50)

    @pytest.mark.parametrize("name", ["max_todos", "max_text_length", "max_indices"])
    def test_a_limit_below_one_is_refused(self, name: str) -> None:
        """A tool that cannot write any item is a mistake of the developer."""
        with pytest.raises(ValueError, match=rf"{name}\n.*greater than or equal to 1"):
            limits(name, 0)

    @pytest.mark.parametrize(
        ("name", "highest"),
        [("max_todos", 10_000), ("max_text_length", 100_000), ("max_indices", 10_000)],
    )
    def test_a_limit_may_be_as_high_as_that_of_the_application(
        self, name: str, highest: int
    ) -> None:
        assert getattr(limits(name, highest), name) == highest
        with pytest.raises(ValueError, match=rf"{name}\n.*less than or equal to {highest}"):
            limits(name, highest + 1)

    @pytest.mark.parametrize("value", ["10", 1.5, True, None])
    def test_a_limit_that_is_not_a_whole_number_is_refused(self, value: Any) -> None:
        """Booleans are refused too, although Python treats them as numbers."""
        with pytest.raises(ValueError, match=r"max_todos\n.*valid integer"):
            TodoLimits(max_todos=value)

    def test_whether_open_items_are_kept_is_true_or_false(self) -> None:
        with pytest.raises(ValueError, match=r"keep_open\n.*valid boolean"):
            TodoLimits(keep_open="no")  # type: ignore[arg-type]  # the mistake under test

    def test_an_unknown_limit_is_an_error(self) -> None:
        """A misspelled limit would not hold."""
        with pytest.raises(ValueError, match="max_items"):
            TodoLimits(max_items=3)  # type: ignore[call-arg]  # the mistake under test


class TestValidation:
    @given(todo_lists)
    def test_a_valid_list_comes_back_as_a_copy(self, todos: list[TodoItem]) -> None:
        """The copy is equal and shares nothing with the caller's list."""
        validated = validate_todos(todos)
        assert validated == todos
        assert validated is not todos
        assert not {id(todo) for todo in validated} & {id(todo) for todo in todos}

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("a", "todos must be a list of todo items, got str"),
            (["a"], r"todos\[0\] must be a dict with exactly 'text' and 'status', got str"),
            ([{"text": "a"}], r"todos\[0\] must be a dict .* got \['text'\]"),
            ([{"text": "a", "status": "not_started", "id": 1}], "exactly 'text' and 'status'"),
            ([{"text": " \n", "status": "not_started"}], "not only white space, got 2 characters"),
            ([{"text": "x" * 100_001, "status": "not_started"}], "got 100001 characters"),
            ([{"text": 5, "status": "not_started"}], r"\['text'\] must be a string .* got int"),
            ([{"text": "a", "status": "pending"}], r"must be one of not_started.* got 'pending'"),
        ],
    )
    def test_anything_else_is_refused_with_the_reason(self, value: Any, message: str) -> None:
        """The error names the item, the value and the allowed values."""
        with pytest.raises(ValueError, match=message):
            validate_todos(value)

    def test_a_text_may_have_a_hundred_thousand_characters(self) -> None:
        todos = items("x" * 100_000)
        assert validate_todos(todos) == todos

    @pytest.mark.parametrize(
        "wrong",
        [
            "a",
            {"text": "a"},
            {"text": 5, "status": "completed"},
            {"text": "a", "status": "paused"},
            {"text": "a", "status": "completed", "id": 1},
        ],
    )
    def test_only_a_text_with_a_status_is_an_item(self, wrong: Any) -> None:
        assert is_todo({"text": "a", "status": "completed"})
        assert not is_todo(wrong)

    def test_the_limits_of_the_model_do_not_bind_the_application(self) -> None:
        """A list of 10,000 items is accepted; a longer one is not."""
        todos = items(*"a" * 10_000)
        assert validate_todos(todos) == todos
        with pytest.raises(ValueError, match="10001 items, at most 10000 are allowed"):
            validate_todos([*todos, *items("b")])


def test_incomplete_items_keep_their_index() -> None:
    """Completed and abandoned items are finished; the other two statuses are incomplete."""
    todos = [
        *items("a", status="completed"),
        *items("b", status="in_progress"),
        *items("c", status="abandoned"),
        *items("d"),
    ]
    assert [index for index, _ in incomplete(todos)] == [1, 3]


class TestTables:
    def test_a_status_without_a_row_is_refused(self) -> None:
        rows = {name: row for name, row in STATUSES.items() if name != "abandoned"}
        with pytest.raises(TypeError, match=r"STATUSES needs one row .*; check \['abandoned'\]"):
            require_rows(rows, TodoStatus, "STATUSES")

    def test_a_row_without_a_status_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"check \['paused'\]"):
            require_rows({**STATUSES, "paused": STATUSES["abandoned"]}, TodoStatus, "STATUSES")
