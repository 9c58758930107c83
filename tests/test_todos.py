"""The todo, its limits, and the validation of whole lists."""

from typing import Any

import pytest
from hypothesis import given

from tests.strategies import todo_lists
from tests.support import items
from todo_tools import TodoItem, TodoLimits
from todo_tools.state import validate_todos


def limits(name: str, value: Any) -> TodoLimits:
    settings: dict[str, Any] = {name: value}
    return TodoLimits(**settings)


class TestLimits:
    def test_defaults_are_those_of_the_specification(self) -> None:
        limits = TodoLimits()
        assert (limits.max_todos, limits.max_text_length, limits.max_indices) == (100, 1000, 50)

    @pytest.mark.parametrize(
        ("name", "highest"),
        [("max_todos", 10_000), ("max_text_length", 100_000), ("max_indices", 10_000)],
    )
    def test_a_limit_is_a_whole_number_within_those_of_the_application(
        self, name: str, highest: int
    ) -> None:
        """A tool that cannot write any item is a mistake of the developer."""
        assert getattr(limits(name, highest), name) == highest
        for wrong in (0, highest + 1, "10", 1.5, True, None):
            with pytest.raises(ValueError, match=rf"{name}\n"):
                limits(name, wrong)

    def test_an_unknown_or_wrong_setting_is_an_error(self) -> None:
        """A misspelled limit would not hold."""
        for name in ("keep_open", "max_items"):
            with pytest.raises(ValueError, match=name):
                limits(name, "no")


class TestValidation:
    @given(todo_lists)
    def test_a_valid_list_comes_back_as_a_copy(self, todos: list[TodoItem]) -> None:
        """The copy is equal and shares nothing with the caller's list."""
        validated = validate_todos(todos)
        assert validated == todos
        assert validated is not todos
        assert not {id(todo) for todo in validated} & {id(todo) for todo in todos}

    def test_an_item_without_a_status_is_not_started(self) -> None:
        assert validate_todos(["a", {"text": "b"}]) == items("a", "b")

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            ("a", "todos must be a list of todo items, got str"),
            ([5], r"todos\[0\] must be a text or a dict with 'text' and 'status', got int"),
            (["a", {"text": "a", "id": 1}], r"todos\[1\] must .* got \['id', 'status', 'text'\]"),
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

    def test_the_limits_of_the_model_do_not_bind_the_application(self) -> None:
        """10,000 items and 100,000 characters are accepted; a longer list is not."""
        todos = [*items("x" * 100_000), *items(*"a" * 9_999)]
        assert validate_todos(todos) == todos
        with pytest.raises(ValueError, match="10001 items, at most 10000 are allowed"):
            validate_todos([*todos, *items("b")])
