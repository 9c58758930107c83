"""The chat: its lines, its thread, and the program in a terminal."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import StateSnapshot
from typing_extensions import override

from graphs.coding_agent import build_coding_agent
from graphs.terminal.chat import chat_policy
from graphs.terminal.commands import HELP, Asked, CommandError, edited, read_line
from graphs.terminal.thread import Thread, branch_numbers, current_branch, moments, tips
from graphs.terminal.views import branch_lines, history_lines, last_exchange
from graphs.until_done import build_graph
from tests.screens import Emulator
from tests.strategies import todo_lists
from tests.support import checklist, edit, items, plan
from tests.waiting import LONG
from todo_tools._thread.transcript import is_injected
from todo_tools.state import todos_in, validate_todos
from todo_tools.testing import ScriptedChatModel, call, turn
from todo_tools.transcript import is_from_user


class TestLines:
    @pytest.mark.parametrize(
        ("line", "meaning"),
        [
            ("Build it.", Asked("say", text="Build it.")),
            (" /etc/hosts is wrong ", Asked("say", text="/etc/hosts is wrong")),
            ("/todos", Asked("todos")),
            ("/exit ", Asked("exit")),
            ("/edit add Cut the wood", Asked("edit", text="Cut the wood")),
            ("/edit drop 2", Asked("edit", 2)),
            ("/edit 2 start", Asked("edit", 2, status="in_progress")),
            ("/edit 2 Done", Asked("edit", 2, status="completed")),
            ("/edit 2 done by noon", Asked("edit", 2, "done by noon")),
            ("/fork 7", Asked("fork", 7)),
            ("/redo 3 Use  the other library", Asked("redo", 3, "Use  the other library")),
            ("/switch 2", Asked("switch", 2)),
        ],
    )
    def test_a_line_is_a_message_or_a_command(self, line: str, meaning: object) -> None:
        """Only a line that begins with a slash is a command."""
        assert read_line(line) == meaning

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ("/nope\x1b[2J", "no command '/nope␛[2J'; /help lists them"),
            ("/todos now", "/todos takes no argument, got 'now'"),
            ("/edit 2", "/edit takes one of /edit add TEXT"),
            ("/edit two done", "N must be a number in /edit add TEXT"),
            ("/redo", "N must be a number in /redo N [MESSAGE], got ''"),
            ("/switch ²", "N must be a number in /switch N"),
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
        assert edited(todos, read_line("/edit add c")) == items("a", "b", "c")
        assert edited(todos, read_line("/edit drop 0")) == items("b")
        assert edited(todos, read_line("/edit 1 c")) == items("a", "c")
        assert edited(todos, read_line("/edit 0 done"))[:1] == items("a", status="completed")
        assert todos == items("a", "b")

    @given(todos=todo_lists, line=st.text(max_size=30).map("/edit ".__add__))
    def test_no_edit_makes_a_list_that_the_state_would_refuse(self, todos: Any, line: str) -> None:
        """Any input gives a valid list or an error of one line."""
        try:
            after = edited(todos, read_line(line))
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:
            assert validate_todos(after) == after


def checkpoint(name: str, parent: str | None, **values: Any) -> StateSnapshot:
    def config(checkpoint_id: str) -> RunnableConfig:
        return {"configurable": {"thread_id": "t", "checkpoint_id": checkpoint_id}}

    above = config(parent) if parent else None
    return StateSnapshot(values, (), config(name), None, None, above, (), ())


def names(history: Any) -> list[str]:
    return [each.config["configurable"]["checkpoint_id"] for each in history]


# Two branches leave the first one: d from a, and e from b.
TREE = [
    checkpoint("e", "b", todos=items("e")),
    checkpoint("d", "a", todos=items("d\nd")),
    checkpoint("c", "b", todos=items("c", status="completed")),
    checkpoint("b", "a", todos=items("b")),
    checkpoint("a", None),
]
threads = st.lists(st.integers(0, 9), max_size=12).map(
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
        assert names(moments(TREE)) == ["a", "b", "e"]

    @given(history=threads)
    def test_a_branch_keeps_its_number(self, history: list[StateSnapshot]) -> None:
        """Later checkpoints do not change it."""
        numbers = branch_numbers(history)
        for count in range(len(history)):
            assert branch_numbers(history[count:]).items() <= numbers.items()

    def test_each_branch_is_shown_with_its_own_list(self) -> None:
        """The current branch is marked, and no text can forge another line."""
        assert [str(line) for line in branch_lines(TREE)] == [
            "   1  ✓ Done (1 item)",
            "      ✓ [0] c",
            "   2  📋 0/1",
            "      – [0] d␊d",  # noqa: RUF001
            "▸  3  📋 0/1",
            "      – [0] e",  # noqa: RUF001
        ]

    def test_the_history_is_numbered_and_shows_the_list_where_it_changed(self) -> None:
        """One line says what happened at each checkpoint."""
        ask = HumanMessage("Go\nnow", id="1")
        answer = AIMessage("", tool_calls=[call("list_todos")])
        result = ToolMessage("✓ [0] a\nmore", name="shell", tool_call_id="1")
        known = {"messages": [ask, answer, result], "todos": items("x")}
        history = [
            checkpoint("e", "d", **known, todo_outcome="no_todos"),
            checkpoint("d", "c", **known),
            checkpoint("c", "b", messages=[ask, answer], todos=items("x")),
            checkpoint("b", "a", messages=[ask]),
            checkpoint("a", None),
        ]
        assert [str(line) for line in history_lines(history)] == [
            "   1  the beginning",
            "   2  > Go…",
            "   3  → list_todos",
            "      – [0] x",  # noqa: RUF001
            "      📋 0/1",
            "   4  │ shell: ✓ [0] a…",
            "   5  stopped: no_todos",
        ]

    def test_the_last_exchange_is_the_last_message_and_its_answer(self) -> None:
        messages = [HumanMessage("Go"), AIMessage("No."), HumanMessage("Go\non"), AIMessage("Yes.")]
        lines = [str(line) for line in last_exchange({"messages": messages})]
        assert lines == ["> Go", "> on", "💬 Yes."]


class TestPolicy:
    """The chat never talks over the person in front of it."""

    def ended(self, *script: AIMessage | str, waiting: tuple[str, ...] = ()) -> str | None:
        """The outcome of one message to an agent with an open item."""
        builder = build_graph(
            ScriptedChatModel(script=list(script)), policy=chat_policy(0, waiting)
        )
        request: Any = {"messages": [("user", "Go.")], "todos": items("a", "b")}
        outcome: str | None = builder.compile().invoke(request)["todo_outcome"]
        return outcome

    def test_an_answer_without_work_ends_the_run(self) -> None:
        assert self.ended("All right.") == "answered"

    def test_a_question_after_work_ends_the_run(self) -> None:
        assert self.ended(edit("start", 0), "Which one?") == "stop_condition"

    def test_a_message_that_waits_is_sent_in_place_of_a_continuation(self) -> None:
        assert self.ended(edit("start", 0), "So far.", waiting=("Stop.",)) == "stop_condition"


class TestMoving:
    def thread(self, *script: AIMessage | str) -> Thread:
        default: list[AIMessage | str] = [
            plan("a"),
            edit("complete", 0),
            "Done.",
            "Other.",
            "Again.",
        ]
        model = ScriptedChatModel(script=list(script) or default)
        graph = build_graph(model).compile(checkpointer=InMemorySaver())
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
        await thread.replace_todos(items("b", status="abandoned"))
        said = await self.say(thread, "Differently.")
        assert said[-2:] == ["Differently.", "Other."]
        assert "Done." not in said
        assert current_branch(await thread.history()) == 2
        await thread.switch(1)
        assert (await thread.now()).values["todos"] == items("a", status="completed")
        assert (await self.say(thread, "Well?"))[-3:] == ["Done.", "Well?", "Again."]

    async def test_a_list_cannot_be_edited_while_a_call_waits(self) -> None:
        """The results of the other calls are stored for this checkpoint only."""
        model = ScriptedChatModel(script=[turn("", call("list_todos"))])
        graph = build_graph(model).compile(checkpointer=InMemorySaver(), interrupt_before=["tools"])
        thread = Thread(graph, {"configurable": {"thread_id": "1"}})
        await self.say(thread, "Begin.")
        with pytest.raises(CommandError, match="the calls of the last answer come first; /go"):
            await thread.replace_todos(items("a"))

    async def test_after_an_edit_an_agent_that_was_sent_back_works_on(self, tmp_path: Path) -> None:
        """The user stopped it, or the model failed, before it answered the continuation."""

        def answer(prompt: list[BaseMessage]) -> AIMessage | str:
            if not is_injected(prompt[-1]):
                return plan("a") if len(prompt) < 3 else "Done."
            raise ConnectionError

        model = ScriptedChatModel(script=answer)
        graph = build_coding_agent(model, tmp_path, checkpointer=InMemorySaver())
        thread = Thread(graph, {"configurable": {"thread_id": "1"}})
        with pytest.raises(ConnectionError):
            await self.say(thread, "Begin.")
        before = await thread.now()
        await thread.replace_todos(items("b"))
        assert (await thread.now()).next == before.next == ("model",)

    async def test_an_item_is_done_again_from_its_last_start(self) -> None:
        """The list and the history are those before the answer that started it."""
        starts = [plan("a", "b"), edit("start", 1), edit("complete", 0), edit("abandon", 1)]
        again = [edit("start", 1), edit("complete", 1)]
        thread = self.thread(*starts, *again, "Done.", "Other.")
        await self.say(thread, "Begin.")
        end = await thread.now()
        await thread.redo(1)
        assert [todo["status"] for todo in todos_in((await thread.now()).values)] == [
            "completed",
            "abandoned",
        ]
        said = await self.say(thread, "In another way.")
        assert said[-2:] == ["In another way.", "Other."]
        await thread.switch(1)
        assert (await thread.now()).values == {**end.values, "todo_outcome": None}

    async def test_what_is_not_there_is_refused(self) -> None:
        """The error says what there is, and nothing is written."""
        thread = self.thread()
        for move, reason in (
            (thread.fork(1), "no checkpoint 1; /history lists 0"),
            (thread.switch(1), "no branch 1; /branches lists 0"),
            (thread.redo(0), "no item [0]; the list is empty"),
        ):
            with pytest.raises(CommandError, match=re.escape(reason)):
                await move
        await self.say(thread, "Begin.")
        await thread.replace_todos(items("by hand"))
        before = await thread.history()
        with pytest.raises(CommandError, match=r"the agent has not started \[0\]"):
            await thread.redo(0)
        await thread.fork(len(moments(before)))
        await thread.switch(1)
        assert await thread.history() == before


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
        self.press("/exit\r")
        return self.end()


Open = Any


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a terminal and waits until it is the user's turn; all are closed afterwards."""
    monkeypatch.chdir(tmp_path)
    opened: list[Terminal] = []

    def begin(*argv: str, see: str = "your turn") -> Terminal:
        opened.append(Terminal(*argv))
        opened[-1].see(see)
        return opened[-1]

    yield begin
    for terminal in opened:
        terminal.close()


