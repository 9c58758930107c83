"""The state of a live view, chunk by chunk."""

from itertools import permutations
from threading import Event
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.types import Interrupt

from tests.strategies import json_values
from tests.support import items
from tests.waiting import LONG
from todo_tools import TodoItem, create_item_runner
from todo_tools._thread.events import continue_question, countdown_event, todos_event
from todo_tools.clients import to_client_todos
from todo_tools.rendering._chunks import NOTHING_TO_SHOW
from todo_tools.rendering._follow import PlainScreen, follow
from todo_tools.rendering._followed import Followed
from todo_tools.rendering._followed_lines import changes, list_part, status_part
from todo_tools.rendering.lowlevel import LiveLines
from todo_tools.testing import turn

A = items("a")
B = items("a", "b")
CLIENT_A: Any = to_client_todos(A)
PLANNED: Any = turn(
    "",
    {"name": "write_todos", "args": {}, "id": "first", "type": "tool_call"},
    {"name": "edit_todos", "args": {}, "id": "second", "type": "tool_call"},
)


def after(*chunks: object) -> Followed:
    followed = Followed()
    for chunk in chunks:
        followed = followed.after(chunk)
    return followed


def result(call_id: str, todos: list[TodoItem], **details: Any) -> dict[str, Any]:
    artifact = {"action": "edit", "todos": todos, **details}
    message = ToolMessage("...", name="edit_todos", tool_call_id=call_id, artifact=artifact)
    return {"tools": {"messages": [message]}}


def loop_event(outcome: str | None, text: str = "") -> dict[str, Any]:
    return {"type": "todo_loop", "outcome": outcome, "in_a_row": 1, "in_turn": 1, "text": text}


class TestModes:
    @pytest.mark.parametrize(
        "chunk",
        [
            ("custom", todos_event(A)),
            todos_event(A),
            ((), "custom", todos_event(A)),
            ((), todos_event(A)),
            {"type": "custom", "ns": (), "data": todos_event(A)},
            ("values", {"messages": [], "todos": A}),
            {"messages": [], "todos": A},
            ("updates", {"agent": {"todos": A}}),
            {"agent": {"todos": A}},
            ("updates", result("1", A)),
            ("updates", {"tools": [{"todos": {"op": "append"}}, result("1", A)["tools"]]}),
        ],
    )
    def test_a_list_is_found_in_every_form_of_a_chunk(self, chunk: object) -> None:
        """Streams have one mode or several, with or without subgraphs, in two versions."""
        assert after(chunk).todos == A

    @pytest.mark.parametrize(
        "chunk",
        [
            ("custom", {"type": "todos", "todos": [{"title": "a", "done": False}]}),
            ("custom", {"type": "todos", "todos": A}),
            ("values", {"todos": [{"title": "a", "done": False}]}),
            ("updates", result("1", [], error="no todos exist")),
            ("updates", {"agent": None}),
            ("messages", (AIMessage("a"), {})),
            (AIMessage("a"), {}),
            None,
            "todos",
        ],
    )
    def test_chunks_without_this_graphs_list_change_nothing(self, chunk: object) -> None:
        """Lists of other libraries, errors and other modes are ignored."""
        assert after(("custom", todos_event(B)), chunk).todos == B

    @pytest.mark.parametrize(
        "update",
        [{"messages": [PLANNED, *result("first", A)["tools"]["messages"]]}]
        + [
            {"todos": B, "messages": [*above, *result("first", A)["tools"]["messages"]]}
            for above in ([], [PLANNED])
        ],
        ids=["a worker", "a summarizer", "an agent"],
    )
    def test_a_history_changes_no_list(self, update: dict[str, Any]) -> None:
        """Agents and summarizers return old results, or those of a worker with its own list."""
        planned = {"messages": [PLANNED]}
        before: list[object] = [("custom", todos_event(B)), ("updates", {"agent": planned})]
        assert after(*before, ("updates", {"node": update})).todos == B

    @given(json_values | st.tuples(json_values, json_values))
    def test_no_chunk_raises(self, chunk: object) -> None:
        """An application may write anything to its stream."""
        assert isinstance(after(("custom", chunk), ("updates", chunk), chunk), Followed)


