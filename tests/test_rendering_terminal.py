"""Drawing in a terminal: widths, encodings, colours, pipes, and the live view of a run."""

import io
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from rich.cells import cell_len

from tests.consoles import RecordingConsole
from tests.shelf import FINAL, MODES, REQUEST, shelf_graph
from tests.strategies import todo_lists
from tests.support import MIXED, items
from todo_tools import TodoItem, format_todos
from todo_tools._thread.events import countdown_event, todos_event
from todo_tools.rendering import (
    _terminal,
    follow_in_terminal,
    show_call,
    show_messages,
    show_result,
    show_status,
    show_todos,
)
from todo_tools.rendering.lowlevel import View
from todo_tools.testing import call, turn

HOSTILE = [
    "\x1b[2J\x1b]0;title\x07gone",
    "a\n✓ [1] forged",
    "\u202egnp.exe",
    "[red]tag[/red] [link=http://example.org]x[/link] :smile:",
    "tab\tbell\a\b\b\b\r",
    "部署 👩‍💻 שלום",
]


def drawn(view: View, **settings: Any) -> str:
    console = RecordingConsole(**settings)
    console.print(view)
    return console.written


class TestColours:
    def test_each_status_has_its_own(self) -> None:
        """The specification gives the colours; finished texts are struck through."""
        assert drawn(show_todos(MIXED), color_system="standard").splitlines() == [
            "\x1b[2m–\x1b[0m \x1b[36m[0]\x1b[0m Write database schema",  # noqa: RUF001
            "\x1b[33m●\x1b[0m \x1b[36m[1]\x1b[0m Implement migration script",
            "\x1b[32m✓\x1b[0m \x1b[36m[2]\x1b[0m \x1b[2;9mAdd API endpoints\x1b[0m",
            "\x1b[31m✗\x1b[0m \x1b[36m[3]\x1b[0m \x1b[2;9mAsk Bob\x1b[0m",
        ]


class TestWidths:
    @given(todo_lists, st.integers(20, 100))
    def test_no_line_is_wider_than_the_terminal(self, todos: list[TodoItem], width: int) -> None:
        """Wide characters and emoji count as two columns."""
        shown = drawn(show_todos(todos), width=width, color_system=None)
        assert max(map(cell_len, shown.splitlines())) <= width

    @pytest.mark.parametrize("width", [20, 80, 120])
    def test_no_view_cuts_a_long_word(self, width: int) -> None:
        """The end of an address, a path or a hash is as much a part of it as its beginning."""
        word = ",".join(f"{number:04}" for number in range(30))
        for view in (
            show_todos(items(word)),
            show_status(items(word, status="in_progress")),
            show_call("execute", {"command": f"curl {word}"}),
            show_call("notes", {"action": "add", "text": "one", "id": word[:80]}),
            show_call("edit_todos", {"action": "start", "indices": word}),
            show_result(ToolMessage(word, name="shell", tool_call_id="1")),
            show_messages([HumanMessage(word), turn(word, call("execute", command=word))]),
        ):
            shown = re.sub(r"[^0-9,]", "", drawn(view, width=width, color_system=None))
            assert word[:80] in shown
            assert shown.count(word) == f"{view}".count(word)

    def test_a_line_may_be_cut_or_kept_whole(self) -> None:
        """As the caller tells rich; a cut line ends with a mark."""
        cases: list[tuple[dict[str, Any], str]] = [
            ({"no_wrap": True}, "– [0] abcde…\n– [1] b\n"),  # noqa: RUF001
            ({"soft_wrap": True}, "– [0] abcdefghijk\n– [1] b\n"),  # noqa: RUF001
        ]
        for settings, shown in cases:
            console = RecordingConsole(width=12, color_system=None)
            console.print(show_todos(items("abcdefghijk", "b")), **settings)
            assert console.written == shown

    @pytest.mark.parametrize("width", [2, 16])
    def test_a_text_is_broken_without_empty_rows(self, width: int) -> None:
        """Where there is no room for an indent, it has none."""
        todos = items(f"{'a' * 20} {'b' * 14}")
        shown = drawn(show_todos(todos), width=width, color_system=None)
        assert "".join(shown.split()) == "".join(format_todos(todos).split())
        assert "\n\n" not in shown


