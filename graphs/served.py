"""The graphs that `langgraph.json` serves; the server adds the checkpointer.

`TODO_MODEL` names the chat model (`provider:name`); without it a stand-in answers. The lists have
the format of LangChain's clients. `until_done` works through checklists that people give it, so its
model cannot drop an open step (`keep_open`). Its limit: no graph here has a shell.
"""

import os
from typing import Annotated, NotRequired

from graphs import each as each_item
from graphs.context import RunContext, policy_of
from graphs.model import chat_model, is_stand_in, notes_stand_in
from graphs.notes import Notes, fold_notes, notes_tool
from graphs.until_done import build_graph
from todo_tools import ItemsState, TodoLimits
from todo_tools.clients import ClientTodoState

_MODEL = os.environ.get("TODO_MODEL")


class ClientNotesState(ClientTodoState):
    """`NotesState` with the list in the format of LangChain's clients."""

    notes: NotRequired[Annotated[Notes, fold_notes]]


class ClientItemsState(ItemsState, ClientTodoState):  # type: ignore[misc]  # pyright: ignore[reportIncompatibleVariableOverride]
    """`ItemsState` with the list in the format of LangChain's clients."""


notes = build_graph(
    notes_stand_in() if is_stand_in(_MODEL) else chat_model(_MODEL),
    [notes_tool()],
    system_prompt="You keep notes for the user.",
    policy=policy_of,
    state_schema=ClientNotesState,
    context_schema=RunContext,
).compile(name="notes")
until_done = build_graph(
    chat_model(_MODEL),
    policy=policy_of,
    limits=TodoLimits(keep_open=True),
    state_schema=ClientTodoState,
    context_schema=RunContext,
).compile(name="until_done")
each = each_item.build_graph(
    each_item.stand_in if is_stand_in(_MODEL) else chat_model(_MODEL), ClientItemsState
).compile(name="each")
