"""Drawing in a notebook: safe HTML, and a live view of a run."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from threading import Condition
from typing import Any, ClassVar

import pytest
from hypothesis import given
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from langchain_core.messages import ToolMessage

from tests.pages import ELEMENTS, page
from tests.strategies import todo_lists
from tests.support import items
from todo_tools import TodoItem, format_todos
from todo_tools._list.formatting import one_line
from todo_tools._thread.events import countdown_event, todos_event
from todo_tools.rendering import follow_in_notebook, show_call, show_result, show_status, show_todos
from todo_tools.rendering._lines import Progress
from todo_tools.rendering.lowlevel import View


class TestHtml:
    def test_a_list_shows_its_items_and_a_bar(self) -> None:
        """Finished texts are struck through by an element, because a style may be lost."""
        todos = [*items("a"), *items("b", status="completed")]
        html = show_todos(todos)._repr_html_()
        assert "<s>b</s>" in html
        assert "<s>a</s>" not in html
        assert '<progress value="1" max="2"' in html


class TestHostileTexts:
    TEXTS: ClassVar = [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "</style><style>body{display:none}</style>",
        "&lt;b&gt; &amp; <!-- x",
        "javascript:alert(1)",
        "\u202eevil\nline\x1b[31m",
    ]

    @pytest.mark.parametrize("text", TEXTS)
    def test_a_text_is_only_text(self, text: str) -> None:
        """It creates no element or attribute, and the whole text is visible."""
        read = page(show_todos(items(text)))
        assert set(read.tags) <= ELEMENTS
        assert read.attributes <= {"class", "role", "value", "max", "aria-label", "title"}
        assert read.text == f"– [0] {one_line(text)}"  # noqa: RUF001

    @pytest.mark.parametrize("text", TEXTS)
    def test_a_call_and_an_error_are_only_text(self, text: str) -> None:
        """Both repeat text from a model."""
        details = {"action": "edit", "todos": [], "error": text}
        result = ToolMessage("x", name="edit_todos", tool_call_id="1", artifact=details)
        assert page(show_result(result)).text == f"Error: {one_line(text)}"
        assert page(show_call("shell", {"command": text})).text == f"shell {one_line(text)}"

    @given(todo_lists)
    def test_every_list_reads_as_in_the_terminal(self, todos: list[TodoItem]) -> None:
        read = page(show_todos(todos))
        assert set(read.tags) <= ELEMENTS
        assert read.text == format_todos(todos).replace("\n", "")

    @pytest.mark.parametrize("formula", [r"$\href{x}{y}$", r"\(x\)", r"\[x\]", "$$x$$"])
    def test_no_formula_is_rendered(self, formula: str) -> None:
        """Each formula delimiter is in its own element."""
        html = show_todos(items(formula))._repr_html_().split("</style>")[1]
        assert "mathjax_ignore" in html
        assert not re.search(r"[^>][$\\]|[$\\][^<]", html)


class Page(CapturingDisplayPublisher):
    """The outputs below a cell; a test can wait for one."""

    changed = Condition()

    def publish(self, *args: Any, **settings: Any) -> None:
        with self.changed:
            super().publish(*args, **settings)  # type: ignore[no-untyped-call]
            self.changed.notify_all()

    @property
    def frames(self) -> list[str]:
        """The texts of all outputs."""
        return [output["data"]["text/plain"] for output in self.outputs]

    def see(self, text: str) -> None:
        """Wait for a frame with a text."""
        self.wait_for(lambda: text in self.frames[-1])

    def wait_for(self, reached: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(reached, timeout=10)

    @property
    def seconds(self) -> list[int]:
        """The seconds that the frames show."""
        return [int(each) for each in re.findall(r"(\d+)s ", "\n".join(self.frames))]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Page:
    """A real IPython shell that publishes nothing."""
    make_shell: Any = InteractiveShell
    make_page: Any = Page
    shell = make_shell()
    shell.display_pub = make_page()
    monkeypatch.setattr(InteractiveShell, "_instance", shell)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    return shell.display_pub  # type: ignore[no-any-return]


@pytest.fixture
def notebook(screen: Page) -> Any:
    """The outputs sent to a notebook."""
    return screen.outputs


class TestFollowing:
    CHUNKS: ClassVar = [
        ("custom", todos_event(items("a"))),
        ("custom", countdown_event(1)),
        ("custom", todos_event(items("a", status="completed"))),
    ]

    def test_one_display_changes_in_place(self, notebook: Any) -> None:
        """It is created once and then updated."""
        assert list(follow_in_notebook(iter(self.CHUNKS))) == self.CHUNKS
        first, *updates = notebook
        assert not first["update"]
        assert all(update["update"] for update in updates)
        ids = {output["transient"]["display_id"] for output in notebook}
        assert len(ids) == 1

    def test_without_a_list_nothing_is_displayed(self, notebook: Any) -> None:
        """The stream may be any iterator."""
        list(follow_in_notebook(iter([("updates", {})])))
        assert notebook == []

    def test_outside_a_notebook_changes_are_lines(self, capsys: pytest.CaptureFixture[str]) -> None:
        """So the same program also runs as a script."""
        list(follow_in_notebook(iter(self.CHUNKS)))
        assert capsys.readouterr().out.splitlines()[:3] == [
            "– [0] a",  # noqa: RUF001
            "📋 0/1",
            "⏳ Auto-continuing in 1s...",
        ]


PLANNED = ("custom", todos_event(items("a")))


class TestActivity:
    """What is shown only while the run goes on, frame by frame."""

    @pytest.mark.parametrize("error", [None, RuntimeError("boom")])
    def test_the_saved_output_has_no_activity(
        self, screen: Page, error: RuntimeError | None
    ) -> None:
        """It is the list and its status; nothing updates it any more."""
        before = set(threading.enumerate())

        def stream() -> Iterator[Any]:
            yield PLANNED
            screen.see("s working")
            if error:
                raise error

        with pytest.raises(RuntimeError) if error else nullcontext():
            list(follow_in_notebook(stream()))
        lines = (*show_todos(items("a")).lines, *show_status(items("a")).lines)
        saved = View(lines, Progress(0, 1))
        assert screen.outputs[-1]["data"]["text/html"] == saved._repr_html_()
        assert screen.frames[-1] == f"{saved}"
        assert set(threading.enumerate()) == before
