"""The graphs that `langgraph.json` serves; the server adds the checkpointer.

`TODO_MODEL` names the chat model (`provider:name`); without it a stand-in answers. No graph here
has a shell. The coding agent has one, and a configuration of its own: `graphs/served_coding.py`.

The lists have the format of LangChain's clients, because people use those with a server. What a
client may set for one run, and when an agent is sent back to work, is in `graphs/context.py`.

`until_done` works through checklists that people give it, so its model cannot drop an open step by
writing a new list (`keep_open`). The lists of the other graphs are the agent's own plans.
"""

import os
from typing import Annotated, NotRequired

from graphs import notes as notes_example
from graphs import until_done as until_done_example
from graphs.context import RunContext, policy_of
from graphs.model import chat_model, is_stand_in
from graphs.notes import Notes, fold_notes
from todo_tools import TodoLimits
from todo_tools.clients import ClientTodoState

_MODEL = os.environ.get("TODO_MODEL")


class ClientNotesState(ClientTodoState):
    """`NotesState` with the list in the format of LangChain's clients."""

    notes: NotRequired[Annotated[Notes, fold_notes]]


notes = notes_example.build_graph(
    notes_example.notes_model() if is_stand_in(_MODEL) else chat_model(_MODEL),
    policy=policy_of,
    state_schema=ClientNotesState,
    context_schema=RunContext,
).compile(name="notes")
until_done = until_done_example.build_graph(
    chat_model(_MODEL),
    policy=policy_of,
    limits=TodoLimits(keep_open=True),
    state_schema=ClientTodoState,
    context_schema=RunContext,
).compile(name="until_done")