class TestOrder:
    @pytest.mark.parametrize("order", list(permutations(range(3))))
    def test_events_that_overtake_each_other_never_go_back(self, order: tuple[int, ...]) -> None:
        """The custom stream alone is enough; positions start again in the next turn."""
        todos = [done(n) for n in range(1, 5)]
        known, frames = Followed(), list[int]()
        for at in order:
            known = known.after(("custom", todos_event(todos[at], at, turn="first")))
            frames.append(todos.index(known.todos or []))
        assert frames == sorted(frames)
        assert frames[-1] == 2
        assert known.after(("custom", todos_event(todos[3], 0, turn="second"))).todos == todos[3]


def done(number: int) -> list[TodoItem]:
    return [*items(*"abcd"[:number], status="completed"), *items(*"abcd"[number:])]


class Frames:
    """A fake screen that records each list."""

    def __init__(self) -> None:
        self.todos = list[list[TodoItem]]()
        self.notes = list[str]()

    def show(self, followed: Followed) -> None:
        self.notes.append(followed.notice)
        self.finish(followed)

    def finish(self, followed: Followed) -> None:
        if followed.todos is not None:
            self.todos.append(followed.todos)


class TestSubgraphs:
    CHUNKS: ClassVar[list[object]] = [
        ((), "custom", todos_event(items("Plan"))),
        (("worker:1",), "custom", todos_event(items("a"))),
        {"type": "custom", "ns": ("worker:2", "helper:3"), "data": todos_event(items("b"))},
        (("worker:2",), "updates", {"model": {"messages": [AIMessage("", name="Ann")]}}),
        (("worker:2",), todos_event(B)),
    ]

    def test_their_open_lists_are_below_that_of_the_graph(self) -> None:
        """Each under the name of its agent, or of its node."""
        assert list(map(str, list_part(after(*self.CHUNKS)))) == [
            "– [0] Plan",  # noqa: RUF001
            "└ worker 📋 0/1",
            "  – [0] a",  # noqa: RUF001
            "└ helper 📋 0/1",
            "  – [0] b",  # noqa: RUF001
            "└ Ann 📋 0/2",
            "  – [0] a",  # noqa: RUF001
            "  – [1] b",  # noqa: RUF001
        ]

    def test_a_finished_list_is_not_shown(self) -> None:
        """It would stay until the run ends."""
        ended = (("worker:1",), "custom", todos_event(items("a", status="abandoned")))
        assert "worker" not in "".join(name for name, _ in after(*self.CHUNKS, ended).lists)

    def test_a_list_that_a_graph_takes_from_a_subgraph_is_shown_once(self) -> None:
        """Also when the graph goes on with it; the equal list of another team stays."""
        ticked = done(1)[:2]
        teams = [((name,), "custom", todos_event(ticked)) for name in ("other:1", "team:1")]
        known = after(
            teams[0],
            (("team:1", "worker:1"), "custom", todos_event(ticked)),
            (("team:1",), "updates", {"worker": {"todos": ticked}}),
            teams[1],
            (("team:1",), "custom", todos_event(items("a", "c"))),
        )
        assert [name for name, _ in known.lists] == ["other", "team"]
        shared = after(("custom", todos_event(A)), (("worker:1",), "custom", todos_event(A)))
        assert shared.lists == ()


def at_work(*texts: str) -> list[TodoItem]:
    return items(*texts, status="in_progress")


def ran(index: Any, text: Any, status: Any = "in_progress", ns: str = "") -> Any:
    """The event of an item runner when a run begins or ends."""
    event = {"type": "todo_item", "id": "1", "index": index, "text": text, "status": status}
    return (), "custom", {**event, "ns": ns or f"item:{index}"}


BEGUN: list[Any] = [
    ((), "custom", todos_event(at_work("Cut", "Paint"))),
    ran(0, "Cut"),
    ran(1, "Paint"),
]


