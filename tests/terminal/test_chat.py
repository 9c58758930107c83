"""The chat: its lines, its thread, and the program in a terminal."""

import asyncio
import os
import re
import select
import signal
import sqlite3
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Interrupt, StateSnapshot
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from typing_extensions import override

from graphs import notes
from graphs.coding_agent import build_coding_agent
from graphs.terminal import checklist as checklist_program
from graphs.terminal import conversation
from graphs.terminal.approval import Answer, Approval
from graphs.terminal.chat import chat_policy, main
from graphs.terminal.commands import (
    Add,
    CommandError,
    Drop,
    Fork,
    Mark,
    Model,
    Plain,
    Redo,
    Rewrite,
    Say,
    Shell,
    Show,
    Switch,
    as_typed,
    edited,
    read_line,
)
from graphs.terminal.conversation import Conversation
from graphs.terminal.cut_off import cut_off_lines
from graphs.terminal.lines import error_lines, show
from graphs.terminal.question import is_cut
from graphs.terminal.thread import Thread, branch_numbers, current_branch, moments, tips
from graphs.terminal.thread_views import (
    branches_view,
    history_view,
    last_exchange,
    threads_view,
    whole_result,
)
from graphs.terminal.typed import drop_typed
from graphs.until_done import build_graph
from tests.consoles import RecordingConsole
from tests.screens import Emulator
from tests.strategies import todo_lists
from tests.support import checklist, edit, items, plan
from tests.terminal.repositories import repository
from tests.waiting import LONG, await_for, wait_for_file
from todo_tools._list.todos import validate_todos
from todo_tools.rendering._lines import in_view, list_lines
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_from_user, is_injected


class TestLines:
    @pytest.mark.parametrize(
        ("line", "meaning"),
        [
            ("Build it.", Say("Build it.")),
            (" /etc/hosts is wrong ", Say("/etc/hosts is wrong")),
            ("/todos", Plain("todos")),
            ("/quit ", Plain("quit")),
            ("/exit", Plain("quit")),
            ("quit", Plain("quit")),
            (" Exit ", Plain("quit")),
            ("?", Plain("help")),
            ("quit the editor", Say("quit the editor")),
            ("/edit add Cut the wood", Add("Cut the wood")),
            ("/edit drop 2", Drop(2)),
            ("/edit 2 start", Mark(2, "in_progress")),
            ("/edit 2 done", Mark(2, "completed")),
            ("/edit 2 abandon", Mark(2, "abandoned")),
            ("/edit 2 open", Mark(2, "not_started")),
            ("/edit 2 completed", Mark(2, "completed")),
            ("/edit 2 complete", Mark(2, "completed")),
            ("/edit 2 in_progress", Mark(2, "in_progress")),
            ("/edit 2 not_started", Mark(2, "not_started")),
            ("/edit 2 Abandoned", Mark(2, "abandoned")),
            ("/edit 2 done by noon", Rewrite(2, "done by noon")),
            ("/fork 7", Fork(7)),
            ("/fork 7 Try  another way", Fork(7, "Try  another way")),
            ("!git diff ", Shell("git diff")),
            (" !important", Say("!important")),
            ("!", Say("!")),
            ("/diff", Plain("diff")),
            ("/clear", Plain("clear")),
            ("/model openai:gpt-5", Model("openai:gpt-5")),
            ("/show", Show(1)),
            ("/show 3", Show(3)),
            ("/redo 0", Redo(0)),
            ("/redo 3 Use  the other library", Redo(3, "Use  the other library")),
            ("/switch 2", Switch(2)),
        ],
    )
    def test_a_line_is_a_message_or_a_command(self, line: str, meaning: object) -> None:
        """Only a line that begins with a slash is a command."""
        assert read_line(line) == meaning

    @pytest.mark.parametrize("message", ["go on", "!ls is slow", "/etc is empty"])
    def test_a_message_that_returns_to_the_input_stays_a_message(self, message: str) -> None:
        """Enter must not run it as a command."""
        assert read_line(as_typed(message)) == Say(message)

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("/", "no command '/'; /help lists them"),
            ("/nope\x1b[2J", "no command '/nope␛[2J'"),
            ("/todos now", "/todos takes no argument, got 'now'"),
            ("/edit", "/edit takes one of /edit add TEXT"),
            ("/edit 2", "/edit takes one of"),
            ("/edit two done", "N must be a whole number in /edit add TEXT"),
            ("/edit drop -1", "N must be a whole number in /edit drop N, got '-1'"),
            ("/model", "NAME is missing in /model NAME"),
            ("/fork", "N must be a whole number in /fork N [MESSAGE], got ''"),
            ("/redo", "N must be a whole number in /redo N [MESSAGE], got ''"),
            ("/redo two", "N must be a whole number in /redo N [MESSAGE], got 'two'"),
            ("/switch ²", "N must be a whole number in /switch N"),
        ],
    )
    def test_an_invalid_command_is_refused_in_one_line(self, line: str, reason: str) -> None:
        """The error names the valid forms, and escapes control characters."""
        with pytest.raises(CommandError, match=re.escape(reason)):
            read_line(line)


class TestEditing:
    def test_each_edit_changes_what_it_names(self) -> None:
        """The given list is not changed."""
        todos = items("a", "b")
        assert edited(todos, Add("c")) == items("a", "b", "c")
        assert edited(todos, Drop(0)) == items("b")
        assert edited(todos, Rewrite(1, "c")) == items("a", "c")
        assert edited(todos, Mark(0, "completed")) == [
            *items("a", status="completed"),
            *items("b"),
        ]
        assert todos == items("a", "b")

    def test_an_item_that_is_not_there_cannot_be_edited(self) -> None:
        """The reason names the items that exist."""
        with pytest.raises(CommandError, match=re.escape("no item [2]; items are 0 to 1")):
            edited(items("a", "b"), Drop(2))
        with pytest.raises(CommandError, match="the list is empty"):
            edited([], Mark(0, "completed"))

    @given(todos=todo_lists, line=st.text(max_size=30).map("/edit ".__add__))
    def test_no_edit_makes_a_list_that_the_state_would_refuse(self, todos: Any, line: str) -> None:
        """Any input gives a valid list or an error of one line."""
        try:
            asked = read_line(line)
            assert isinstance(asked, Add | Drop | Mark | Rewrite)
            after = edited(todos, asked)
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:
            assert validate_todos(after) == after


def checkpoint(name: str, parent: str | None, **values: Any) -> StateSnapshot:
    def config(checkpoint_id: str) -> RunnableConfig:
        return {"configurable": {"thread_id": "t", "checkpoint_id": checkpoint_id}}

    return StateSnapshot(
        values=values,
        next=(),
        config=config(name),
        metadata={"source": "loop", "step": 0, "parents": {}},
        created_at=None,
        parent_config=config(parent) if parent else None,
        tasks=(),
        interrupts=(),
    )


def names(snapshots: Any) -> list[str]:
    return [snapshot.config["configurable"]["checkpoint_id"] for snapshot in snapshots]


# a - b - c     c came first, so it continues branch 1; d and e each begin one.
#  \    \ e
#   d
TREE = [
    checkpoint("e", "b", todos=items("e")),
    checkpoint("d", "a", todos=items("d\nd")),
    checkpoint("c", "b", todos=items("c", status="completed")),
    checkpoint("b", "a", messages=[AIMessage("b")]),
    checkpoint("a", None),
]
threads = st.lists(st.integers(0, 20), max_size=20).map(
    lambda parents: [
        checkpoint(f"{at:02}", f"{min(parent, at - 1):02}" if at else None)
        for at, parent in enumerate(parents)
    ][::-1]
)


