"""Record the pictures of the README and the documentation: programs in a terminal.

Run by `make picture`.
"""

import sys
import tempfile
from pathlib import Path

from picture.animation import animate
from picture.recording import Frame, record

_PICTURES = Path(__file__).parent.parent.parent / "docs" / "pictures"
DEMO, BRANCHES = _PICTURES / "demo.svg", _PICTURES / "branches.svg"

# In the chat, a person needs a moment before each line.
_TYPED = (
    (4.0, "- [ ] Write the invitation\r"),
    (2.5, "- [ ] Invite Ann\r"),
    (2.5, "/fork 8 - [ ] Invite Bob\r"),
    (2.5, "/branches\r"),
    (2.5, "/quit\r"),
)


def record_demo() -> list[Frame]:
    """Record the demonstration in a terminal narrow enough for the screen of a phone."""
    return record([sys.executable, "-m", "todo_tools.demo"], columns=48, rows=22)


def draw_demo() -> str:
    """Draw the demonstration."""
    title = "An agent says that it is done at 3 of 5, is sent back, and finishes all 5"
    return animate(record_demo(), title=title)


def draw_branches() -> str:
    """Record a chat in which a person goes back, asks for something else, and sees both lists."""
    with tempfile.TemporaryDirectory() as folder:
        db = str(Path(folder, "threads.sqlite"))
        chat = [sys.executable, "-m", "graphs", "chat", "--grace", "0", "--db", db]
        frames = record(chat, columns=56, rows=26, typed=_TYPED)
    before_leaving = [frame for frame in frames if "/quit" not in str(frame)]
    return animate(before_leaving, title="A chat goes back and branches; each branch has its list")


if __name__ == "__main__":
    for picture, draw in ((DEMO, draw_demo), (BRANCHES, draw_branches)):
        picture.write_text(draw(), encoding="utf-8")
        print(f"wrote {picture}")