def calls(path: tuple[str, ...], *commands: str) -> tuple[object, ...]:
    """Calls of a shell, whose ids are the same in each conversation."""
    made: Any = [
        {"name": "shell", "args": {"command": command}, "id": f"{at}"}
        for at, command in enumerate(commands)
    ]
    return path, "updates", {"model": {"messages": [turn("", *made)]}}


def wrote(path: tuple[str, ...], call: str, text: str) -> tuple[object, ...]:
    return path, "custom", {"type": "tool_output", "tool_call_id": call, "text": text}


class TestItems:
    """What is seen of a run of an item runner."""

    def test_an_item_is_ticked_while_others_are_at_work(self) -> None:
        """A run that waits for the tick of another one ends."""
        ticked = Event()

        def work(state: dict[str, Any]) -> dict[str, Any]:
            is_first = state["messages"][-1].text == "Cut"
            assert is_first or ticked.wait(LONG)
            return {"messages": [AIMessage("Done.")]}

        runner = create_item_runner(
            RunnableLambda(work), at_once=2, prompt=lambda state, at: state["todos"][at]["text"]
        )
        frames = Frames()
        stream = runner.compile().stream({"todos": items("Cut", "Paint")}, stream_mode="custom")
        for _ in follow(stream, frames, None, None):
            if frames.todos[-1] == [*items("Cut", status="completed"), *at_work("Paint")]:
                ticked.set()
        assert ticked.is_set()
        assert frames.todos[-1] == items("Cut", "Paint", status="completed")

    def test_a_state_does_not_take_a_tick_back(self) -> None:
        """The graph ticks an item when all that began with it have ended; a changed list counts."""
        known = after(*BEGUN, ran(0, "Cut", "completed"))
        ticked = [*items("Cut", status="completed"), *at_work("Paint")]
        assert known.after(((), "values", {"todos": at_work("Cut", "Paint")})).todos == ticked
        assert known.after(((), "values", {"todos": A})).todos == A

    @pytest.mark.parametrize(
        "odd",
        [
            ran(2, "Cut", "completed"),
            ran(-2, "Cut", "completed"),
            ran("0", "Cut", "completed"),
            ran(1, "Cut", "completed"),
            ran(0, "Cut", "blocked"),
            ran(0, "Cut", ["completed"]),
            ran(2, "Cut"),
        ],
    )
    def test_an_event_that_does_not_fit_the_list_changes_nothing(self, odd: object) -> None:
        """A person may have changed the list; an item that was reopened is not ticked either."""
        assert after(*BEGUN, odd) == after(*BEGUN)
        reopened = ((), "custom", todos_event(items("Cut", "Paint")))
        assert after(*BEGUN, reopened, ran(0, "Cut", "completed")).todos == items("Cut", "Paint")

    @given(json_values, json_values, json_values, st.none() | st.just(A))
    def test_no_event_raises(self, index: Any, text: Any, status: Any, todos: Any) -> None:
        known = Followed(todos)
        assert isinstance(known.after(ran(index, text, status)), Followed)

    def test_the_lists_of_its_agent_are_named_by_the_item(self) -> None:
        """Those of subagents too. A further attempt goes on with its list; the end removes it."""
        chunks = [
            *BEGUN,
            (("item:1",), "updates", {"model": {"messages": [AIMessage("", name="Ann")]}}),
            (("item:1",), "custom", todos_event(items("sand"))),
            (("item:1", "1"), "custom", todos_event(items("sand", "prime"))),
            (("item:0", "tools:2"), "custom", todos_event(items("measure"))),
        ]
        named = [("[1] Paint", items("sand", "prime")), ("[0] Cut", items("measure"))]
        assert sorted(after(*chunks).lists) == sorted(named)
        assert after(*chunks, ran(1, "Paint", "abandoned")).lists == (named[1],)

    def test_a_runner_inside_another_graph_is_followed(self) -> None:
        """Its events and its agents' chunks come from below the node that runs it."""
        path = ("each:7",)
        begun = [
            (path, mode, event) for _, mode, event in (BEGUN[0], ran(0, "Cut", ns="each:7|item:0"))
        ]
        inner = ((*path, "item:0"), "custom", todos_event(items("measure")))
        ended = (path, "custom", ran(0, "Cut", "completed", "each:7|item:0")[2])
        assert [name for name, _ in after(*begun, inner).lists] == ["each", "[0] Cut"]
        ticked = [*items("Cut", status="completed"), *at_work("Paint")]
        assert after(*begun, inner, ended).lists == (("each", ticked),)

    def test_the_live_list_says_what_each_item_does(self) -> None:
        """With its seconds, beside it; the output of its tools begins with its name."""
        now = [0.0]
        live, known = LiveLines(lambda: now[0]), Followed()
        for seconds, chunk in (
            *((0, chunk) for chunk in BEGUN),
            (1, calls(("item:0",), "saw", "file")),
            (3, calls(("item:1",), "brush")),
            (4, wrote(("item:1",), "0", "one\ntwo\n")),
            (9, wrote(("item:0",), "0", "dust")),
        ):
            now[0], known = seconds, known.after(chunk)
            live.see(known)
        assert [f"{line}" for line in live.lines(20)] == [
            "  [0] Cut │ dust",
            "  [1] Paint │ one",
            "  [1] Paint │ two",
            "● [0] Cut · 8s shell saw and 1 more",
            "● [1] Paint · 6s shell brush",
            f"📋 0/2  {'╌' * 20}",
            "⠹ 9s working",
        ]

    def test_a_log_names_the_output_by_the_item(self) -> None:
        """And by the call, if there are several; the last line comes before the tick."""
        printed = list[str]()
        screen = PlainScreen(lambda line: printed.append(f"{line}"))
        chunks = [
            *BEGUN,
            calls(("item:0",), "saw", "file"),
            calls(("item:1",), "brush"),
            wrote(("item:0",), "1", "dust\nmore"),
            wrote(("item:1",), "0", "red\n"),
            ran(0, "Cut", "completed"),
        ]
        list(follow(iter(chunks), screen, None, None))
        assert printed[3:] == [
            "  [0] Cut 2 shell file │ dust",
            "  [1] Paint │ red",
            "  [0] Cut 2 shell file │ more",
            "✓ [0] Cut",
            "📋 1/2",
            "✓ [0] Cut",
            "● [1] Paint",
            "📋 1/2",
        ]

    def test_a_question_says_which_item_asks(self) -> None:
        item = {"id": "1", "index": 1, "text": "Paint"}
        value = {"type": "todo_question", "question": "Which\ncolour?", "item": item}
        asked = ((), "updates", {"__interrupt__": (Interrupt(value=value),)})
        assert after(*BEGUN, asked).notice == "[1] Paint: Which␊colour?"