class TestBranches:
    def test_the_first_child_continues_the_branch(self) -> None:
        """Each later child of a checkpoint begins a new branch."""
        assert branch_numbers(TREE) == {"a": 1, "b": 1, "c": 1, "d": 2, "e": 3}
        assert names(tips(TREE).values()) == ["c", "d", "e"]
        assert current_branch(TREE) == 3

    def test_moments_are_the_checkpoints_that_lead_to_the_newest(self) -> None:
        """They are in order, and other branches are left out."""
        assert names(moments(TREE)) == ["a", "b", "e"]
        assert moments([]) == []

    @given(history=threads)
    def test_a_branch_keeps_its_number(self, history: list[StateSnapshot]) -> None:
        """Later checkpoints do not change it, and each branch has one tip."""
        numbers = branch_numbers(history)
        for count in range(len(history)):
            earlier = branch_numbers(history[count:])
            assert earlier.items() <= numbers.items()
        parents = [snapshot.parent_config for snapshot in history if snapshot.parent_config]
        above = {config["configurable"]["checkpoint_id"] for config in parents}
        assert set(names(tips(history).values())) == set(names(history)) - above

    def test_each_branch_is_shown_with_its_own_list(self) -> None:
        """The current branch is marked, and no text can forge another line."""
        assert str(branches_view(TREE)).splitlines() == [
            "   1  ✓ Done (1 item)",
            "      ✓ [0] c",
            "   2  📋 0/1",
            "      – [0] d␊d",  # noqa: RUF001
            "▸  3  📋 0/1",
            "      – [0] e",  # noqa: RUF001
        ]

    def test_an_item_that_was_done_again_is_marked_on_each_branch_that_has_it(self) -> None:
        """It may be done again more than once, and have another index there."""
        redone: Any = {"source": "update", "step": 0, "parents": {}, "redone": "x"}
        history = [
            checkpoint("f", "b", todos=items("x"))._replace(metadata=redone),
            checkpoint("e", "b", todos=items("y", "x"))._replace(metadata=redone),
            checkpoint("d", "a", todos=items("x")),
            *TREE[2:],
        ]
        history[3] = checkpoint("c", "b", todos=items("x"))
        assert str(branches_view(history)).splitlines()[1:] == [
            "      – [0] x  ← done again on branch 3 and 4",  # noqa: RUF001
            "   2  📋 0/1",
            "      – [0] x",  # noqa: RUF001
            "   3  📋 0/2",
            "      – [0] y",  # noqa: RUF001
            "      – [1] x  ← done again on branch 3 and 4",  # noqa: RUF001
            "▸  4  📋 0/1",
            "      – [0] x  ← done again on branch 3 and 4",  # noqa: RUF001
        ]

    def test_the_history_is_numbered_and_shows_the_list_where_it_changed(self) -> None:
        """One line says what happened at each checkpoint."""
        ask, answer = (
            HumanMessage("Go\nnow", id="1"),
            AIMessage("", tool_calls=[call("list_todos")]),
        )
        result = ToolMessage("✓ [0] a\nmore", name="shell", tool_call_id="1")
        way = [
            checkpoint("a", None),
            checkpoint("b", "a", messages=[ask]),
            checkpoint("c", "b", messages=[ask, answer], todos=items("x")),
            checkpoint("d", "c", messages=[ask, answer, result], todos=items("x")),
            checkpoint(
                "e",
                "d",
                messages=[ask, answer, result],
                todos=items("x"),
                todo_loop={"outcome": "no_todos"},
            ),
        ]
        assert str(history_view(way)).splitlines() == [
            "   1  the beginning",
            "   2  › Go…",  # noqa: RUF001
            "   3  → list_todos",
            "      – [0] x",  # noqa: RUF001
            "      📋 0/1",
            "   4  │ shell: ✓ [0] a …",
            "   5  stopped: no_todos",
        ]

    def test_threads_are_shown_with_the_first_message(self) -> None:
        shown = threads_view([checkpoint("a", None, messages=[HumanMessage("Go\nnow")])])
        assert str(shown).endswith("  t  No todos Go…")

    def test_a_thread_is_shown_with_its_time(self) -> None:
        """It is the local time of the newest checkpoint."""
        at = checkpoint("a", None)._replace(created_at="2026-11-22T12:00:00+00:00")
        local = datetime(2026, 11, 22, 12, tzinfo=UTC).astimezone()
        assert str(threads_view([at])).startswith(f"  {local:%Y-%m-%d %H:%M}  t  No todos")

    def test_a_list_that_changed_is_not_repeated_whole(self) -> None:
        todos = items("x", "y")
        after = [*items("x", status="completed"), *items("y")]
        way = [checkpoint("a", None, todos=todos), checkpoint("b", "a", todos=after)]
        assert str(history_view(way)).splitlines()[4:] == [
            "   2  the list changed",
            "      ✓ [0] x",
            "      📋 1/2",
        ]

    def test_a_result_is_shown_in_full(self) -> None:
        """While the agent works, only the end of a long output is shown, and not all of a call."""
        command, output = "x" * 5_000, "\n".join(map(str, range(100)))
        asked = turn("", call("execute", command=command))
        done = [
            asked,
            ToolMessage(output, name="execute", tool_call_id=str(asked.tool_calls[0]["id"])),
            turn("", call("edit_todos", action="start", indices=[0]), call("ls", path="a")),
        ]
        rows = [str(line) for line in whole_result(done, 1)]
        assert rows == ["→ execute", f"    command: {command}", *output.split("\n")]
        with pytest.raises(CommandError, match="no result 2; there are 1"):
            list(whole_result(done, 2))

    def test_the_last_exchange_is_the_last_message_and_its_answer(self) -> None:
        said = [HumanMessage("One"), AIMessage("1"), HumanMessage("Two"), AIMessage("2")]
        shown = [str(each) for each in last_exchange({"messages": said})]
        assert shown == ["› Two", "💬 2"]  # noqa: RUF001
        assert list(last_exchange({"messages": []})) == []


def test_a_call_that_was_cut_off_is_named_if_an_earlier_turn_had_its_id() -> None:
    """Some model servers use the same ids again."""
    made = turn("", {**call("shell", command="make"), "id": "1"})
    done = ToolMessage("exit code 0", tool_call_id="1")
    stopped = checkpoint("1", None, messages=[made, done, made])._replace(next=("tools",))
    (named,) = cut_off_lines(stopped)
    assert "Shell make" in str(named)


def test_a_long_command_that_was_cut_off_is_named_whole() -> None:
    command = f"make {'x' * 300} && make install"
    messages = [turn("", call("shell", command=command))]
    stopped = checkpoint("1", None, messages=messages)._replace(next=("tools",))
    assert command in "".join(str(line) for line in cut_off_lines(stopped))


class TestScreen:
    def test_a_long_list_is_shown_around_the_item_in_progress(self) -> None:
        """A last line counts the items above and below."""
        todos = items(*"abcdefgh")
        todos[5]["status"] = "in_progress"
        assert [str(row) for row in in_view(list_lines(todos), 4)] == [
            "● [5] f",
            "– [6] g",  # noqa: RUF001
            "– [7] h",  # noqa: RUF001
            "(5 above)",
        ]
        assert len(in_view(list_lines(todos), 8)) == 8

    @given(todos=todo_lists, height=st.integers(1, 10))
    def test_the_item_in_progress_is_always_in_view(self, todos: Any, height: int) -> None:
        rows = list_lines(todos)
        shown = in_view(rows, height)
        assert len(shown) <= height
        started = [row for row in rows if row.status == "in_progress"]
        assert not started or started[0] in shown


class TestPolicy:
    """The chat never talks over the person in front of it."""

    @staticmethod
    def talk(*script: AIMessage | str, waiting: list[str], said: str = "Begin.") -> Any:
        """The thread after one message to an agent with an open item."""
        policy = chat_policy(0, waiting)
        graph = build_graph(ScriptedChatModel(script=script), policy=policy).compile()
        return graph.invoke({"messages": [("user", said)], "todos": items("a")})

    @pytest.mark.parametrize("answer", ["Which colour?", "I stopped."])
    def test_an_answer_without_work_ends_the_run(self, answer: str) -> None:
        """So "stop" stops."""
        final = self.talk(answer, waiting=[], said="Stop.")
        assert not any(map(is_injected, final["messages"]))

    def test_a_question_after_work_ends_the_run(self) -> None:
        final = self.talk(turn("", call("list_todos")), "Which colour?", waiting=[])
        assert final["todo_loop"]["outcome"] == "stop_condition"

    def test_a_message_that_waits_is_sent_in_place_of_a_continuation(self) -> None:
        final = self.talk(turn("", call("list_todos")), "I rest.", waiting=["Stop."])
        assert final["todo_loop"]["outcome"] == "stop_condition"


class KilledError(Exception):
    """Ends a run just before a checkpoint is stored."""


class MortalSaver(AsyncSqliteSaver):
    """A store whose program is killed between the result of a tool and the next checkpoint."""

    @override
    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if any(
            isinstance(m, ToolMessage) for m in checkpoint["channel_values"].get("messages", [])
        ):
            raise KilledError
        return await super().aput(config, checkpoint, metadata, new_versions)


