"""The state of a live view, chunk by chunk."""

from itertools import groupby, pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Interrupt, StreamWriter
from typing_extensions import TypedDict

from tests.strategies import json_values
from tests.support import BEGIN, items
from todo_tools import TodoItem, TodoState
from todo_tools._thread.events import continue_question, countdown_event
from todo_tools.clients import to_client_todos
from todo_tools.events import todos_event
from todo_tools.middleware import TodoMiddleware
from todo_tools.rendering._advance import advance
from todo_tools.rendering._chunks import NOTHING_TO_SHOW
from todo_tools.rendering._follow import follow
from todo_tools.rendering._followed import Followed
from todo_tools.rendering._followed_lines import changes, list_part, status_part
from todo_tools.rendering.lowlevel import Line, LiveLines
from todo_tools.testing import ScriptedChatModel, call, turn

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
        followed = advance(followed, chunk)
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
            ("values", {"todos": CLIENT_A}),
            ("custom", todos_event(A, todos_format="langchain")),
            ("updates", result("1", CLIENT_A)),
        ],
    )
    def test_a_list_in_client_format_is_read(self, chunk: object) -> None:
        """All lists of a graph may have that format."""
        assert after(chunk).todos == A

    @pytest.mark.parametrize(
        "chunk",
        [
            ("custom", {"type": "todos", "todos": [{"title": "a", "done": False}]}),
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

    def test_a_node_may_call_the_model_and_the_tools(self) -> None:
        """The operation beside the result says that it is this graph's list."""
        messages = [PLANNED, *result("first", A)["tools"]["messages"]]
        update = {"todos": {"op": "append"}, "messages": messages}
        assert after(("updates", {"agent": update})).todos == A

    @given(json_values | st.tuples(json_values, json_values))
    def test_no_chunk_raises(self, chunk: object) -> None:
        """An application may write anything to its stream."""
        assert isinstance(after(("custom", chunk), ("updates", chunk), chunk), Followed)


class TestOrder:
    def test_the_last_call_of_a_message_wins_whatever_arrives_last(self) -> None:
        """The calls of one message run at the same time."""
        chunks: list[object] = [
            ("updates", {"agent": {"messages": [PLANNED]}}),
            ("custom", todos_event(B)),
            ("updates", result("second", B)),
            ("custom", todos_event(A)),
            ("updates", result("first", A)),
        ]
        assert after(*chunks).todos == B

    def test_the_calls_of_the_next_message_come_after_all_of_this_one(self) -> None:
        chunks: list[object] = [
            ("updates", {"agent": {"messages": [PLANNED]}}),
            ("updates", result("second", B)),
            ("updates", {"agent": {"messages": [PLANNED]}}),
            ("updates", result("first", A)),
        ]
        assert after(*chunks).todos == A

    @pytest.mark.parametrize("order", list(permutations(range(3))))
    def test_events_that_overtake_each_other_never_go_back(self, order: tuple[int, ...]) -> None:
        """The custom stream alone is enough; positions start again in the next turn."""
        todos = [done(n) for n in range(1, 5)]
        known, frames = Followed(), list[int]()
        for at in order:
            known = advance(known, ("custom", todos_event(todos[at], at, turn="first")))
            frames.append(todos.index(known.todos or []))
        assert frames == sorted(frames)
        assert frames[-1] == 2
        assert advance(known, ("custom", todos_event(todos[3], 0, turn="second"))).todos == todos[3]

    @pytest.mark.parametrize("modes", [["updates", "custom"], ["custom"], ["updates"], ["values"]])
    def test_no_frame_of_a_run_goes_back(self, modes: Any) -> None:
        """The calls of an answer are separate tasks, and items in this run only progress."""
        for _ in range(4):
            frames = Frames()
            stream = busy_agent().stream(BEGIN, stream_mode=modes)
            for _ in follow(stream, frames, None):
                pass
            assert frames.todos[0] != []
            for before, after in pairwise(frames.todos):
                assert len(before) <= len(after)
                for old, new in zip(before, after, strict=False):
                    assert RANK.index(old["status"]) <= RANK.index(new["status"])
            assert {todo["status"] for todo in frames.todos[-1]} == {"completed"}


RANK = ["not_started", "in_progress", "completed"]


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


def busy_agent() -> Any:
    script: list[Any] = [
        turn("", call("write_todos", mode="replace", todos=list("abcd"))),
        turn("", *(call("edit_todos", action="start", indices=[n]) for n in range(4))),
        turn("", *(call("edit_todos", action="complete", indices=[n]) for n in range(4))),
        "Done.",
    ]
    return create_agent(ScriptedChatModel(script=script), middleware=[TodoMiddleware()])


class TestSubgraphs:
    def test_lists_of_subgraphs_are_a_tree(self) -> None:
        """Each list is shown under its node; a node that runs twice is numbered."""
        chunks: list[object] = [
            ((), "custom", todos_event(items("Plan"))),
            (("worker:1",), "custom", todos_event(items("a"))),
            {"type": "custom", "ns": ("worker:2",), "data": todos_event(items("b"))},
            (("worker:1", "helper:3"), todos_event(items("c"))),
        ]
        assert list(map(str, list_part(after(*chunks)))) == [
            "– [0] Plan",  # noqa: RUF001
            "└ worker 📋 0/1",
            "  – [0] a",  # noqa: RUF001
            "  └ helper 📋 0/1",
            "    – [0] c",  # noqa: RUF001
            "└ worker 2 📋 0/1",
            "  – [0] b",  # noqa: RUF001
        ]

    @pytest.mark.parametrize("mode", ["updates", "messages"])
    def test_a_subgraph_is_named_after_its_agent(self, mode: str) -> None:
        """Its number does not depend on who begins, and never changes once its list is shown."""
        chunks: list[object] = [
            *(((f"tools:{n}",), "updates", {"before": None}) for n in (1, 2, 3)),
            (("tools:2",), mode, said_by("helper", mode)),
            (("tools:2",), "custom", todos_event(items("b"))),
            (("tools:3",), mode, said_by("other", mode)),
            (("tools:1",), mode, said_by("helper", mode)),
            (("tools:1",), "custom", todos_event(items("a"))),
            (("tools:3",), "custom", todos_event(items("c"))),
            (("tools:2",), mode, said_by("helper", mode)),
        ]
        frames = [names_of(after(*chunks[: n + 1])) for n in range(len(chunks))]
        assert [frame for frame, _ in groupby(frames)] == [
            {},
            {"b": "helper"},
            {"a": "helper 2", "b": "helper"},
            {"a": "helper 2", "b": "helper", "c": "other"},
        ]

    def test_a_subgraph_of_an_agent_keeps_the_name_of_its_node(self) -> None:
        """Its messages have the metadata of the agent too."""
        chunks: list[object] = [
            ((), "messages", said_by("lead", "messages")),
            (("tools:1",), "messages", said_by("helper", "messages")),
            (("tools:1", "worker:2"), "messages", said_by("helper", "messages")),
            (("tools:1", "worker:2"), "custom", todos_event(items("a"))),
            (("crew:3",), "messages", said_by("lead", "messages")),
            (("crew:3",), "custom", todos_event(items("b"))),
        ]
        assert names_of(after(*chunks)) == {"a": "worker", "b": "crew"}

    def test_messages_of_other_agents_do_not_name_a_subgraph(self) -> None:
        """A node of a team may return what its members said."""
        chunks: list[object] = [
            (("team:1",), "updates", {"member": {"messages": [AIMessage("a", name="member")]}}),
            (("team:1",), "custom", todos_event(A)),
        ]
        assert names_of(after(*chunks)) == {"a": "team"}

    def test_a_list_that_a_subgraph_shares_is_shown_once(self) -> None:
        known = after(("custom", todos_event(A)), (("worker:1",), "custom", todos_event(A)))
        assert list(map(str, list_part(known))) == ["– [0] a"]  # noqa: RUF001

    def test_it_is_not_shown_again_when_the_graph_changes_it(self) -> None:
        """For example when a supervisor has the next agent go on with it."""
        ticked = done(1)[:2]
        known = after(
            ("custom", todos_event(B)),
            (("worker:1",), "custom", todos_event(ticked)),
            ("updates", {"worker": {"todos": ticked}}),
            ("custom", todos_event(done(2)[:2])),
        )
        assert not known.lists

    def test_it_is_not_shown_again_when_a_subgraph_changes_it(self) -> None:
        """For example in a team; the equal list of another team stays."""
        ticked = done(1)[:2]
        known = after(
            (("other:1",), "custom", todos_event(ticked)),
            (("team:1", "worker:1"), "custom", todos_event(ticked)),
            (("team:1",), "updates", {"worker": {"todos": ticked}}),
            (("team:1",), "custom", todos_event(done(2)[:2])),
        )
        assert [path for path, _ in known.lists] == [("other:1",), ("team:1",)]

    def test_a_list_can_be_below_a_graph_without_one(self) -> None:
        known = after((("worker:1", "helper:2"), "custom", todos_event(A)))
        assert list(map(str, list_part(known)))[-1].endswith("– [0] a")  # noqa: RUF001

    def test_changes_of_a_subgraph_are_printed_after_its_name(self) -> None:
        """The lists of the others are not printed again."""
        lists = [((f"{name}:1",), "custom", todos_event(B)) for name in ("reader", "worker")]
        before = after(*lists)
        now = advance(before, (("worker:1",), "custom", todos_event(done(1)[:2])))
        assert list(map(str, changes(before, now))) == ["worker: ✓ [0] a", "worker: 📋 1/2"]

    def test_a_graph_with_subgraphs_is_followed(self) -> None:
        """Each subgraph has its own list, and so has the parent."""

        def parent(_: Any) -> Any:
            return {"todos": items("Lead")}

        builder: Any = StateGraph(TodoState)
        builder.add_node("lead", parent)
        inner: Any = StateGraph(Inner)
        inner.add_node("work", worker).add_edge(START, "work")
        builder.add_node("crew", inner.compile())
        builder.add_edge(START, "lead").add_edge("lead", "crew")
        stream = builder.compile().stream(BEGIN, stream_mode=["updates", "custom"], subgraphs=True)
        frames = [after(chunk) for chunk in follow(stream, Frames(), None)]
        assert any(each.lists for each in frames)


def said_by(agent: str, mode: str) -> Any:
    """What an agent of `create_agent` sends when its model has answered."""
    if mode == "messages":
        return AIMessageChunk(content="a"), {"lc_agent_name": agent}
    return {"model": {"messages": [AIMessage("a", name=agent)]}}


def names_of(followed: Followed) -> dict[str, str]:
    """The name that is shown above each list of one item."""
    rows = list(map(str, list_part(followed)))
    return {
        item.partition("] ")[2]: head.partition("└ ")[2].partition(" 📋")[0]
        for head, item in pairwise(rows)
        if "└ " in head
    }


class Inner(TypedDict):
    done: bool


def worker(_: Inner, *, writer: StreamWriter) -> Any:
    writer(todos_event(items("a")))
    return {"done": True}


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
        list(follow(iter([chunk] * 3), frames, None))
        assert [note for note in frames.notes if note] == [NOTHING_TO_SHOW]
        assert 'stream_mode=["updates", "custom"]' in NOTHING_TO_SHOW

    def test_a_state_without_a_list_shows_none(self) -> None:
        """This is the first state of a run, before the model has planned."""
        frames = Frames()
        list(
            follow(iter([("values", {"messages": [], "todos": []}), ("values", {})]), frames, None)
        )
        assert (frames.todos, frames.notes) == ([], [])


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
        ended = advance(running, ("updates", result("first", A)))
        assert ended.outputs == ()
        assert [call for call, _ in ended.open] == ["second"]

    @pytest.mark.parametrize(
        ("event", "call"), [({"command": "ls"}, "2"), ({"command": "rm"}, None), ({}, None)]
    )
    def test_output_without_an_id_belongs_to_the_call_of_its_command(
        self, event: dict[str, str], call: str | None
    ) -> None:
        """Output of another command is not shown."""
        running: list[Any] = [
            {"name": "shell", "args": {"command": command}, "id": number}
            for number, command in (("1", "make"), ("2", "ls"))
        ]
        calls = ("updates", {"agent": {"messages": [turn("", *running)]}})
        known = after(calls, ("custom", {"type": "tool_output", "text": "a", **event}))
        assert known.outputs == (((call, "a", 1),) if call else ())


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

    def test_a_list_that_becomes_shorter_while_it_is_drawn_is_drawn_as_it_was(self) -> None:
        """Another thread draws it."""
        live = LiveLines(lambda: 0.0)

        def rows_of(_: Line) -> int:
            live.see(Followed(A))
            return 1

        live.see(Followed(A))
        live.see(Followed(B))
        rows = live.lines(20, rows_of, working=False)
        assert [str(row) for row in rows][:2] == ["– [0] a", "– [1] b ←"]  # noqa: RUF001

    def test_a_running_call_is_shown_with_its_seconds_and_its_output(self) -> None:
        """The bar shows the progress of the list."""
        now = [0.0]
        live = LiveLines(lambda: now[0])
        call = turn("", {"name": "shell", "args": {"command": "make"}, "id": "1"})
        event = {"type": "tool_output", "tool_call_id": "1", "text": "one\ntw\x1b[2Jo\n"}
        live.see(after(("updates", {"agent": {"messages": [call]}}), ("custom", event)))
        now[0] = 12.5
        assert self.lines(live) == ["  │ one", "  │ tw␛[2Jo", "⠋ 12s shell make"]

    def test_output_of_equal_commands_belongs_to_the_one_that_runs(self) -> None:
        """The event of a command without an id names only the command."""
        make: list[Any] = [
            {"name": "shell", "args": {"command": "make"}, "id": number} for number in "12"
        ]
        calls = ("updates", {"agent": {"messages": [turn("", *make)]}})
        event = ("custom", {"type": "tool_output", "text": "a", "command": "make"})
        ended = ("updates", {"tools": {"messages": [ToolMessage("a", tool_call_id="1")]}})
        assert [output.call for output in after(calls, event).outputs] == ["1"]
        assert [output.call for output in after(calls, ended, event).outputs] == ["2"]
        assert after(event).outputs == ()

    def test_output_that_comes_after_the_result_is_not_shown(self) -> None:
        live = LiveLines(lambda: 0.0)
        event = {"type": "tool_output", "tool_call_id": "first", "text": "late\n"}
        calls = ("updates", {"agent": {"messages": [PLANNED]}})
        live.see(after(calls, ("updates", result("first", A)), ("custom", event)))
        assert not any("late" in line for line in self.lines(live))


LISTED = ["– [0] a", "– [1] b", "📋 0/2  ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌"]  # noqa: RUF001


class TestNotices:
    def test_the_countdown_is_shown_until_the_agent_continues(self) -> None:
        counting = after(("custom", countdown_event(2)), ("custom", countdown_event(1)))
        assert "in 1s" in counting.shown[1]
        assert advance(counting, ("custom", loop_event(None))).shown[1] == ""

    def test_a_notice_stays_until_the_list_changes(self) -> None:
        """The notice says why the loop stopped."""
        stopped = after(("custom", loop_event("limit_in_turn", "⚠ Stopped")))
        assert list(map(str, status_part(stopped))) == ["⚠ Stopped"]
        assert advance(stopped, ("custom", todos_event(A))).shown[:2] == (A, "")

    def test_a_question_is_shown(self) -> None:
        """The loop asks it before it continues."""
        asked = ("updates", {"__interrupt__": (Interrupt(value=continue_question(A)),)})
        assert any("Continue?" in str(line) for line in status_part(after(asked)))


class TestChanges:
    def test_only_changed_items_are_printed_again(self) -> None:
        """The status line follows it."""
        done = [*items("a", status="completed"), *items("b")]
        assert list(map(str, changes(Followed(B), Followed(done)))) == ["✓ [0] a", "📋 1/2"]

    def test_added_items_are_printed_alone(self) -> None:
        """This holds for items at the end."""
        assert list(map(str, changes(Followed(A), Followed(B)))) == [
            "– [1] b",  # noqa: RUF001
            "📋 0/2",
        ]

    def test_a_list_with_moved_items_is_printed_whole(self) -> None:
        """Then the indices have changed."""
        moved = items("b", "a")
        lines = changes(Followed(B), Followed(moved))
        assert list(map(str, lines)) == ["– [0] b", "– [1] a", "📋 0/2"]  # noqa: RUF001

    def test_an_emptied_list_says_so(self) -> None:
        assert list(map(str, changes(Followed(A), Followed([])))) == ["No todos"]

    def test_a_second_of_the_countdown_is_one_line(self) -> None:
        """Nothing else is repeated."""
        lines = changes(Followed(A), Followed(A, countdown="⏳ 3s"))
        assert list(map(str, lines)) == ["⏳ 3s"]