class TestNothingToShow:
    @pytest.mark.parametrize(
        "chunk",
        [
            (AIMessage("a"), {}),
            ("messages", (AIMessage("a"), {})),
            ("debug", {"step": 1}),
            {"type": "task", "timestamp": "", "step": 1, "payload": {}},
            {"event": "on_chain_start", "data": {}, "name": "agent"},
        ],
    )
    def test_a_stream_without_a_list_says_so_once(self, chunk: Any) -> None:
        """The notice names the stream modes to use."""
        frames = Frames()
        list(follow(iter([chunk] * 3), frames, None, None))
        assert [note for note in frames.notes if note] == [NOTHING_TO_SHOW]
        assert 'stream_mode=["updates", "custom"]' in NOTHING_TO_SHOW


class TestActivity:
    def test_an_answer_is_shown_while_it_is_streamed(self) -> None:
        """The complete answer then replaces it."""
        texts = ("Let ", "me see")
        pieces: list[Any] = [
            ("messages", (AIMessageChunk(content=text, id="1"), {})) for text in texts
        ]
        assert after(*pieces).saying == ("1", "Let me see")
        answer = ("updates", {"agent": {"messages": [AIMessage("Let me see", id="1")]}})
        assert after(*pieces, answer).saying[1] == ""

    def test_a_commands_output_is_shown_until_it_ends(self) -> None:
        """Only the end of the output is kept."""
        calls = ("updates", {"agent": {"messages": [PLANNED]}})
        event = {"type": "tool_output", "tool_call_id": "first", "text": "x" * 3_000}
        running = after(calls, ("custom", event), ("custom", event))
        assert running.outputs == (("first", "x" * 4_000, 6_000),)
        assert [call for call, _ in running.open] == ["first", "second"]
        ended = running.after(("updates", result("first", A)))
        assert ended.outputs == ()
        assert ended.after(("custom", event)).outputs == ()
        assert [call for call, _ in ended.open] == ["second"]


