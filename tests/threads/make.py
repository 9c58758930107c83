"""Writes the threads, and what was true of them; `README.md` says with which version."""

import json
import lzma
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import StateSnapshot

from tests.support import edit, items, plan
from tests.threads.agents import AGENTS, CHECKED, CutOffError, as_sent
from todo_tools import TodoItem, todos_from_messages
from todo_tools.testing import ScriptedChatModel, call, turn

FOLDER = Path(__file__).parent
CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}


@dataclass(frozen=True)
class Run:
    """One run of an agent; without a message, only the list is edited."""

    message: Any = None
    answers: Sequence[AIMessage | str] = ()
    """The model's answers."""
    todos: list[TodoItem] | None = None
    """A list that the application passes with the message."""
    edited: list[TodoItem] | None = None
    """A list that the application writes before the run."""
    pauses: dict[str, Any] = field(default_factory=dict)
    """Where the application pauses the run."""


def added(*texts: str, **place: Any) -> AIMessage:
    """A model's answer that adds items."""
    mode = "insert" if place else "append"
    return turn("", call("write_todos", mode=mode, todos=list(texts), **place))


def together(*answers: AIMessage) -> AIMessage:
    """One answer with the calls of several."""
    return turn("", *(made for answer in answers for made in answer.tool_calls))


def looks(number: int) -> list[AIMessage]:
    """Answers that do not call a todo tool."""
    return [turn(f"Look {at}.", call("look", path=f"file {at}")) for at in range(number)]


def broken() -> AIMessage:
    """An answer with a call whose arguments are not JSON."""
    call_id = str(call("look")["id"])
    return AIMessage("", invalid_tool_calls=[invalid_tool_call(name="look", args="{", id=call_id)])


TEXTS = (
    "Read the notes",
    "Write\nthe changelog",
    "Run the tests with every supported version",
    CHECKED,
)

LONG = [
    Run(
        "Prepare the release.",
        [
            plan(*TEXTS),
            together(edit("start", 0, 1), turn("", call("describe", path="notes"))),
            *looks(11),  # a reminder follows the tenth
            together(edit("complete", 0), edit("start", 2)),
            edit("complete", 3),  # the check refuses it
            "I stop here.",
            together(edit("complete", 9), turn("", call("list_todos"))),
            added("Tell the team", "Tidy up"),
            together(added("Make a tag", index=1), edit("complete", 1)),
            edit("abandon", 2, 3, 4),
            "I stop again.",
            together(edit("complete", 5), edit("complete", 6)),
            "The release is prepared.",
        ],
    ),
    Run(
        [{"type": "text", "text": "Prepare the next one."}],
        [
            turn("", call("list_todos")),
            plan(*TEXTS, "One more"),  # the prompt does not repeat these texts
            broken(),
            edit("start", 0),
            turn("I look.", call("look", path="notes"), call("cut_off")),
        ],
        edited=items(*TEXTS, "One more"),
    ),
    Run(
        "What happened?",
        [
            edit("complete", 0),
            AIMessage([{"type": "text", "text": "I stop."}]),
            edit("complete", 3),  # the check refuses it
            "I stop once more.",
            AIMessage([{"type": "text", "text": "I stop for good."}]),
        ],
    ),
]
"""A conversation with nearly everything that a prompt can show; a limit ends it."""

STOPS = ["I stop.", "I stop.", "I stop."]
"""The model's answers that end a run: it is sent back twice."""

EDITED = [
    Run("Begin.", [edit("start", 0), *STOPS], todos=items("a", "b")),
    Run("Go on.", [edit("complete", 1), *STOPS], edited=items("x", "y", "z")),
    Run(edited=items("x", "z", status="in_progress")),
]
"""Lists of the application: one begins the thread, and two are written into it."""

MERGED = [
    Run("Begin.", [edit("start", 2), *STOPS], todos=items(*"abcd")),
    Run("And?", [edit("abandon", 2), *STOPS]),
]
"""Two branches complete the first two items at the same time."""

FIRST = Run("Begin.", [plan("a"), *STOPS])

ASKED = [
    Run("Begin.", [plan("a"), edit("complete", 0), "The first list is done."]),
    Run("More.", ["Shall I go on?"], todos=items("a", "b", "c")),
]
"""The loop waits for a person's answer; a hand-built graph has not recorded the list block yet."""

APPROVED = [
    FIRST,
    Run("More.", [together(looks(1)[0], edit("start", 1))], todos=items("a", "b", "c")),
]
"""The agent waits for the approval of a call of `edit_todos`."""

