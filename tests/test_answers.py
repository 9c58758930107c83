"""The results of the tools: the specification's examples, its errors, malformed arguments."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import edit_calls, todo_lists, write_calls
from tests.support import items
from todo_tools import TodoItem, TodoLimits
from todo_tools._calls.answers import Answer, answer_call
from todo_tools._calls.records import ToolName
from todo_tools._list.operations import apply
from todo_tools._list.todos import validate_todos

THREE = items("Write database schema", "Implement migration script", "Add API endpoints")


def answer(
    name: ToolName,
    args: dict[str, Any],
    todos: list[TodoItem] = THREE,
    limits: TodoLimits = TodoLimits(),
) -> Answer:
    return answer_call(name, args, todos, limits)


def write(mode: Any, todos: Any, **more: Any) -> Answer:
    return answer("write_todos", {"mode": mode, "todos": todos, **more})


def edit(action: Any, indices: Any) -> Answer:
    return answer("edit_todos", {"action": action, "indices": indices})


class TestWrite:
    def test_replace_answers_with_the_new_list(self) -> None:
        """The text and the details are those of the specification."""
        result = write("replace", [{"text": "a"}, {"text": "b"}])
        assert result.content == "Wrote 2 todo item(s)\n\n– [0] a\n– [1] b"  # noqa: RUF001
        assert dict(result.details) == {"action": "write", "todos": items("a", "b")}

    def test_append_answers_with_the_whole_list(self) -> None:
        """The existing items keep their place."""
        result = write("append", [{"text": "Write unit tests"}])
        assert result.content.startswith("Appended 1 item(s)\n\n")
        assert result.todos == [*THREE, *items("Write unit tests")]

    def test_insert_names_the_index(self) -> None:
        """The items after it move on."""
        result = write("insert", [{"text": "Critical fix"}], index=1)
        assert result.content.startswith("Inserted 1 item(s) at index 1\n\n")
        assert result.todos == [THREE[0], *items("Critical fix"), *THREE[1:]]

    def test_a_list_may_be_filled_to_its_limit(self) -> None:
        """Characters of a text are counted, not bytes."""
        assert len(write("append", ["x"] * 97).todos) == 100
        assert len(write("insert", ["x"] * 97, index=0).todos) == 100
        assert len(write("replace", ["🚀" * 1000] * 100).todos) == 100

    @pytest.mark.parametrize(
        ("args", "content", "error"),
        [
            (
                {"mode": "append", "todos": ["a"] * 98},
                "Error: appending 98 item(s) would exceed maximum of 100 todos (currently 3)",
                "max todos exceeded",
            ),
            (
                {"mode": "replace", "todos": ["a"] * 101},
                "Error: replacing with 101 item(s) would exceed maximum of 100 todos; "
                "write fewer items",
                "max todos exceeded",
            ),
            (
                {"mode": "append", "todos": ["a", " \t\n"]},
                "Error: todo item at index 1 has an empty text; give 1 to 1000 characters",
                "text empty",
            ),
            (
                {"mode": "prepend", "todos": ["a"]},
                "Error: unknown mode 'prepend'; use 'replace', 'append' or 'insert'",
                "unknown mode",
            ),
            (
                {"todos": ["a"]},
                "Error: 'mode' is required: 'replace', 'append' or 'insert'",
                "mode required",
            ),
            (
                {"mode": "append"},
                'Error: \'todos\' is required: a list of {"text": "..."} objects',
                "todos required",
            ),
            (
                {"mode": "append", "todos": [{"title": "a"}]},
                'Error: todo item at index 0 must be {"text": "..."}, it has no \'text\'',
                "todo without text",
            ),
            (
                {"mode": "append", "todos": [{"text": None}]},
                'Error: todo item at index 0 must be {"text": "..."}, its \'text\' is null',
                "todo without text",
            ),
            (
                {"mode": "append", "todos": [5]},
                'Error: todo item at index 0 must be {"text": "..."}, got 5',
                "todo without text",
            ),
            (
                {"mode": "insert", "index": True, "todos": ["a"]},
                "Error: 'index' takes 0-based whole numbers, got true",
                "index not a whole number",
            ),
        ],
    )
    def test_a_refused_call_says_why(self, args: dict[str, Any], content: str, error: str) -> None:
        """What was given, what is allowed, what to do; the recorded traces have other errors."""
        result = answer("write_todos", args)
        assert result.content == content
        assert dict(result.details) == {"action": "write", "todos": [], "error": error}
        assert result.operation is None
        assert result.todos == THREE

    def test_other_limits_are_honoured(self) -> None:
        """The limits of the tools decide and are named in the error, not the defaults."""
        limits = TodoLimits(max_todos=3, max_text_length=5)
        args = {"mode": "append", "todos": ["a"]}
        assert "maximum of 3 todos" in answer("write_todos", args, THREE, limits).content
        args = {"mode": "replace", "todos": ["abcdef"]}
        assert "(5 characters)" in answer("write_todos", args, [], limits).content


SOME_OPEN = [*items("a", status="completed"), *items("b", status="in_progress"), *items("c")]


class TestKeepOpen:
    """With `keep_open`, open items leave a list only after they were finished."""

    def replace(self, *texts: str, todos: list[TodoItem] | None = None) -> Answer:
        args = {"mode": "replace", "todos": list(texts)}
        limits = TodoLimits(keep_open=True)
        return answer("write_todos", args, SOME_OPEN if todos is None else todos, limits)

    def test_a_list_without_an_open_item_is_refused(self) -> None:
        """The error names the items, and what to do instead."""
        result = self.replace("c", "d")
        assert result.content == (
            "Error: the list has open items that the new list does not contain: [1]; "
            "use mode 'append' to add items, or abandon these first"
        )
        assert dict(result.details)["error"] == "open items dropped"
        assert result.todos == SOME_OPEN

    def test_open_items_may_be_moved_and_others_added(self) -> None:
        """A finished item may leave the list."""
        assert self.replace("d", "c", "b").todos == items("d", "c", "b")

    def test_each_of_two_equal_items_is_kept(self) -> None:
        twice = items("a", "a")
        assert self.replace("a", todos=twice).todos == twice
        assert self.replace("a", "b", "a", todos=twice).todos == items("a", "b", "a")
        one_finished = [*items("a", status="completed"), *items("a")]
        assert "contain: [1];" in self.replace("b", todos=one_finished).content


class TestList:
    def test_it_shows_the_list_and_keeps_it_out_of_the_details(self) -> None:
        """A `list_todos` result therefore never counts as a snapshot."""
        result = answer("list_todos", {})
        assert result.content.splitlines()[2] == "– [2] Add API endpoints"  # noqa: RUF001
        assert dict(result.details) == {"action": "list", "todos": []}
        assert result.operation is None


class TestEdit:
    @pytest.mark.parametrize(
        ("action", "label", "icon"),
        [("start", "Started", "●"), ("complete", "Completed", "✓"), ("abandon", "Abandoned", "✗")],
    )
    def test_an_action_sets_the_status(self, action: str, label: str, icon: str) -> None:
        """The answer names the action, repeats the indices as given and shows the list."""
        result = edit(action, [1, 0, 1])
        assert result.content.startswith(f"{label} [1, 0, 1]\n\n{icon} [0] Write")
        assert result.details["action"] == "edit"

    @pytest.mark.parametrize(
        ("args", "content", "error"),
        [
            (
                {"action": "start", "indices": [0] * 51},
                "Error: 51 indices given, at most 50 are allowed in one call; use several calls",
                "too many indices",
            ),
            (
                {"action": "finish", "indices": [0]},
                "Error: unknown action 'finish'; use 'start', 'complete' or 'abandon'",
                "unknown action",
            ),
            (
                {"action": "start", "indices": "all"},
                "Error: 'indices' must be a list of 0-based indices such as [0, 2], got 'all'",
                "indices must be a list",
            ),
            (
                {"action": "start", "indices": [float("nan")]},
                "Error: 'indices' takes 0-based whole numbers, got nan",
                "indices not a whole number",
            ),
        ],
    )
    def test_a_refused_call_says_why(self, args: dict[str, Any], content: str, error: str) -> None:
        """None of its indices is applied."""
        result = answer("edit_todos", args)
        assert result.content == content
        assert dict(result.details) == {"action": "edit", "todos": [], "error": error}
        assert result.todos == THREE

    def test_an_empty_list_has_nothing_to_edit(self) -> None:
        """Missing indices are reported first, as the specification says."""
        assert answer("edit_todos", {"action": "start", "indices": [0]}, []).content == (
            "Error: no todos exist"
        )
        assert "is required" in answer("edit_todos", {"action": "start"}, []).content


class TestLeniency:
    @pytest.mark.parametrize(
        "todos",
        [
            [{"text": "a"}, {"text": "b"}],
            ["a", "b"],
            '[{"text": "a"}, {"text": "b"}]',
            '["a", {"text": "b"}]',
            [{"text": "a", "status": "completed"}, {"text": "b", "note": 1}],
            [{"content": "a", "status": "pending"}, {"content": "b", "activeForm": "Doing b"}],
            '[{"content": "a"}, {"text": "b", "content": "c"}]',
        ],
    )
    def test_todos_are_accepted_in_every_clear_form(self, todos: Any) -> None:
        """A JSON string, bare strings and superfluous fields mean the same list."""
        assert write("replace", todos).todos == items("a", "b")

    @pytest.mark.parametrize("indices", [[0, 2], "[0, 2]", ["0", " 2 "], [0.0, 2.0], '["0", 2]'])
    def test_indices_are_accepted_in_every_clear_form(self, indices: Any) -> None:
        """Numeric strings, whole floats and a JSON string mean the same indices."""
        assert edit("start", indices).content.startswith("Started [0, 2]\n")

    @pytest.mark.parametrize("index", [1, "1", 1.0, " 1 ", "[1]"])
    def test_a_single_index_needs_no_list(self, index: Any) -> None:
        assert edit("start", index).content.startswith("Started [1]\n")

    @pytest.mark.parametrize(
        "args",
        [
            {"mode": "x" * 5000, "todos": []},
            {"mode": "append", "todos": [{"text": ["z" * 5000]}]},
            {"mode": "insert", "index": 10**4000, "todos": []},
            {"mode": "append", "todos": "[" * 100_000},
            {"mode": "append", "todos": ["a", "\U000e0062" * 500, b"z" * 5000]},
        ],
    )
    def test_a_long_argument_is_never_echoed(self, args: dict[str, Any]) -> None:
        """An error stays short whatever was sent."""
        result = answer("write_todos", args)
        assert "error" in result.details
        assert len(result.content) < 200

    def test_many_long_indices_are_not_all_named(self) -> None:
        """The call has as many indices, with as many digits, as are allowed."""
        result = edit("start", [10**9 - at for at in range(50)])
        assert result.content == (
            "Error: indices [1000000000, 999999999, 999999998, 999999997, 999999996] and 45 more "
            "out of range (0 to 2)"
        )
        assert edit("start", [999] * 50).content.count("999") == 50


@given(todo_lists, write_calls | edit_calls, st.sampled_from(["write_todos", "edit_todos"]))
def test_any_arguments_get_an_answer(
    todos: list[TodoItem], args: dict[str, Any], name: ToolName
) -> None:
    """No call raises; a refusal is short and changes nothing, a success is a valid list."""
    result = answer_call(name, args, todos, TodoLimits())
    if "error" in result.details:
        assert result.todos == todos
        assert len(result.content) < 300
    else:
        assert result.operation is not None
        assert validate_todos(result.todos) == apply(todos, result.operation)
    json.dumps(result.details)