class TestLive:
    def lines(self, live: LiveLines, **settings: Any) -> list[str]:
        return [str(line) for line in live.lines(20, **settings)]

    def test_a_changed_item_is_marked_for_a_moment(self) -> None:
        now = [0.0]
        live = LiveLines(lambda: now[0])
        live.see(Followed(B))
        assert self.lines(live) == [*LISTED, "⠋ working"]
        live.see(Followed([*items("a", status="completed"), *items("b")]))
        assert self.lines(live, working=False)[:2] == ["✓ [0] a ←", LISTED[1]]
        now[0] = 2.0
        assert self.lines(live, working=False)[0] == "✓ [0] a"

    def test_a_running_call_is_shown_with_its_seconds_and_its_output(self) -> None:
        """The bar shows the progress of the list."""
        now = [0.0]
        live = LiveLines(lambda: now[0])
        call = turn("", {"name": "shell", "args": {"command": "make"}, "id": "1"})
        event = {"type": "tool_output", "tool_call_id": "1", "text": "one\ntw\x1b[2Jo\n"}
        live.see(after(("updates", {"agent": {"messages": [call]}}), ("custom", event)))
        now[0] = 12.5
        assert self.lines(live) == ["  │ one", "  │ tw␛[2Jo", "⠋ 12s shell make"]
        live.begin()
        assert self.lines(live)[-1] == "⠋ shell make"


LISTED = ["– [0] a", "– [1] b", "📋 0/2  ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌"]  # noqa: RUF001


class TestNotices:
    def test_the_countdown_is_shown_until_the_agent_continues(self) -> None:
        counting = after(("custom", countdown_event(2)), ("custom", countdown_event(1)))
        assert "in 1s" in counting.shown[1]
        assert counting.after(("custom", loop_event(None))).shown[1] == "↻ Sent back to work"

    def test_a_notice_stays_until_the_list_changes(self) -> None:
        """The notice says why the loop ended."""
        stopped = after(("custom", loop_event("limit_in_turn", "⚠ Stopped")))
        assert list(map(str, status_part(stopped))) == ["⚠ Stopped"]
        assert stopped.after(("custom", todos_event(A))).shown[:2] == (A, "")

    def test_it_is_said_why_a_run_ended(self) -> None:
        """For a finished list, the status says it."""
        said = [
            list(map(str, status_part(after(("custom", loop_event(outcome))))))
            for outcome in ("answered", "declined", "finished", "no_todos", "new one")
        ]
        assert said == [["Ended: the agent answered"], ["Ended: the answer was no"], [], [], []]

    def test_a_question_is_shown(self) -> None:
        """The loop asks it before it continues."""
        asked = ("updates", {"__interrupt__": (Interrupt(value=continue_question(A)),)})
        assert any("Continue?" in str(line) for line in status_part(after(asked)))

    def test_a_question_of_the_application_is_its_own(self) -> None:
        asked = ("updates", {"__interrupt__": (Interrupt(value="Which wall?"),)})
        assert after(asked) == Followed()


class TestChanges:
    def test_only_changed_items_are_printed_again(self) -> None:
        """The status line follows it."""
        done = [*items("a", status="completed"), *items("b")]
        assert list(map(str, changes(Followed(B), Followed(done)))) == ["✓ [0] a", "📋 1/2"]

    def test_a_list_with_moved_items_is_printed_whole(self) -> None:
        """Then the indices have changed."""
        moved = items("b", "a")
        lines = changes(Followed(B), Followed(moved))
        assert list(map(str, lines)) == ["– [0] b", "– [1] a", "📋 0/2"]  # noqa: RUF001
