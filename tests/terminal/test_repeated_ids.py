"""A model server that uses the same call id in each answer: every command still needs approval."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.openai_api import model_server
from tests.screens import Emulator
from tests.support import write_checklist

pytestmark = pytest.mark.slow

SETTINGS = ("--agent", "coding", "--model", "openai:local", "--workdir", "work", "--create")


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in a new directory, because programs write to the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def start() -> Iterator[Callable[..., Emulator]]:
    """Start a program with a model that runs two commands."""
    with ExitStack() as stack:
        model = stack.enter_context(model_server(["echo one >> log", "echo two >> log"]))

        def start(*argv: str) -> Emulator:
            terminal = Emulator("-m", "graphs", *argv, *SETTINGS, rows=50, **model)
            return stack.enter_context(closing(terminal))

        yield start


def log() -> list[str]:
    written = Path("work/log")
    return written.read_text().split() if written.exists() else []


@pytest.mark.parametrize(("first", "ran"), [("yes", ["one"]), ("no", [])])
def test_the_program_asks_about_each_command(
    first: str, ran: list[str], start: Callable[..., Emulator]
) -> None:
    """The second one waits, whatever was answered to the first."""
    terminal = start(write_checklist("Think"))
    terminal.see("command: echo one >> log", "Do it?")
    terminal.press(f"{first}\r")
    terminal.see("command: echo two >> log", "Do it?")
    assert log() == ran
    terminal.press("yes\r")
    terminal.wait(lambda: log() == [*ran, "two"])


@pytest.mark.parametrize(("first", "ran"), [("yes", ["one"]), ("no", [])])
def test_the_chat_asks_about_each_command(
    first: str, ran: list[str], start: Callable[..., Emulator]
) -> None:
    terminal = start("chat")
    terminal.see("your turn")
    terminal.press("Begin.\r")
    terminal.see("command: echo one >> log", "yes, no, always, or why not")
    terminal.press(f"{first}\r")
    terminal.see("command: echo two >> log")
    assert log() == ran
    terminal.press("yes\r")
    terminal.wait(lambda: log() == [*ran, "two"])