class TestEncodings:
    def test_without_unicode_icons_are_boxes(self) -> None:
        """All of them have the same width."""
        shown = drawn(show_todos(MIXED), encoding="ascii", color_system=None)
        assert shown.splitlines() == [
            "[ ] [0] Write database schema",
            "[>] [1] Implement migration script",
            "[x] [2] Add API endpoints",
            "[-] [3] Ask Bob",
        ]

    @pytest.mark.parametrize("encoding", ["cp437", "cp1252", "latin-1", "gbk", "utf-16", None])
    def test_every_view_can_be_printed(
        self, encoding: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A character that standard output lacks is shown as an escape; an f-string keeps it."""
        written = io.BytesIO()
        out = io.TextIOWrapper(written, encoding=encoding or "utf-8") if encoding else io.StringIO()
        monkeypatch.setattr(sys, "stdout", out)
        view = show_todos(items(*HOSTILE))
        print(view)
        print(show_messages([HumanMessage(HOSTILE[-1])]))
        out.flush()
        assert f"{view}" == repr(view) == format_todos(items(*HOSTILE))
        if encoding:
            assert len(written.getvalue().decode(encoding).splitlines()) == len(HOSTILE) + 1

    @pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
    @pytest.mark.parametrize("rich", [True, False])
    def test_a_printed_view_is_coloured_in_a_terminal(
        self,
        term: str,
        rich: bool,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """That needs rich; in an f-string it is plain, because that text may go anywhere."""
        monkeypatch.setenv("TERM", term)
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        if not rich:
            monkeypatch.setattr(_terminal, "find_spec", lambda _: None)
        print(show_status(items("a")))
        coloured = rich and term != "dumb"
        shown = "\x1b[2m📋 0/1\x1b[0m\n" if coloured else "📋 0/1\n"
        assert capsys.readouterr().out == shown


class TestHostileTexts:
    @pytest.mark.parametrize("text", HOSTILE)
    @pytest.mark.parametrize("terminal", [True, False])
    def test_only_line_ends_control_the_terminal(self, text: str, terminal: bool) -> None:
        """No escape sequence, override or line break from a text reaches the terminal."""
        view = show_todos(items(text))
        shown = drawn(view, terminal=terminal, width=500, color_system=None)
        assert shown.count("\n") == 1
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


MAKE: Any = {"name": "shell", "args": {"command": "make"}, "id": "1"}
CALLS = ("updates", {"agent": {"messages": [turn("", MAKE)]}})
RESULT = ("updates", {"tools": {"messages": [ToolMessage("done", tool_call_id="1")]}})


def output(text: str) -> tuple[str, Any]:
    return "custom", {"type": "tool_output", "command": "make", "text": text}


def in_bars(text: str) -> str:
    return "".join(f"  │ {line}\n" for line in text.splitlines())


class TestFollowing:
    def test_chunks_pass_through_and_the_final_list_stays(self, config: RunnableConfig) -> None:
        """In a terminal the list changes in place."""
        console = RecordingConsole(width=60)
        stream = shelf_graph().stream(REQUEST, config, stream_mode=MODES)
        chunks = list(follow_in_terminal(stream, console=console))
        assert {mode for mode, _ in chunks} == set(MODES)
        assert console.text.rstrip().endswith(FINAL)
        assert console.written.count("\x1b[1A")  # the cursor moved up to change a line

    def test_a_pipe_gets_plain_lines(self, config: RunnableConfig) -> None:
        """It gets each change and then the whole list, without control codes or broken lines."""
        console = RecordingConsole(terminal=False, width=10)
        stream = shelf_graph().stream(REQUEST, config, stream_mode="updates")
        list(follow_in_terminal(stream, console=console))
        assert console.written.splitlines() == [
            "● [0] Measure",
            "– [1] Cut",  # noqa: RUF001
            "📋 0/2",
            "✓ [0] Measure",
            "📋 1/2",
            "✗ [1] Cut",
            "✓ 1 completed, ✗ 1 abandoned",
            "✓ [0] Measure",
            "✗ [1] Cut",
            "✓ 1 completed, ✗ 1 abandoned",
        ]

    @given(st.lists(st.text("ab\n", max_size=8)))
    def test_a_pipe_gets_the_output_of_a_tool_as_it_comes(self, pieces: list[str]) -> None:
        """Each line is printed once, when it is complete; the last one when the tool has ended."""
        console, so_far = RecordingConsole(terminal=False), ""
        steps = follow_in_terminal(iter([CALLS, *map(output, pieces), RESULT]), console=console)
        next(steps)
        for piece in pieces:
            next(steps)
            so_far += piece
            assert console.written == in_bars(so_far[: so_far.rfind("\n") + 1])
        next(steps)
        assert console.written == in_bars(so_far)

    def test_a_long_list_shows_the_part_in_progress_until_it_is_final(self) -> None:
        """The view is never higher than the terminal; the whole list is shown at the end."""
        console = RecordingConsole(width=40, height=8)
        todos = [*items(*"abcdefghij", status="completed"), *items("now", status="in_progress")]
        todos += items(*"klmnopqrst")
        steps = follow_in_terminal(iter([todos_event(todos)]), console=console)
        next(steps)
        running = console.text
        assert len(running.splitlines()) < 8
        assert "● [10] now" in running
        assert "(9 above, 8 below)" in running
        assert list(steps) == []
        assert format_todos(todos) in console.text.replace("\r", "")

    def test_a_pipe_names_the_calls_of_a_turn(self) -> None:
        """What began no line break is printed when another turn begins, which may use the ids."""
        console = RecordingConsole(terminal=False)
        first, second = (
            ("updates", {"agent": {"messages": [AIMessage("", tool_calls=calls, id=str(calls))]}})
            for calls in ([MAKE, {**MAKE, "id": "2"}], [MAKE])
        )
        chunks = [first, output("one"), second, output("two\n"), RESULT]
        list(follow_in_terminal(iter(chunks), console=console))
        assert console.written == f"  1 shell make │ one\n{in_bars('two')}"

    def test_an_error_leaves_the_list_on_the_screen(self) -> None:
        """The error is raised to the caller, and the countdown is gone."""

        def broken() -> Iterator[Any]:
            yield ("custom", todos_event(MIXED))
            yield ("custom", countdown_event(3))
            raise RuntimeError("boom")

        console = RecordingConsole()
        with pytest.raises(RuntimeError, match="boom"):
            list(follow_in_terminal(broken(), console=console))
        assert "in 3s" in console.text
        assert console.text.replace("\r", "").endswith(f"{format_todos(MIXED)}\n📋 2/4\n")

    @pytest.mark.parametrize(("todos", "shown"), [(None, ""), (items("a"), "– [0] a\n📋 0/1\n")])  # noqa: RUF001
    async def test_an_empty_stream_shows_what_is_known(self, todos: Any, shown: str) -> None:
        """A resumed thread has a list at once. The stream need not be a generator."""

        class Empty(AsyncIterator[Any]):
            async def __anext__(self) -> Any:
                raise StopAsyncIteration

        console = RecordingConsole(terminal=not todos)
        stream = follow_in_terminal(Empty(), console=console, todos=todos)
        assert [chunk async for chunk in stream] == []
        assert console.written == shown

    async def test_closing_an_asynchronous_view_ends_its_run(self) -> None:
        """The cursor is shown again."""
        closed: list[bool] = []

        async def endless() -> AsyncIterator[Any]:
            try:
                while True:
                    yield ("custom", todos_event(MIXED))
            finally:
                closed.append(True)

        console, stream = RecordingConsole(), endless()
        async with aclosing(follow_in_terminal(stream, console=console)) as chunks:
            await anext(chunks)
        assert closed
        assert "\x1b[?25h" in console.written

    @pytest.mark.parametrize("stream", [None, "text", [("custom", {})], {"type": "todos"}])
    def test_a_value_that_is_not_a_stream_is_refused(self, stream: Any) -> None:
        """The error says what to pass."""
        with pytest.raises(TypeError, match=r"graph\.stream"):
            follow_in_terminal(stream)

    def test_without_a_console_it_writes_to_the_standard_output(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        list(follow_in_terminal(iter([("custom", todos_event(items("Measure")))])))
        assert "Measure" in capsys.readouterr().out

    def test_without_rich_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The error comes when the function is used, not when it is imported."""
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setitem(sys.modules, "rich.console", None)
        with pytest.raises(ImportError, match=re.escape('"langgraph-todo-tools[rich]"')):
            follow_in_terminal(iter([]))

    def test_a_run_continues_if_its_view_cannot_be_written(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """All chunks pass through even if the disk is full or the reader of the pipe is gone."""
        chunks = [todos_event(items("a")), todos_event(items("b"))]
        with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as full:
            monkeypatch.setattr(sys, "stdout", full)
            assert list(follow_in_terminal(iter(chunks))) == chunks
            monkeypatch.undo()
            with suppress(OSError):
                full.close()