def messages(thread: str) -> list[BaseMessage]:
    with SqliteSaver.from_conn_string("todo-threads.sqlite") as saver:
        saved = saver.get_tuple({"configurable": {"thread_id": thread}})
    assert saved is not None
    found: list[BaseMessage] = saved.checkpoint["channel_values"]["messages"]
    return found


FIVE = checklist(*(f"Step {n}: `echo {n} >> log`" for n in range(5)))
HELD = "`until test -e go; do sleep 0.1; done`"
ASKS = "yes, no, always, or your reason"

CODING = """
import sys
from graphs.terminal import agents, chat
from todo_tools.testing import ScriptedChatModel, call, turn
first, second, third = (turn("", call("execute", command=f"echo {n} >> log")) for n in "123")
script = [first, turn("\\x1b[2Jhello", *second.tool_calls, *third.tool_calls), "Done.", "Bye."]
agents.chat_model = lambda *_, **__: ScriptedChatModel(script=script)
sys.exit(chat.main(["--agent", "coding", "--workdir", ".", "--thread", "t", "--grace", "0"]))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
class TestTerminal:
    def test_the_agent_works_through_a_checklist_in_view(self, begin: Open, tmp_path: Path) -> None:
        """The list, the status and the countdown change in place; nobody needs to type."""
        terminal = begin("--thread", "t", "--grace", "2")
        terminal.say(checklist("One: `echo 1 >> log`", f"Two: {HELD}", "Three", "Four", "Five"))
        terminal.see("→ shell echo 1 >> log", "✓ [0] One", "● [1] Two", "– [2] Three")  # noqa: RUF001
        terminal.see("📋 1/5 · working, Ctrl-C stops it")
        (tmp_path / "work" / "go").touch()
        terminal.see(
            "⏳ Auto-continuing in 2s... (type to stop it)",
            "↻ not finished: sent back to work",
            "💬 5 of 5 steps are completed.",
            "✓ Done (5 items) · your turn",
        )
        assert terminal.leave() == 0
        assert "python -m graphs chat --grace 2 --thread t" in terminal.rows

    def test_typing_stops_the_countdown(self, begin: Open) -> None:
        """No continuation is sent; the typed text becomes the next message."""
        terminal = begin("--thread", "t", "--grace", "60")
        terminal.say(FIVE)
        terminal.see("⏳ Auto-continuing in 60s")
        terminal.press("W")
        terminal.see("Not continued. Enter sends what you type instead", "📋 3/5 · your turn")
        terminal.press("ait, what is left?\r")
        terminal.see("→ shell echo 3 >> log", "✓ Done (5 items) · your turn")
        terminal.leave()
        said = [message.text for message in messages("t") if is_from_user(message)]
        assert said == [FIVE, "Wait, what is left?"]
        assert not any(map(is_injected, messages("t")))

    def test_ctrl_c_stops_the_agent_and_go_resumes_it(self, begin: Open, tmp_path: Path) -> None:
        """Its command ends too, and runs again; the program goes on."""
        terminal = begin("--thread", "t")
        terminal.say(
            checklist("Wait: `echo began >> log; test -e go || sleep 600; echo end >> log`")
        )
        terminal.wait((tmp_path / "work" / "log").exists)
        terminal.press("\x03")
        terminal.see("Stopped. Send a message, or /go", "📋 0/1 · your turn")
        (tmp_path / "work" / "go").touch()
        terminal.press("/go\r")
        terminal.see("1 of 1 steps are completed.", "✓ Done (1 item) · your turn")
        assert terminal.leave() == 0
        assert (tmp_path / "work" / "log").read_text() == "began\nbegan\nend\n"

    def test_a_signal_ends_the_agent_and_then_the_program(
        self, begin: Open, tmp_path: Path
    ) -> None:
        """It says how to resume the thread."""
        terminal = begin("--thread", "t")
        terminal.say(checklist("Wait: `touch began; sleep 600`"))
        terminal.wait((tmp_path / "work" / "began").exists)
        terminal.child.kill(signal.SIGTERM)
        assert terminal.end() == 130
        assert "--thread t" in terminal.text

    def test_a_message_to_a_working_agent_waits_until_it_stops(
        self, begin: Open, tmp_path: Path
    ) -> None:
        """Meanwhile, commands that move the thread are refused. It replaces a continuation."""
        terminal = begin("--thread", "t", "--grace", "3")
        terminal.say(checklist(f"Wait: {HELD}", "a", "b", "c"))
        terminal.see("shell until test -e go")
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

    def test_ctrl_c_returns_a_kept_message_clears_the_line_and_leaves(self, begin: Open) -> None:
        """What was typed is sent only by another Enter."""
        terminal = begin("--thread", "t")
        terminal.say(checklist("Wait: `sleep 600`"))
        terminal.see("shell sleep 600")
        terminal.press("Faster, please.\r")
        terminal.see("kept: Faster, please.")
        terminal.press("\x03")
        terminal.see("Stopped.", "> Faster, please.", "📋 0/1 · your turn")
        terminal.press("\x03")
        terminal.see("Ctrl-C again leaves")
        terminal.press("\x03")
        assert terminal.end() == 0
        assert sum(map(is_from_user, messages("t"))) == 1

    def test_the_list_is_shown_and_edited_by_hand(self, begin: Open) -> None:
        """Errors take one line and change nothing."""
        terminal = begin()
        terminal.press("/edit add Cut the wood\r")
        terminal.see("– [0] Cut the wood", "📋 0/1 · your turn")  # noqa: RUF001
        terminal.press("/edit 0 done\r")
        terminal.see("✓ [0] Cut the wood", "✓ Done (1 item) · your turn")
        terminal.press("/edit 7 done\r")
        terminal.see("error: no item [7]; items are 0 to 0")
        terminal.press("/go\r")
        terminal.see("error: nothing to continue here; send a message")
        terminal.press("/help\r")
        terminal.see(*HELP.splitlines())
        terminal.press("\x04")
        assert terminal.end() == 0

    def test_an_item_is_done_again_and_the_branches_stay(self, begin: Open, tmp_path: Path) -> None:
        """`/redo` without a message runs at once; each branch keeps its list after a restart."""
        terminal = begin("--thread", "t", "--grace", "0")
        terminal.say(FIVE)
        terminal.see("✓ Done (5 items) · your turn")
        terminal.press("/redo 4\r")
        terminal.see("On branch 2.", "→ shell echo 4 >> log", "✓ Done (5 items) · your turn")
        assert (tmp_path / "work" / "log").read_text() == "0\n1\n2\n3\n4\n4\n"
        terminal.press("/fork 2\r")
        terminal.see("On branch 3. Send a message, or /go to continue.", "No todos · your turn")
        terminal.leave()
        terminal = begin("--thread", "t", see="The agent was stopped here; /go continues.")
        terminal.press("/switch 2\r")
        terminal.see("On branch 2. Send a message.", "✓ Done (5 items) · your turn")
        terminal.leave()

    def test_the_coding_agent_asks_and_is_answered(self, begin: Open, tmp_path: Path) -> None:
        """Nothing that was typed before is an answer; an open question is asked again later."""
        terminal = begin("-c", CODING)
        terminal.press("Begin.\r")
        terminal.see("? execute", "    command: echo 1 >> log", f"execute: {ASKS}", f"· {ASKS}")
        terminal.press("/exit\r")
        terminal.end()
        terminal = begin("-c", CODING, see=f"· {ASKS}")
        terminal.press("use printf\r")
        terminal.see("rejected: use printf", "    command: echo 1 >> log", f"· {ASKS}")
        terminal.press("yes\r")
        terminal.see("approved", "💬 ␛[2Jhello", "    command: echo 2 >> log", f"· {ASKS}")
        terminal.press("always\r")
        terminal.see("approved, and always until the program ends", "💬 Done.", "your turn")
        terminal.leave()
        assert sorted((tmp_path / "log").read_text().split()) == ["1", "2", "3"]

    def test_a_change_of_the_list_withdraws_a_question(self, begin: Open, tmp_path: Path) -> None:
        """A "yes" would be a message then."""
        terminal = begin("-c", CODING)
        terminal.press("Begin.\r")
        terminal.see(f"· {ASKS}")
        terminal.press("/edit add Think\r")
        terminal.see("The question is withdrawn; /go asks it again.", "your turn")
        terminal.press("/go\r")
        terminal.see("? execute", f"· {ASKS}")
        terminal.press("y\r")
        terminal.see("approved", "    command: echo 2 >> log", f"· {ASKS}")
        assert (tmp_path / "log").read_text() == "1\n"
        terminal.press("\x04")
        assert terminal.end() == 0