class TestMoving:
    def thread(self) -> Thread:
        script: list[AIMessage | str] = [
            turn("", call("write_todos", mode="replace", todos=["a"])),
            turn("", call("edit_todos", action="complete", indices=[0])),
            "Done.",
            "Other.",
            "Again.",
        ]
        graph = build_graph(ScriptedChatModel(script=script)).compile(checkpointer=InMemorySaver())
        return Thread(graph, {"configurable": {"thread_id": "1"}, "metadata": {"workdir": "w"}})

    def starting_thread(self) -> Thread:
        script: list[AIMessage | str] = [
            plan("a", "b"),
            edit("start", 1),
            edit("complete", 0),
            edit("start", 1),  # is started
            edit("abandon", 1),
            edit("start", 1),
            edit("complete", 1),
            *["Done.", "Other."],
        ]
        graph = build_graph(ScriptedChatModel(script=script)).compile(checkpointer=InMemorySaver())
        return Thread(graph, {"configurable": {"thread_id": "1"}, "metadata": {"workdir": "w"}})

    async def say(self, thread: Thread, text: str | None) -> list[str]:
        async for _ in thread.run(text):
            pass
        return [message.text for message in (await thread.now()).values["messages"]]

    async def test_forking_and_switching_give_each_branch_its_own_list(self) -> None:
        """Each branch also has its own history, which the next message continues."""
        thread = self.thread()
        await self.say(thread, "Begin.")
        way = moments(await thread.history())
        before = next(n for n, s in enumerate(way, 1) if s.values.get("todos") == items("a"))
        await thread.fork(before)
        assert (await thread.now()).values["todos"] == items("a")
        await thread.replace_todos(items("b", status="abandoned"))
        said = await self.say(thread, "Differently.")
        assert said[-2:] == ["Differently.", "Other."]
        assert "Done." not in said
        assert current_branch(await thread.history()) == 2
        await thread.switch(1)
        assert (await thread.now()).values["todos"] == items("a", status="completed")
        assert (await self.say(thread, "Well?"))[-3:] == ["Done.", "Well?", "Again."]
        history = await thread.history()
        assert current_branch(history) == 1
        assert tips(history)[2].values["todos"] == items("b", status="abandoned")

    async def test_the_user_can_go_back_to_every_moment(self) -> None:
        """The next step there is the same, and the thread still knows its directory."""
        thread = self.thread()
        await self.say(thread, "Begin.")
        way = moments(await thread.history())
        end = current_branch(await thread.history())
        for number, moment in enumerate(way, start=1):
            await thread.fork(number)
            now = await thread.now()
            assert now.values == moment.values
            assert now.metadata is not None
            assert now.metadata.get("workdir") == "w"
            if number > 1:
                assert now.next == moment.next
            await thread.switch(end)

    async def test_the_history_has_one_line_for_each_message(self, tmp_path: Path) -> None:
        """An agent of `create_agent` has a checkpoint after each hook of its middleware, too."""
        plan = turn("", call("write_todos", mode="replace", todos=["a"]))
        script: list[AIMessage | str] = [plan, "Done.", "Done."]
        graph = build_coding_agent(
            ScriptedChatModel(script=script), tmp_path, checkpointer=InMemorySaver()
        )
        thread = Thread(graph, {"configurable": {"thread_id": "1"}})
        await self.say(thread, "Begin.")
        view = history_view(moments(await thread.history()))
        assert [str(line)[6:] for line in view.lines if str(line)[3].isdigit()] == [
            "the beginning",
            "› Begin.",  # noqa: RUF001
            "→ write_todos replace (1 items)",
            "│ write_todos: Wrote 1 todo item(s) …",
            "💬 Done.",
            "↻ sent back to work",
            "💬 Done.",
            "stopped: stalled",
        ]

    async def test_a_list_cannot_be_edited_while_a_call_waits(self) -> None:
        """Its command may have ended; the kept result belongs to this checkpoint."""
        model = ScriptedChatModel(script=[turn("", call("list_todos"))])
        graph = build_graph(model).compile(checkpointer=InMemorySaver(), interrupt_before=["tools"])
        thread = Thread(graph, {"configurable": {"thread_id": "1"}})
        await self.say(thread, "Begin.")
        with pytest.raises(CommandError, match="the calls of the last answer come first; /go"):
            await thread.replace_todos(items("a"))

    async def test_a_list_cannot_be_edited_before_the_results_are_in_a_checkpoint(self) -> None:
        """They are stored, but the program was killed or the disk was full before the next one."""
        model = ScriptedChatModel(script=[turn("", call("list_todos"))])
        async with MortalSaver.from_conn_string(":memory:") as saver:
            graph = build_graph(model).compile(checkpointer=saver)
            thread = Thread(graph, {"configurable": {"thread_id": "1"}})
            with pytest.raises(KilledError):
                await self.say(thread, "Begin.")
            with pytest.raises(CommandError, match="the calls of the last answer come first; /go"):
                await thread.replace_todos(items("a"))

    async def test_after_an_edit_an_agent_that_was_sent_back_works_on(self, tmp_path: Path) -> None:
        """The user stopped it, or the model failed, before it answered the continuation."""

        def answer(prompt: list[BaseMessage]) -> AIMessage | str:
            if not is_injected(prompt[-1]):
                return plan("a") if len(prompt) < 3 else "Done."
            raise ConnectionError

        graph = build_coding_agent(
            ScriptedChatModel(script=answer), tmp_path, checkpointer=InMemorySaver()
        )
        thread = Thread(graph, {"configurable": {"thread_id": "1"}})
        with pytest.raises(ConnectionError):
            await self.say(thread, "Begin.")
        before = await thread.now()
        await thread.replace_todos(items("b"))
        assert (await thread.now()).next == before.next == ("model",)
        assert (await thread.now()).values == {**before.values, "todos": items("b")}
        with pytest.raises(ConnectionError):
            await self.say(thread, None)

    async def test_a_thread_can_start_with_the_users_own_list(self) -> None:
        thread = self.thread()
        await thread.replace_todos(items("a"))
        assert (await thread.now()).values["todos"] == items("a")

    async def test_an_item_is_done_again_from_its_last_start(self) -> None:
        """The list and the history are those before the answer that started it."""
        thread = self.starting_thread()
        await self.say(thread, "Begin.")
        end = await thread.now()
        await thread.redo(1)
        now = await thread.now()
        assert todos_in(now.values) == [
            *items("a", status="completed"),
            *items("b", status="abandoned"),
        ]
        assert now.next == ("agent",)
        assert now.metadata is not None
        assert now.metadata.get("workdir") == "w"
        said = await self.say(thread, "In another way.")
        assert said[-2:] == ["In another way.", "Other."]
        await thread.switch(1)
        assert (await thread.now()).values == end.values

    async def test_the_branches_mark_it(self) -> None:
        """Both say where it was done again."""
        thread = self.starting_thread()
        await self.say(thread, "Begin.")
        await thread.redo(1)
        await self.say(thread, "In another way.")
        shown = str(branches_view(await thread.history())).splitlines()
        assert shown == [
            "   1  ✓ Done (2 items) Begin.",
            "      ✓ [0] a",
            "      ✓ [1] b  ← done again on branch 2",
            "▸  2  ✓ 1 completed, ✗ 1 abandoned In another way.",
            "      ✓ [0] a",
            "      ✗ [1] b  ← done again on branch 2",
        ]

    async def test_only_an_item_that_the_agent_started_can_be_done_again(self) -> None:
        """The error says what there is, and nothing is written."""
        thread = self.thread()
        with pytest.raises(CommandError, match=r"no item \[0\]; the list is empty"):
            await thread.redo(0)
        await self.say(thread, "Begin.")
        before = await thread.history()
        with pytest.raises(CommandError, match=r"the agent has not started \[0\]"):
            await thread.redo(0)
        with pytest.raises(CommandError, match="items are 0 to 0"):
            await thread.redo(1)
        assert await thread.history() == before

    async def test_unknown_checkpoints_and_branches_are_refused(self) -> None:
        """The error says how many there are."""
        thread = self.thread()
        with pytest.raises(CommandError, match="no checkpoint 1; /history lists 0"):
            await thread.fork(1)
        with pytest.raises(CommandError, match="no branch 1; /branches lists 0"):
            await thread.switch(1)

    async def test_going_to_the_current_place_writes_no_checkpoint(self) -> None:
        thread = self.thread()
        await self.say(thread, "Begin.")
        history = await thread.history()
        await thread.fork(len(moments(history)))
        await thread.switch(1)
        assert len(await thread.history()) == len(history)


class SlowThread(Thread):
    """A thread whose state cannot be read while it is held."""

    def __init__(self, graph: Any) -> None:
        super().__init__(graph, {"configurable": {"thread_id": "1"}})
        self.held: Callable[[], bool] = lambda: False

    async def now(self) -> StateSnapshot:
        await await_for(lambda: not self.held(), "the thread to be readable")
        return await super().now()


async def talk_until_asked(chat: Conversation, typed: PipeInput) -> asyncio.Task[None]:
    """Begin a chat whose first run ends in a question, and wait for the question."""
    talk = asyncio.create_task(chat.talk())
    typed.send_text("Begin.\r")
    await await_for(lambda: chat.asked and not chat.working, "the run to end in a question")
    return talk


async def talk_past_the_question(
    chat: Conversation, thread: SlowThread, typed: PipeInput
) -> tuple[asyncio.Task[None], asyncio.Event]:
    """Withdraw the question by `/fork` to where it is; an event lets the run that begins go on."""
    talk = await talk_until_asked(chat, typed)
    here = len(moments(await thread.history()))
    go_on = asyncio.Event()
    thread.held = lambda: chat.working and not go_on.is_set()
    typed.send_text(f"/fork {here} Write nothing.\r")
    await await_for(lambda: chat.working, "the agent to work")
    return talk, go_on


