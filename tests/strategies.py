"""Hypothesis strategies for todos, operations and a model's arguments."""

from typing import Any

from hypothesis import strategies as st

from todo_tools import TodoItem
from todo_tools._list.operations import Operation
from todo_tools._list.todos import STATUSES

texts = st.text(min_size=1, max_size=30).filter(lambda text: text.strip() != "")
todo_lists: st.SearchStrategy[list[TodoItem]] = st.lists(
    st.builds(TodoItem, text=texts, status=st.sampled_from(list(STATUSES))), max_size=8
)

indices = st.integers(min_value=0, max_value=10)
operations: st.SearchStrategy[Operation] = st.one_of(
    st.fixed_dictionaries({"op": st.just("replace"), "texts": st.lists(texts, max_size=4)}),
    st.fixed_dictionaries({"op": st.just("append"), "texts": st.lists(texts, max_size=4)}),
    st.fixed_dictionaries(
        {"op": st.just("insert"), "index": indices, "texts": st.lists(texts, max_size=4)}
    ),
    st.fixed_dictionaries(
        {
            "op": st.just("set_status"),
            "status": st.sampled_from(list(STATUSES)),
            "indices": st.lists(indices, max_size=4),
        },
        optional={"texts": st.lists(texts, max_size=4)},
    ),
)

# LangGraph's serializer cannot store AI messages with larger numbers.
_integers = st.integers(min_value=-(2**63), max_value=2**63 - 1)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _integers | st.floats(allow_nan=False) | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)

write_calls: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["replace", "append", "insert"]) | json_values,
        "index": st.integers(-2, 9) | json_values,
        "todos": st.lists(st.fixed_dictionaries({"text": texts}) | json_values, max_size=5)
        | json_values,
    },
)
edit_calls: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "action": st.sampled_from(["start", "complete", "abandon"]) | json_values,
        "indices": st.lists(st.integers(-2, 9) | json_values, max_size=5) | json_values,
    },
)
"""Calls of the two tools that change a list, exact and inexact ones."""
