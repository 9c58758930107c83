"""The chat in a terminal, a person who types at random, and a log that says what ran.

The model answers at random, mostly with commands that write one line each into the log.
"""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random

from campaigns.cases import Case, Trial
from tests.screens import Emulator

MOVES = 40

PROGRAM = """
import sys
from itertools import count
from random import Random
from graphs.terminal import agents, chat
from todo_tools.testing import ScriptedChatModel, call, turn
agent, tool, seed = sys.argv[1:]
chance, numbers = Random(seed), count()
def command():
    return f"sleep {chance.choice([0, 0.2, 1])}; echo {seed}-{next(numbers)} >> log"
def answer(prompt):
    if chance.random() < 0.2:
        return "Done."
    calls = [call(tool, command=command()) for _ in range(chance.choice([1, 2, 3]))]
    if chance.random() < 0.2:
        calls[0]["id"] = "call_0"
    if chance.random() < 0.2:
        calls.append(call("write_todos", mode="replace", todos=["One", "Two"]))
    return turn("", *calls)
agents.chat_model = lambda *_, **__: ScriptedChatModel(script=answer)
options = ["--workdir", "work", "--create", "--agent", agent, "--thread", "t", "--grace", "0"]
sys.exit(chat.main(options))
"""

_LINES = ["Begin.\r", "/go\r", "/edit add Three\r", "/edit 0 done\r", "!true\r", "/show\r"]
_STOP, _YES, _QUIT = "\x03", "yes\r", "/quit\r"
_MOVES = ["/fork 2\r", "/fork 4\r", "/switch 1\r", "/switch 2\r", "/redo 0\r", "/ask\r", "no\r"]


class Person:
    """A person at the chat; the program starts again when it has ended.

    Args:
        chance: What decides.
        folder: Where the program runs.
        agent: The agent of the chat, and the tool that its model calls.
    """

    def __init__(self, chance: Random, folder: Path, *agent: str) -> None:
        self.typed = Counter[str]()
        self.ended = Counter[str]()
        """How often each command had run when the program had surely seen its end."""
        self._unsure: set[str] = set()
        """The commands that ended about when the person stopped or left the program.

        It may have killed them between their last line and their end, and runs them again.
        """
        self._stops = False
        self._chance = chance
        self._folder = folder
        self._agent = agent
        self._start()

    def move(self, keys: Sequence[str]) -> None:
        """Press one of the keys, and look at the screen for a moment."""
        self._note()
        self._look(0.1)
        pressed = self._chance.choice(keys)
        self.typed[pressed] += 1
        stopped, self._stops = self._stops, pressed in (_STOP, _QUIT)
        self._screen.press(pressed)
        self._look(self._chance.choice([0.02, 0.1, 0.3, 1]))
        if self._stops or stopped:
            self._unsure |= self.ran().keys() - self.ended.keys()
        if self._screen.ended:
            self.close()
            self._start()

    def _note(self) -> None:
        """Note which commands have ended, each as it was first seen."""
        sure = {name: times for name, times in self.ran().items() if name not in self._unsure}
        self.ended = Counter({**sure, **self.ended})

    def ran(self) -> Counter[str]:
        """How often each command ran to its end."""
        log = self._folder / "work" / "log"
        return Counter(log.read_text().split() if log.exists() else ())

    def close(self) -> None:
        """Close the terminal."""
        self._screen.close()

    def _start(self) -> None:
        seed = str(self._chance.randrange(10**9))
        with_folder = f"import os; os.chdir({str(self._folder)!r})\n{PROGRAM}"
        self._screen = Emulator("-c", with_folder, *self._agent, seed, rows=40)
        self._screen.see("·")
        self._look(0.5)

    def _look(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._screen.ended:
            self._screen.read()


def asked(case: Case) -> None:
    """The coding agent: no more commands run than the person has approved."""
    keys = [*_LINES, *_MOVES, *[_STOP] * 3, *[_YES] * 8]
    with closing(Person(case.random, case.folder, "coding", "execute")) as person:
        for _ in range(MOVES):
            person.move(keys)
            case.tried += 1
            ran, approved = person.ran().total(), person.typed[_YES]
            assert ran <= approved, f"{ran} commands ran, and at most {approved} were approved"


def unasked(case: Case) -> None:
    """An agent that does not ask: on one branch, no command that has ended runs again."""
    keys = [*_LINES, "/go\r", "/go\r", *[_STOP] * 3, _QUIT]
    with closing(Person(case.random, case.folder, "until_done", "shell")) as person:
        for _ in range(MOVES):
            person.move(keys)
            case.tried += 1
            ended = person.ended
            again = {name for name, times in person.ran().items() if 0 < ended[name] < times}
            assert not again, f"ran again after their end: {again}"


TRIALS: dict[Trial, int] = {asked: 1, unasked: 1}