class TestAnswering:
    @pytest.fixture
    def thread(self, tmp_path: Path) -> SlowThread:
        """A coding agent that asks before it writes a file, and then answers."""
        script: list[AIMessage | str] = [
            turn("", call("write_file", file_path="one", content="1")),
            "Done.",
        ]
        model = ScriptedChatModel(script=[*script, "Noted."])
        return SlowThread(build_coding_agent(model, tmp_path, checkpointer=InMemorySaver()))

    @pytest.fixture
    def typed(self) -> Iterator[PipeInput]:
        with create_pipe_input() as keys, create_app_session(keys, DummyOutput()):
            yield keys

    async def test_an_answer_counts_as_soon_as_the_question_is_shown(
        self, thread: SlowThread, typed: PipeInput, tmp_path: Path
    ) -> None:
        """The run that asked may still be ending; the line is not a message to the agent."""
        chat = Conversation(thread, [], RecordingConsole(width=80))
        answered = asyncio.Event()
        thread.held = lambda: chat.asked and not answered.is_set()
        talk = asyncio.create_task(chat.talk())
        typed.send_text("Begin.\r")
        await await_for(lambda: chat.asked, "the question")
        assert chat.working
        typed.send_text("yes\r")
        await asyncio.sleep(0.1)
        answered.set()
        await await_for(lambda: not (chat.asked or chat.working), "the end of the run")
        typed.send_text("/quit\r")
        await talk
        said = [message.text for message in (await thread.now()).values["messages"]]
        assert (said[0], said[-1], len(said)) == ("Begin.", "Done.", 4)
        assert (tmp_path / "one").exists()

    async def test_a_byte_that_is_not_utf_8_is_replaced(
        self, thread: SlowThread, typed: PipeInput, tmp_path: Path
    ) -> None:
        """Neither the model nor the database would take it, nor the file of what was sent."""
        history = tmp_path / "history"
        console = RecordingConsole(width=80)
        chat = Conversation(thread, [], console, history=str(history))
        talk = asyncio.create_task(chat.talk())
        typed.send_bytes(b"Caf\xe9s, please.\r")
        await await_for(lambda: chat.asked and not chat.working, "the run to end in a question")
        typed.send_text("/quit\r")
        await talk
        first, *_ = (await thread.now()).values["messages"]
        assert first.text == "Caf\ufffds, please."
        assert "Caf\ufffds" in history.read_text("utf-8")

    async def test_enter_takes_the_line_that_a_search_has_found(
        self, thread: SlowThread, typed: PipeInput
    ) -> None:
        """It does not send it; a second Enter does."""
        chat = Conversation(thread, [], RecordingConsole(width=80))
        talk = await talk_until_asked(chat, typed)
        typed.send_text("\x12Beg\r")
        await await_for(lambda: chat.screen.typed.text == "Begin.", "the line")
        assert chat.asked
        typed.send_text("\x0b/quit\r")
        await talk

    async def test_a_search_begun_before_a_question_is_put_aside(
        self, thread: SlowThread, typed: PipeInput
    ) -> None:
        """Otherwise the first key after it would be an answer to the search."""
        chat = Conversation(thread, [], RecordingConsole(width=80))
        layout = chat.screen._session.app.layout
        found = asyncio.Event()
        thread.held = lambda: chat.working and not found.is_set()
        talk = asyncio.create_task(chat.talk())
        typed.send_text("Begin.\r")
        await await_for(lambda: chat.working, "the agent to work")
        typed.send_text("\x12Beg")
        await await_for(lambda: layout.is_searching, "the search to begin")
        found.set()
        await await_for(lambda: chat.asked and not chat.working, "the run to end in a question")
        assert not layout.is_searching
        typed.send_text("/quit\r")
        await talk

    async def test_a_line_that_ctrl_o_sends_is_an_answer(
        self, thread: SlowThread, typed: PipeInput, tmp_path: Path
    ) -> None:
        """The key sends a line and brings back the one after it in the history."""
        waiting: list[str] = []
        chat = Conversation(thread, waiting, RecordingConsole(width=80))
        talk = await talk_until_asked(chat, typed)
        typed.send_text("yes\x0f")
        await await_for(lambda: waiting or not chat.asked, "the line to be handled")
        await await_for(lambda: not chat.working, "the end of the run")
        typed.send_text("/quit\r")
        await talk
        assert (tmp_path / "one").exists()

    async def test_a_line_sent_before_the_question_is_shown_is_not_an_answer(
        self, thread: SlowThread, typed: PipeInput, tmp_path: Path
    ) -> None:
        """It is kept as a message; the question waits for its own answer."""
        waiting: list[str] = []
        chat = Conversation(thread, waiting, RecordingConsole(width=80))
        kept = asyncio.Event()
        thread.held = lambda: chat.working and not kept.is_set()
        talk = asyncio.create_task(chat.talk())
        typed.send_text("Begin.\r")
        await await_for(lambda: chat.working, "the agent to work")
        typed.send_text("yes\r")
        await await_for(lambda: waiting == ["yes"], "the message to be kept")
        kept.set()
        await await_for(lambda: chat.asked and not chat.working, "the run to end in a question")
        assert not (tmp_path / "one").exists()
        assert waiting == ["yes"]
        typed.send_text("no\r")
        await await_for(lambda: not (chat.asked or chat.working or waiting), "the end of the runs")
        typed.send_text("/quit\r")
        await talk
        said = [m.text for m in (await thread.now()).values["messages"] if is_from_user(m)]
        assert said == ["Begin.", "yes"]
        assert not (tmp_path / "one").exists()

    @pytest.mark.parametrize(
        "lines",
        [["go on", "yes"], ["x" * 5_000, "yes"], [*["yes"] * 2_000]],
        ids=["two lines", "a long line", "many lines"],
    )
    async def test_no_line_typed_while_the_program_works_out_the_question_is_an_answer(
        self,
        thread: SlowThread,
        typed: PipeInput,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        lines: list[str],
    ) -> None:
        """The program reads no key in that time, so all of them are still unread after it."""

        def is_cut_slowly(*arguments: Any) -> bool:
            typed.send_text("".join(f"{line}\r" for line in lines))
            return is_cut(*arguments)

        monkeypatch.setattr(conversation, "is_cut", is_cut_slowly)
        chat = Conversation(thread, [], RecordingConsole(width=80))
        talk = await talk_until_asked(chat, typed)
        typed.send_text("/help\r")
        show = AsyncMock()
        monkeypatch.setattr(chat.screen, "show", show)
        await await_for(lambda: show.await_count, "the lines so far to be handled")
        assert chat.asked
        assert chat.approval.decisions == ()
        assert not (tmp_path / "one").exists()
        typed.send_text("/quit\r")
        await talk

    async def test_a_line_sent_before_the_question_but_read_after_it_is_not_an_answer(
        self, thread: SlowThread, typed: PipeInput, tmp_path: Path
    ) -> None:
        """It is kept as a message."""
        waiting: list[str] = []
        chat = Conversation(thread, waiting, RecordingConsole(width=80))
        talk = await talk_until_asked(chat, typed)
        await chat._take("yes")  # as if it had been sent with the line before
        assert waiting == ["yes"]
        assert not (tmp_path / "one").exists()
        typed.send_text("/quit\r")
        await talk

    async def test_a_line_typed_after_a_message_withdrew_the_question_is_not_an_answer(
        self, thread: SlowThread, typed: PipeInput, tmp_path: Path
    ) -> None:
        """`/fork` to the newest checkpoint leaves its question; the message after it ends that."""
        waiting: list[str] = []
        chat = Conversation(thread, waiting, RecordingConsole(width=80))
        talk, go_on = await talk_past_the_question(chat, thread, typed)
        typed.send_text("yes\r")
        await await_for(lambda: waiting == ["yes"], "the message to be kept")
        assert not chat.approval.calls
        go_on.set()
        await await_for(lambda: not (chat.working or waiting), "the end of the runs")
        typed.send_text("/quit\r")
        await talk
        said = [m.text for m in (await thread.now()).values["messages"] if is_from_user(m)]
        assert said == ["Begin.", "Write nothing.", "yes"]
        assert not (tmp_path / "one").exists()

    async def test_a_message_sent_after_the_question_was_withdrawn_and_the_run_stopped_is_one(
        self, thread: SlowThread, typed: PipeInput
    ) -> None:
        chat = Conversation(thread, [], RecordingConsole(width=80))
        talk, go_on = await talk_past_the_question(chat, thread, typed)
        typed.send_text("\x03")
        await await_for(lambda: chat.work is not None and chat.work.cancelling() > 0, "the stop")
        go_on.set()
        await await_for(lambda: not chat.working, "the end of the run")
        stopped_run = chat.work
        typed.send_text("Please write it.\r")
        await await_for(lambda: chat.work is not stopped_run, "the next run")
        await await_for(lambda: not chat.working, "the end of the next run")
        typed.send_text("/quit\r")
        await talk
        said = [m.text for m in (await thread.now()).values["messages"] if is_from_user(m)]
        assert said[-1] == "Please write it."

    @pytest.mark.usefixtures("typed")
    async def test_a_later_plan_of_a_message_is_shown_with_the_earlier_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plans = [
            call("write_todos", mode="replace", todos=["One"]),
            call("write_todos", mode="append", todos=["Two"]),
        ]
        graph = build_coding_agent(
            ScriptedChatModel(script=[turn("", *plans)]),
            tmp_path,
            ask_plan=True,
            checkpointer=InMemorySaver(),
        )
        chat = Conversation(SlowThread(graph), [], RecordingConsole(width=80))
        ask = AsyncMock()
        monkeypatch.setattr(chat.screen, "ask", ask)
        async for _ in chat.thread.run("Begin."):
            pass
        await chat._ask()
        await chat._decide("yes")
        shown = [str(line) for line in ask.await_args_list[-1].args]
        assert shown[2:4] == ["    – [0] One", "    – [1] Two"]  # noqa: RUF001

    @pytest.mark.usefixtures("typed")
    async def test_a_model_that_cannot_be_created_changes_nothing(
        self, thread: SlowThread, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Neither does any model while a message is kept, because it would be lost."""
        waiting = list[str]()
        chat = Conversation(thread, waiting, RecordingConsole(width=80))
        show = AsyncMock()
        monkeypatch.setattr(chat.screen, "show", show)

        async def said(line: str) -> str:
            assert await chat._take(line)
            return str(show.await_args_list[-1].args[0])

        assert (await said("/model nonsense:x")).startswith("error: model 'nonsense:x'")
        waiting.append("Faster, please.")
        for line in ("/model stand-in", "/clear"):
            assert (await said(line)).startswith("error: a message is kept")
        waiting.clear()
        assert not await chat._take("/model stand-in")
        assert chat.change == Model("stand-in")

    @pytest.mark.usefixtures("typed")
    async def test_a_list_alone_is_nothing_to_go_on_with(
        self, thread: SlowThread, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A model cannot answer a prompt without a message."""
        chat = Conversation(thread, [], RecordingConsole(width=80))
        show = AsyncMock()
        monkeypatch.setattr(chat.screen, "show", show)
        await chat._take("/edit add Measure")
        await chat._take("/go")
        assert not chat.working
        said = str(show.await_args_list[-1].args[0])
        assert said == "error: nothing to continue here; send a message"

    @pytest.mark.usefixtures("typed")
    async def test_ctrl_c_while_a_command_is_carried_out_does_not_end_the_program(
        self, thread: SlowThread, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between two prompts, nothing else handles the signal; drawing a diff takes a while."""
        chat = Conversation(thread, [], RecordingConsole(width=80))

        async def interrupted(_: object) -> None:
            os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr(chat, "_carry_out", interrupted)
        before = signal.getsignal(signal.SIGINT)
        assert await chat._take("/diff")
        assert signal.getsignal(signal.SIGINT) == before

    async def test_ctrl_c_at_a_question_returns_the_kept_messages_to_the_input(
        self, thread: SlowThread, typed: PipeInput
    ) -> None:
        """The question stays; the second Ctrl-C clears the line."""
        waiting = ["!make is slow."]
        chat = Conversation(thread, waiting, RecordingConsole(width=80))
        talk = await talk_until_asked(chat, typed)
        typed.send_text("\x03")
        await await_for(lambda: chat.screen.typed.text == " !make is slow.", "the message")
        assert chat.screen.typed.document.is_cursor_at_the_end
        assert not waiting
        assert chat.asked
        typed.send_text("\x03")
        await await_for(lambda: not chat.screen.typed.text, "an empty line")
        assert any("Ctrl-C again leaves" in str(line) for line in chat._foot_lines())
        typed.send_text("/quit\r")
        await talk


class TestUsage:
    @pytest.mark.parametrize(
        ("argv", "reason"),
        [
            ([], "the chat needs a terminal"),
            (["--grace", "-1"], "0 to 60, got '-1'"),
            (["--db", ""], "argument --db: must not be empty"),
            (["--db", ":memory:"], "argument --db: must be a file"),
            (["--workdir", ""], "argument --workdir: must not be empty"),
            (["--agent", "other"], "invalid choice: 'other'"),
            (["--nope"], "unrecognized arguments: --nope; see python -m graphs chat --help"),
        ],
    )
    def test_unusable_input_exits_with_2_and_one_line(
        self, argv: list[str], reason: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Standard input without a terminal is unusable."""
        assert main(argv) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert reason in error
        assert error.count("\n") == 1


def test_the_text_of_an_error_cannot_act_in_the_terminal() -> None:
    """It may come from a provider; the chat shows it and continues."""
    console = RecordingConsole(width=200, color_system=None)
    show(console, *error_lines(RuntimeError("401\n\x1b[2J\x1b]0;title\x07 [red]\u202eno")))
    assert console.written == "error: RuntimeError: 401 ␛[2J␛]0;title␇ [red]<U+202E>no\n"


def test_the_help_of_the_program_names_the_chat(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        checklist_program.main(["--help"])
    assert "python -m graphs chat --help" in " ".join(capsys.readouterr().out.split())


class Terminal(Emulator):
    """The program in a terminal of 80 columns."""

    def __init__(self, *argv: str) -> None:
        chat = ("-m", "graphs", "chat", "--workdir", "work", "--create")
        program = argv if argv[1:] and argv[0] == "-c" else (*chat, *argv)
        super().__init__(*program, rows=40, columns=80)

    @override
    def see(self, *expected: str, within: float = LONG) -> None:
        """Wait until all texts have been on the screen since the last key."""
        self.wait(lambda: all(text in self.drawn for text in expected), within)

    def say(self, line: str) -> None:
        """Paste a text of one or more lines and send it."""
        self.press(f"\x1b[200~{line}\x1b[201~\r")

    def leave(self) -> int:
        self.press("/quit\r")
        return self.end()


@pytest.fixture
def terminals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Terminal]]:
    """The terminals that a test opens; they are closed afterwards."""
    monkeypatch.chdir(tmp_path)
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def begin(terminals: list[Terminal], *argv: str) -> Terminal:
    terminal = Terminal(*argv)
    terminals.append(terminal)
    terminal.see("your turn")
    return terminal


def begin_asked(terminals: list[Terminal], *argv: str) -> Terminal:
    """Start a program whose thread waits for an answer."""
    terminal = Terminal(*argv)
    terminals.append(terminal)
    terminal.see("· yes, no, always, or why not")
    return terminal


def messages(thread: str) -> list[BaseMessage]:
    with SqliteSaver.from_conn_string("todo-threads.sqlite") as saver:
        saved = saver.get_tuple({"configurable": {"thread_id": thread}})
    assert saved is not None
    found: list[BaseMessage] = saved.checkpoint["channel_values"]["messages"]
    return found


HELD = "`until test -e go; do sleep 0.1; done`"
FIVE = checklist(*(f"Step {n}: `echo {n} >> log`" for n in range(5)))


async def store_a_note() -> None:
    """Run the notes agent in the thread `n`, until it is killed."""
    made = turn("", call("notes", action="add", text="buy wood"))
    builder = notes.build_graph(ScriptedChatModel(script=[made]))
    request: Any = {"messages": [("user", "note: buy wood")]}
    async with MortalSaver.from_conn_string("todo-threads.sqlite") as saver:
        graph = builder.compile(checkpointer=saver)
        config: RunnableConfig = {"configurable": {"thread_id": "n"}}
        await graph.ainvoke(request, config, durability="sync")


PASSED = """
import sys
from graphs.terminal import agents, chat
from todo_tools.testing import ScriptedChatModel, call, turn
write = call("write_file", file_path="three", content="hello")
first, second = (call("execute", command=f"touch {name}") for name in ("one", "two"))
script = [turn("", first), turn("", second, write), "Done."]
agents.chat_model = lambda *_, **__: ScriptedChatModel(script=script)
argv = ["--agent", "coding", "--workdir", "work", "--create", "--grace", "0"]
sys.exit(chat.main(argv))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
class TestTerminal:
    def test_the_agent_works_through_a_checklist_in_view(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """The list, the status and the countdown change in place; nobody needs to type."""
        terminal = begin(terminals, "--thread", "t", "--grace", "2")
        terminal.say(checklist("One: `echo 1 >> log`", f"Two: {HELD}", "Three", "Four", "Five"))
        terminal.see("→ Shell echo 1 >> log", "✓ [0] One", "● [1] Two", "– [2] Three")  # noqa: RUF001
        terminal.see("📋 1/5 · working, Ctrl-C stops it")
        (tmp_path / "work" / "go").touch()
        terminal.see(
            "⏳ Auto-continuing in 2s... (type anything to interrupt)",
            "↻ not finished: sent back to work (continuation 1)",
            "💬 5 of 5 steps are completed.",
            "✓ Done (5 items) · your turn",
        )
        assert terminal.leave() == 0
        assert (tmp_path / "work" / "log").read_text() == "1\n"
        assert sum(map(is_injected, messages("t"))) == 1

    def test_an_empty_thread_and_another_model_keep_the_rest(
        self, terminals: list[Terminal]
    ) -> None:
        """The program goes on; its last command resumes the last thread."""
        terminal = begin(terminals, "--thread", "t", "--agent", "notes")
        terminal.say("note: buy wood")
        terminal.see("💬 Note #1 saved", "your turn")
        terminal.press("/clear\r")
        terminal.see("agent notes, model stand-in", "No todos · your turn")
        terminal.say("What is there?")
        terminal.see("💬 No notes saved yet.", "your turn")
        terminal.press("/model stand-in\r")
        terminal.see("› What is there?", "your turn")  # noqa: RUF001
        assert terminal.leave() == 0
        (other,) = re.findall(r"resume with: .* --thread (\w+)", terminal.text)
        assert other != "t"
        assert [len(messages(name)) for name in ("t", other)] == [4, 4]

    def test_typing_stops_the_countdown(self, terminals: list[Terminal]) -> None:
        """No continuation is sent; the typed text becomes the next message."""
        terminal = begin(terminals, "--thread", "t", "--grace", "60")
        terminal.say(FIVE)
        terminal.see("⏳ Auto-continuing in 60s")
        terminal.press("W")
        terminal.see("Not continued. Enter sends what you type instead", "📋 3/5 · your turn")
        assert not any(map(is_injected, messages("t")))
        terminal.press("ait, what is left?\r")
        terminal.see("→ Shell echo 3 >> log", "✓ Done (5 items) · your turn")
        terminal.leave()
        said = [message.text for message in messages("t") if is_from_user(message)]
        assert said == [FIVE, "Wait, what is left?"]
        assert not any(map(is_injected, messages("t")))

    def test_a_stopped_countdown_can_be_resumed(self, terminals: list[Terminal]) -> None:
        terminal = begin(terminals, "--thread", "t", "--grace", "2")
        terminal.say(FIVE)
        terminal.see("⏳ Auto-continuing in 2s")
        terminal.press("/")
        terminal.see("Not continued.", "📋 3/5 · your turn")
        terminal.press("go\r")
        terminal.see("↻ not finished: sent back to work", "✓ Done (5 items) · your turn")
        terminal.leave()

    def test_ctrl_c_stops_the_agent_and_not_the_program(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """Its command ends too, and the next message is answered."""
        terminal = begin(terminals, "--thread", "t")
        terminal.say(
            checklist("Wait: `echo began >> log; test -e go || sleep 600; echo end >> log`")
        )
        terminal.wait((tmp_path / "work" / "log").exists)
        terminal.press("\x03")
        terminal.see("Stopped. Send a message, or /go", "📋 0/1 · your turn")
        (tmp_path / "work" / "go").touch()
        terminal.press("Go on.\r")
        terminal.see("1 of 1 steps are completed.", "✓ Done (1 item) · your turn")
        assert terminal.leave() == 0
        assert (tmp_path / "work" / "log").read_text() == "began\nbegan\nend\n"

    def test_a_signal_ends_the_agent_and_then_the_program(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """As Ctrl-C and /exit do: it says how to resume the thread."""
        terminal = begin(terminals, "--thread", "t")
        terminal.say(checklist("Wait: `touch began; sleep 600`"))
        terminal.wait((tmp_path / "work" / "began").exists)
        terminal.child.kill(signal.SIGTERM)
        assert terminal.end() == 130
        assert "resume with: python -m graphs chat" in terminal.text
        assert "error" not in terminal.everything

    def test_a_message_to_a_working_agent_waits_until_it_stops(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """It replaces a continuation. Meanwhile, commands that move the thread are refused."""
        terminal = begin(terminals, "--thread", "t", "--grace", "3")
        terminal.say(checklist(f"Wait: {HELD}", "a", "b", "c"))
        terminal.see("→ Shell until test -e go")
        terminal.press("Faster, please.\r")
        terminal.see("kept: Faster, please.")
        terminal.press("/edit drop 0\r")
        terminal.see("error: the agent is working; stop it with Ctrl-C first")
        (tmp_path / "work" / "go").touch()
        terminal.see("✓ Done (4 items) · your turn")
        terminal.leave()
        assert not any(map(is_injected, messages("t")))
        said = [message.text for message in messages("t") if is_from_user(message)]
        assert said[1:] == ["Faster, please."]

    def with_a_kept_message(self, terminals: list[Terminal]) -> Terminal:
        """A chat whose agent works while a message waits."""
        terminal = begin(terminals, "--thread", "t")
        terminal.say(checklist("Wait: `sleep 600`"))
        terminal.see("→ Shell sleep 600")
        terminal.press("Faster, please.\r")
        terminal.see("kept: Faster, please.")
        return terminal

    @pytest.mark.parametrize("keys", ["/exit\r", "\x04"])
    def test_a_message_that_was_not_sent_before_the_end_is_named(
        self, keys: str, terminals: list[Terminal]
    ) -> None:
        terminal = self.with_a_kept_message(terminals)
        terminal.press(keys)
        assert terminal.end() == 0
        assert "not sent: Faster, please." in terminal.text

    def test_ctrl_c_clears_the_line_and_then_leaves(self, terminals: list[Terminal]) -> None:
        """This happens if the agent is not working."""
        terminal = begin(terminals)
        terminal.press("never mind")
        terminal.see("never mind")
        terminal.press("\x03")
        terminal.see("Ctrl-C again leaves")
        terminal.press("\x03")
        assert terminal.end() == 0

    def test_ctrl_c_returns_the_waiting_message_to_the_input(
        self, terminals: list[Terminal]
    ) -> None:
        """It was meant for a later moment, so the user must press Enter again."""
        terminal = self.with_a_kept_message(terminals)
        terminal.press("\x03")
        terminal.see("Stopped.", "> Faster, please.", "📋 0/1 · your turn")
        terminal.press("\x03\x04")
        assert terminal.end() == 0
        assert sum(map(is_from_user, messages("t"))) == 1

    def test_files_that_cannot_be_used_are_named(self, terminals: list[Terminal]) -> None:
        """The error is one line, and the exit code is 2."""
        Path("text.md").write_text("- [ ] a\n" * 100)
        for argv, reason in (
            (["--db", "text.md"], "error: --db text.md cannot be used: file is not a database"),
            (["--workdir", "text.md"], "error: --workdir text.md cannot be used: File exists"),
        ):
            terminal = Terminal(*argv)
            terminals.append(terminal)
            terminal.see(reason)
            assert terminal.end() == 2

    def test_the_list_is_shown_and_edited_by_hand(self, terminals: list[Terminal]) -> None:
        """Errors take one line and change nothing."""
        terminal = begin(terminals, "--thread", "t")
        terminal.press("/todos\r")
        terminal.see("No todos")
        for line, shown in (
            ("/edit add Measure", "– [0] Measure"),  # noqa: RUF001
            ("/edit add Cut", "– [1] Cut"),  # noqa: RUF001
            ("/edit 0 done", "✓ [0] Measure"),
            ("/edit 1 Cut twice", "– [1] Cut twice"),  # noqa: RUF001
            ("/edit 5 done", "error: no item [5]; items are 0 to 1"),
            ("/edit drop 0", "– [0] Cut twice"),  # noqa: RUF001
            ("/nope", "error: no command '/nope'; /help lists them"),
            ("/help", "/branches, /switch N   list the branches, each with its list"),
            ("Go on.", "→ edit_todos start [0]"),
        ):
            terminal.press(f"{line}\r")
            terminal.see(shown)
        terminal.see("✓ Done (1 item) · your turn")
        terminal.leave()

    def test_the_last_thread_and_what_was_typed_are_there_in_the_next_program(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """`-c` resumes the thread, Up brings back a line, and `!` runs a person's own command."""
        (tmp_path / "work").mkdir()
        terminal = begin(terminals, "--thread", "t", "--grace", "0")
        terminal.say(checklist("Measure"))
        terminal.see("✓ Done (1 item) · your turn")
        terminal.press("!echo $((6 * 7)) > log; cat log\r")
        terminal.see("\n42", "your turn")
        terminal.leave()
        assert (tmp_path / "work" / "log").read_text() == "42\n"
        assert Path("todo-threads.sqlite-history").stat().st_mode & 0o777 == 0o600
        again = begin(terminals, "-c")
        again.see("✓ Done (1 item) · your turn")
        again.press("\x1b[A\x1b[A")
        again.see("> !echo $((6 * 7))")
        again.press("\x03\x04")
        assert again.end() == 0
        assert "thread t in" in again.everything

    def test_what_is_typed_while_an_own_command_runs_is_no_answer(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """It was meant for that command, so the question is asked again after it."""
        terminal = begin(terminals, "--agent", "coding")
        terminal.say(checklist("Cut: `touch cut`"))
        terminal.see("Do it? ")
        terminal.press("!echo begun; until [ -e go ]; do sleep 0.05; done\r")
        terminal.see("begun\n")
        terminal.press("yes\r")
        terminal.see("yes\n")
        terminal.drawn = ""
        (tmp_path / "work" / "go").touch()
        terminal.see("command: touch cut", "Do it? ", "· yes, no, always, or why not")
        terminal.press("no\r")
        terminal.see("rejected")
        terminal.leave()
        assert not (tmp_path / "work" / "cut").exists()

    def test_a_change_of_the_list_withdraws_a_question_and_says_how_to_go_on(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """A "yes" would be a message then."""
        terminal = begin(terminals, "--agent", "coding")
        terminal.say(checklist("Cut: `touch cut`"))
        terminal.see("Do it? ")
        terminal.drawn = ""
        terminal.press("/edit add Measure\r")
        terminal.see("[1] Measure", "On branch 1; /go ")
        terminal.press("/go\r")
        terminal.see("Do it? ")
        terminal.press("no\r")
        terminal.see("rejected")
        terminal.leave()
        assert not (tmp_path / "work" / "cut").exists()

    def test_a_diff_cannot_act_on_the_terminal(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """A model may have written the file; an open question is asked again below it."""
        repository(tmp_path / "work", committed="one\n")
        (tmp_path / "work" / "file").write_text("\x1b[8mtwo\n")
        terminal = begin(terminals, "--agent", "coding")
        terminal.say(checklist("Cut: `touch cut`"))
        terminal.see("Do it? ")
        terminal.press("/diff\r")
        terminal.see(" M file\n", "-one\n+␛[8mtwo\n", "command: touch cut", "Do it? ")
        terminal.leave()

    def test_several_lines_are_typed_and_commands_completed(
        self, terminals: list[Terminal]
    ) -> None:
        """Alt-Enter and a backslash start a new line; `exit` leaves."""
        terminal = begin(terminals, "--thread", "t")
        terminal.press("One\x1b\rTwo\\\rThree\r")
        terminal.see("I am a stand-in", "your turn")
        terminal.press("/tod\t\r")
        terminal.see("> /todos", "No todos")
        terminal.press("exit\r")
        assert terminal.end() == 0
        assert [m.text for m in messages("t") if is_from_user(m)] == ["One\nTwo\nThree"]

    def test_a_thread_can_fork_switch_and_restart(self, terminals: list[Terminal]) -> None:
        """Each branch keeps its own list, also after a restart."""
        terminal = begin(terminals, "--thread", "first")
        terminal.say(checklist("Measure", "Cut"))
        terminal.see("✓ Done (2 items) · your turn")
        terminal.press("/history\r")
        terminal.see("   1  the beginning", "   4  │ edit_todos: Started [0]", "stopped: finished")
        terminal.press("/fork 4\r")
        terminal.see("On branch 2; /go continues.", "● [0] Measure", "📋 0/2 · your turn")
        terminal.press("/edit drop 1\r")
        terminal.see("📋 0/1 · your turn")
        terminal.press("/branches\r")
        terminal.see("   1  ✓ Done (2 items)", "▸  2  📋 0/1")
        terminal.press("/switch 1\r")
        terminal.see("On branch 1.", "✓ Done (2 items) · your turn")
        terminal.press("/switch 2\r")
        terminal.see("On branch 2; /go continues.", "📋 0/1 · your turn")
        terminal.press("/fork 3\r")
        terminal.see("On branch 3; /go runs the calls of its last answer.")
        terminal.press("/switch 2\r")
        terminal.see("📋 0/1 · your turn")
        terminal.leave()
        again = begin(terminals, "--thread", "first")
        again.see("  first  📋 0/1 - [ ] Measure…", "● [0] Measure")
        again.see("› - [ ] Measure")  # noqa: RUF001  what was said last
        again.press("/fork 2 Only this.\r")
        again.see("On branch 4.", "I am a stand-in")
        again.leave()

    def test_an_item_is_done_again_in_another_way(self, terminals: list[Terminal]) -> None:
        """The message begins the new branch; without one, the agent waits for the user."""
        terminal = begin(terminals)
        terminal.say(checklist("Measure: `echo wall`", "Cut: `echo board`"))
        terminal.see("✓ Done (2 items) · your turn")
        terminal.say("/redo 1 Use the other saw.")
        terminal.see("On branch 2.", "→ edit_todos start [1]", "✓ Done (2 items) · your turn")
        terminal.press("/branches\r")
        terminal.see("▸  2  ✓ Done (2 items) Use the other saw.", "← done again on branch 2")
        terminal.press("/redo 1\r")
        terminal.see("On branch 3; /go continues.", "📋 0/2 · your turn")
        terminal.press("/redo 2\r")
        terminal.see("error: no item [2]; items are 0 to 1")
        terminal.leave()

    def test_the_chat_works_with_another_graph(self, terminals: list[Terminal]) -> None:
        """A resumed thread knows its graph and refuses another."""
        terminal = begin(terminals, "--thread", "n", "--agent", "notes")
        terminal.press("note: buy wood\r")
        terminal.see('Note #1 saved: "buy wood"')
        terminal.leave()
        again = begin(terminals, "--thread", "n")
        again.press("which?\r")
        again.see(": buy wood")
        again.leave()
        refused = Terminal("--thread", "n", "--agent", "until_done")
        terminals.append(refused)
        refused.see("error: thread 'n' belongs to --agent notes")
        assert refused.end() == 2

    async def test_a_thread_of_another_agent_causes_no_warning(
        self, terminals: list[Terminal]
    ) -> None:
        """Its program was killed while it stored a note, in a channel that only its graph has."""
        with pytest.raises(KilledError):
            await store_a_note()
        terminal = begin(terminals, "--agent", "until_done")
        assert "  n  No todos note: buy wood" in terminal.everything
        assert "unknown channel" not in terminal.everything

    def test_the_coding_agent_asks_and_is_answered(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """The answer is yes or a reason; an open question is asked again after a restart."""
        terminal = begin(terminals, "--thread", "c", "--agent", "coding", "--grace", "0")
        terminal.say(checklist("Greet: `echo hi > greeting`", "Leave: `rm greeting`"))
        terminal.see("? execute", "command: echo hi > greeting", "yes, no, always, or why not")
        terminal.leave()
        again = begin_asked(terminals, "--thread", "c", "--grace", "0")
        again.press("/fork 1\r")
        again.see("On branch 2; /go continues.", "your turn")
        again.press("/switch 1\r")
        again.see("On branch 1; /go continues.", "your turn")
        again.press("/go\r")
        again.see("command: echo hi > greeting", "yes, no, always, or why not")
        again.press("yes\r")
        again.see("command: rm greeting", "execute, 11 characters in 1 line. Do it?")
        assert (tmp_path / "work" / "greeting").read_text() == "hi\n"
        again.press("keep it, please\r")
        again.see("✗ [1] Leave", "your turn")
        again.leave()
        assert (tmp_path / "work" / "greeting").exists()
        assert any("keep it, please" in message.text for message in messages("c"))

    def test_a_tool_can_be_approved_until_the_program_ends(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """The program confirms the answer and says how to undo it; nothing is shown twice."""
        terminal = begin(terminals, "--thread", "c", "--agent", "coding", "--grace", "0")
        terminal.say(checklist("One: `touch one`", "Two: `touch two`"))
        terminal.see("command: touch one", "yes, no, always, or why not")
        terminal.press("Always.\r")
        terminal.see(
            "approved",
            "execute is approved without asking until the program ends; /ask asks again",
            "✓ Done (2 items)",
            "your turn",
        )
        assert "→ Execute touch one" not in terminal.everything
        assert "→ Execute touch two" in terminal.drawn
        assert (tmp_path / "work" / "two").exists()
        terminal.press("/ask\r")
        terminal.see("You are asked about every call again.")
        terminal.say(checklist("Three: `touch three`"))
        terminal.see("command: touch three", "yes, no, always, or why not")
        terminal.press("nope\r")
        terminal.see("rejected", "✗ [0] Three", "✗ 1 abandoned · your turn")
        assert "User rejected" not in terminal.drawn
        terminal.leave()

    def test_ask_takes_back_what_always_has_passed_before_the_open_question(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """No call has run yet, because the calls of an answer run together."""
        terminal = Terminal("-c", PASSED)
        terminals.append(terminal)
        terminal.see("your turn")
        terminal.say("Begin.")
        terminal.see("command: touch one", "yes, no, always, or why not")
        terminal.press("always\r")
        terminal.see("content: hello", "yes, no, always, or why not")
        terminal.press("/ask\r")
        terminal.see("command: touch two", "yes, no, always, or why not")
        terminal.press("no\r")
        terminal.see("content: hello", "yes, no, always, or why not")
        terminal.press("no\r")
        terminal.see("Done.", "your turn")
        terminal.leave()
        assert [path.name for path in (tmp_path / "work").iterdir()] == ["one"]

    def test_a_plan_is_edited_before_it_is_carried_out(
        self, terminals: list[Terminal], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """If nothing was edited it asks again, and a resumed thread still asks about plans."""
        monkeypatch.setenv("VISUAL", "sed -i s/two/three/")
        terminal = begin(
            terminals, "--thread", "c", "--agent", "coding", "--grace", "0", "--ask-plan"
        )
        terminal.say(checklist("One: `touch one`"))
        terminal.see("? write_todos", "[0] One: `touch one`", "yes, no, always, edit, or why not")
        terminal.press("edit\r")
        terminal.see("Not edited: the plan was not changed", "· yes, no, always, edit, or why not")
        terminal.press("do two first\r")
        terminal.see("rejected: do two first", "your turn")
        terminal.leave()
        again = begin(terminals, "--thread", "c", "--grace", "0")
        again.say(checklist("One: `touch two`"))
        again.see("? write_todos", "yes, no, always, edit, or why not")
        again.press("edit\r")
        again.see("approved as edited", "command: touch three", "always, or why not")
        again.press("yes\r")
        again.see("✓ Done (1 item)", "your turn")
        again.leave()
        assert [path.name for path in (tmp_path / "work").iterdir()] == ["three"]

    def test_a_locked_database_does_not_end_the_chat(self, terminals: list[Terminal]) -> None:
        """The error is shown, and the next message is answered."""
        terminal = begin(terminals, "--thread", "t")
        with closing(sqlite3.connect("todo-threads.sqlite", isolation_level=None)) as other:
            other.execute("begin exclusive")
            terminal.press("Hello.\r")
            terminal.see("error: the database cannot be used now: database is locked", "your turn")
            terminal.press("/edit add Measure\r")
            terminal.see("error: the database cannot be used now: database is locked", "your turn")
            other.execute("rollback")
        terminal.press("Hello again.\r")
        terminal.see("I am a stand-in", "your turn")
        assert terminal.leave() == 0

    def test_a_lost_directory_does_not_end_the_chat(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """The command that cannot be started is an answer to the model."""
        terminal = begin(terminals, "--thread", "t")
        (tmp_path / "work").rmdir()
        terminal.say(checklist("One: `touch one`"))
        terminal.see("the command cannot be started", "✗ 1 abandoned · your turn")
        assert terminal.leave() == 0

    def test_the_last_line_of_a_command_of_ones_own_needs_no_line_break(
        self, terminals: list[Terminal]
    ) -> None:
        """The prompt does not replace it; other lines have no row of blanks below them."""
        terminal = begin(terminals)
        terminal.press("!printf 'one\\ntwo'\r")
        terminal.wait(lambda: "one\ntwo\n>" in terminal.text)
        terminal.press("!echo three\r")
        terminal.wait(lambda: "two\n> !echo three\nthree\n>" in terminal.text)
        assert terminal.leave() == 0

    def test_a_call_that_was_cut_off_is_named_before_it_runs_again(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """The program prints a complete command at the end."""
        terminal = begin(terminals, "--thread", "t")
        terminal.say(checklist("Wait: `touch began; sleep 600`"))
        terminal.wait((tmp_path / "work" / "began").exists)
        terminal.child.kill(signal.SIGKILL)
        terminal.child.wait()
        again = begin(terminals, "--thread", "t")
        again.see(
            "The agent was stopped here",
            "cut off, runs again unless it had ended: Shell touch began",
        )
        again.press("/quit\r")
        again.see("resume with: python -m graphs chat --db todo-threads.sqlite --thread t")
        assert again.end() == 0


ASKS = """
import sys
from graphs.terminal import agents, chat
from todo_tools.testing import ScriptedChatModel, call, turn
plan = turn("", call("write_todos", mode="replace", todos=["Paint it"]))
script = [plan, "Which colour?", "I have stopped."]
agents.chat_model = lambda *_, **__: ScriptedChatModel(script=script)
argv = ["--workdir", "work", "--create", "--thread", "t", "--grace", "60"]
sys.exit(chat.main(argv))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_question_and_a_stop_are_not_talked_over(terminals: list[Terminal]) -> None:
    """The user's turn begins at once: nothing counts down, and nothing is sent."""
    terminal = Terminal("-c", ASKS)
    terminals.append(terminal)
    terminal.see("your turn")
    terminal.say("Paint it.")
    terminal.see("Which colour?", "📋 0/1 · your turn")
    terminal.say("Stop.")
    terminal.see("I have stopped.", "📋 0/1 · your turn")
    terminal.leave()
    assert not any(map(is_injected, messages("t")))


GLOBS = """
import sys
from graphs.terminal import agents, chat
from todo_tools.testing import ScriptedChatModel, call, turn
script = [turn("", call("glob", pattern="{1..99999999}")), "Done."]
agents.chat_model = lambda *_, **__: ScriptedChatModel(script=script)
sys.exit(chat.main(["--agent", "coding", "--workdir", "work", "--create"]))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_no_log_of_a_library_is_on_the_screen(terminals: list[Terminal]) -> None:
    """A model's text may be in it, and would not be marked."""
    terminal = Terminal("-c", GLOBS)
    terminals.append(terminal)
    terminal.see("your turn")
    terminal.say("Begin.")
    terminal.see("Invalid glob pattern", "Done.", "your turn")
    terminal.leave()
    assert "wcmatch refused" not in terminal.everything


TWO_SHELLS = """
import sys
from graphs.terminal import agents, chat
from todo_tools.testing import ScriptedChatModel, call, turn
stopped = "until test -e log; do sleep 0.01; done; touch two; test -e go || sleep 600"
commands = "echo one >> log", stopped
def rule(prompt):
    calls = [call("shell", command=command) for command in commands]
    return "Done." if prompt[-1].type == "tool" else turn("", *calls)
agents.chat_model = lambda *_, **__: ScriptedChatModel(script=rule)
sys.exit(chat.main(["--workdir", "work", "--create", "--thread", "t", "--grace", "0"]))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("leaves", [False, True], ids=["stays", "leaves"])
def test_a_command_that_had_ended_before_the_stop_is_not_run_again(
    leaves: bool, terminals: list[Terminal], tmp_path: Path
) -> None:
    """Neither by /go in the same program nor in the next one; the one that was stopped is.

    An edit of the list waits.
    """

    def kept() -> list[Path]:
        return list(tmp_path.glob("*-endings/*/*.*.*"))

    terminal = Terminal("-c", TWO_SHELLS)
    terminals.append(terminal)
    terminal.see("your turn")
    terminal.say("Begin.")
    terminal.wait(lambda: kept() and (tmp_path / "work" / "two").exists())
    terminal.press("\x03")
    terminal.see("Stopped.", "your turn")
    (tmp_path / "work" / "go").touch()
    if leaves:
        assert terminal.leave() == 0
        terminal = Terminal("-c", TWO_SHELLS)
        terminals.append(terminal)
        terminal.see("your turn")
    terminal.say("/edit add Later")  # a new checkpoint would not have the result
    terminal.see("error: the calls of the last answer come first; /go runs them")
    terminal.say("/go")
    terminal.see("cut off, runs again unless it had ended: Shell", "Done.")
    terminal.wait(lambda: "your turn" in terminal.text)  # before it, leaving would stop the run
    assert (tmp_path / "work" / "log").read_text() == "one\n"
    assert terminal.leave() == 0
    assert not kept()


TWO_CALLS = """
import sys, time
from pathlib import Path
from graphs.terminal import agents, chat, conversation
from todo_tools.state import todos_in
from todo_tools.testing import ScriptedChatModel, call, turn
def rule(prompt):
    calls = [call("execute", command=command) for command in sys.argv[1:3]]
    return "Done." if prompt[-1].type == "tool" else turn("", *calls)
agents.chat_model = lambda *_, **__: ScriptedChatModel(script=rule)
really_is_cut = conversation.is_cut
def is_cut(*arguments):
    Path("asking").touch()
    while not Path("go").exists():
        time.sleep(0.02)
    return really_is_cut(*arguments)
if "slowly" in sys.argv:
    conversation.is_cut = is_cut
argv = ["--workdir", "work", "--create", "--agent", "coding", "--thread", "c", "--grace", "0"]
sys.exit(chat.main(argv))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
class TestTypedBefore:
    """What was typed before a question is shown is not an answer to it."""

    def open(self, terminals: list[Terminal], *commands: str) -> Terminal:
        """A chat whose agent calls two commands in one turn."""
        terminal = Terminal("-c", TWO_CALLS, *commands)
        terminals.append(terminal)
        return terminal

    def done(self, folder: Path) -> list[str]:
        return sorted(path.name for path in (folder / "work").iterdir())

    def test_before_the_program_has_started(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """The thread waits for an answer since the last program."""
        terminal = self.open(terminals, "touch one", "touch two")
        terminal.see("your turn")
        terminal.say("Begin.")
        terminal.see("command: touch one", "· yes, no, always, or why not")
        terminal.press("/quit\r")
        terminal.end()
        again = self.open(terminals, "touch one", "touch two")
        again.press("yes\ryes\r")
        again.see("command: touch one", "· yes, no, always, or why not")
        again.press("no\r")
        again.see("command: touch two", "· yes, no, always, or why not")
        again.press("no\r")
        again.see("Done.", "your turn")
        assert self.done(tmp_path) == []

    def test_together_with_the_answer_to_the_question_before(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        terminal = self.open(terminals, "touch one", "touch two")
        terminal.see("your turn")
        terminal.say("Begin.")
        terminal.see("command: touch one", "· yes, no, always, or why not")
        terminal.press("yes\ryes\r")
        terminal.see("command: touch two", "· yes, no, always, or why not")
        terminal.press("no\r")
        terminal.see("Done.", "your turn")
        assert self.done(tmp_path) == ["one"]

    @pytest.mark.parametrize("typed", ["go on\ryes\r", f"{'x' * 9_000}\ryes\r"], ids=len)
    def test_while_the_program_works_out_the_question(
        self, terminals: list[Terminal], tmp_path: Path, typed: str
    ) -> None:
        """A terminal keeps what is typed, and gives about 4 kB of it to the program at a time."""
        terminal = self.open(terminals, "touch one", "touch two", "slowly")
        terminal.see("your turn")
        terminal.say("Begin.")
        wait_for_file(tmp_path / "asking")
        terminal.press(typed)
        (tmp_path / "go").touch()
        terminal.see("command: touch one", "· yes, no, always, or why not")
        terminal.press("no\r")
        terminal.see("command: touch two", "· yes, no, always, or why not")
        answers = [row for row in terminal.everything.split("\n") if re.match("approv|reject", row)]
        assert answers == ["rejected"]
        terminal.press("/quit\r")
        terminal.end()

    def test_ctrl_d_for_ones_own_command_does_not_end_the_program(
        self, terminals: list[Terminal], tmp_path: Path
    ) -> None:
        """A person presses it once too often, to end what the command reads."""
        terminal = self.open(terminals, "touch one", "touch two")
        terminal.see("your turn")
        terminal.say("Begin.")
        terminal.see("command: touch one", "· yes, no, always, or why not")
        terminal.say("!touch begun; until test -e go; do sleep 0.02; done; echo ov''er")
        wait_for_file(tmp_path / "work" / "begun")
        terminal.press("\x04")
        (tmp_path / "work" / "go").touch()
        terminal.see("over", "command: touch one", "· yes, no, always, or why not")
        terminal.press("no\r")
        terminal.see("command: touch two", "· yes, no, always, or why not")

    def test_and_not_sent_before(self, terminals: list[Terminal], tmp_path: Path) -> None:
        """It is put aside; the Up key brings it back."""
        terminal = begin(terminals, "--thread", "c", "--agent", "coding", "--grace", "0")
        terminal.say(checklist(f"One: {HELD}", "Two: `touch two`"))
        terminal.see("command: until test -e go", "· yes, no, always, or why not")
        terminal.press("yes\r")
        terminal.see("· working, Ctrl-C stops it")
        terminal.press("yes")
        terminal.see("> yes")
        (tmp_path / "work" / "go").touch()
        terminal.see("Up brings it back", "command: touch two", "· yes, no, always, or why not")
        terminal.press("\r")
        terminal.press("\x1b[A")
        terminal.see("> yes")
        assert self.done(tmp_path) == ["go"]
        terminal.press("\r")
        terminal.see("✓ Done (2 items)", "your turn")
        assert self.done(tmp_path) == ["go", "two"]


def test_a_long_paste_is_dropped_whole_before_a_question() -> None:
    """A terminal holds only a part of it; the rest comes when that part has been dropped."""
    person, program = os.openpty()
    tty.setraw(program)
    paste = threading.Thread(target=os.write, args=(person, b"yes\n" * 5_000))
    paste.start()
    select.select([program], [], [], LONG)
    drop_typed(program)
    paste.join()
    os.write(person, b"no\n")
    assert os.read(program, 100) == b"no\n"
    os.close(person)
    os.close(program)


class TestApproval:
    def waiting(self, *names: str) -> Interrupt:
        calls = [{"name": name, "args": {}} for name in names]
        return Interrupt({"action_requests": calls}, id="-".join(names))

    def test_each_call_is_decided_in_order(self) -> None:
        """One command resumes all questions."""
        approval = Approval().of([self.waiting("a", "b"), self.waiting("c")])
        for name, said in (("a", "yes"), ("b", "no"), ("c", "not now")):
            assert not approval.complete
            assert approval.next_call["name"] == name
            approval = approval.decided(
                Answer(said == "yes", reason="" if said in ("yes", "no") else said)
            )
        assert approval.complete
        assert approval.command.resume == {
            "a-b": {"decisions": [{"type": "approve"}, {"type": "reject"}]},
            "c": {"decisions": [{"type": "reject", "message": "not now"}]},
        }

    def test_decisions_last_as_long_as_the_question(self) -> None:
        """A new question starts without decisions."""
        once = Approval().of([self.waiting("a", "b")]).decided(Answer(approved=True))
        assert once.of([self.waiting("a", "b")]) == once
        assert once.of([self.waiting("c")]).decisions == ()
        assert once.of([]).calls == []