PAUSED = [
    FIRST,
    Run(
        "More.",
        ["I stop.", together(looks(1)[0], edit("complete", 1))],
        todos=items("a", "b", "c"),
        pauses={"interrupt_before": ["tools"]},
    ),
]
"""The application has paused the run before the tools."""

TOOL_ASKED = [
    FIRST,
    Run(
        "More.",
        [
            together(
                edit("complete", 0), edit("complete", 1), turn("", call("ask", question="May I?"))
            )
        ],
        todos=items("a", CHECKED),
    ),
]
"""A tool waits for a person; what the other calls of the step changed is not in the state yet."""

CONVERSATIONS: dict[str, list[Run]] = {
    "hand_built": LONG,
    "hand_built_edited": EDITED,
    "hand_built_unstored": LONG,
    "hand_built_asking": ASKED,
    "hand_built_paused": PAUSED,
    "delta": LONG,
    "delta_merged": MERGED,
    "client": LONG,
    "middleware": LONG,
    "middleware_client": LONG,
    "middleware_asking": ASKED,
    "middleware_approval": APPROVED,
    "middleware_paused": PAUSED,
    "middleware_tool_asking": TOOL_ASKED,
    "deep_agent": LONG,
}


def facts(name: str, path: Path) -> dict[str, Any]:
    """Hold the conversation of a thread, and return what is true of it."""
    answers = [each for run in CONVERSATIONS[name] for each in run.answers]
    model = ScriptedChatModel(script=answers)
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = AGENTS[name](model, saver)
        runs = [held(graph, model, run) for run in CONVERSATIONS[name]]
        values = graph.get_state(CONFIG).values
        history = list(graph.get_state_history(CONFIG))
    assert len(model.prompts) == len(answers), f"{name}: answers are left"
    return {
        "todos": values["todos"],
        "todo_loop": values["todo_loop"],
        "todo_blocks": values["todo_blocks"],
        "rebuilt": todos_from_messages(values["messages"]),
        "runs": runs,
        "sent": [*sent_in(model.prompts), *as_sent(map(as_answer, answers[-1:]))],
        "lists": [
            {"todos": todos, "checkpoints": [checkpoint(each) for each in states]}
            for todos, states in groupby(history, lambda each: each.values.get("todos"))
        ],
    }


def as_answer(said: AIMessage | str) -> AIMessage:
    """The answer of a scripted model."""
    return AIMessage(said) if isinstance(said, str) else said


def held(graph: Any, model: ScriptedChatModel, run: Run) -> dict[str, Any]:
    """Hold one run, and return how it ended."""
    before = len(model.prompts)
    if run.edited is not None:
        graph.update_state(CONFIG, {"todos": run.edited})
    if run.message is not None:
        given = {"messages": [HumanMessage(run.message)]}
        todos = {} if run.todos is None else {"todos": run.todos}
        with suppress(CutOffError):
            graph.invoke({**given, **todos}, CONFIG, **run.pauses)
    state = graph.get_state(CONFIG)
    return {
        "checkpoint": checkpoint(state),
        "todos": state.values["todos"],
        "prompts": [len(as_sent(prompt)) for prompt in model.prompts[before:]],
    }


def sent_in(prompts: Sequence[Sequence[BaseMessage]]) -> list[dict[str, Any]]:
    """The last prompt; each of the others is a part of it."""
    sent = [as_sent(prompt) for prompt in prompts]
    for earlier, later in pairwise(sent):
        assert later[: len(earlier)] == earlier, "a prompt does not begin with the one before it"
    return sent[-1]


def checkpoint(state: StateSnapshot) -> str:
    """The id of the checkpoint of a state."""
    return str(state.config["configurable"]["checkpoint_id"])


def as_json(known: Mapping[str, Any]) -> str:
    """Write JSON with one message, one run or one list on a line."""
    lines = []
    for key, value in known.items():
        parts = value if isinstance(value, list) else [value]
        text = ",\n".join(json.dumps(part, ensure_ascii=False) for part in parts)
        lines.append(f'"{key}": ' + (f"[\n{text}\n]" if isinstance(value, list) else text))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(name: str) -> None:
    """Write the database of a thread, and the facts about it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "threads.sqlite"
        (FOLDER / f"{name}.json").write_text(as_json(facts(name, path)), encoding="utf-8")
        (FOLDER / f"{name}.sqlite.xz").write_bytes(lzma.compress(path.read_bytes()))


if __name__ == "__main__":
    for thread in AGENTS:
        write(thread)
