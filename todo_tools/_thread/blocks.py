"""Record the whole lists that earlier prompts had, so that later prompts repeat them exactly."""

import reprlib
from collections.abc import Mapping
from typing import Any

from todo_tools._list.todos import TodoItem, is_list, is_mapping, is_todo, validate_todos

TodoBlocks = dict[str, list[TodoItem]]
"""Whole lists that `model_view` appends to messages. The key is the id of the message."""


def merge_blocks(
    blocks: TodoBlocks, update: Mapping[str, list[TodoItem] | None] | None
) -> TodoBlocks:
    """Merge new blocks into the `todo_blocks` channel; a recorded block is never replaced.

    `None` removes a block. As in `merge_loop`, invalid blocks that were stored are dropped.

    Raises:
        ValueError: `update` is not a dict from message ids to lists of todos.
    """
    if update is None:
        return blocks
    if not is_mapping(update) or not all(isinstance(key, str) for key in update):
        raise ValueError(
            "todo_blocks must be a dict from message ids to lists of todos, got "
            f"{reprlib.repr(update)}; leave it out, or pass the value from get_state"
        )
    new = {key: validate_todos(todos) for key, todos in update.items() if todos is not None}
    merged = {**new, **valid_blocks(blocks)}
    return {key: todos for key, todos in merged.items() if update.get(key, todos) is not None}


def valid_blocks(stored: object) -> TodoBlocks:
    """Return the blocks without those that are not lists of todos."""
    blocks: Mapping[str, Any] = stored if is_mapping(stored) else {}
    return {
        key: todos for key, todos in blocks.items() if is_list(todos) and all(map(is_todo, todos))
    }
